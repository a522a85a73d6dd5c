"""Which ops of a graph can be folded into one box: passes, pieces, repeats. No Qt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from explorer.model.opgraph import Op

SMALL_OPS = 40
"""A graph of so few ops never comes up folded."""
MOST_ROWS = 48
"""A larger one comes up with its parts open as far as so many boxes go."""
LEAST_REPEATED = 4
"""Ops that come twice and are so many are a part; fewer have to come three times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Neighbouring ops that belong together.

    Attributes:
        first: Place of the first op.
        last: Of the last one.
        title: What they are: ``backward pass``, ``repeat 2 of 9``.
        depth: How many parts it lies in.
    """

    first: int
    last: int
    title: str
    depth: int = 0

    @property
    def span(self) -> tuple[int, int]:
        """First and last place, which no two parts of a graph share."""
        return self.first, self.last

    @property
    def n_ops(self) -> int:
        """How many ops it has."""
        return self.last - self.first + 1

    def holds(self, other: "Part") -> bool:
        """Whether another part lies within this one."""
        return self.first <= other.first and other.last <= self.last and other is not self


def parts_of(ops: Sequence[Op]) -> tuple[Part, ...]:
    """Every part of a graph, outer ones before those in them, from top to bottom.

    Parts are the pieces between graph breaks, the forward and the backward pass, and rounds of a
    loop: ops that come several times in the same order from the same lines.
    """
    whole = Part(first=0, last=len(ops) - 1, title="", depth=-1)
    found: list[Part] = []
    for piece in _among(whole, _pieces(ops, whole), found):
        for way in _among(piece, _passes(ops, piece), found):
            _among(way, _repeats(ops, way), found)
    return tuple(sorted(found, key=lambda part: (part.first, -part.last)))


def closed_at_first(parts: Sequence[Part], n_ops: int) -> frozenset[tuple[int, int]]:
    """Spans of the parts that are folded until somebody opens them; none in a small graph.

    All are open that fit, else the first one beside each other, else none.
    """
    if n_ops <= SMALL_OPS:
        return frozenset()
    closed = {part.span for part in parts}
    for depth in range(max((part.depth for part in parts), default=-1) + 1):
        level = [part for part in parts if part.depth == depth]
        for opened in (level, level[:1]):
            left = closed - {part.span for part in opened}
            if len(list(rows_shown(parts, left, n_ops))) <= MOST_ROWS:
                closed = left
                break
    return frozenset(closed)


def rows_shown(
    parts: Sequence[Part], closed: set[tuple[int, int]] | frozenset[tuple[int, int]], n_ops: int
) -> Iterator[tuple[int, int, Part | None]]:
    """First and last op of each box from top to bottom, with the part that it stands for."""
    outer: dict[int, Part] = {}
    for part in parts:
        if part.span in closed and part.first not in outer:
            outer[part.first] = part
    place = 0
    while place < n_ops:
        closing = outer.get(place)
        last = place if closing is None else closing.last
        yield place, last, closing
        place = last + 1


def _among(outer: Part, inner: list[Part], found: list[Part]) -> list[Part]:
    """Add the parts of a part where it falls into several; returns what to look into next."""
    if len(inner) < 2:
        return [outer]
    found += [part for part in inner if part.n_ops > 1]
    return inner


def _stretches(ops: Sequence[Op], outer: Part, keys: Sequence[object]) -> list[tuple[int, int]]:
    places = range(outer.first, outer.last + 1)
    spans = [list(same) for _, same in groupby(places, key=lambda i: keys[i])]
    return [(span[0], span[-1]) for span in spans]


def _pieces(ops: Sequence[Op], outer: Part) -> list[Part]:
    spans = _stretches(ops, outer, [op.piece for op in ops])
    return [
        Part(first=first, last=last, title=f"piece {i + 1} of {len(spans)}", depth=0)
        for i, (first, last) in enumerate(spans)
    ]


def _passes(ops: Sequence[Op], outer: Part) -> list[Part]:
    return [
        Part(
            first=first,
            last=last,
            title="backward pass" if ops[first].is_backward else "forward pass",
            depth=outer.depth + 1,
        )
        for first, last in _stretches(ops, outer, [op.is_backward for op in ops])
    ]


def _repeats(ops: Sequence[Op], outer: Part) -> list[Part]:
    """Rounds of loops; where there are several loops, each counts its own rounds."""
    keys = [(op.aten, op.source_place or op.source_line) for op in ops]
    made, place, end = [], outer.first, outer.last + 1
    while place < end:
        period, rounds = _loop_at(keys, place, end)
        for i in range(rounds):
            first = place + i * period
            title = f"repeat {i + 1} of {rounds}"
            made.append(
                Part(first=first, last=first + period - 1, title=title, depth=outer.depth + 1)
            )
        place += period * rounds or 1
    return made


def _loop_at(keys: Sequence[object], start: int, end: int) -> tuple[int, int]:
    """Ops in a round and the number of rounds from a place on; zeros where nothing repeats."""
    best = (0, 0)
    for period in range(1, (end - start) // 2 + 1):
        if keys[start] != keys[start + period]:
            continue
        same = 0
        while start + same + period < end and keys[start + same] == keys[start + same + period]:
            same += 1
        rounds = same // period + 1
        if period == 1 and rounds > 1:
            # A row of the same op is no loop of several.
            return 0, 0
        is_loop = rounds > 2 or (rounds == 2 and period >= LEAST_REPEATED)
        if is_loop and period * rounds > best[0] * best[1]:
            best = (period, rounds)
    return best
