"""What autograd does in place, unless somebody watches.

The gradient of an operator that picks elements is zeros with a few elements put into them.
Autograd puts them there in place. While a dispatch mode is active, as one is whenever calls are
recorded, it takes the form that hands out a new tensor, which copies the zeros first: no other call
does that.
"""

import sys
from typing import Any

import torch

from explorer.engine import backward_pass
from explorer.engine.op_facts import name_of, reads_nothing

_PUTS = frozenset(("index_add", "index_put", "masked_scatter", "put", "scatter", "scatter_add"))
"""Operators that hand out their first tensor with some elements changed."""


class InPlaceForms:
    """Turns what autograd calls under a dispatch mode back into what it calls without one."""

    def __init__(self) -> None:
        """Nothing was called yet."""
        self._zeros: int | None = None

    def of(self, operator: Any, arguments: tuple[Any, ...]) -> Any:
        """The operator to run; to be asked of each call that computes, in order.

        Args:
            operator: What is called.
            arguments: As given.

        Returns:
            The form in place, where autograd itself calls it on what it filled just before.
        """
        name = name_of(operator)
        if self._zeros is None or name not in _PUTS or _address(arguments[0]) != self._zeros:
            return operator
        if not _is_autograds_own_call():
            return operator
        return getattr(getattr(torch.ops.aten, f"{name}_"), operator._overloadname, operator)

    def note(self, operator: Any, result: Any) -> None:
        """Remember what a call filled; to be told of each call that computes, in order."""
        is_fill = backward_pass.is_running() and reads_nothing(operator)
        self._zeros = _address(result) if is_fill else None


def _address(value: Any) -> int | None:
    """Of a tensor's memory; None of what is none, or lies in memory in another way."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value.untyped_storage().data_ptr()


def _is_autograds_own_call() -> bool:
    """Whether autograd's engine has made the call, and not somebody's function that it runs.

    Whoever called into torch stands above the dispatch mode, with what torch wraps a mode in
    between.
    """
    frame: Any = sys._getframe(1)
    between = (__name__, "explorer.engine.measure.recorder", "torch._")
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(between):
        frame = frame.f_back
    return frame is not None and str(frame.f_globals.get("__name__")).startswith("torch.autograd")
