"""What somebody's own code is called with, as a line of text says it: ``--input`` and ``--init``.

How it is used, from text to values::

    inputs = parse("x=bf16[rows=1024,4096] causal=True", "--input")     # of input_parser
    parameters = parameters_of(inputs)            # rows, as --set and --sweep take it
    bound(inputs, {"rows": 512})                  # {"x": BoundTensor(...), "causal": True}

An argument is ``name=value``, and a space or a comma separates two. A value is one of

- ``bf16[16384,4096]``, a tensor: the dtypes are in ``DTYPES``, ``fp32[]`` has no dimension, and
  ``i64[1,128]<32000`` draws whole numbers from 0 to below 32000;
- ``None``, ``True``, ``False``, a number, or text in quotes, ``'tanh'``;
- ``(...)`` or ``[...]``, a tuple or a list of values;
- ``bf16``, a dtype by itself.

A size, a bound or a whole number may be a **symbol** with a default, ``rows=1024``, and elsewhere
``rows`` alone: it becomes a parameter. The symbol ``dtype`` stands where a dtype does,
``x=dtype[rows=1024,64]``. Both texts of one's own code share their symbols.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from explorer.chains.descriptor import Parameter
from explorer.chains.parameters import float_dtype
from explorer.model.errors import UsageError
from explorer.model.run import Scalar

INTEGER_DTYPES = ("i32", "i64")
DTYPES = ("fp32", "fp16", "bf16", "fp8", "fp64", *INTEGER_DTYPES, "bool")
DTYPE_SYMBOL = "dtype"
LARGEST_SIZE = 1 << 40
"""Of a dimension: more elements than any device holds; an overflow would be told less clearly."""
WORDS: dict[str, bool | None] = {"None": None, "True": True, "False": False}
ESCAPES = {"\\": "\\", "'": "'", '"': '"', "n": "\n", "t": "\t", "r": "\r"}
"""After a backslash, in quotes."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A whole number that is a parameter; None is a default that stands elsewhere in the texts."""

    name: str
    default: int | None = None


Size: TypeAlias = int | Symbol


@dataclass(frozen=True, slots=True)
class TensorText:
    """A tensor.

    Attributes:
        dtype: One of ``DTYPES``; None for the parameter ``dtype``.
        shape: Size of each dimension.
        below: Of whole numbers: each is from 0 to below it; None where the text does not say.
    """

    dtype: str | None
    shape: tuple[Size, ...]
    below: Size | None = None


@dataclass(frozen=True, slots=True)
class DtypeText:
    """A dtype by itself; None for the parameter ``dtype``."""

    dtype: str | None


@dataclass(frozen=True, slots=True)
class ListText:
    """A list, which a frozen record cannot hold as such."""

    items: tuple["Value", ...]


Value: TypeAlias = (
    TensorText
    | DtypeText
    | Symbol
    | ListText
    | tuple["Value", ...]
    | bool
    | int
    | float
    | str
    | None
)


@dataclass(frozen=True, slots=True)
class Argument:
    """One ``name=value``."""

    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class InputText:
    """A whole text, in its order; no name stands in it twice."""

    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class BoundTensor:
    """A tensor with every symbol replaced; ``dtype`` is one of ``DTYPES``."""

    dtype: str
    shape: tuple[int, ...]
    below: int | None = None


@dataclass(frozen=True, slots=True)
class BoundDtype:
    """A dtype by itself, one of ``DTYPES``."""

    dtype: str


BoundValue: TypeAlias = (
    BoundTensor
    | BoundDtype
    | tuple["BoundValue", ...]
    | list["BoundValue"]
    | bool
    | int
    | float
    | str
    | None
)


def text(inputs: InputText) -> str:
    """The canonical text: reading it gives the same records."""
    return " ".join(f"{each.name}={_value_text(each.value)}" for each in inputs.arguments)


def _value_text(value: Value) -> str:
    match value:
        case TensorText():
            sizes = ",".join(map(_size_text, value.shape))
            below = "" if value.below is None else f"<{_size_text(value.below)}"
            return f"{value.dtype or DTYPE_SYMBOL}[{sizes}]{below}"
        case DtypeText():
            return value.dtype or DTYPE_SYMBOL
        case Symbol():
            return _size_text(value)
        case ListText():
            return f"[{', '.join(map(_value_text, value.items))}]"
        case tuple():
            comma = "," if len(value) == 1 else ""
            return f"({', '.join(map(_value_text, value))}{comma})"
        case str():
            return _quoted(value)
        case _:
            return repr(value)


def _size_text(size: Size) -> str:
    if isinstance(size, int):
        return str(size)
    return size.name if size.default is None else f"{size.name}={size.default}"


def _quoted(content: str) -> str:
    written = {char: f"\\{mark}" for mark, char in ESCAPES.items() if char != '"'}
    return f"'{''.join(written.get(char, char) for char in content)}'"


def parameters_of(*texts: InputText) -> tuple[Parameter, ...]:
    """The parameters that are written as symbols in these texts, in their order, ``dtype`` last.

    Raises:
        UsageError: A symbol has no default, or two.
    """
    defaults: dict[str, int | None] = {}
    has_dtype = False
    for symbol in (found for each in texts for found in _symbols(each)):
        if symbol is None:
            has_dtype = True
            continue
        known = defaults.get(symbol.name)
        if None not in (known, symbol.default) and known != symbol.default:
            raise UsageError(
                f"{symbol.name} has two defaults, {known} and {symbol.default}; write one of them "
                f"and {symbol.name} alone elsewhere."
            )
        defaults[symbol.name] = symbol.default if known is None else known
    parameters = [_int_parameter(name, default) for name, default in defaults.items()]
    if has_dtype:
        parameters.append(float_dtype("Floating-point type of the tensors written as dtype."))
    return tuple(parameters)


def _int_parameter(name: str, default: int | None) -> Parameter:
    if default is None:
        raise UsageError(
            f"{name} has no value: write {name}=1024 where it stands first, or '{name}' in quotes "
            "if it is text."
        )
    return Parameter(
        name=name, kind="int", cuda_default=default, cpu_default=default, minimum=1,
        maximum=LARGEST_SIZE, sentence=f"Stands in the inputs as {name}.",
    )  # fmt: skip


def _symbols(inputs: InputText) -> Iterator[Symbol | None]:
    """Every symbol, as often as it stands there; None for ``dtype``."""
    for each in inputs.arguments:
        yield from _symbols_in(each.value)


def _symbols_in(value: Value) -> Iterator[Symbol | None]:
    match value:
        case TensorText():
            if value.dtype is None:
                yield None
            below = () if value.below is None else (value.below,)
            yield from (size for size in (*value.shape, *below) if isinstance(size, Symbol))
        case DtypeText():
            if value.dtype is None:
                yield None
        case Symbol():
            yield value
        case ListText():
            yield from _symbols_in(value.items)
        case tuple():
            for item in value:
                yield from _symbols_in(item)


def bound(inputs: InputText, values: Mapping[str, Scalar]) -> dict[str, BoundValue]:
    """The arguments by name, with every symbol replaced by its value.

    Args:
        inputs: What was read.
        values: Of all parameters of :func:`parameters_of`, as ``Chain.resolve`` gives them.

    Raises:
        KeyError: A symbol has no value among them.
    """
    return {each.name: _bound(each.value, values) for each in inputs.arguments}


def _bound(value: Value, values: Mapping[str, Scalar]) -> BoundValue:
    match value:
        case TensorText():
            return BoundTensor(
                dtype=_bound_dtype(value.dtype, values),
                shape=tuple(_bound_size(size, values) for size in value.shape),
                below=None if value.below is None else _bound_size(value.below, values),
            )
        case DtypeText():
            return BoundDtype(_bound_dtype(value.dtype, values))
        case Symbol():
            return _bound_size(value, values)
        case ListText():
            return [_bound(item, values) for item in value.items]
        case tuple():
            return tuple(_bound(item, values) for item in value)
        case _:
            return value


def _bound_dtype(dtype: str | None, values: Mapping[str, Scalar]) -> str:
    return str(values[DTYPE_SYMBOL]) if dtype is None else dtype


def _bound_size(size: Size, values: Mapping[str, Scalar]) -> int:
    if isinstance(size, int):
        return size
    value = values[size.name]
    assert isinstance(value, int)  # Parameter.parse made it one.
    return value
