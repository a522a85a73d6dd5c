"""Draws the streams between memory and kernels: lines, arrow heads and tags."""

import math

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPolygonF

from explorer.model.streams import Stream, StreamKind, Way
from explorer.ui.painting import CENTER
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.routes import TAG_PX, Route, tag_text

_HEAD_LENGTH = 8.5
_HEAD_HALF_WIDTH = 4.8


def stream_color(stream: Stream) -> str:
    """The colour name of a stream and of its dots."""
    if stream.kind is StreamKind.L2:
        return "cache"
    return "read" if stream.way is Way.READ else "write"


def draw_line(canvas: Canvas, route: Route, active: bool) -> None:
    """The way of a stream, faint unless its launch is under way."""
    painter = canvas.painter
    is_tensor = route.stream.kind is StreamKind.TENSOR
    alpha = 120 if active else 46
    width = 3.0 if active else 1.6
    color = canvas.color(stream_color(route.stream), alpha)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(canvas.pen(color, width, dashed=not is_tensor))
    painter.drawPath(route.path)
    _draw_head(canvas, route, 255 if active else 95)


def _draw_head(canvas: Canvas, route: Route, alpha: int) -> None:
    """An arrow head at the end that the bytes arrive at."""
    u = canvas.u
    (x0, y0), (x1, y1) = route.points[-2].tolist(), route.points[-1].tolist()
    angle = math.atan2(y1 - y0, x1 - x0)
    ahead = QPointF(math.cos(angle), math.sin(angle))
    aside = QPointF(-ahead.y(), ahead.x())
    tip = QPointF(x1, y1) + ahead * (1.5 * u)
    base = tip - ahead * (_HEAD_LENGTH * u)
    half = aside * (_HEAD_HALF_WIDTH * u)
    canvas.painter.setPen(Qt.PenStyle.NoPen)
    canvas.painter.setBrush(canvas.color(stream_color(route.stream), alpha))
    canvas.painter.drawPolygon(QPolygonF([tip, base + half, base - half]))


def draw_tag(canvas: Canvas, route: Route, active: bool) -> None:
    """The stream's bytes, on its way."""
    if route.tag is None:
        return
    color = stream_color(route.stream)
    canvas.box(
        route.tag,
        11,
        fill=canvas.color("panel", 240 if active else 215),
        line=canvas.color(color, 255 if active else 90),
        width=1.2,
    )
    alpha = 255 if active else 150
    canvas.text(
        route.tag, tag_text(route.stream), TAG_PX, color, weight=600, align=CENTER, alpha=alpha
    )
