"""A button with a sign of a player, drawn, since not every font has one."""

from enum import Enum

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPolygonF
from PySide6.QtWidgets import QToolButton, QWidget
from typing_extensions import override


class Sign(Enum):
    """What a button does."""

    PLAY = "play"
    PAUSE = "pause"
    PREVIOUS = "previous"
    NEXT = "next"


class TransportButton(QToolButton):
    """A tool button whose sign takes the text's colour of the palette."""

    def __init__(self, sign: Sign, tip: str, parent: QWidget | None = None) -> None:
        """Make a button.

        Args:
            sign: What it shows.
            tip: What it does, and its key in brackets.
            parent: Of the widget.
        """
        super().__init__(parent)
        self._sign = sign
        self.setFixedSize(40, 30)
        self.set_sign(sign, tip)

    @property
    def sign(self) -> Sign:
        """What it shows."""
        return self._sign

    def set_sign(self, sign: Sign, tip: str) -> None:
        """Show another sign; its name is the tip without the key."""
        self._sign = sign
        self.setToolTip(tip)
        self.setAccessibleName(tip.partition(" (")[0])
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        group = self.palette().ColorGroup.Active
        if not self.isEnabled():
            group = self.palette().ColorGroup.Disabled
        painter.setBrush(self.palette().color(group, self.palette().ColorRole.ButtonText))
        middle = QRectF(self.rect()).center()
        x, y = middle.x(), middle.y()
        match self._sign:
            case Sign.PLAY:
                _triangle(painter, x - 4.5, x + 6.5, y, 6.5)
            case Sign.PAUSE:
                painter.drawRoundedRect(QRectF(x - 5.5, y - 6, 4, 12), 1, 1)
                painter.drawRoundedRect(QRectF(x + 1.5, y - 6, 4, 12), 1, 1)
            case Sign.PREVIOUS:
                painter.drawRoundedRect(QRectF(x - 7, y - 6, 2.5, 12), 1, 1)
                _triangle(painter, x + 6, x - 3, y, 5.5)
            case Sign.NEXT:
                painter.drawRoundedRect(QRectF(x + 4.5, y - 6, 2.5, 12), 1, 1)
                _triangle(painter, x - 6, x + 3, y, 5.5)
        painter.end()


def _triangle(painter: QPainter, base_x: float, tip_x: float, y: float, half: float) -> None:
    """A triangle from its upright base to its tip."""
    corners = [QPointF(base_x, y - half), QPointF(base_x, y + half), QPointF(tip_x, y)]
    painter.drawPolygon(QPolygonF(corners))
