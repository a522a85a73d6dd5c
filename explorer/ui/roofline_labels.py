"""Where labels of marks go: beside their mark, none on another; pure geometry in pixels."""

import math
from collections.abc import Iterable, Iterator, Sequence

from PySide6.QtCore import QPointF, QRectF, QSizeF

NEAR = 10.0
"""From a mark's middle to its label, at zoom 1."""
RINGS = (0.0, 8.0, 17.0, 27.0, 38.0, 50.0, 63.0, 77.0, 92.0, 118.0, 150.0)
"""How much further away it is tried, at zoom 1."""
ANGLES = (0, 180, 20, 160, 40, 140, -20, -160, 60, 120, 75, 105, 90, -40, -140, -65, -115, -90)
"""Directions in degrees, downwards positive, the best first: right of the mark, then left."""
LEADER_FROM = 8.0
"""A label further from its mark than this, at zoom 1, is tied to it by a line."""
_TIGHT = 0.2
"""Text has air above and below: only the share of its height between may not be touched."""


def gather(spots: Sequence[QPointF], reach: float) -> list[list[int]]:
    """Marks that lie on each other share a label: numbers of the marks, the first one's first.

    Args:
        spots: Middles of the marks.
        reach: Marks no further apart than this count as one.
    """
    groups: list[list[int]] = []
    for number, spot in enumerate(spots):
        for group in groups:
            apart = spot - spots[group[0]]
            if math.hypot(apart.x(), apart.y()) <= reach:
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def place_labels(
    spots: Sequence[QPointF],
    sizes: Sequence[QSizeF],
    inside: QRectF,
    taken: Sequence[QRectF],
    zoom: float,
) -> list[QRectF | None]:
    """Find a place for the label of every mark, in the order given.

    Args:
        spots: Middles of the marks.
        sizes: Sizes of their labels.
        inside: What no label may leave.
        taken: What no label may cover; the marks are kept free too.
        zoom: Factor on distances.

    Returns:
        A rectangle a label, None where there is no room.
    """
    reach = 8 * zoom
    marks = [QRectF(spot.x() - reach, spot.y() - reach, 2 * reach, 2 * reach) for spot in spots]
    words, lines = list(taken), list[QRectF]()
    placed: list[QRectF | None] = []
    for spot, size in zip(spots, sizes, strict=True):
        boxes = _boxes_round(spot, size, zoom)
        fitting = (box for box in boxes if inside.contains(_tightened(box)))
        free = (box for box in fitting if not _touches(box, (*marks, *words, *lines)))
        ties = ((box, _along(leader(spot, box, zoom))) for box in free)
        # A line may pass a mark, but not run through words.
        clear = ((b, line) for b, line in ties if not any(_touches(word, line) for word in words))
        box, line = next(clear, (None, []))
        placed.append(box)
        if box is not None:
            words.append(box)
            lines += line
    return placed


def leader(spot: QPointF, box: QRectF, zoom: float) -> tuple[QPointF, QPointF] | None:
    """The line that ties a label to its mark; None where it stands beside it."""
    tight = _tightened(box)
    end = QPointF(
        min(max(spot.x(), tight.left()), tight.right()),
        min(max(spot.y(), tight.top()), tight.bottom()),
    )
    distance = math.hypot(end.x() - spot.x(), end.y() - spot.y())
    return (spot, end) if distance > (NEAR + LEADER_FROM) * zoom else None


def _boxes_round(spot: QPointF, size: QSizeF, zoom: float) -> Iterator[QRectF]:
    """Places for a label round its mark, the nearest first."""
    for ring in RINGS:
        for angle in ANGLES:
            yield _box_at(spot, size, (NEAR + ring) * zoom, math.radians(angle))


def _touches(box: QRectF, others: Iterable[QRectF]) -> bool:
    """Whether words in a box would lie on any of the others."""
    return any(map(_tightened(box).intersects, others))


def _along(ends: tuple[QPointF, QPointF] | None) -> list[QRectF]:
    """Small boxes along a line, but for its first piece; none without a line."""
    if ends is None:
        return []
    (first, last), steps = ends, 24
    return [
        QRectF(
            first.x() + step / steps * (last.x() - first.x()) - 1,
            first.y() + step / steps * (last.y() - first.y()) - 1,
            2,
            2,
        )
        for step in range(steps // 2, steps)
    ]


def _box_at(spot: QPointF, size: QSizeF, distance: float, angle: float) -> QRectF:
    """The box whose nearest edge or corner lies in a direction from the mark."""
    x = spot.x() + distance * math.cos(angle)
    y = spot.y() + distance * math.sin(angle)
    # From the right the left edge faces the mark, from above the lower one, and so on between.
    left = x - size.width() * (1 - math.cos(angle)) / 2
    top = y - size.height() * (1 - math.sin(angle)) / 2
    return QRectF(left, top, size.width(), size.height())


def _tightened(box: QRectF) -> QRectF:
    return box.adjusted(0, _TIGHT * box.height(), 0, -_TIGHT * box.height())
