"""Bars of the timeline at any number of launches: cards, plain rectangles or one row of pixels."""

from typing import cast

import numpy as np
import shiboken6
from numpy.typing import NDArray
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QImage, QPainter, QPen

from explorer.model.lanes import Category, Lane, Row, category_of
from explorer.model.run import Launch
from explorer.ui.painting import CENTER, antialias, blend, elided, text_width
from explorer.ui.theme import Theme, font
from explorer.ui.timeline_layout import TimelineLayout

MOST_CARDS = 160
"""Up to so many bars in a row get round corners and labels one by one."""
MIN_LABEL_PX = 17.0
LEAST_LETTERS = 3
"""Of a name that is cut; fewer could be any op's."""


class RectBuffer:
    """Rectangles for ``QPainter.drawRects`` straight from numpy.

    A QRectF is four doubles, so one wrapped buffer stands for n Python objects, which take ten
    times as long to make.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._grow(capacity)

    def _grow(self, capacity: int) -> None:
        self._data = np.empty((capacity, 4))
        self._first = cast("QRectF", shiboken6.wrapInstance(self._data.ctypes.data, QRectF))

    def draw(
        self, painter: QPainter, x: NDArray[np.float64], y: float, w: NDArray[np.float64], h: float
    ) -> None:
        """Fill rectangles of one height with the painter's brush."""
        if not len(x):
            return
        if len(x) > len(self._data):
            self._grow(2 * len(x))
        used = self._data[: len(x)]
        used[:, 0], used[:, 1], used[:, 2], used[:, 3] = x, y, w, h
        painter.drawRects(self._first, len(x))


_BUFFER = RectBuffer()


def category_color(theme: Theme, category: Category, selected: bool) -> QColor:
    """Face of a bar; unfused bars of lanes that are not selected step back."""
    if category is Category.FUSED:
        return theme.color("fused")
    panel, plain = theme.color("panel"), theme.color("plain")
    if category is Category.HELPER:
        return blend(plain, panel, 0.72)
    return blend(plain, panel, 0.12 if selected else 0.38)


def draw_lane_bars(
    painter: QPainter, layout: TimelineLayout, place: int, theme: Theme, selected: bool
) -> None:
    """Paint the launches of one lane, at the level of detail that its density asks for."""
    lane = layout.lanes[place]
    for number, row in enumerate(lane.rows):
        band = layout.row_band(place, number)
        seen = row.visible(layout.view.start_us, layout.view.end_us)
        count = seen.stop - seen.start
        if count > band.width() / 2:
            _draw_dense(painter, layout, row, band, theme, selected)
        elif count > MOST_CARDS:
            _draw_rects(painter, layout, row, seen, band, theme, selected)
        else:
            for i in range(seen.start, seen.stop):
                bar = bar_rect(layout, row, i, band)
                category = Category(int(row.categories[i]))
                draw_bar(painter, bar, category, theme, layout.zoom, selected)
                draw_bar_label(painter, bar, lane, int(row.indices[i]), theme, layout.zoom)


def bar_rect(layout: TimelineLayout, row: Row, i: int, band: QRectF) -> QRectF:
    """A launch's bar, cut at the plot's edges; at least a pixel wide so that it can be seen."""
    left = max(layout.x(float(row.starts[i])), band.left())
    right = min(layout.x(float(row.ends[i])), band.right())
    gap = 1.0 if right - left > 4 else 0.0  # Neighbours without idle time stay two bars.
    return QRectF(left, band.y(), max(right - left - gap, 1.0), band.height())


def draw_bar(
    painter: QPainter, bar: QRectF, category: Category, theme: Theme, zoom: float, selected: bool
) -> None:
    """Paint one bar without its label."""
    antialias(painter)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(category_color(theme, category, selected))
    radius = min(5 * zoom, bar.width() / 3, bar.height() / 3)
    painter.drawRoundedRect(bar, radius, radius)


def draw_bar_label(
    painter: QPainter, bar: QRectF, lane: Lane, index: int, theme: Theme, zoom: float
) -> None:
    """Write the op, or a fused launch's title, into its bar where at least a piece of it fits."""
    inner = bar.adjusted(3 * zoom, 0, -3 * zoom, 0)
    if inner.width() < MIN_LABEL_PX * zoom or bar.height() < 11 * zoom:
        return
    launch = lane.run.launches[index]
    fused = category_of(launch) is Category.FUSED
    size = min(13.5 * zoom, max(bar.height() * 0.66, 11 * zoom))
    face = font(size, 600)
    shown = bar_words(launch, face, inner.width())
    painter.setFont(face)
    faint = "muted" if launch.is_helper else "text"
    painter.setPen(theme.color("on_accent" if fused else faint))
    painter.drawText(inner, CENTER, shown)


def bar_words(launch: Launch, face: QFont, width: float) -> str:
    """A launch's op or title, or as much of it as still says something; empty where none fits."""
    title = launch.ops[0] if len(launch.ops) == 1 else launch.title
    if category_of(launch) is Category.FUSED:
        shorter = (title, f"{len(launch.ops)} ops fused", f"{len(launch.ops)} ops")
        return next((words for words in shorter if text_width(words, face) <= width), "")
    shown = elided(title, face, width)
    return shown if shown == title or len(shown) > LEAST_LETTERS else ""


def draw_outline(painter: QPainter, bar: QRectF, color: QColor, zoom: float, width: float) -> None:
    """Frame a bar."""
    antialias(painter)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(color, width * zoom))
    inset = min(width * zoom / 2, bar.width() / 2)
    painter.drawRoundedRect(bar.adjusted(inset, inset, -inset, -inset), 4 * zoom, 4 * zoom)


def _draw_rects(
    painter: QPainter,
    layout: TimelineLayout,
    row: Row,
    seen: slice,
    band: QRectF,
    theme: Theme,
    selected: bool,
) -> None:
    scale, start = layout.pixels_per_us, layout.view.start_us
    left = np.maximum((row.starts[seen] - start) * scale, 0.0)
    right = np.minimum((row.ends[seen] - start) * scale, band.width())
    width = np.maximum(right - left, 1.0)
    width -= np.where(width > 4, 1.0, 0.0)
    antialias(painter, False)
    painter.setPen(Qt.PenStyle.NoPen)
    for category in Category:
        mine = row.categories[seen] == category
        painter.setBrush(category_color(theme, category, selected))
        _BUFFER.draw(painter, band.x() + left[mine], band.y(), width[mine], band.height())


def _draw_dense(
    painter: QPainter,
    layout: TimelineLayout,
    row: Row,
    band: QRectF,
    theme: Theme,
    selected: bool,
) -> None:
    """More launches than pixels: each pixel in the colour of the kind that fills most of it.

    The share of its time that is busy sets how opaque it is, so the painted area is the busy
    time. Averaging the colours instead would turn mixed lanes into one mud.
    """
    ratio = painter.deviceTransform().m11()
    n_pixels = max(round(band.width() * ratio), 1)
    edges = np.linspace(layout.view.start_us, layout.view.end_us, n_pixels + 1)
    busy = np.maximum(row.busy_between(edges), 0.0)
    share = np.clip(busy.sum(axis=1) * n_pixels / layout.view.span_us, 0.0, 1.0)
    faces = [category_color(theme, category, selected) for category in Category]
    palette = np.array([[face.blue(), face.green(), face.red(), 255] for face in faces])
    pixels = np.rint(palette[busy.argmax(axis=1)] * share[:, None]).astype(np.uint8)
    image = QImage(
        np.ascontiguousarray(pixels).data,
        n_pixels,
        1,
        4 * n_pixels,
        QImage.Format.Format_ARGB32_Premultiplied,
    )
    antialias(painter, False)
    painter.drawImage(band, image, QRectF(0, 0, n_pixels, 1))
