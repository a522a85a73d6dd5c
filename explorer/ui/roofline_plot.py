"""The roofline as a pyqtgraph plot. Imported when first shown: pyqtgraph takes 0.3 s to import.

Everything is placed in log10 coordinates, which is how pyqtgraph draws logarithmic axes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from explorer.model.device import Ceilings
from explorer.model.roofline import Roof, RooflinePoint
from explorer.model.units import format_flops_rate, format_rate, three_digits
from explorer.ui.painting import text_width
from explorer.ui.theme import Theme, font

FLOPS_UNITS = ((1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One run on the plot.

    Attributes:
        place: In the list of runs.
        title: What it is called.
        color: Name of its theme colour.
        point: Where it lies.
        on_path: The selected run or its baseline, which a dotted line connects.
    """

    place: int
    title: str
    color: str
    point: RooflinePoint
    on_path: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePicture:
    """Everything the plot shows.

    Attributes:
        ceilings: Measured ceilings of the device.
        roofs: Highest first.
        marks: The runs.
        selected: Place of the selected run; its mark is larger.
        memory_name: HBM or DRAM.
    """

    ceilings: Ceilings
    roofs: tuple[Roof, ...]
    marks: tuple[Mark, ...]
    selected: int
    memory_name: str


def flops_unit(picture: RooflinePicture) -> tuple[float, str]:
    """The unit of the vertical axis: the one that suits the highest roof."""
    highest = max((roof.flops_per_s for roof in picture.roofs), default=0.0)
    return next((unit for unit in FLOPS_UNITS if highest >= unit[0]), FLOPS_UNITS[-1])


def bounds(picture: RooflinePicture) -> tuple[tuple[float, float], tuple[float, float]]:
    """Ranges of both axes in log10: roofs, ridges and marks with some air round them."""
    x = [roof.ridge_flops_per_byte for roof in picture.roofs]
    y = [roof.flops_per_s for roof in picture.roofs]
    x += [mark.point.flops_per_byte for mark in picture.marks]
    y += [mark.point.flops_per_s for mark in picture.marks]
    left, right = math.log10(min(x)) - 0.45, math.log10(max(x)) + 0.55
    slope = math.log10(picture.ceilings.memory_bytes_per_s)
    low = min(math.log10(min(y)) - 0.35, left + slope)
    return (left, right), (low, math.log10(max(y)) + 0.3)


class _LogAxis(pg.AxisItem):  # type: ignore[misc]
    """Decades as plain numbers (0.1, 1, 10), in the unit that the factor names."""

    def __init__(self, orientation: str, face: QFont) -> None:
        super().__init__(orientation)
        self.factor = 1.0
        self.setStyle(tickFont=face, tickLength=-4, autoExpandTextSpace=False)

    @override
    def tickValues(
        self, minVal: float, maxVal: float, size: float
    ) -> list[tuple[float, list[float]]]:
        offset = math.log10(self.factor)
        decades = range(math.ceil(minVal - offset - 1e-9), math.floor(maxVal - offset + 1e-9) + 1)
        steps = (1, 2, 5) if len(decades) <= 1 else (1,)
        values = [
            decade + offset + math.log10(step)
            for decade in range(decades.start - 1, decades.stop + 1)
            for step in steps
        ]
        return [(1.0, [value for value in values if minVal <= value <= maxVal])]

    @override
    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        shown = [10**value / self.factor for value in values]
        return [f"{value:,.0f}" if value >= 0.995 else f"{value:g}" for value in shown]


class RooflinePlot(pg.PlotWidget):  # type: ignore[misc]
    """Roofs, slope, ridge points and one mark a run; the mouse only hovers.

    Data comes in through :meth:`show_picture`.

    Attributes:
        labels: The marks' labels, each with the place of its mark in log10.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        axes = {side: _LogAxis(side, font(12.5)) for side in ("bottom", "left")}
        super().__init__(parent=parent, axisItems=axes, background=None)
        self._axes = axes
        self._picture: RooflinePicture | None = None
        self._zoom = 1.0
        self.labels: list[tuple[pg.TextItem, QPointF]] = []
        self._slope_label: pg.TextItem | None = None
        self._fixed: list[pg.GraphicsObject] = []
        plot = self.getPlotItem()
        plot.setMenuEnabled(False)
        plot.hideButtons()
        plot.getViewBox().setMouseEnabled(x=False, y=False)
        plot.showGrid(x=True, y=True, alpha=0.35)
        plot.setContentsMargins(0, 4, 6, 0)
        plot.getViewBox().sigResized.connect(self._place_labels)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def show_picture(self, picture: RooflinePicture, theme: Theme, zoom: float) -> None:
        """Draw afresh."""
        self._picture, self._zoom = picture, zoom
        self.labels, self._slope_label, self._fixed = [], None, []
        plot = self.getPlotItem()
        plot.clear()
        self.setBackground(theme.color("panel"))
        self._dress_axes(picture, theme, zoom)
        (left, right), (low, high) = bounds(picture)
        plot.setRange(xRange=(left, right), yRange=(low, high), padding=0, disableAutoRange=True)
        for rank, roof in enumerate(picture.roofs):
            self._add_roof(roof, rank, (left, right), theme, zoom)
        self._add_slope_label(picture, theme, zoom)
        self._add_path(picture, theme)
        for mark in sorted(picture.marks, key=lambda mark: mark.place != picture.selected):
            self._add_mark(mark, mark.place == picture.selected, theme, zoom)
        self._place_labels()

    def _dress_axes(self, picture: RooflinePicture, theme: Theme, zoom: float) -> None:
        self._axes["left"].factor = flops_unit(picture)[0]
        for axis in self._axes.values():
            axis.setStyle(tickFont=font(12.5 * zoom))
            axis.setPen(pg.mkPen(theme.color("line")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
        # pyqtgraph would find these out while painting, one picture too late.
        face, (low, high) = font(12.5 * zoom), bounds(picture)[1]
        axis = self._axes["left"]
        ticks = axis.tickStrings(axis.tickValues(low, high, 0)[0][1], 1, 1)
        axis.setWidth(max((text_width(tick, face) for tick in ticks), default=0) + 10 * zoom)
        self._axes["bottom"].setHeight(38 * zoom)
        label = f"FLOP per {picture.memory_name} byte"
        self._axes["bottom"].setLabel(
            text=label, **{"color": theme.muted, "font-size": f"{12.5 * zoom:.0f}px"}
        )
        self._axes["bottom"].label.setFont(font(12.5 * zoom))

    def _add_roof(
        self, roof: Roof, rank: int, ends: tuple[float, float], theme: Theme, zoom: float
    ) -> None:
        """The line from the slope over the ridge to the right; lower roofs step back."""
        top, ridge = math.log10(roof.flops_per_s), math.log10(roof.ridge_flops_per_byte)
        slope = top - ridge
        style = Qt.PenStyle.SolidLine if rank == 0 else Qt.PenStyle.DashLine
        pen = pg.mkPen(theme.color("text" if rank == 0 else "muted"), width=2.4 - rank, style=style)
        x, y = [ridge, ends[1]], [top, top]
        if rank == 0:
            x, y = [ends[0], *x], [ends[0] + slope, *y]
        line = self.plot(x, y, pen=pen, antialias=True)
        if rank > 0:
            self._fixed.append(line.curve)
        ring = pg.ScatterPlotItem(
            [ridge], [top], size=8 * zoom, pen=pen, brush=theme.color("panel"), hoverable=True,
            tip=lambda x, y, data: ridge_words(roof),
        )  # fmt: skip
        self.addItem(ring)
        words = f"{format_flops_rate(roof.flops_per_s)} {roof.dtype}"
        label = pg.TextItem(words, color=theme.color("muted"), anchor=(1, 1))
        label.setFont(font(12.5 * zoom))
        label.setPos(ends[1], top)
        self.addItem(label)
        self._fixed.append(label)

    def _add_slope_label(self, picture: RooflinePicture, theme: Theme, zoom: float) -> None:
        words = f"{format_rate(picture.ceilings.memory_bytes_per_s)} {picture.memory_name}"
        label = pg.TextItem(words, color=theme.color("muted"), anchor=(0.5, 1))
        label.setFont(font(12.5 * zoom))
        self.addItem(label)
        self._slope_label = label
        self._fixed.append(label)

    def _add_path(self, picture: RooflinePicture, theme: Theme) -> None:
        """A dotted line from the baseline to the selected run: how fusing moved the chain."""
        marks = [mark for mark in picture.marks if mark.on_path]
        x = [math.log10(mark.point.flops_per_byte) for mark in marks]
        y = [math.log10(mark.point.flops_per_s) for mark in marks]
        pen = pg.mkPen(theme.color("faint"), width=1.5, style=Qt.PenStyle.DotLine)
        # Below the roofs: painted above them it blanked a piece of a dashed roof.
        self.plot(x, y, pen=pen, antialias=True).setZValue(-5)

    def _add_mark(self, mark: Mark, selected: bool, theme: Theme, zoom: float) -> None:
        x, y = math.log10(mark.point.flops_per_byte), math.log10(mark.point.flops_per_s)
        edge = pg.mkPen(theme.color("text" if selected else "panel"), width=2)
        spot = pg.ScatterPlotItem(
            [x], [y], size=(17 if selected else 14) * zoom, pen=edge, brush=theme.color(mark.color),
            hoverable=True, hoverPen=pg.mkPen(theme.color("text"), width=2),
            tip=lambda x, y, data: mark_words(mark),
        )  # fmt: skip
        spot.setZValue(11 if selected else 10)
        self.addItem(spot)
        html = f'<span style="color:{getattr(theme, mark.color)}">{escape(mark.title)}</span>'
        label = pg.TextItem(html=html, anchor=(0, 0))
        label.setFont(font(13 * zoom, 600))
        label.setZValue(12)
        self.addItem(label)
        self.labels.append((label, QPointF(x, y)))

    def _place_labels(self, *_: object) -> None:
        """Put each label beside its mark, none on top of another; the selected run's comes first.

        A label without room is left out: the mark's colour and its tooltip tell which run it is.
        """
        if self._picture is None:
            return
        view = self.getPlotItem().getViewBox()
        self._turn_slope_label()
        spots: list[QPointF] = [view.mapViewToScene(where) for _, where in self.labels]
        reach = 8 * self._zoom
        taken = [QRectF(spot.x() - reach, spot.y() - reach, 2 * reach, 2 * reach) for spot in spots]
        taken += self._along_the_slope()
        taken += [item.sceneBoundingRect() for item in self._fixed]
        for i, spot in enumerate(spots):
            label = self.labels[i][0]
            size = label.boundingRect().size()
            box = _free_box(spot, size, view.sceneBoundingRect(), taken, self._zoom)
            label.setVisible(box is not None)
            if box is not None:
                taken.append(box)
                label.setPos(view.mapSceneToView(box.topLeft()))

    def _along_the_slope(self) -> list[QRectF]:
        """Small boxes on the slope, which no label should cover."""
        first, last = self._slope_ends()
        shares = [step / 60 for step in range(61)]
        return [
            QRectF(
                first.x() + share * (last.x() - first.x()) - 2,
                first.y() + share * (last.y() - first.y()) - 2,
                4,
                4,
            )
            for share in shares
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

    def _turn_slope_label(self) -> None:
        """Lay the bandwidth along the slope, in the middle of what is seen of it."""
        if self._slope_label is None or self._picture is None:
            return
        first, last = self._slope_ends()
        angle = math.degrees(math.atan2(first.y() - last.y(), last.x() - first.x()))
        middle = QPointF(
            first.x() + 0.72 * (last.x() - first.x()), first.y() + 0.72 * (last.y() - first.y())
        )
        self._slope_label.setAngle(angle)
        self._slope_label.setPos(self.getPlotItem().getViewBox().mapSceneToView(middle))


def _free_box(
    spot: QPointF, size: QSizeF, inside: QRectF, taken: list[QRectF], zoom: float
) -> QRectF | None:
    """The nearest place for a label round its mark that covers nothing, right of it first."""
    width, height, near = size.width(), size.height(), 10 * zoom
    middle = spot.y() - height / 2
    beside = [(spot.x() + near, middle), (spot.x() - near - width, middle)]
    steps = (0.35, -1.35, 0.9, -1.9, 1.5, -2.5, 2.1)
    rows = [spot.y() + step * height for step in steps]
    diagonal = [(x, y) for y in rows for x in (spot.x() + near / 2, spot.x() - near / 2 - width)]
    for x, y in (*beside, *diagonal):
        box = QRectF(x, y, width, height)
        # Text has air above and below it; only what is written may not touch.
        tight = box.adjusted(0, 0.2 * height, 0, -0.2 * height)
        if inside.contains(tight) and not any(tight.intersects(other) for other in taken):
            return box
    return None


def ridge_words(roof: Roof) -> str:
    """A ridge point in words."""
    return f"ridge point, {roof.dtype}: {three_digits(roof.ridge_flops_per_byte)} FLOP per byte"


def mark_words(mark: Mark) -> str:
    """A mark in words, for its tooltip and the screen reader."""
    point = mark.point
    return (
        f"{mark.title}: {format_flops_rate(point.flops_per_s)} at "
        f"{three_digits(point.flops_per_byte)} FLOP per byte, bytes {point.pedigree.value}"
    )


def picture_words(picture: RooflinePicture, titles: Sequence[str]) -> str:
    """The whole plot in words."""
    roofs = ", ".join(
        f"{format_flops_rate(roof.flops_per_s)} {roof.dtype} from "
        f"{three_digits(roof.ridge_flops_per_byte)} FLOP per byte on"
        for roof in picture.roofs
    )
    head = f"Ceilings: {format_rate(picture.ceilings.memory_bytes_per_s)} memory; {roofs}"
    return "; ".join([head, *map(mark_words, picture.marks), *titles])
