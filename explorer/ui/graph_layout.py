"""Where the parts of the operator chain lie, and where the keyboard stops in it."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QPointF, QRectF

from explorer.ui.op_links import ChainPicture, Link

SHARES_PX = ((20.0, 19.0), (28.0, 34.0), (50.0, 56.0))
"""Heights of an op's box and of the room below it: at least, with air round the tags, at most."""
END_PX = 24.0
"""Room for what goes into and comes out of the chain."""
MARGIN_PX = 12.0
PILL_PX = 22.0
LEAST_PILL_PX = 17.0
PILL_SHARE = 0.55
"""How much of a box's width a link's pill takes; the rest is for what comes in from the side."""
LANE_PX = 21.0
MOST_LANES = 4
"""Links past other ops that lie beside each other; further ones share the outermost lane."""
BREAK_PX = 22.0
"""More room below an op where the graph breaks, for the reason."""
WHY_PX = 20.0
"""Width of the mark at a pill's end that stands for a reason."""
FOLD_PX = 15.0
"""Width of the triangle in a box that folds the part which begins there."""
SPINE = 0.29
"""Where the line through the ops runs, as a share of a box's width."""

Kind = Literal["op", "link", "side"]


@dataclass(frozen=True, slots=True)
class Stop:
    """Something in the picture that can be pointed at: an op, a link, or a link at the side.

    Attributes:
        kind: Which of the three.
        place: Its index in the picture's rows, links or side links.
    """

    kind: Kind
    place: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things lie, from the size of the widget and the number of things alone."""

    width: float
    box: float
    gap: float
    lanes: int = 0
    breaks: tuple[int, ...] = ()

    @classmethod
    def fit(
        cls,
        width: float,
        height: float,
        n_ops: int,
        lanes: int = 0,
        breaks: tuple[int, ...] = (),
    ) -> "Layout":
        """Share the height out: first the links get air, then boxes and links grow together.

        Args:
            width: Of the widget.
            height: Alike.
            n_ops: Boxes, from top to bottom.
            lanes: Room at the side for so many links.
            breaks: Places of the ops below which the graph breaks.
        """
        room = height - 2 * END_PX - 8 - len(breaks) * BREAK_PX
        (box, gap), *larger = SHARES_PX
        for next_box, next_gap in larger:
            used = n_ops * box + (n_ops - 1) * gap
            more = n_ops * (next_box - box) + (n_ops - 1) * (next_gap - gap)
            share = min(max((room - used) / max(more, 1.0), 0.0), 1.0)
            box += share * (next_box - box)
            gap += share * (next_gap - gap)
        return cls(width, box, gap, min(lanes, MOST_LANES), breaks)

    def op_rect(self, place: int) -> QRectF:
        """The box of the op at a place."""
        n_breaks = sum(each < place for each in self.breaks)
        top = END_PX + 4 + place * (self.box + self.gap) + n_breaks * BREAK_PX
        beside = self.lanes * LANE_PX + (4 if self.lanes else 0)
        return QRectF(MARGIN_PX, top, self.width - 2 * MARGIN_PX - beside, self.box)

    def places_in(self, top: float, bottom: float, n_ops: int) -> range:
        """The ops that lie between two heights, with the room below each, and one more each way."""
        places = range(n_ops)
        first = bisect_right(places, top, key=lambda i: self.op_rect(i).top()) - 2
        last = bisect_right(places, bottom, key=lambda i: self.op_rect(i).top())
        return range(max(first, 0), min(last + 1, n_ops))

    def fold_rect(self, place: int) -> QRectF:
        """Where a click folds or opens the part that begins at a place."""
        box = self.op_rect(place)
        return QRectF(box.left(), box.top(), FOLD_PX + 5, box.height())

    @property
    def spine_x(self) -> float:
        """Where the line through the ops runs."""
        return self.op_rect(0).left() + self.op_rect(0).width() * SPINE

    def link_rect(self, place: int) -> QRectF:
        """The room below the op at a place."""
        above = self.op_rect(place)
        height = self.gap + (BREAK_PX if place in self.breaks else 0)
        return QRectF(above.left(), above.bottom(), above.width(), height)

    def pill(self, place: int) -> QRectF:
        """The face of the link below the op at a place."""
        room = self.link_rect(place)
        room.setHeight(self.gap)
        width = room.width() * PILL_SHARE
        height = max(min(PILL_PX, room.height() - 6), LEAST_PILL_PX)
        left = max(self.spine_x - width / 2, room.left() + 4)
        return QRectF(left, room.center().y() - height / 2, width, height)

    def lane_x(self, lane: int) -> float:
        """The middle of a lane beside the ops."""
        right = self.op_rect(0).right()
        return right + 9 + (min(lane, MOST_LANES - 1) + 0.5) * LANE_PX

    def side_ends(self, above: int, below: int) -> tuple[QPointF, QPointF]:
        """Where a link past other ops leaves the first and reaches the second."""
        first, last = self.op_rect(above), self.op_rect(below)
        return (
            QPointF(first.right(), first.center().y() + first.height() * 0.18),
            QPointF(last.right(), last.center().y() - last.height() * 0.18),
        )

    def side_pill(self, above: int, below: int, lane: int, length: float) -> QRectF:
        """The face of a link past other ops: upright, ``length`` long where there is room."""
        first, last = self.side_ends(above, below)
        room = last.y() - first.y() - 18
        height = max(min(length, room), 16.0)
        middle = (first.y() + last.y()) / 2
        return QRectF(self.lane_x(lane) - 8.5, middle - height / 2, 17, height)


def least_height(n_ops: int, n_breaks: int = 0) -> int:
    """Below this height the graph is scrolled."""
    box, gap = SHARES_PX[0]
    breaks = n_breaks * BREAK_PX
    return int(n_ops * box + max(n_ops - 1, 0) * gap + breaks + 2 * END_PX + 8)


def breaks_of(picture: ChainPicture) -> tuple[int, ...]:
    """Places of the ops below which the graph breaks."""
    return tuple(i for i, link in enumerate(picture.links) if link.graph_break is not None)


def stops(picture: ChainPicture) -> list[Stop]:
    """Everything that the keyboard stops at, from top to bottom."""
    beside: dict[int, list[Stop]] = {}
    for k, side in enumerate(picture.side_links):
        beside.setdefault(side.top, []).append(Stop("side", k))
    found = []
    for i in range(len(picture.rows)):
        found += [Stop("op", i), *beside.get(i, [])]
        if i < len(picture.links):
            found.append(Stop("link", i))
    return found


def link_at(picture: ChainPicture, stop: Stop) -> Link | None:
    """The link that is meant, None for an op."""
    if stop.kind == "op":
        return None
    if stop.kind == "link":
        return picture.links[stop.place]
    return picture.side_links[stop.place].link


def why_rect(pill: QRectF) -> QRectF:
    """The mark at a pill's end that stands for a reason; at the foot of one that stands upright."""
    if pill.height() > pill.width():
        return QRectF(pill.left(), pill.bottom() - WHY_PX, pill.width(), WHY_PX)
    return QRectF(pill.right() - WHY_PX, pill.top(), WHY_PX, pill.height())
