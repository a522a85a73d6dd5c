"""Small controls that Qt's style sheets cannot draw without picture files."""

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFocusEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import (
    QAbstractButton,
    QComboBox,
    QPushButton,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QStylePainter,
    QWidget,
)
from typing_extensions import override

from explorer.ui.theme import DARK, Theme

_BY_KEYBOARD = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)
CHEVRON_PX = 4.5
TEXT_MARGIN_PX = 50
"""What a control with an arrow needs beside its text."""


class Picker(QComboBox):
    """A drop-down list whose arrow is drawn in the text colour of the theme."""

    def __init__(self, name: str, *, widest: str = "", parent: QWidget | None = None) -> None:
        """Make an empty list.

        Args:
            name: What is chosen, for a screen reader.
            widest: As wide as this text where there is room, whatever the choices are.
            parent: Of the widget.
        """
        super().__init__(parent)
        self._widest = widest
        self.setAccessibleName(name)
        self.view().setAccessibleName(f"{name}: choices")

    @override
    def sizeHint(self) -> QSize:
        return _with_arrow(super().sizeHint(), self, self._widest_text())

    def _widest_text(self) -> int:
        metrics = self.fontMetrics()
        texts = (self._widest, *(self.itemText(i) for i in range(self.count())))
        return max(metrics.horizontalAdvance(text) for text in texts)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        # The style would cut a long text off without a sign that there is more.
        width = self.width() - TEXT_MARGIN_PX
        option.currentText = _elided(self, option.currentText, width)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        draw_chevron(painter, QPointF(self.width() - 16, self.height() / 2), _ink(self))
        painter.end()


class MenuButton(QPushButton):
    """A button that opens something below it, which its arrow says."""

    @override
    def sizeHint(self) -> QSize:
        text = self.fontMetrics().horizontalAdvance(self.text())
        return _with_arrow(super().sizeHint(), self, text)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = _elided(self, option.text, self.width() - TEXT_MARGIN_PX)
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        draw_chevron(painter, QPointF(self.width() - 16, self.height() / 2), _ink(self))
        painter.end()


def _with_arrow(hint: QSize, widget: QWidget, text_px: int) -> QSize:
    widget.ensurePolished()
    return QSize(max(hint.width(), text_px + TEXT_MARGIN_PX + 2), hint.height())


def _elided(widget: QWidget, text: str, width: int) -> str:
    return widget.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, width)


def _ink(widget: QWidget) -> QColor:
    group = widget.palette().ColorGroup.Active
    if not widget.isEnabled():
        group = widget.palette().ColorGroup.Disabled
    return widget.palette().color(group, widget.palette().ColorRole.ButtonText)


def draw_chevron(painter: QPainter, middle: QPointF, color: QColor) -> None:
    """A downward arrow of two strokes round ``middle``."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(color, 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    x, y, reach = middle.x(), middle.y(), CHEVRON_PX
    painter.drawPolyline(
        QPolygonF(
            [
                QPointF(x - reach, y - reach / 2),
                QPointF(x, y + reach / 2),
                QPointF(x + reach, y - reach / 2),
            ]
        )
    )


class FocusRing(QObject):
    """Whether a painted widget should show that the keyboard is at it.

    After a click it is not: the click says that itself.
    """

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.is_on = False
        self._widget = widget
        widget.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QFocusEvent):
            self.is_on = event.gotFocus() and event.reason() in _BY_KEYBOARD
            self._widget.update()
        return super().eventFilter(watched, event)


class Toggle(QAbstractButton):
    """A tick box; Space and a click toggle it."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedSize(22, 22)
        self._ring = FocusRing(self)
        self._on, self._off, self._mark, self._focus = (QColor() for _ in range(4))

    def set_colors(self, theme: Theme) -> None:
        """Take other colours."""
        self._on, self._off = theme.color("compute"), theme.color("faint")
        self._mark, self._focus = theme.color("on_accent"), theme.color("text")
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(22, 22)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(3.5, 3.5, -3.5, -3.5)
        if not self.isEnabled():
            painter.setOpacity(0.45)
        on = self.isChecked()
        painter.setPen(QPen(self._on if on else self._off, 1.5))
        painter.setBrush(self._on if on else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, 4, 4)
        if on:
            painter.setPen(QPen(self._mark, 2, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            x, y, w = box.x(), box.y(), box.width()
            painter.drawPolyline(
                QPolygonF(
                    [
                        QPointF(x + 0.25 * w, y + 0.52 * w),
                        QPointF(x + 0.43 * w, y + 0.71 * w),
                        QPointF(x + 0.76 * w, y + 0.30 * w),
                    ]
                )
            )
        if self._ring.is_on:
            draw_focus(painter, QRectF(self.rect()), self._focus)
        painter.end()


class ProgressBar(QWidget):
    """A bar that fills. Qt's own paints at once whatever waits to be painted, at every value."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name = name
        self._fraction: float | None = None
        self._theme = DARK
        self.show_fraction(None)

    @property
    def fraction(self) -> float | None:
        """The share that is done, None while nobody knows."""
        return self._fraction

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self.update()

    def show_fraction(self, fraction: float | None) -> None:
        """Show another share, 0 to 1; None where nobody knows it."""
        self._fraction = fraction
        words = "under way" if fraction is None else f"{round(100 * fraction)} %"
        self.setAccessibleName(f"{self._name}: {words}")
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        groove = QRectF(self.rect())
        radius = groove.height() / 2
        painter.setBrush(self._theme.color("line"))
        painter.drawRoundedRect(groove, radius, radius)
        painter.setBrush(self._theme.color("compute", 90 if self._fraction is None else 255))
        share = 1.0 if self._fraction is None else self._fraction
        groove.setWidth(max(groove.width() * share, groove.height()))
        painter.drawRoundedRect(groove, radius, radius)
        painter.end()


def draw_focus(painter: QPainter, rect: QRectF, color: QColor, radius: float = 6) -> None:
    """The ring that says where the keyboard is."""
    painter.setOpacity(1)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(color, 2))
    painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), radius, radius)
