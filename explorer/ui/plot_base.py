"""What every plot has in common: it stands still, and is dressed by the theme. Needs pyqtgraph.

Imported when a plot is first shown: pyqtgraph takes a third of a second.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from explorer.ui.theme import Theme, font

AXIS_PX = 12.5


def dot_layer(**options: Any) -> pg.ScatterPlotItem:
    """Dots of a size in pixels, each painted by itself.

    pyqtgraph would paint them at one go from an array, whose address it has PySide wrap: where the
    memory was another object's before, PySide hands out that object. Then no dots are painted, or
    the process ends.

    Args:
        options: As ``pyqtgraph.ScatterPlotItem`` takes them.
    """
    return pg.ScatterPlotItem(pxMode=True, antialias=True, useCache=False, **options)


class StillPlot(pg.PlotWidget):  # type: ignore[misc]
    """A plot that the mouse neither moves nor scales; what it shows is laid out by its owner.

    A subclass makes its items once, adds them with :meth:`add_layers`, and then moves them: to
    make them anew for every run that comes in would hold up the event loop.
    """

    def __init__(
        self, axes: Mapping[str, pg.AxisItem], grid: float = 0.3, parent: QWidget | None = None
    ) -> None:
        """Make an empty plot.

        Args:
            axes: By side, ``bottom`` and ``left``.
            grid: Strength of the lines behind the data, 0 to 1.
            parent: Owner.
        """
        super().__init__(parent=parent, axisItems=dict(axes), background=None)
        self._looks: tuple[Theme, float] | None = None
        self._axes = axes
        plot = self.getPlotItem()
        plot.setMenuEnabled(False)
        plot.hideButtons()
        plot.getViewBox().setMouseEnabled(x=False, y=False)
        plot.showGrid(x=True, y=True, alpha=grid)
        plot.setContentsMargins(0, 4, 6, 0)

    def add_layers(self, layers: Sequence[tuple[float, Sequence[Any]]]) -> None:
        """Add items, each group of them at a height above the grid."""
        for z, items in layers:
            for item in items:
                item.setZValue(z)
                self.addItem(item)

    def wear(self, theme: Theme, zoom: float) -> bool:
        """Colour the axes and set their fonts; returns whether that is another look than before."""
        if (theme, zoom) == self._looks:
            return False
        self._looks = (theme, zoom)
        self.setBackground(theme.color("panel"))
        for axis in self._axes.values():
            axis.setStyle(tickFont=font(AXIS_PX * zoom))
            axis.setPen(pg.mkPen(theme.color("line")))
            axis.setTextPen(pg.mkPen(theme.color("muted")))
        return True

    def line_pen(
        self, color: QColor, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine
    ) -> QPen:
        """A pen for a line, as wide as that many of the window's pixels.

        pyqtgraph's widths count the screen's pixels, of which a fine screen has more.
        """
        pen: QPen = pg.mkPen(color, width=width * self.devicePixelRatioF(), style=style)
        return pen

    def set_ranges(self, x_range: tuple[float, float], y_range: tuple[float, float]) -> None:
        """Show exactly this part of the plane."""
        self.getPlotItem().setRange(
            xRange=x_range, yRange=y_range, padding=0, disableAutoRange=True
        )

    def add_label(self, face: QFont) -> pg.TextItem:
        """One more label above everything else."""
        label = pg.TextItem(anchor=(0, 0))
        label.setFont(face)
        label.setZValue(12)
        self.addItem(label)
        return label


def labels_on_screen(labels: Sequence[pg.TextItem]) -> tuple[tuple[str, QRectF], ...]:
    """The labels that can be seen, and where each is."""
    return tuple(
        (label.toPlainText(), label.sceneBoundingRect()) for label in labels if label.isVisible()
    )


class LogAxis(pg.AxisItem):  # type: ignore[misc]
    """Decades as round numbers, of an axis that shows log10; less than two are divided further."""

    def __init__(self, orientation: str, text: Callable[[float], str] | None = None) -> None:
        """Make an axis.

        Args:
            orientation: As pyqtgraph takes it.
            text: What stands at a tick, by its value in the axis's unit; plain numbers otherwise.
        """
        super().__init__(orientation)
        self.factor = 1.0
        self.text = text or plain_number
        self.enableAutoSIPrefix(False)
        self.setStyle(tickLength=-4, autoExpandTextSpace=False)

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
        return [self.text(10**value / self.factor) for value in values]


def plain_number(value: float) -> str:
    """``1,000``, ``10``, ``0.1``."""
    return f"{value:,.0f}" if value >= 0.995 else f"{value:g}"
