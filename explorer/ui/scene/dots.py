"""Draws the dots: sprites from one buffer on raster devices, ellipses where the picture is vector.

A dot costs 0.5 µs from the buffer and 10 µs as an ellipse, and a frame has up to thousands.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPixmap
from PySide6.QtWidgets import QWidget

from explorer.model.dots import Dots
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.routes import Route

HALO_RADIUS = 6.0
CORE_RADIUS = 3.1
HALO_ALPHA = 62
LEAST_SPACING = 7.0
TRACK_GAP = 5.5
MOST_TRACKS = 8
LEAST_SIZE = 0.5
"""A stream's last dot carries fewer bytes and is smaller by area, but is always to be seen."""
_FIELDS = 10
"""Doubles of a QPainter::PixmapFragment: x, y, source (4), scale (2), rotation, opacity."""


def place_dots(route: Route, dots: Dots, u: float) -> NDArray[np.float64]:
    """Where the dots of a route are, in pixels, ``[n, 2]``.

    Dots that would lie on each other go side by side, on as many tracks as it takes: a stream
    that is many times denser is to look wider, not merely solid.
    """
    places = route.places(dots.place)
    tracks = _tracks(route, dots, u)
    if tracks > 1 and len(places):
        numbers = dots.arrived + np.arange(len(places))
        offsets = (numbers % tracks - (tracks - 1) / 2) * TRACK_GAP * u
        places += route.aside(dots.place) * offsets[:, None]
    return places


def _tracks(route: Route, dots: Dots, u: float) -> int:
    """How many tracks a route needs at its steady pace, whichever the moment."""
    on_the_way = dots.total * dots.travel_share
    spacing = route.length / max(on_the_way, 1.0)
    return min(MOST_TRACKS, max(1, round(LEAST_SPACING * u / spacing)))


def is_raster(painter: QPainter) -> bool:
    """Whether the painter's device holds pixels, rather than shapes as SVG and PDF do."""
    return isinstance(painter.device(), QImage | QPixmap | QWidget)


def draw_dots(
    canvas: Canvas, places: NDArray[np.float64], fills: NDArray[np.float64], color: str
) -> None:
    """Paint dots of one colour.

    Args:
        canvas: Where to.
        places: Their middles in pixels, ``[n, 2]``.
        fills: The share of a whole dot's bytes that each carries, ``[n]``.
        color: Name of the colour.
    """
    if not len(places):
        return
    sizes = np.maximum(np.sqrt(fills), LEAST_SIZE)
    if is_raster(canvas.painter):
        _draw_sprites(canvas, places, sizes, color)
    else:
        _draw_ellipses(canvas, places.tolist(), sizes.tolist(), color)


def _draw_sprites(
    canvas: Canvas, places: NDArray[np.float64], sizes: NDArray[np.float64], color: str
) -> None:
    ratio = canvas.painter.device().devicePixelRatioF()
    sprite = _sprite(canvas.color(color).rgba(), canvas.u, ratio, canvas.theme.name == "dark")
    buffer = np.zeros((len(places), _FIELDS))
    buffer[:, 0:2] = places
    buffer[:, 4:6] = sprite.width()
    buffer[:, 6:8] = (sizes / ratio)[:, None]
    buffer[:, 9] = 1.0
    # The buffer outlives the call below, which is all that reads it.
    first = cast(
        "QPainter.PixmapFragment",
        shiboken6.wrapInstance(buffer.ctypes.data, QPainter.PixmapFragment),
    )
    painter = canvas.painter
    painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, True)
    painter.drawPixmapFragments(first, len(places), sprite)


def _draw_ellipses(
    canvas: Canvas, places: Sequence[tuple[float, float]], sizes: Sequence[float], color: str
) -> None:
    painter = canvas.painter
    painter.setPen(Qt.PenStyle.NoPen)
    for radius, brush in _rings(canvas.color(color), canvas.theme.name == "dark"):
        painter.setBrush(brush)
        for (x, y), size in zip(places, sizes, strict=True):
            reach = radius * size * canvas.u
            painter.drawEllipse(QPointF(x, y), reach, reach)


@lru_cache(maxsize=64)
def _sprite(rgba: int, u: float, ratio: float, is_dark: bool) -> QPixmap:
    """One dot at the device's own resolution; the same for all of a colour."""
    side = int(np.ceil(2 * (HALO_RADIUS + 1) * u * ratio))
    sprite = QPixmap(side, side)
    sprite.fill(Qt.GlobalColor.transparent)
    painter = QPainter(sprite)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    for radius, brush in _rings(QColor.fromRgba(rgba), is_dark):
        painter.setBrush(brush)
        reach = radius * u * ratio
        painter.drawEllipse(QPointF(side / 2, side / 2), reach, reach)
    painter.end()
    return sprite


def _rings(color: QColor, is_dark: bool) -> tuple[tuple[float, QColor], tuple[float, QColor]]:
    """Halo and core of a dot: the core stands out from its line on either ground."""
    halo = QColor(color)
    halo.setAlpha(HALO_ALPHA)
    return (HALO_RADIUS, halo), (CORE_RADIUS, color.lighter(118) if is_dark else color)
