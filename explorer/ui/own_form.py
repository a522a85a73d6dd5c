"""What is filled in to open own code, and what is right and wrong with it. No Qt, and nothing runs.

A file is read as text to see which names it defines; a module is not even looked for, since
finding it would run what stands above it.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.chains.input_parser import parse
from explorer.chains.input_text import InputText, parameters_of
from explorer.chains.own import MODULE_MARK, OwnName, read_name
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from explorer.model.own_code import OwnCode

if TYPE_CHECKING:
    from explorer.chains.descriptor import Parameter

EXAMPLE_INPUTS = "example_inputs"
INPUT_EXAMPLE = "x=bf16[rows=1024,4096] causal=True"
INIT_EXAMPLE = "hidden_size=512 bias=False"
MOST_READ = 1 << 20
"""Characters of a file that are looked through for names; a longer one is nobody's module."""
MOST_LISTED = 6


class Field(StrEnum):
    """What is filled in."""

    WHERE = "where"
    WHAT = "what"
    INPUTS = "inputs"
    INIT = "init"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFields:
    """The form as filled in.

    Attributes:
        where: A file or a module.
        what: A function or class in it.
        inputs: Text of the inputs.
        init: Text of the constructor's arguments.
        training: A module in training mode.
    """

    where: str = ""
    what: str = ""
    inputs: str = ""
    init: str = ""
    training: bool = False

    @classmethod
    def of(cls, chain: str, own: OwnCode) -> "OwnFields":
        """The form for own code that is known."""
        where, _, what = chain.rpartition(MODULE_MARK)
        return cls(
            where=where, what=what, inputs=own.inputs, init=own.init, training=own.training
        )  # fmt: skip

    @property
    def path(self) -> str:
        """The file with the home folder written out, or the module."""
        where = self.where.strip()
        return str(Path(where).expanduser()) if where.startswith("~") else where

    @property
    def chain(self) -> str:
        """The name of the own code."""
        return f"{self.path}{MODULE_MARK}{self.what.strip()}"

    @property
    def own(self) -> OwnCode:
        """How it is called."""
        return OwnCode(
            inputs=self.inputs.strip(), init=self.init.strip(), training=self.training
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What there is to say to each field.

    Attributes:
        errors: What is wrong, in a sentence a field.
        missing: Fields that nothing was filled into yet, and something has to be.
        hints: What helps to fill it in.
        only_name: The one name that a file defines; empty where there are none or several.
    """

    errors: Mapping[Field, str] = field(default_factory=dict)
    missing: frozenset[Field] = frozenset()
    hints: Mapping[Field, str] = field(default_factory=dict)
    only_name: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether it can be opened."""
        return not self.errors and not self.missing


def check_fields(fields: OwnFields) -> Checked:
    """Look at everything as far as it goes without running anything."""
    errors: dict[Field, str] = {}
    hints = {Field.WHERE: "A Python file, or a module that the worker's Python can import."}
    missing = frozenset(
        name
        for name, text in ((Field.WHERE, fields.where), (Field.WHAT, fields.what))
        if not text.strip()
    )
    names: tuple[str, ...] = ()
    is_file = False
    if fields.where.strip():
        try:
            # Any name will do while only the file is in question.
            place = read_name(f"{fields.path}{MODULE_MARK}f")
            place.check_there()
        except UsageError as error:
            errors[Field.WHERE] = str(error)
        else:
            is_file = place.is_file
            names = _names_in(place)
            hints[Field.WHERE] = (
                "A file; the worker runs it." if is_file else "A module; the worker imports it."
            )
    if Field.WHERE not in errors and not missing:
        try:
            read_name(fields.chain)
        except UsageError as error:
            errors[Field.WHAT] = str(error)
    hints[Field.WHAT] = _names_hint(fields, names)
    _check_texts(fields, names, is_file, errors, hints)
    public = [name for name in names if name != EXAMPLE_INPUTS]
    only = public[0] if len(public) == 1 else ""
    return Checked(errors=errors, missing=missing, hints=hints, only_name=only)


def _names_hint(fields: OwnFields, names: tuple[str, ...]) -> str:
    public = [name for name in names if name != EXAMPLE_INPUTS]
    if not public:
        return "A function, or a class derived from nn.Module."
    listed = ", ".join(public[:MOST_LISTED]) + (", …" if len(public) > MOST_LISTED else "")
    what = fields.what.strip()
    if what and what.split(".")[0] not in names:
        return f"{what} is not among what the file defines itself: {listed}."
    return f"The file defines {listed}."


def _check_texts(
    fields: OwnFields,
    names: tuple[str, ...],
    is_file: bool,
    errors: dict[Field, str],
    hints: dict[Field, str],
) -> None:
    read = {
        Field.INPUTS: _read(fields.inputs, Field.INPUTS, errors),
        Field.INIT: _read(fields.init, Field.INIT, errors),
    }
    parameters: tuple[Parameter, ...] = ()
    if not errors.keys() & read.keys():
        try:
            parameters = parameters_of(*read.values())
        except UsageError as error:
            errors[Field.INPUTS] = str(error)
    if fields.inputs.strip():
        defaults = (f"{each.name}={each.default(DeviceKind.CPU)}" for each in parameters)
        told = ", ".join(defaults)
        hints[Field.INPUTS] = f"Parameters: {told}." if told else "Without parameters."
    elif is_file and EXAMPLE_INPUTS not in names:
        hints[Field.INPUTS] = f"The file has no {EXAMPLE_INPUTS}(): say what goes in."
    else:
        owner = "file" if is_file else "module"
        hints[Field.INPUTS] = f"Left empty, the {owner}'s {EXAMPLE_INPUTS}() says what goes in."
    hints[Field.INIT] = "Of a class alone; a function has none."


def _read(source: str, name: Field, errors: dict[Field, str]) -> InputText:
    try:
        return parse(source, "This", tensors=name is Field.INPUTS)
    except UsageError as error:
        errors[name] = str(error)
        return InputText()


def _names_in(place: OwnName) -> tuple[str, ...]:
    if not place.is_file:
        return ()
    path = Path(place.where)
    try:
        return _defined(path, path.stat().st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=4)
def _defined(path: Path, _changed_ns: int) -> tuple[str, ...]:
    """Public functions and classes at a file's top; none if it is no Python."""
    try:
        with path.open(encoding="utf-8") as file:
            tree = ast.parse(file.read(MOST_READ))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ()
    kinds = (ast.FunctionDef, ast.ClassDef)
    return tuple(
        node.name for node in tree.body if isinstance(node, kinds) and node.name[:1] != "_"
    )
