"""Where the name of a line goes: close to one of its points, on nothing else. Pure geometry."""

import math
from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSizeF

from explorer.ui.roofline_labels import NEAR

ANGLES = (-90, 90, 0, 180, -45, -135, 45, 135)
"""Directions in degrees, downwards positive, the best first: above the point, then below."""

BESIDE = (0, 180)
"""For what is named along an upright line: right of it, else left."""


def near_label(
    spots: Sequence[QPointF],
    size: QSizeF,
    inside: QRectF,
    taken: Sequence[QRectF],
    zoom: float,
    angles: Sequence[int] = ANGLES,
) -> QRectF | None:
    """A place for a label beside one of several points.

    Args:
        spots: Points that it may stand beside, the best first.
        size: Of the label.
        inside: What it may not leave.
        taken: What it may not cover.
        zoom: Factor on distances.
        angles: Directions to try, the best first.

    Returns:
        None where it fits beside none of them.
    """
    for spot in spots:
        for angle in angles:
            box = _beside(spot, size, angle, NEAR * zoom)
            # Text has air above and below, which may be covered.
            core = box.adjusted(0, 0.2 * size.height(), 0, -0.2 * size.height())
            if inside.contains(box) and not any(map(core.intersects, taken)):
                return box
    return None


def _beside(spot: QPointF, size: QSizeF, angle: float, reach: float) -> QRectF:
    """The label in some direction from a point, its nearest edge that far away."""
    across, down = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    middle = QPointF(
        spot.x() + across * (reach + size.width() / 2),
        spot.y() + down * (0.6 * reach + size.height() / 2),
    )
    box = QRectF(QPointF(0, 0), size)
    box.moveCenter(middle)
    return box
