"""A chain that is somebody's own function or module: what is known of it without running it."""

from dataclasses import dataclass
from pathlib import Path

from explorer.chains import find_chain
from explorer.chains.descriptor import Chain
from explorer.chains.input_parser import parse
from explorer.chains.input_text import InputText, parameters_of, text
from explorer.model.errors import UsageError
from explorer.model.own_code import OwnCode

MODULE_MARK = ":"
"""Between a file or module and what is in it; no id of a built-in chain has one."""
FILE_SUFFIX = ".py"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnName:
    """What names somebody's own code, in its parts.

    Attributes:
        where: A file or a module.
        what: The function or class in it; ``Outer.inner`` for one inside a class.
        is_file: Whether ``where`` is a file.
    """

    where: str
    what: str
    is_file: bool

    def check_there(self) -> None:
        """Make sure that the file is there; a module only the worker's Python can find.

        Raises:
            UsageError: It is not there, or it is a folder.
        """
        if self.is_file and not Path(self.where).is_file():
            what = "is a folder" if Path(self.where).is_dir() else "is not there"
            raise UsageError(f"{self.where} {what}; name a Python file, file.py:function.")


def is_own(chain: str) -> bool:
    """Whether a name is of somebody's own code: ``file.py:function``, ``module:Class``."""
    return MODULE_MARK in chain


def is_file_alone(chain: str) -> bool:
    """Whether a name is of a file without what is in it."""
    return not is_own(chain) and (chain.endswith(FILE_SUFFIX) or "/" in chain)


def read_name(chain: str) -> OwnName:
    """Take a name apart.

    Raises:
        UsageError: It is no name of own code.
    """
    where, _, what = chain.rpartition(MODULE_MARK)
    parts = where.split(".")
    is_file = where.endswith(FILE_SUFFIX) or "/" in where or "\\" in where
    if not where or not what:
        missing = (
            "a function or class after the colon" if where else "a file or module before the colon"
        )
        raise UsageError(f"{chain} lacks {missing}: file.py:function or package.module:Class.")
    if not all(part.isidentifier() for part in what.split(".")):
        raise UsageError(f"{what!r} in {chain} cannot be the name of a function or class.")
    if not is_file and not all(part.isidentifier() for part in parts):
        raise UsageError(
            f"{where!r} in {chain} is neither a file that ends in {FILE_SUFFIX} nor a module."
        )
    return OwnName(where=where, what=what, is_file=is_file)


def canonical(own: OwnCode) -> OwnCode:
    """The same with texts that say the same alike, so that runs of the same work are known.

    Raises:
        UsageError: A text cannot be read.
    """
    inputs, init = text(read_inputs(own)), text(read_init(own))
    return OwnCode(inputs=inputs, init=init, training=own.training)


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
