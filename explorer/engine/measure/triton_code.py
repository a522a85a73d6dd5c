"""Which arguments of a Triton kernel are read and which are written, from what Triton made of it.

Inductor tells this by the arguments' names. Of a kernel that somebody wrote, Triton's first
intermediate language (TTIR) tells: a pointer is followed from the argument to loads and stores.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FUNCTION = re.compile(r"tt\.func public @\S+?\((?P<arguments>.*)\)\s*(?:attributes .*)?\{")
_POINTER = re.compile(r"%(?P<name>\w+): !tt\.(?:ptr<|tensordesc<)")
_LINE = re.compile(r"^\s*(?:%(?P<result>\w+)(?::\d+)?\s*=\s*)?(?P<op>[\w.]+)\b(?P<rest>.*)$")
_VALUE = re.compile(r"%(\w+)(?:#\d+)?")
_CARRIED = re.compile(r"%(\w+) = %(\w+)(?:#\d+)?")
_READING = ("tt.load", "tt.descriptor_load", "tt.descriptor_gather")
_WRITING = ("tt.store", "tt.descriptor_store", "tt.descriptor_scatter")
_BOTH = ("tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce", "tt.call")


@dataclass(frozen=True, slots=True)
class PointerUse:
    """Whether a kernel loads from an argument, and whether it stores to it."""

    is_read: bool
    is_written: bool


def pointer_uses(ttir: str) -> tuple[PointerUse, ...]:
    """How a kernel uses each pointer among its arguments, in their order.

    Args:
        ttir: Text of the kernel's module.

    Returns:
        Nothing where the text is not as expected.
    """
    function = _FUNCTION.search(ttir)
    if function is None:
        return ()
    names = [match["name"] for match in _POINTER.finditer(function["arguments"])]
    roots: dict[str, set[str]] = {name: {name} for name in names}
    read: set[str] = set()
    written: set[str] = set()
    for result, op, rest in _lines(ttir[function.end() :]):
        if op.startswith(("scf.for", "scf.while")):
            for inner, outer in _CARRIED.findall(rest):
                roots.setdefault(inner, set()).update(roots.get(outer, set()))
        values = _VALUE.findall(rest)
        reached = set().union(*(roots.get(value, set()) for value in values))
        if op in _READING or op in _BOTH:
            read |= reached
        if op in _WRITING or op in _BOTH:
            written |= reached
        if result is not None and op not in (*_READING, *_BOTH):
            roots.setdefault(result, set()).update(reached)
    return tuple(PointerUse(name in read, name in written) for name in names)


def _lines(body: str) -> Iterator[tuple[str | None, str, str]]:
    for line in body.splitlines():
        match = _LINE.match(line)
        if match is not None:
            yield match["result"], match["op"], match["rest"]
