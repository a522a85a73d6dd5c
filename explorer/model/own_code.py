"""What it takes to run a function or module that is not a built-in chain."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCode:
    """How somebody's own code is called; the code itself is named by the chain's name.

    Attributes:
        inputs: As of ``--input``: ``x=bf16[rows=1024,4096] causal=True``. Empty where the file
            gives ``example_inputs()``.
        init: As of ``--init``: the constructor's arguments, alike.
        training: A module in training mode; else in eval mode.
    """

    inputs: str = ""
    init: str = ""
    training: bool = False
