"""Lanes for the links that go past an op, so that no two lie on each other. No Qt."""

from collections.abc import Iterable

from explorer.ui.op_links import Link, SideLink

FAR_ROWS, CUT_ROWS = 12, 3
"""A link past more rows than the first is drawn along the second number of rows only, at its end.

In the backward pass nearly every op reads something from the other end of the graph.
"""


def in_lanes(far: Iterable[tuple[int, int, Link]]) -> tuple[SideLink, ...]:
    """Put links past other ops side by side, each in the innermost lane that is free there.

    One from far above has only its end drawn, and takes its lane only there.

    Args:
        far: Row of the first op, row of the second, and the link.
    """
    found = [(above, below, link, _top(above, below)) for above, below, link in far]
    taken: list[list[tuple[int, int]]] = []
    made = []
    for above, below, link, top in sorted(found, key=lambda each: (each[1] - each[3], each[0])):
        lane = next(
            (i for i, spans in enumerate(taken) if all(b <= top or below <= a for a, b in spans)),
            len(taken),
        )
        if lane == len(taken):
            taken.append([])
        taken[lane].append((top, below))
        made.append(SideLink(link=link, above=above, below=below, lane=lane, top=top))
    return tuple(sorted(made, key=lambda side: (side.top, side.below, side.above)))


def _top(above: int, below: int) -> int:
    """Row where the line of a link past other ops begins."""
    return above if below - above <= FAR_ROWS else below - CUT_ROWS
