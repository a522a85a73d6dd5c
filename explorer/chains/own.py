"""A chain that is somebody's own function or module: what is known of it without running it."""

from explorer.chains import find_chain
from explorer.chains.descriptor import Chain
from explorer.chains.input_parser import parse
from explorer.chains.input_text import InputText, parameters_of
from explorer.model.own_code import OwnCode

MODULE_MARK = ":"
"""Between a file or module and what is in it; no id of a built-in chain has one."""


def is_own(chain: str) -> bool:
    """Whether a name is of somebody's own code: ``file.py:function``, ``module:Class``."""
    return MODULE_MARK in chain


def read_inputs(own: OwnCode) -> InputText:
    """What its inputs are said to be.

    Raises:
        UsageError: The text cannot be read.
    """
    return parse(own.inputs, "--input")


def read_init(own: OwnCode) -> InputText:
    """What its constructor's arguments are said to be.

    Raises:
        UsageError: The text cannot be read.
    """
    return parse(own.init, "--init", tensors=False)


def own_chain(chain: str, own: OwnCode) -> Chain:
    """The descriptor of own code: its ops are known only once it was captured.

    Raises:
        UsageError: The text of its inputs or of its constructor's arguments cannot be read.
    """
    _, _, name = chain.rpartition(MODULE_MARK)
    return Chain(
        id=chain,
        title=name,
        look_at="",
        formula="",
        parameters=parameters_of(read_inputs(own), read_init(own)),
        all_ops=(),
        trains=True,
    )


def chain_of(chain: str, own: OwnCode | None) -> Chain:
    """The descriptor of a built-in chain or of own code.

    Raises:
        UsageError: There is no such chain, or a text of own code cannot be read.
    """
    return own_chain(chain, own or OwnCode()) if is_own(chain) else find_chain(chain)
