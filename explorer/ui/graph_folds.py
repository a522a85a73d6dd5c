"""What of the op graph is folded, and the picture that is left of it. No Qt.

Folding is for the eye alone: the plan knows nothing of it.
"""

from collections.abc import Sequence
from dataclasses import replace

from explorer.ui.graph_lanes import in_lanes
from explorer.ui.graph_parts import Part, closed_at_first, parts_of, rows_shown
from explorer.ui.op_links import ChainPicture, Link, LinkState, OpRow, SideInput

Span = tuple[int, int]


class Folding:
    """Which parts of the shown graph are closed; of another graph it begins anew."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.parts: tuple[Part, ...] = ()
        self.closed: frozenset[Span] = frozenset()
        self.is_untouched = True
        """Nobody has opened or closed anything yet."""

    def take(self, picture: ChainPicture | None) -> None:
        """Learn which graph is shown; what somebody opened or closed stays while it does."""
        ops = [row.op for row in picture.rows] if picture else []
        names = tuple(op.name for op in ops)
        if names != self.names:
            self.names = names
            self.parts = parts_of(ops) if ops else ()
            self.closed = closed_at_first(self.parts, len(ops))
            self.is_untouched = True

    def set_closed(self, span: Span, closed: bool) -> None:
        """Fold a part, or open it."""
        self.closed = self.closed | {span} if closed else self.closed - {span}
        self.is_untouched = False

    def set_all(self, closed: bool) -> None:
        """Fold every part, or open all."""
        self.closed = frozenset(part.span for part in self.parts) if closed else frozenset()
        self.is_untouched = False

    def reveal(self, picture: ChainPicture, *names: str) -> bool:
        """Open whatever hides one of these ops; returns whether anything did."""
        places = [i for i, row in enumerate(picture.rows) if row.op.name in names]
        hiding = {span for span in self.closed if any(span[0] <= i <= span[1] for i in places)}
        if hiding:
            self.closed -= hiding
            self.is_untouched = False
        return bool(hiding)

    def sentence(self) -> str:
        """Says of a graph that came up folded that it did, and what to do; else empty."""
        if not self.is_untouched or not self.closed:
            return ""
        n_boxes = len(list(rows_shown(self.parts, self.closed, len(self.names))))
        return f"{len(self.names)} ops in {n_boxes} boxes: click one to open it"

    def folded(self, picture: ChainPicture) -> ChainPicture:
        """The picture with one box for each closed part, and the links between what is left."""
        if not self.parts:
            return picture
        shown = tuple(rows_shown(self.parts, self.closed, len(picture.rows)))
        rows = tuple(
            replace(picture.rows[first], part=self._begun_at(first))
            if part is None
            else folded_row(picture.rows[first : last + 1], part)
            for first, last, part in shown
        )
        row_at = [i for i, (first, last, _) in enumerate(shown) for _ in range(first, last + 1)]
        spans = [(first, last) for first, last, _ in shown]
        if len(rows) == len(picture.rows):
            return replace(picture, rows=rows, frames=self._frames(row_at))
        links = _Links(picture, row_at, rows)
        return replace(
            picture,
            rows=rows,
            links=links.between_neighbours(),
            side_links=in_lanes(links.past_others()),
            groups=_inner(picture.groups, spans),
            parted=_inner(picture.parted, spans),
            bridges=tuple(
                sorted(
                    {
                        (row_at[above], row_at[below])
                        for above, below in picture.bridges
                        if row_at[above] != row_at[below]
                    }
                )
            ),
            frames=self._frames(row_at),
        )

    def around(self, first: int, last: int, within: Span | None = None) -> Part | None:
        """The innermost open part round some ops, or round a folded part of that span."""
        parts = [
            part
            for part in self.parts
            if part.first <= first and last <= part.last and part.span not in self.closed
        ]
        if within is not None:
            parts = [part for part in parts if part.last >= within[1]]
        return min(parts, key=lambda part: part.n_ops, default=None)

    def _begun_at(self, first: int) -> Part | None:
        part = self.around(first, first)
        return part if part is not None and part.first == first else None

    def _frames(self, row_at: Sequence[int]) -> tuple[Span, ...]:
        opened = [p for p in self.parts if p.span not in self.closed]
        outer = [p for p in opened if not any(other.holds(p) for other in self.parts)]
        return tuple((row_at[part.first], row_at[part.last]) for part in outer)


def folded_row(rows: Sequence[OpRow], part: Part) -> OpRow:
    """One box for several ops."""
    inputs: dict[str, int] = {}
    for row in rows:
        for side in row.side_inputs:
            inputs[side.name] = inputs.get(side.name, 0) + side.n_bytes
    return OpRow(
        op=rows[0].op,
        launches=tuple(sorted({i for row in rows for i in row.launches})),
        side_inputs=tuple(SideInput(name=name, n_bytes=size) for name, size in inputs.items()),
        n_bytes=sum(row.n_bytes for row in rows),
        part=part,
        folded=tuple(row.op for row in rows),
    )


class _Links:
    """The links of a picture of which some ops are folded."""

    def __init__(
        self, picture: ChainPicture, row_at: Sequence[int], rows: tuple[OpRow, ...]
    ) -> None:
        self._rows = rows
        self._neighbours: dict[int, Link] = {}
        self._crossing: dict[Span, list[Link]] = {}
        for place, link in enumerate(picture.links):
            ends = (row_at[place], row_at[place + 1])
            if ends[0] != ends[1]:
                self._neighbours[ends[0]] = link
                self._cross(ends, link)
        for side in picture.side_links:
            self._cross((row_at[side.above], row_at[side.below]), side.link)

    def _cross(self, ends: Span, link: Link) -> None:
        if link.tensors and ends[0] != ends[1]:
            self._crossing.setdefault(ends, []).append(link)

    def between_neighbours(self) -> tuple[Link, ...]:
        """Between each box and the next."""
        made = []
        for place in range(len(self._rows) - 1):
            crossing = self._crossing.get((place, place + 1), [])
            neighbour = self._neighbours[place]
            if neighbour.graph_break is not None or not crossing:
                made.append(neighbour)
            else:
                made.append(bundled(crossing))
        return tuple(made)

    def past_others(self) -> list[tuple[int, int, Link]]:
        """Links past other boxes; all into one folded part are one, as nobody follows a hundred."""
        kept: dict[Span, list[Link]] = {}
        for (above, below), links in sorted(self._crossing.items()):
            if below == above + 1:
                continue
            first = next((a for a, b in kept if b == below), above)
            ends = (first if self._rows[below].folded else above, below)
            kept.setdefault(ends, []).extend(links)
        return [(above, below, bundled(links)) for (above, below), links in kept.items()]


def bundled(links: Sequence[Link]) -> Link:
    """One link for several."""
    if len(links) == 1:
        return links[0]
    return Link(
        first=links[0].first,
        second=links[-1].second,
        tensors=tuple(dict.fromkeys(name for link in links for name in link.tensors)),
        state=LinkState.ON_CHIP if all(x.is_fused for x in links) else LinkState.THROUGH_MEMORY,
        bytes_written=_written_once(links),
        bytes_read=sum(link.bytes_read for link in links),
        pedigree=links[0].pedigree,
        bundle=tuple(links),
    )


def _written_once(links: Sequence[Link]) -> int:
    """A value that several ops read is written once."""
    written: dict[tuple[str, tuple[str, ...]], int] = {}
    for link in links:
        written[link.first, link.tensors] = link.bytes_written
    return sum(written.values())


def _inner(groups: Sequence[Span], spans: Sequence[Span]) -> tuple[Span, ...]:
    """Rows of a group of ops; a box that it holds only in part stands outside."""
    found = []
    for first, last in groups:
        rows = [i for i, (a, b) in enumerate(spans) if first <= a and b <= last]
        if rows and (len(rows) > 1 or spans[rows[0]][0] < spans[rows[0]][1]):
            found.append((rows[0], rows[-1]))
    return tuple(found)
