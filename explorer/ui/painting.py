"""What painted views share: text cut to fit, mixed colours, and a panel's face for exports."""

from functools import lru_cache

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPen

from explorer.ui.line_breaks import breakable
from explorer.ui.theme import Theme, font

LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
CENTER = Qt.AlignmentFlag.AlignCenter

PANEL_RADIUS = 10.0
HEADING_HEIGHT = 38.0
"""From a panel's top to where its picture begins, at zoom 1."""


def antialias(painter: QPainter, on: bool = True) -> None:
    """Smooth edges and text, or hard ones for many small rectangles."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on)
    painter.setRenderHint(QPainter.RenderHint.TextAntialiasing, True)


def draw_panel(
    painter: QPainter, rect: QRectF, theme: Theme, title: str, hint: str = "", zoom: float = 1
) -> QRectF:
    """Paint a panel's face, border and heading, where no panel widget does it.

    Args:
        painter: Where to.
        rect: The whole panel.
        theme: Colours.
        title: At the top left.
        hint: At the top right, in second rank, cut where both do not fit.
        zoom: Factor on fonts and margins.

    Returns:
        What is left for the picture.
    """
    antialias(painter)
    painter.setPen(QPen(theme.color("line"), 1))
    painter.setBrush(theme.color("panel"))
    radius = PANEL_RADIUS * zoom
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
    line = QRectF(rect.x(), rect.y() + 10 * zoom, rect.width(), 24 * zoom)
    line.adjust(16 * zoom, 0, -16 * zoom, 0)
    used = draw_text(painter, line, LEFT, title, font(15 * zoom, 600), theme.color("text"))
    line.setLeft(line.left() + used + 20 * zoom)
    if hint and line.width() > 60 * zoom:
        draw_text(painter, line, RIGHT, hint, font(12.5 * zoom), theme.color("muted"))
    return rect.adjusted(10 * zoom, HEADING_HEIGHT * zoom, -10 * zoom, -10 * zoom)


def draw_text(
    painter: QPainter,
    rect: QRectF,
    align: Qt.AlignmentFlag,
    text: str,
    face: QFont,
    color: QColor,
) -> float:
    """Write one line, cut with an ellipsis where it does not fit; returns its width."""
    shown = elided(text, face, rect.width())
    painter.setFont(face)
    painter.setPen(color)
    painter.drawText(rect, int(align) | int(Qt.TextFlag.TextDontClip), shown)
    return text_width(shown, face)


@lru_cache(maxsize=8192)
def text_width(text: str, face: QFont) -> float:
    """Width of a line in the font's pixels."""
    return QFontMetricsF(face).horizontalAdvance(text)


@lru_cache(maxsize=8192)
def elided(text: str, face: QFont, width: float) -> str:
    """The text, or as much of it as fits with an ellipsis; empty if not even two letters do."""
    if text_width(text, face) <= width + 0.5:
        return text
    cut = QFontMetricsF(face).elidedText(text, Qt.TextElideMode.ElideRight, width)
    return cut if len(cut) > 2 else ""


def elided_inside(text: str, face: QFont, width: float) -> str:
    """The text, or its beginning and its end round an ellipsis."""
    return QFontMetricsF(face).elidedText(text, Qt.TextElideMode.ElideMiddle, width)


def draw_sentence(
    painter: QPainter, rect: QRectF, text: str, theme: Theme, zoom: float = 1
) -> None:
    """Write a sentence in the middle, where a picture cannot be drawn."""
    painter.setFont(font(14 * zoom))
    painter.setPen(theme.color("muted"))
    painter.drawText(rect, int(CENTER) | int(Qt.TextFlag.TextWordWrap), breakable(text))


def blend(first: QColor, second: QColor, share: float) -> QColor:
    """Mix two colours; ``share`` of the second, 0 to 1."""
    return QColor.fromRgbF(
        first.redF() + (second.redF() - first.redF()) * share,
        first.greenF() + (second.greenF() - first.greenF()) * share,
        first.blueF() + (second.blueF() - first.blueF()) * share,
    )
