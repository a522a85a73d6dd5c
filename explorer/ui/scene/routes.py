"""The ways that streams take between memory and kernels, as curves with a table of their length."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath

from explorer.model.playback import Slot
from explorer.model.streams import Stream, StreamKind, Way
from explorer.model.units import format_bytes
from explorer.ui.painting import text_width
from explorer.ui.scene.card_layout import Card
from explorer.ui.scene.tensor_layout import TensorBox
from explorer.ui.theme import font

Points = NDArray[np.float64]

TAG_PX = 13.0
TAG_HEIGHT = 22.0
TAG_ROW = 25.0
LEAST_TAGGED_SHARE = 0.01
"""Of the launch's largest stream: below it a tag would cover more than it tells."""
LEAST_TAGGED_EXCESS = 0.014
"""The same for what no tensor accounts for: counters differ from the model by a little, always."""
L2_WORDS = 104.0
"""Room for the L2's name and size at the left of its band."""
_CURVE_STEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Route:
    """The way of one stream.

    Attributes:
        slot: The launch it belongs to.
        stream: The stream.
        points: Along the way that the dots go, ``[n, 2]`` in pixels.
        reached: Share of the way's length at each point, from 0 to 1, ``[n]``.
        length: Its length in pixels.
        path: The same as a path.
        tag: Where its label is, None if it has none.
        is_prominent: Whether it is drawn while its launch is not under way.
    """

    slot: Slot
    stream: Stream
    points: Points
    reached: NDArray[np.float64]
    length: float
    path: QPainterPath
    tag: QRectF | None
    is_prominent: bool

    def places(self, shares: NDArray[np.float64]) -> Points:
        """Points at the given shares of the way's length, ``[m, 2]``."""
        x = np.interp(shares, self.reached, self.points[:, 0])
        y = np.interp(shares, self.reached, self.points[:, 1])
        return np.column_stack((x, y))

    def aside(self, shares: NDArray[np.float64]) -> Points:
        """Unit vectors across the way at the given shares of its length, ``[m, 2]``."""
        ahead = self.places(np.minimum(shares + 0.01, 1)) - self.places(
            np.maximum(shares - 0.01, 0)
        )
        across = np.column_stack((-ahead[:, 1], ahead[:, 0]))
        unit: Points = across / np.maximum(np.hypot(*across.T), 1e-9)[:, None]
        return unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """The room between memory and kernels.

    Attributes:
        band: The memory's band.
        l2: The L2's band.
        boxes: The tensors in view, by id.
        u: Length of the scene's unit in pixels.
    """

    band: QRectF
    l2: QRectF
    boxes: dict[str, TensorBox]
    u: float


def tag_text(stream: Stream) -> str:
    """What a stream's tag says: way and bytes, and its name if it is no tensor's."""
    size = format_bytes(stream.n_bytes)
    if stream.kind is StreamKind.TENSOR:
        return f"{'R' if stream.way is Way.READ else 'W'} {size}"
    return f"{stream.kind.value} {size}"


def route_streams(cards: Sequence[Card], field: Field) -> tuple[Route, ...]:
    """Find a way for every stream of the launches in view."""
    ends = _kernel_ends(cards, field)
    starts = _tensor_ports(ends, field)
    routes = []
    for card in cards:
        own = [(stream, port) for owner, stream, port in ends if owner is card]
        lines = [_line(stream, starts, port, card, field) for stream, port in own]
        tags = _place_tags([stream for stream, _ in own], lines, card, field)
        for (stream, _), line, tag in zip(own, lines, tags, strict=True):
            prominent = stream.kind is StreamKind.TENSOR or tag is not None
            routes.append(_route(card.slot, stream, line, tag, prominent))
    return tuple(routes)


def _kernel_ends(cards: Sequence[Card], field: Field) -> list[tuple[Card, Stream, float]]:
    """Every stream with its card and the x at which it meets it, without needless crossings."""
    found = []
    for card in cards:
        streams = sorted(
            card.slot.traffic.streams, key=lambda stream: _source_x(stream, card, field)
        )
        step = card.rect.width() / (len(streams) + 1)
        for i, stream in enumerate(streams):
            found.append((card, stream, card.rect.x() + step * (i + 1)))
    return found


def _source_x(stream: Stream, card: Card, field: Field) -> float:
    box = field.boxes.get(stream.tensor or "")
    if box is not None:
        return box.block.center().x() if box.rail_x is None else box.rail_x
    # What belongs to no tensor comes down beside the card's middle; L2's own at its right.
    return field.band.right() if stream.kind is StreamKind.L2 else card.rect.center().x()


def _tensor_ports(ends: Sequence[tuple[Card, Stream, float]], field: Field) -> dict[int, float]:
    """The x at which each tensor's stream meets its block, by the stream's identity."""
    ports: dict[int, float] = {}
    for key, box in field.boxes.items():
        own = sorted(
            ((port, stream) for _, stream, port in ends if stream.tensor == key),
            key=lambda item: item[0],
        )
        for i, (_, stream) in enumerate(own):
            share = (i + 1) / (len(own) + 1)
            ports[id(stream)] = box.block.x() + box.block.width() * share
    return ports


def _line(stream: Stream, ports: dict[int, float], port: float, card: Card, field: Field) -> Points:
    """The way as points, from memory to kernel."""
    u = field.u
    goal = (port, card.rect.y() - 2 * u)
    if stream.kind is StreamKind.L2:
        return np.array([(port, field.l2.center().y()), goal])
    box = field.boxes.get(stream.tensor or "")
    if box is None:
        return _curve((port, field.band.bottom()), goal)
    if box.rail_x is None:
        return _curve((ports[id(stream)], box.block.bottom() + 1.5 * u), goal)
    block, corner = box.block, 5 * u
    turn = [
        (block.x() - 1.5 * u, block.center().y()),
        (box.rail_x + corner, block.center().y()),
        (box.rail_x + 0.3 * corner, block.center().y() + 0.3 * corner),
        (box.rail_x, block.center().y() + corner),
    ]
    return np.vstack([turn, _curve((box.rail_x, field.band.bottom()), goal)])


def _curve(start: tuple[float, float], goal: tuple[float, float]) -> Points:
    """A curve that leaves and arrives upright and does most of its sideways way near memory."""
    share = np.linspace(0.0, 1.0, _CURVE_STEPS + 1)[:, None]
    drop = goal[1] - start[1]
    controls = np.array(
        [start, (start[0], start[1] + 0.45 * drop), (goal[0], start[1] + 0.40 * drop), goal]
    )
    weights = np.hstack(
        [(1 - share) ** 3, 3 * (1 - share) ** 2 * share, 3 * (1 - share) * share**2, share**3]
    )
    points: Points = weights @ controls
    return points


def _place_tags(
    streams: Sequence[Stream], lines: Sequence[Points], card: Card, field: Field
) -> list[QRectF | None]:
    """Tags along the last, upright part of the ways, in as many rows as keep them apart."""
    u = field.u
    tagged = [i for i, stream in enumerate(streams) if is_prominent(stream, streams)]
    face = font(TAG_PX * u, 600)
    widths = {i: text_width(tag_text(streams[i]), face) + 18 * u for i in tagged}
    in_memory = [i for i in tagged if streams[i].is_memory_traffic]
    step = card.rect.width() / (len(streams) + 1)
    widest = max((widths[i] for i in in_memory), default=0.0)
    room = field.l2.top() - field.band.bottom() - 12 * u
    needed = math.ceil((widest + 4 * u) / step)
    rows = max(1, min(needed, len(in_memory), int(room / (TAG_ROW * u))))
    tags: list[QRectF | None] = [None] * len(streams)
    for row in range(rows):
        members = _that_fit(in_memory[row::rows], streams, widths, field)
        y = field.l2.top() - (17 + TAG_ROW * (rows - 1 - row)) * u
        middles = [float(np.interp(y, lines[i][:, 1], lines[i][:, 0])) for i in members]
        spaced = [widths[i] + 4 * u for i in members]
        middles = _apart(middles, spaced, field.band.left(), field.band.right())
        for i, x in zip(members, middles, strict=True):
            tags[i] = _tag_at(x, y, widths[i], field)
    for i in tagged:
        if not streams[i].is_memory_traffic:
            # Not over the words at the band's left.
            x = max(float(lines[i][0, 0]), field.l2.x() + L2_WORDS * u + widths[i] / 2)
            tags[i] = _tag_at(x, field.l2.center().y(), widths[i], field)
    return tags


def _that_fit(
    members: Sequence[int], streams: Sequence[Stream], widths: Mapping[int, float], field: Field
) -> list[int]:
    """The tags of a row without the smallest ones that its width has no room for."""
    kept = list(members)
    while kept and sum(widths[i] + 4 * field.u for i in kept) > field.band.width():
        kept.remove(min(kept, key=lambda i: streams[i].n_bytes))
    return kept


def is_prominent(stream: Stream, streams: Sequence[Stream]) -> bool:
    """Whether a stream is large enough among those of its launch to be labelled."""
    largest = max(
        one.n_bytes for one in streams if one.is_memory_traffic == stream.is_memory_traffic
    )
    least = LEAST_TAGGED_SHARE if stream.kind is StreamKind.TENSOR else LEAST_TAGGED_EXCESS
    return stream.n_bytes >= least * largest


def _apart(
    middles: Sequence[float], widths: Sequence[float], left: float, right: float
) -> list[float]:
    """Move neighbours in a row apart, each by half of what they overlap, within the limits."""
    moved = list(middles)
    for i in range(1, len(moved)):
        overlap = (widths[i - 1] + widths[i]) / 2 - (moved[i] - moved[i - 1])
        if overlap > 0:
            moved[:i] = [x - overlap / 2 for x in moved[:i]]
            moved[i:] = [x + overlap / 2 for x in moved[i:]]
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], right - widths[i] / 2)
        right = moved[i] - widths[i] / 2
    for i in range(len(moved)):
        moved[i] = max(moved[i], left + widths[i] / 2)
        left = moved[i] + widths[i] / 2
    return moved


def _tag_at(x: float, y: float, width: float, field: Field) -> QRectF:
    left = min(max(x - width / 2, field.band.left()), field.band.right() - width)
    height = TAG_HEIGHT * field.u
    return QRectF(left, y - height / 2, width, height)


def _route(slot: Slot, stream: Stream, line: Points, tag: QRectF | None, prominent: bool) -> Route:
    points = line if stream.way is Way.READ else line[::-1].copy()
    lengths = np.hypot(*np.diff(points, axis=0).T)
    reached = np.concatenate(([0.0], np.cumsum(lengths)))
    path = QPainterPath(QPointF(*points[0]))
    for x, y in points[1:].tolist():
        path.lineTo(x, y)
    return Route(
        slot=slot,
        stream=stream,
        points=points,
        reached=reached / reached[-1],
        length=float(reached[-1]),
        path=path,
        tag=tag,
        is_prominent=prominent,
    )
