"""Frozen records to plain JSON data and back, checked against the records' own annotations.

Pure standard library, since it runs in the worker too, under whatever Python the user names.
Reading is strict in types (a foreign or damaged file is refused in one sentence that names the
field) and lenient in one point: a field it does not know, written by a later release, is ignored.
"""

import dataclasses
import functools
import math
import types
import typing
from enum import Enum
from typing import Any, TypeVar

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
T = TypeVar("T")

LARGEST_INTEGER = 2**63
MOST_QUOTED = 60

# Annotations are resolved once a record class: a run holds thousands of records of a few classes.
_FIELDS: dict[type[Any], dict[str, tuple[Any, bool]]] = {}


class DecodeError(ValueError):
    """The data does not fit the record; the message names the field and what it holds."""


def to_plain(value: object) -> Any:
    """Turn a record, or a tuple or dict of records, into dicts, lists and scalars.

    Raises:
        TypeError: The value holds something that has no place in a record.
    """
    if value is None or (isinstance(value, bool | int | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        # JSON has no NaN; a number that could not be computed is no number.
        return value if math.isfinite(value) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): to_plain(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} cannot be saved")


def from_plain(record: type[T], data: object, where: str = "") -> T:
    """Build ``record`` from plain data.

    Args:
        record: A dataclass.
        data: What ``json.loads`` gave.
        where: Path of the field, for the message.

    Raises:
        DecodeError: A field is missing or has another type.
    """
    if not isinstance(data, dict):
        raise DecodeError(f"{where or record.__name__} should be an object, not {_kind(data)}")
    values = {}
    for name, (annotation, required) in _fields(record).items():
        path = f"{where}.{name}" if where else name
        if name in data:
            values[name] = _decode(annotation, data[name], path)
        elif required:
            raise DecodeError(f"{path} is missing")
    return record(**values)


def _fields(record: type[Any]) -> dict[str, tuple[Any, bool]]:
    if record not in _FIELDS:
        hints = typing.get_type_hints(record)
        _FIELDS[record] = {
            field.name: (
                hints[field.name],
                field.default is dataclasses.MISSING
                and field.default_factory is dataclasses.MISSING,
            )
            for field in dataclasses.fields(record)
        }
    return _FIELDS[record]


def _kind(data: object) -> str:
    return {dict: "an object", list: "a list", str: "text", bool: "true or false"}.get(
        type(data), "nothing" if data is None else "a number"
    )


def _cut(text: str) -> str:
    """What a sentence may quote of a file."""
    return text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}…"


@functools.cache
def _parts(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """What an annotation is made of: looked up once, since a file holds thousands of values."""
    return typing.get_origin(annotation), typing.get_args(annotation)


def _decode(annotation: Any, data: object, where: str) -> Any:
    # Most values are text or numbers within their range.
    if annotation is str and type(data) is str:
        return data
    origin, items = _parts(annotation)
    if origin in (types.UnionType, typing.Union):
        return _decode_union(items, data, where)
    if origin is tuple:
        return _decode_tuple(items, data, where)
    if origin is dict:
        if not isinstance(data, dict):
            raise DecodeError(f"{where} should be an object, not {_kind(data)}")
        item = items[1]
        return {
            str(key): _decode(item, value, f"{where}.{_cut(str(key))}")
            for key, value in data.items()
        }
    if dataclasses.is_dataclass(annotation):
        return from_plain(typing.cast("type[Any]", annotation), data, where)
    return _decode_scalar(annotation, data, where)


def _decode_scalar(annotation: Any, data: object, where: str) -> Any:
    if annotation is type(None):
        if data is None:
            return None
        raise DecodeError(f"{where} should be nothing, not {_kind(data)}")
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        try:
            return annotation(data)
        except ValueError:
            known = ", ".join(str(member.value) for member in annotation)
            raise DecodeError(f"{where} is {_cut(repr(data))}; known are {known}") from None
    if isinstance(data, int | float) and not isinstance(data, bool):
        _check_size(data, where)
        if annotation is float:
            return float(data)
        if annotation is int and isinstance(data, int):
            return data
    if annotation in (str, bool) and isinstance(data, annotation):
        return data
    raise DecodeError(f"{where} should be {annotation.__name__}, not {_kind(data)}")


def _check_size(number: float, where: str) -> None:
    """Refuse what JSON can spell and no measurement can give: NaN, 1e999, integers of 300 digits.

    Arithmetic on them would fail later, in a place that can't name the file.
    """
    fits = abs(number) < LARGEST_INTEGER if isinstance(number, int) else math.isfinite(number)
    if not fits:
        raise DecodeError(f"{where} is a number out of any range")


def _decode_tuple(items: tuple[Any, ...], data: object, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise DecodeError(f"{where} should be a list, not {_kind(data)}")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(_decode(items[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    if len(items) != len(data):
        raise DecodeError(f"{where} should hold {len(items)} values, not {len(data)}")
    return tuple(
        _decode(kind, item, f"{where}[{i}]")
        for i, (kind, item) in enumerate(zip(items, data, strict=True))
    )


def _decode_union(options: tuple[Any, ...], data: object, where: str) -> Any:
    if data is None and type(None) in options:
        return None
    ordered = [option for option in options if option is not type(None)]
    if len(ordered) == 1:
        return _decode(ordered[0], data, where)
    # An int field of a union keeps its ints: try the exact type before float takes it.
    ordered.sort(key=lambda option: option is not type(data))
    faults = []
    for option in ordered:
        try:
            return _decode(option, data, where)
        except DecodeError as error:
            faults.append(error)
    if len(faults) == 1 or ordered[0] is type(data):
        raise faults[0]
    names = ", ".join(option.__name__ for option in options if option is not type(None))
    raise DecodeError(f"{where} should be one of {names}, not {_cut(repr(data))}")
