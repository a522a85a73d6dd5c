"""Clicks and keys, typed: pytest-qt's own have no annotations."""

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

NO_MODIFIER = Qt.KeyboardModifier.NoModifier


def click(widget: QWidget, point: QPointF | None = None) -> None:
    """Click with the left button, in the middle or at a point of the widget."""
    where = widget.rect().center() if point is None else point.toPoint()
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, NO_MODIFIER, where)


def double_click(widget: QWidget, point: QPoint) -> None:
    """Click twice at a point of the widget."""
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton, NO_MODIFIER, point)
    QTest.mouseDClick(widget, Qt.MouseButton.LeftButton, NO_MODIFIER, point)


def press(widget: QWidget, key: Qt.Key, modifier: Qt.KeyboardModifier = NO_MODIFIER) -> None:
    """Press and let go of a key."""
    QTest.keyClick(widget, key, modifier)


def write(widget: QWidget, text: str) -> None:
    """Type a text."""
    QTest.keyClicks(widget, text)
