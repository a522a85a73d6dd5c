"""A painter with the scene's unit and theme: sizes in units, colours by name."""

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPen

from explorer.ui.painting import LEFT, draw_text, text_width
from explorer.ui.theme import Theme, font


@dataclass(frozen=True, slots=True)
class Canvas:
    """What every drawing of the scene is given.

    Attributes:
        painter: Where to paint; antialiasing is on.
        theme: Colours.
        u: Length of the scene's unit in pixels.
    """

    painter: QPainter
    theme: Theme
    u: float

    def color(self, name: str, alpha: int = 255) -> QColor:
        """A colour of the theme."""
        return self.theme.color(name, alpha)

    def text(
        self,
        rect: QRectF,
        words: str,
        size: float,
        color: str,
        *,
        weight: int = 400,
        align: Qt.AlignmentFlag = LEFT,
        alpha: int = 255,
        mono: bool = False,
        tabular: bool = False,
    ) -> float:
        """Write one line, cut where it does not fit; returns its width in pixels.

        Args:
            rect: Where, in pixels.
            words: What.
            size: Height of the font in units.
            color: Name of the colour.
            weight: 400 to 700.
            align: Within ``rect``.
            alpha: 0 to 255.
            mono: The monospaced family.
            tabular: Digits of equal width, for a number that runs.
        """
        face = font(size * self.u, weight, mono, tabular)
        return draw_text(self.painter, rect, align, words, face, self.color(color, alpha))

    def text_width(
        self, words: str, size: float, weight: int = 400, *, tabular: bool = False
    ) -> float:
        """Width of a line in pixels."""
        return text_width(words, font(size * self.u, weight, tabular=tabular))

    def box(
        self,
        rect: QRectF,
        radius: float,
        *,
        fill: QColor | QBrush | None = None,
        line: QColor | None = None,
        width: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """A rounded box; radius and line width in units."""
        self.painter.setBrush(Qt.BrushStyle.NoBrush if fill is None else fill)
        self.painter.setPen(Qt.PenStyle.NoPen if line is None else self.pen(line, width, dashed))
        self.painter.drawRoundedRect(rect, radius * self.u, radius * self.u)

    def line(
        self, start: QPointF, end: QPointF, color: QColor, width: float, dashed: bool = False
    ) -> None:
        """A straight line; its width in units."""
        self.painter.setPen(self.pen(color, width, dashed))
        self.painter.drawLine(start, end)

    def pen(self, color: QColor, width: float, dashed: bool = False) -> QPen:
        """A pen with a width in units."""
        style = Qt.PenStyle.DashLine if dashed else Qt.PenStyle.SolidLine
        cap = Qt.PenCapStyle.FlatCap if dashed else Qt.PenCapStyle.RoundCap
        return QPen(color, width * self.u, style, cap)
