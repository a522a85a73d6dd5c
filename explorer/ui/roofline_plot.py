"""The roofline as a pyqtgraph plot. Imported when first shown: pyqtgraph takes 0.3 s to import.

Everything is placed in log10 coordinates, which is how pyqtgraph draws logarithmic axes.
"""

import math
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QPen
from PySide6.QtWidgets import QWidget

from explorer.model.units import format_flops_rate, format_rate
from explorer.ui.painting import text_width
from explorer.ui.plot_base import LogAxis, StillPlot, dot_layer, labels_on_screen
from explorer.ui.roofline_labels import gather, leader, place_labels
from explorer.ui.roofline_picture import (
    Mark,
    RooflinePicture,
    bounds,
    flops_unit,
    mark_words,
    ridge_words,
)
from explorer.ui.theme import Theme, font
from explorer.ui.words import short_title

SAME_MARK_PX = 7.0
"""Marks closer than this, at zoom 1, cannot be told apart by a label each."""
MOST_ROOFS = 2
"""The chain's own type of number, and what the operators between the matmuls compute in."""


class RooflinePlot(StillPlot):
    """Roofs, slope, ridge points and one mark a run; the mouse only hovers.

    Data comes in through :meth:`show_picture`.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        axes = {side: LogAxis(side) for side in ("bottom", "left")}
        super().__init__(axes, 0.35, parent)
        self._axes = axes
        self._picture: RooflinePicture | None = None
        self._labelled: list[Mark] = []
        self._roofs = [pg.PlotCurveItem(antialias=True) for _ in range(MOST_ROOFS)]
        self._roof_labels = [pg.TextItem(anchor=(0, 0)) for _ in range(MOST_ROOFS)]
        self._slope_label = pg.TextItem(anchor=(0.5, 1))
        self._mark_labels: list[pg.TextItem] = []
        self._path = pg.PlotCurveItem(antialias=True)
        self._leaders = pg.PlotCurveItem(antialias=True, connect="pairs")
        self._ridges = _hoverable(lambda x, y, data: ridge_words(data))
        self._marks = _hoverable(lambda x, y, data: mark_words(data))
        # Below the roofs: painted above them the path blanked a piece of a dashed roof.
        self.add_layers(
            (
                (-5, (self._path, self._leaders)),
                (0, (*self._roofs, *self._roof_labels, self._slope_label)),
                (5, (self._ridges,)),
                (10, (self._marks,)),
            )
        )
        self.getPlotItem().getViewBox().sigResized.connect(self._place_labels)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    @property
    def labels(self) -> tuple[tuple[str, QRectF], ...]:
        """The marks' labels on screen, the selected run's first, and where each is."""
        return labels_on_screen(self._mark_labels)

    @property
    def roof_labels(self) -> tuple[tuple[str, QRectF], ...]:
        """The roofs' labels on screen, the highest's first, and where each is."""
        return labels_on_screen(self._roof_labels)

    def show_picture(self, picture: RooflinePicture, theme: Theme, zoom: float) -> None:
        """Draw a picture; nothing is done where it is on screen already."""
        if (picture, (theme, zoom)) == (self._picture, self._looks):
            return
        if self.wear(theme, zoom):
            self._dress(theme, zoom)
        self._picture = picture
        self._scale_axes(picture, zoom)
        self._show_roofs(picture, theme)
        self._show_marks(picture, theme, zoom)
        self._place_labels()

    def _dress(self, theme: Theme, zoom: float) -> None:
        """Colours and fonts that do not depend on the runs."""
        for label in (*self._roof_labels, self._slope_label):
            label.setFont(font(12.5 * zoom))
            label.setColor(theme.color("muted"))
        for label in self._mark_labels:
            label.setFont(font(13 * zoom, 600))
        self._path.setPen(self.line_pen(theme.color("faint"), 1.5, Qt.PenStyle.DotLine))
        self._leaders.setPen(self.line_pen(theme.color("faint"), 1))

    def _scale_axes(self, picture: RooflinePicture, zoom: float) -> None:
        (left, right), (low, high) = bounds(picture)
        self.set_ranges((left, right), (low, high))
        axis, face = self._axes["left"], font(12.5 * zoom)
        axis.factor = flops_unit(picture)[0]
        # pyqtgraph would find these out while painting, one picture too late.
        ticks = axis.tickStrings(axis.tickValues(low, high, 0)[0][1], 1, 1)
        axis.setWidth(max((text_width(tick, face) for tick in ticks), default=0) + 10 * zoom)
        self._axes["bottom"].setHeight(38 * zoom)
        words = f"FLOP per {picture.memory_name} byte"
        if self._axes["bottom"].labelText != words or self._axes["bottom"].label.font() != face:
            self._axes["bottom"].setLabel(text=words)
            self._axes["bottom"].label.setFont(face)

    def _roof_pen(self, rank: int, theme: Theme) -> QPen:
        style = Qt.PenStyle.SolidLine if rank == 0 else Qt.PenStyle.DashLine
        return self.line_pen(theme.color("text" if rank == 0 else "muted"), 2.4 - rank, style)

    def _show_roofs(self, picture: RooflinePicture, theme: Theme) -> None:
        """Lines from the slope over the ridge to the right; lower roofs step back."""
        (left, right), _ = bounds(picture)
        ridges = []
        for rank, (line, label) in enumerate(zip(self._roofs, self._roof_labels, strict=True)):
            is_there = rank < len(picture.roofs)
            line.setVisible(is_there)
            label.setVisible(is_there)
            if not is_there:
                continue
            roof = picture.roofs[rank]
            top, ridge = math.log10(roof.flops_per_s), math.log10(roof.ridge_flops_per_byte)
            x, y = [ridge, right], [top, top]
            if rank == 0:
                x, y = [left, *x], [left + top - ridge, *y]
            pen = self._roof_pen(rank, theme)
            line.setData(x, y)
            line.setPen(pen)
            label.setPlainText(f"{format_flops_rate(roof.flops_per_s)} {roof.dtype}")
            ridges.append({"pos": (ridge, top), "pen": pen, "data": roof})
        zoom = self._looks[1] if self._looks else 1.0
        self._ridges.setData(ridges, size=8 * zoom, brush=theme.color("panel"))
        rate = format_rate(picture.ceilings.memory_bytes_per_s)
        self._slope_label.setPlainText(f"{rate} {picture.memory_name}")

    def _show_marks(self, picture: RooflinePicture, theme: Theme, zoom: float) -> None:
        """One mark a run, the selected one large and on top, and labels for all of them."""
        path = [mark for mark in picture.marks if mark.on_path]
        self._path.setData([mark.x for mark in path], [mark.y for mark in path])
        self._labelled = sorted(
            picture.marks, key=lambda mark: (mark.place != picture.selected, mark.place)
        )
        spots = []
        for mark in reversed(self._labelled):
            selected = mark.place == picture.selected
            edge = theme.color("text" if selected else "panel")
            spots.append(
                {
                    "pos": (mark.x, mark.y),
                    "size": (17 if selected else 13) * zoom,
                    "pen": pg.mkPen(edge, width=2),
                    "brush": theme.color(mark.color),
                    "data": mark,
                }
            )
        self._marks.setData(spots, hoverPen=pg.mkPen(theme.color("text"), width=2))
        while len(self._mark_labels) < len(self._labelled):
            self._mark_labels.append(self.add_label(font(13 * zoom, 600)))

    def _place_labels(self, *_: object) -> None:
        """Put each label near its mark, none on another; the selected run's comes first.

        Where it cannot stand beside its mark a line ties it to it. Marks on each other share one,
        which counts the others. One without room is left out. Tooltips tell of all.
        """
        if self._picture is None or self._looks is None:
            return
        theme, zoom = self._looks
        view = self.getPlotItem().getViewBox()
        self._lay_roof_labels()
        self._lay_slope_label()
        spots: list[QPointF] = [
            view.mapViewToScene(QPointF(mark.x, mark.y)) for mark in self._labelled
        ]
        groups = gather(spots, SAME_MARK_PX * zoom)
        for label, group in zip_longest(self._mark_labels, groups):
            label.setVisible(group is not None)
            if group is not None:
                first = self._labelled[group[0]]
                selected = first.place == self._picture.selected
                label.setColor(theme.color("text" if selected else "muted"))
                others = f" +{len(group) - 1}" if len(group) > 1 else ""
                label.setPlainText(short_title(first.title) + others)
        spots = [spots[group[0]] for group in groups]
        labels = self._mark_labels[: len(groups)]
        taken = self._along_the_slope()
        taken += [
            item.sceneBoundingRect()
            for item in (*self._roof_labels, self._slope_label, *self._roofs[1:])
            if item.isVisible()
        ]
        sizes = [label.boundingRect().size() for label in labels]
        boxes = place_labels(spots, sizes, view.sceneBoundingRect(), taken, zoom)
        ties: list[QPointF] = []
        for label, spot, box in zip(labels, spots, boxes, strict=True):
            label.setVisible(box is not None)
            if box is not None:
                label.setPos(view.mapSceneToView(box.topLeft()))
                ties += [view.mapSceneToView(end) for end in leader(spot, box, zoom) or ()]
        self._leaders.setData([end.x() for end in ties], [end.y() for end in ties])

    def _along_the_slope(self) -> list[QRectF]:
        """Small boxes on the slope, which no label should cover."""
        first, last = self._slope_ends()
        return [
            QRectF(
                first.x() + step / 60 * (last.x() - first.x()) - 2,
                first.y() + step / 60 * (last.y() - first.y()) - 2,
                4,
                4,
            )
            for step in range(61)
        ]

    def _slope_ends(self) -> tuple[QPointF, QPointF]:
        """Where the slope enters at the left or below, and its ridge, in scene pixels."""
        assert self._picture is not None, "only asked while there is a picture"
        view = self.getPlotItem().getViewBox()
        (left, _), (low, _) = bounds(self._picture)
        slope = math.log10(self._picture.ceilings.memory_bytes_per_s)
        ridge = max(math.log10(roof.ridge_flops_per_byte) for roof in self._picture.roofs)
        start = max(left, low - slope)
        first: QPointF = view.mapViewToScene(QPointF(start, start + slope))
        last: QPointF = view.mapViewToScene(QPointF(ridge, ridge + slope))
        return first, last

    def _lay_roof_labels(self) -> None:
        """At the right end of each roof, above it, where the slope and the marks leave room.

        Else below it, else left of its ridge; a lower roof's label without room is left out.
        """
        picture = self._picture
        assert picture is not None, "only asked while there is a picture"
        view = self.getPlotItem().getViewBox()
        (_, right), _ = bounds(picture)
        marks = [view.mapViewToScene(QPointF(mark.x, mark.y)) for mark in picture.marks]
        taken = [*self._along_the_slope(), *(QRectF(s.x() - 6, s.y() - 6, 12, 12) for s in marks)]
        for rank, (label, roof) in enumerate(zip(self._roof_labels, picture.roofs, strict=False)):
            top, size = math.log10(roof.flops_per_s), label.boundingRect().size()
            end = view.mapViewToScene(QPointF(right, top))
            ridge = view.mapViewToScene(QPointF(math.log10(roof.ridge_flops_per_byte), top))
            places = [
                QPointF(end.x() - size.width(), end.y() - size.height()),
                QPointF(end.x() - size.width(), end.y()),
                QPointF(ridge.x() - size.width() - 10, ridge.y() - 0.75 * size.height()),
                QPointF(ridge.x() - size.width() - 18, ridge.y() - 0.5 * size.height()),
            ]
            boxes = [QRectF(place, size).adjusted(2, 3, -2, -3) for place in places]
            free = [
                place
                for place, box in zip(places, boxes, strict=True)
                if view.sceneBoundingRect().contains(box) and not any(map(box.intersects, taken))
            ]
            # Nothing lies above the highest roof, so that its label is never in the way.
            chosen = next(iter(free), places[0] if rank == 0 else None)
            label.setVisible(chosen is not None)
            if chosen is not None:
                label.setPos(view.mapSceneToView(chosen))

    def _lay_slope_label(self) -> None:
        """Lay the bandwidth along the slope, clear of the roofs' labels and of the edges.

        A slope too short for it goes without: the scene says it too.
        """
        first, last = self._slope_ends()
        across, down = last.x() - first.x(), last.y() - first.y()
        self._slope_label.setAngle(math.degrees(math.atan2(-down, across)))
        view = self.getPlotItem().getViewBox()
        labels = [label.sceneBoundingRect() for label in self._roof_labels if label.isVisible()]
        size = self._slope_label.boundingRect().size()
        for share in (0.72, 0.6, 0.5, 0.4, 0.3):
            middle = QPointF(first.x() + share * across, first.y() + share * down)
            box = _standing_on(middle, QPointF(across, down), size)
            if view.sceneBoundingRect().contains(box) and not any(map(box.intersects, labels)):
                self._slope_label.setPos(view.mapSceneToView(middle))
                self._slope_label.setVisible(True)
                return
        self._slope_label.setVisible(False)


def _standing_on(middle: QPointF, way: QPointF, size: QSizeF) -> QRectF:
    """What a text covers whose lower edge lies along a line, the middle of it at a point.

    pyqtgraph knows that only once it has painted the text.
    """
    length = math.hypot(way.x(), way.y()) or 1.0
    along = QPointF(way.x(), way.y()) * (size.width() / 2 / length)
    up = QPointF(way.y(), -way.x()) * (size.height() / length)
    corners = [middle + step + rise for step in (along, -along) for rise in (QPointF(), up)]
    xs, ys = [spot.x() for spot in corners], [spot.y() for spot in corners]
    return QRectF(QPointF(min(xs), min(ys)), QPointF(max(xs), max(ys)))


def _hoverable(tip: Callable[[float, float, Any], str]) -> pg.ScatterPlotItem:
    return dot_layer(hoverable=True, tip=tip)
