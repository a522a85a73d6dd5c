"""What lies under a point of the scene."""

from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QPointF, QRectF

from explorer.model.playback import Slot
from explorer.model.streams import Stream
from explorer.model.tensor import Tensor
from explorer.ui.scene.layout import Lane, Layout
from explorer.ui.scene.routes import Route

NEAR = 6.0
"""A stream's line is hit within this distance, in units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """What was hit.

    Attributes:
        lane: Number of the lane.
        rect: Where it lies, in pixels.
        slot: The kernel, or the kernel that a stream belongs to.
        tensor: The tensor.
        stream: The stream.
        is_cache: Whether it is the L2.
        is_memory: Whether it is the memory's band, beside its tensors.
    """

    lane: int
    rect: QRectF
    slot: Slot | None = None
    tensor: Tensor | None = None
    stream: Stream | None = None
    is_cache: bool = False
    is_memory: bool = False

    @property
    def is_kernel(self) -> bool:
        """Whether it is a kernel's card."""
        return self.slot is not None and self.stream is None


def hit(layout: Layout, point: QPointF, active: frozenset[int] = frozenset()) -> Hit | None:
    """Find what lies under a point: cards, tensors and tags first, then lines, then L2 and memory.

    Args:
        layout: Of the scene.
        point: In its pixels.
        active: Numbers of the launches under way, whose streams are found first.
    """
    for number, lane in enumerate(layout.lanes):
        found = _hit_lane(lane, number, point, layout.u, active)
        if found is not None:
            return found
    return None


def _hit_lane(
    lane: Lane, number: int, point: QPointF, u: float, active: frozenset[int]
) -> Hit | None:
    for card in lane.cards:
        if card.rect.contains(point):
            return Hit(lane=number, rect=card.rect, slot=card.slot)
    for box in lane.boxes.values():
        where = box.block if box.label is None else box.block.united(box.label)
        if where.contains(point):
            return Hit(lane=number, rect=where, tensor=box.tensor)
    routes = sorted(lane.routes, key=lambda route: route.slot.index not in active)
    for route in routes:
        if route.tag is not None and route.tag.contains(point):
            return Hit(lane=number, rect=route.tag, slot=route.slot, stream=route.stream)
    for route in routes:
        if _distance(route, point) <= NEAR * u:
            reach = NEAR * u
            rect = QRectF(point.x() - reach, point.y() - reach, 2 * reach, 2 * reach)
            return Hit(lane=number, rect=rect, slot=route.slot, stream=route.stream)
    if lane.cards and lane.l2.contains(point):
        return Hit(lane=number, rect=lane.l2, is_cache=True)
    if lane.cards and lane.band.contains(point):
        return Hit(lane=number, rect=lane.band, is_memory=True)
    return None


def _distance(route: Route, point: QPointF) -> float:
    offsets = route.points - np.array([point.x(), point.y()])
    return float(np.hypot(offsets[:, 0], offsets[:, 1]).min())
