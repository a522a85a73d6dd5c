"""The scene's geometry: everything that depends on size and page, and not on the moment."""

import math
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache

from PySide6.QtCore import QRectF

from explorer.model.playback import Life, Moment, Phase, Playback, Schedule
from explorer.model.tensor import Tensor
from explorer.model.units import format_bytes
from explorer.ui.painting import text_width
from explorer.ui.scene.card_layout import Card, Page, page_of, place_cards
from explorer.ui.scene.routes import Field, Route, route_streams
from explorer.ui.scene.tensor_layout import Shelf, TensorBox, area_per_byte, place_tensors
from explorer.ui.theme import font

UNIT_WIDTH = 780.0
UNIT_HEIGHT = 505.0
SIDE = 16.0
BARE_SIDE = 4.0
"""Margin where a panel round the scene has one of its own: room for the glow."""
TITLE_HEIGHT = 33.0
DETAILS_HEIGHT = 27.0
LANE_GAP = 20.0
BAND_HEIGHT = 126.0
FIELD_HEIGHT = 136.0
CARD_HEIGHT = 126.0
FOOT_HEIGHT = 57.0
LEAST_BAND, LEAST_FIELD, LEAST_CARD, LEAST_FOOT = 68.0, 78.0, 106.0, 42.0
"""What those are squeezed to where the scene is low, before its text becomes too small to read."""
LEAST_WIDTH = 540.0
"""What the scene's width is squeezed to for that."""
READABLE_UNIT = 0.89
"""With a unit of so many pixels the smallest text has 12."""
BAND_HEAD = 29.0
BAND_PAD = 12.0
L2_HEIGHT = 17.0
L2_ABOVE_CARDS = 25.0
OTHERS_WIDTH = 84.0
MOST_NAME_WIDTH = 96.0
NARROW_LANE = 560.0
"""Below this width squares have their names beside them, but not their sizes; and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The outer measures of a scene.

    Attributes:
        x: Left edge in pixels.
        y: Top edge.
        width: Width.
        height: Height.
        has_face: Whether it draws its own panel with the run's name; inside a panel that names
            the run it does not.
        has_titles: Whether each lane is named.
    """

    x: float
    y: float
    width: float
    height: float
    has_face: bool
    has_titles: bool

    @property
    def rect(self) -> QRectF:
        """The whole scene."""
        return QRectF(self.x, self.y, self.width, self.height)

    @property
    def u(self) -> float:
        """Pixels a unit: all sizes follow from it, so that a larger scene is the same scene.

        A small one is squeezed first: its parts move together, so that the text stays readable.
        """
        margin = 0.0 if self.has_face else 2 * (SIDE - BARE_SIDE)
        title = 0.0 if self.has_titles else TITLE_HEIGHT
        whole = min(self.width / (UNIT_WIDTH - margin), self.height / (UNIT_HEIGHT - title))
        least = TITLE_HEIGHT + DETAILS_HEIGHT + LEAST_BAND + LEAST_FIELD + LEAST_CARD + LEAST_FOOT
        squeezed = min(self.width / (LEAST_WIDTH - margin), self.height / (least - title))
        return max(whole, min(squeezed, READABLE_UNIT))

    @property
    def side(self) -> float:
        """Margin at left and right, in pixels."""
        return (SIDE if self.has_face else BARE_SIDE) * self.u

    @property
    def title_height(self) -> float:
        """Height of the line with the runs' names, in pixels."""
        return TITLE_HEIGHT * self.u if self.has_titles else 0.0

    def lane_rects(self, count: int) -> list[QRectF]:
        """The lanes' rectangles, below the heading."""
        gap = LANE_GAP * self.u
        width = (self.width - 2 * self.side - gap * (count - 1)) / max(1, count)
        top = self.y + self.title_height + DETAILS_HEIGHT * self.u
        return [
            QRectF(self.x + self.side + i * (width + gap), top, width, self.y + self.height - top)
            for i in range(count)
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lane:
    """One run's part of the scene.

    Attributes:
        schedule: The run on its clock.
        rect: The whole lane below the common heading.
        title: Where the run's name is.
        page: The launches in view.
        band: The memory's band.
        boxes: The tensors in view, by id.
        others: Where tensors that are not in view are summed up; None if there are none.
        other_lives: Those tensors.
        l2: The L2's band.
        cards: The kernels in view.
        routes: The streams in view.
        strip: The launches' true lengths on one line.
        bar: The running total.
    """

    schedule: Schedule
    rect: QRectF
    title: QRectF
    page: Page
    band: QRectF
    boxes: dict[str, TensorBox]
    others: QRectF | None
    other_lives: tuple[Life, ...]
    l2: QRectF
    cards: tuple[Card, ...]
    routes: tuple[Route, ...]
    strip: QRectF
    bar: QRectF


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """The whole scene.

    Attributes:
        frame: Its outer measures.
        u: Length of the unit in pixels.
        details: The second line of the heading, common to all lanes.
        lanes: A lane a run.
    """

    frame: Frame
    u: float
    details: QRectF
    lanes: tuple[Lane, ...]


def shown_launch(moment: Moment) -> int:
    """The launch that the view is turned to: the one under way, else the last one before."""
    if moment.active:
        return moment.active[0]
    over = [i for i, phase in enumerate(moment.phases) if phase is Phase.AFTER]
    return max(over, default=0)


def pages_at(playback: Playback, frame: Frame, t_us: float) -> tuple[Page, ...]:
    """The page of each lane at a moment, in a scene of that size."""
    rects = frame.lane_rects(len(playback.lanes))
    return tuple(
        page_of(lane.slots, shown_launch(lane.at(t_us)), rect.width(), frame.u)
        for lane, rect in zip(playback.lanes, rects, strict=True)
    )


@lru_cache(maxsize=32)
def lay_out(playback: Playback, frame: Frame, pages: tuple[Page, ...]) -> Layout:
    """Place everything. The same arguments give the same object, so it can be a key."""
    u = frame.u
    rects = frame.lane_rects(len(playback.lanes))
    # Lanes share the scale of the tensors' areas too: that of the one with least room.
    scales = [
        area_per_byte(_shelf(lane, page, rect, u))
        for lane, page, rect in zip(playback.lanes, pages, rects, strict=True)
        if lane.slots and len(rects) > 1
    ]
    per_byte = min((scale for scale in scales if scale > 0), default=math.inf)
    return Layout(
        frame=frame,
        u=u,
        details=QRectF(
            frame.x + frame.side,
            frame.y + frame.title_height,
            frame.width - 2 * frame.side,
            22 * u,
        ),
        lanes=tuple(
            _lay_out_lane(lane, page, rect, u, per_byte)
            for lane, page, rect in zip(playback.lanes, pages, rects, strict=True)
        ),
    )


def _heights(rect: QRectF, u: float) -> tuple[float, float, float]:
    """Heights of band, field and cards: what the lane has over its least is shared among them."""
    fixed = BAND_HEIGHT + FIELD_HEIGHT + CARD_HEIGHT + FOOT_HEIGHT
    spare = rect.height() / u - fixed
    if spare < 0:
        share = min(-spare / (fixed - LEAST_BAND - LEAST_FIELD - LEAST_CARD - LEAST_FOOT), 1.0)
        return (
            (BAND_HEIGHT + share * (LEAST_BAND - BAND_HEIGHT)) * u,
            (FIELD_HEIGHT + share * (LEAST_FIELD - FIELD_HEIGHT)) * u,
            (CARD_HEIGHT + share * (LEAST_CARD - CARD_HEIGHT)) * u,
        )
    return (
        (BAND_HEIGHT + 0.34 * spare) * u,
        (FIELD_HEIGHT + 0.26 * spare) * u,
        (CARD_HEIGHT + 0.40 * spare) * u,
    )


def _band(rect: QRectF, u: float) -> QRectF:
    return QRectF(rect.x(), rect.y(), rect.width(), _heights(rect, u)[0])


def _shelf(
    lane: Schedule, page: Page, rect: QRectF, u: float, most_per_byte: float = math.inf
) -> Shelf:
    """The tensors that the page's launches touch, in the order of their use."""
    uses: dict[str, list[int]] = {}
    for slot in lane.slots[page.first : page.end]:
        for access in slot.launch.accesses:
            uses.setdefault(access.tensor, []).append(slot.index)
    mean = {key: sum(users) / len(users) for key, users in uses.items()}
    middle = (page.first + page.end - 1) / 2
    band = _band(rect, u)
    room = band.adjusted(BAND_PAD * u, BAND_HEAD * u, -BAND_PAD * u, -10 * u)
    if _has_others(lane, uses, rect, u):
        room.setRight(room.right() - OTHERS_WIDTH * u)
    tensors = [life.tensor for life in lane.lives if life.tensor.id in uses]
    return Shelf(
        tensors=sorted(tensors, key=lambda tensor: mean[tensor.id]),
        late=frozenset(key for key, where in mean.items() if where > middle),
        label_widths={
            tensor.id: _label_width(tensor, u, rect.width() > NARROW_LANE * u) for tensor in tensors
        },
        rect=room,
        u=u,
        most_per_byte=most_per_byte,
    )


def _has_others(lane: Schedule, in_view: Container[str], rect: QRectF, u: float) -> bool:
    """Whether there are tensors out of view and a tile for them.

    In a narrow lane the heading counts them.
    """
    are_there = any(life.tensor.id not in in_view for life in lane.lives)
    return are_there and rect.width() > NARROW_LANE * u


def _label_width(tensor: Tensor, u: float, with_size: bool) -> float:
    name = min(text_width(tensor.name, font(13.5 * u, 600)) + 2 * u, MOST_NAME_WIDTH * u)
    return name + (text_width(format_bytes(tensor.n_bytes), font(13 * u)) + 6 * u) * with_size


def _lay_out_lane(lane: Schedule, page: Page, rect: QRectF, u: float, per_byte: float) -> Lane:
    band_height, field_height, card_height = _heights(rect, u)
    band = QRectF(rect.x(), rect.y(), rect.width(), band_height)
    cards_y = band.bottom() + field_height
    l2_y = cards_y - (L2_ABOVE_CARDS + L2_HEIGHT) * u
    l2 = QRectF(rect.x(), l2_y, rect.width(), L2_HEIGHT * u)
    row = QRectF(rect.x(), cards_y, rect.width(), card_height)
    boxes: dict[str, TensorBox] = {}
    cards: tuple[Card, ...] = ()
    if lane.slots:
        boxes = place_tensors(_shelf(lane, page, rect, u, per_byte))
        cards = place_cards(lane.slots[page.first : page.end], row, u)
    others = None
    if _has_others(lane, boxes, rect, u):
        others = QRectF(
            band.right() - (BAND_PAD + OTHERS_WIDTH - 9) * u,
            band.y() + BAND_HEAD * u,
            (OTHERS_WIDTH - 9) * u,
            band.height() - (BAND_HEAD + 10) * u,
        )
    foot_y = row.bottom()
    foot = min((rect.bottom() - foot_y) / FOOT_HEIGHT, u)
    return Lane(
        schedule=lane,
        rect=rect,
        title=QRectF(
            rect.x(), rect.y() - (TITLE_HEIGHT + DETAILS_HEIGHT - 9) * u, rect.width(), 25 * u
        ),
        page=page,
        band=band,
        boxes=boxes,
        others=others,
        other_lives=tuple(life for life in lane.lives if life.tensor.id not in boxes),
        l2=l2,
        cards=cards,
        routes=route_streams(cards, Field(band=band, l2=l2, boxes=boxes, u=u)),
        strip=QRectF(rect.x(), foot_y + 9 * foot, rect.width(), 7 * foot),
        bar=QRectF(rect.x(), foot_y + 20 * foot, rect.width(), 30 * foot),
    )
