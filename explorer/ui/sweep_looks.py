"""How the marks of a sweep look: symbols, outlines, fills, labels. Needs pyqtgraph."""

from functools import cache
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFont
from typing_extensions import override

from explorer.model.units import format_us
from explorer.ui.sweep_picture import MarkKind, SweepMark, SweepPicture
from explorer.ui.theme import Theme, font

LABEL_PX = 12.5
SYMBOLS = {
    MarkKind.PLAN: ("o", 11.0),
    MarkKind.WRONG: ("x", 12.0),
    MarkKind.EAGER: ("s", 11.0),
    MarkKind.COMPILED: ("d", 19.0),
}
"""Symbol and size of each kind of mark."""
BEYOND = {1: "t1", -1: "t"}
"""Arrows for marks that lie above or below the range."""
EDGE = 0.045
"""How far from the edge those stand, as a share of the range."""


class Axis(pg.AxisItem):  # type: ignore[misc]
    """Few round numbers, each with its unit."""

    def __init__(self, orientation: str) -> None:
        super().__init__(orientation)
        self.unit = ""
        self.enableAutoSIPrefix(False)
        self.setStyle(tickLength=-4, autoExpandTextSpace=False, maxTickLevel=0)

    @override
    def tickStrings(self, values: list[float], scale: float, spacing: float) -> list[str]:
        return [f"{value:g} {self.unit}" for value in values]


def tip(x: float, y: float, data: tuple[int, SweepMark]) -> str:
    """What the tooltip of a mark says; pyqtgraph hands in what was given with it."""
    return "\n".join(data[1].words)


def rank(mark: SweepMark) -> tuple[bool, bool, bool]:
    """Labels of what is shown come first, then Inductor's choice, then the front."""
    return (not mark.shown, not mark.ringed, not mark.on_front)


def label_text(picture: SweepPicture, mark: SweepMark) -> str:
    """The label, with the time of a mark that stands at the edge."""
    return f"{mark.label}, {format_us(mark.y)}" if picture.beyond(mark) else mark.label


def label_font(zoom: float) -> QFont:
    """The font of labels beside marks."""
    return font(LABEL_PX * zoom, 600)


def edge(mark: SweepMark, theme: Theme) -> Any:
    """The outline: of what is shown in the text's colour, a cross in the colour of warnings."""
    if mark.shown:
        return shared_pen(theme, "text", 2)
    if mark.kind is MarkKind.WRONG:
        return shared_pen(theme, "warning", 2)
    if mark.kind is MarkKind.COMPILED:
        return shared_pen(theme, "read", 1.8)
    return shared_pen(theme, "panel", 1)


def face(mark: SweepMark, theme: Theme) -> Any:
    """The fill: the front in the colour of what is good."""
    name = {
        MarkKind.PLAN: "compute" if mark.on_front else "fused",
        MarkKind.WRONG: "warning",
        MarkKind.EAGER: "plain",
        MarkKind.COMPILED: "panel",
    }[mark.kind]
    return _brush(theme, name)


@cache
def shared_pen(theme: Theme, name: str, width: float) -> Any:
    """One object a look: pyqtgraph draws a symbol anew for each object it has not seen."""
    return pg.mkPen(theme.color(name), width=width)


@cache
def _brush(theme: Theme, name: str) -> Any:
    return pg.mkBrush(theme.color(name))


def ring(place: tuple[float, float], size: float, pen: Any) -> dict[str, Any]:
    """A circle round a place, as pyqtgraph takes it."""
    return {"pos": place, "size": size, "symbol": "o", "pen": pen, "brush": None}


def box_round(spot: QPointF, reach: float) -> QRectF:
    """A square round a spot, for labels to keep clear of."""
    return QRectF(spot.x() - reach, spot.y() - reach, 2 * reach, 2 * reach)
