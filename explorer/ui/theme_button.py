"""The button that switches between dark and light: it shows the sun or the moon to switch to."""

import math

from PySide6.QtCore import QPointF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QWidget
from typing_extensions import override

SIGN_PX = 5.0
"""Radius of the sun's disc; the moon's is a little larger."""


class ThemeButton(QPushButton):
    """Drawn, since not every font has the signs; its name says which theme it switches to."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._other = ""
        self.setFixedWidth(40)
        self.show_other("light")

    def show_other(self, other: str) -> None:
        """Name the theme that a click switches to, ``dark`` or ``light``."""
        self._other = other
        words = f"Switch to the {other} theme"
        self.setAccessibleName(words)
        self.setToolTip(words)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(40, super().sizeHint().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        ink = self.palette().color(self.palette().ColorRole.ButtonText)
        painter.translate(self.width() / 2, self.height() / 2)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        if self._other == "light":
            painter.drawEllipse(QPointF(0, 0), SIGN_PX - 0.8, SIGN_PX - 0.8)
            painter.setPen(QPen(ink, 1.6, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            for ray in range(8):
                angle = ray * math.pi / 4
                ahead = QPointF(math.cos(angle), math.sin(angle))
                painter.drawLine(ahead * (SIGN_PX + 1.6), ahead * (SIGN_PX + 3.4))
        else:
            disc, shadow = QPainterPath(), QPainterPath()
            disc.addEllipse(QPointF(0, 0), SIGN_PX + 1.5, SIGN_PX + 1.5)
            shadow.addEllipse(QPointF(3.4, -2.6), SIGN_PX + 0.4, SIGN_PX + 0.4)
            painter.drawPath(disc.subtracted(shadow))
        painter.end()
