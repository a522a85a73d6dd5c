"""Lines of a generated Triton kernel that show where its bytes come from.

A looped reduction goes through a row in several loops. What one loop stores and a later one loads
again, or what two loops both load, is traffic that the arguments alone do not tell.
"""

import re
from dataclasses import dataclass

_LOOP = re.compile(r"^(\s*)for .+ in (tl\.)?(range|static_range)\(")
_ACCESS = re.compile(r"tl\.(?P<way>load|store)\((?P<pointer>\w+)(?:\s*\+\s*\([^,]*\))?(?P<rest>.*)")
_VALUE = re.compile(r"^,\s*(?P<value>\w+)")
_SIGNATURE = re.compile(r"'(?P<pointer>\w+)': '\*(?P<dtype>\w+)'")
_RANDOM = re.compile(r"^\s*(?P<name>\w+) = tl\.(rand|randn|randint64)\w*\(")


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code: its number from 1, and its text without the indent."""

    number: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLoops:
    """A pointer that two loops of a kernel touch.

    Attributes:
        pointer: The argument's name.
        dtype: What it points to, by the kernel's signature; empty if it is not told there.
        first: The store or load in the earlier loop.
        second: The load in the later loop.
        drawn: The line that draws the random number which ``first`` stores, None for other values.
    """

    pointer: str
    dtype: str
    first: CodeLine
    second: CodeLine
    drawn: CodeLine | None = None


@dataclass(frozen=True, slots=True)
class _Touch:
    pointer: str
    is_store: bool
    loop: int
    line: CodeLine
    value: str


def stored_and_loaded(source: str) -> tuple[TwoLoops, ...]:
    """Pointers that a loop stores to and a later loop loads from, in the order of the stores."""
    dtypes = _dtypes(source)
    random = {
        match["name"]: CodeLine(number, line.strip())
        for number, line in _lines(source)
        if (match := _RANDOM.match(line))
    }
    touches = _touches(source)
    found: dict[str, TwoLoops] = {}
    for i, touch in enumerate(touches):
        if not touch.is_store or touch.pointer in found:
            continue
        again = next(
            (
                later
                for later in touches[i + 1 :]
                if later.pointer == touch.pointer and not later.is_store and later.loop > touch.loop
            ),
            None,
        )
        if again is not None:
            found[touch.pointer] = TwoLoops(
                pointer=touch.pointer,
                dtype=dtypes.get(touch.pointer, ""),
                first=touch.line,
                second=again.line,
                drawn=random.get(touch.value),
            )
    return tuple(found.values())


def loaded_twice(source: str) -> tuple[TwoLoops, ...]:
    """Pointers that two loops load from, not counting what a loop stored before."""
    dtypes = _dtypes(source)
    own = {pair.pointer for pair in stored_and_loaded(source)}
    first: dict[str, _Touch] = {}
    found: dict[str, TwoLoops] = {}
    for touch in _touches(source):
        if touch.is_store or touch.pointer in own or touch.loop == 0:
            continue
        before = first.setdefault(touch.pointer, touch)
        if touch.loop > before.loop and touch.pointer not in found:
            found[touch.pointer] = TwoLoops(
                pointer=touch.pointer,
                dtype=dtypes.get(touch.pointer, ""),
                first=before.line,
                second=touch.line,
            )
    return tuple(found.values())


def _lines(source: str) -> list[tuple[int, str]]:
    return list(enumerate(source.splitlines(), start=1))


def _dtypes(source: str) -> dict[str, str]:
    return {match["pointer"]: match["dtype"] for match in _SIGNATURE.finditer(source)}


def _touches(source: str) -> list[_Touch]:
    """Loads and stores in order, each with the number of its loop; 0 is outside of any."""
    touches = []
    loops, open_indent = 0, -1
    for number, line in _lines(source):
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent <= open_indent:
            open_indent = -1
        if open_indent < 0 and (loop := _LOOP.match(line)):
            loops += 1
            open_indent = len(loop[1])
        for access in _ACCESS.finditer(line):
            value = _VALUE.match(access["rest"])
            touches.append(
                _Touch(
                    pointer=access["pointer"],
                    is_store=access["way"] == "store",
                    loop=loops if open_indent >= 0 else 0,
                    line=CodeLine(number, line.strip()),
                    value=value["value"] if value else "",
                )
            )
    return touches
