"""The traffic scene as a widget: it paints the pure scene and says what is under the pointer."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from explorer.model.playback import Playback
from explorer.model.run import Run
from explorer.ui.scene.cache import SceneCache
from explorer.ui.scene.draw import LEAST_PX, NO_RUN, draw, layout_of, playback_of
from explorer.ui.scene.hit import Hit, hit
from explorer.ui.scene.layout import shown_launch
from explorer.ui.scene.options import SceneOptions
from explorer.ui.scene.words import describe, tooltip
from explorer.ui.theme import DARK, Theme

NOTHING = -1
_BY_KEYBOARD = (
    Qt.FocusReason.TabFocusReason,
    Qt.FocusReason.BacktabFocusReason,
    Qt.FocusReason.ShortcutFocusReason,
)


class SceneView(QWidget):
    """Shows runs at a moment. It holds no clock: whoever drives it sets the time.

    Signals:
        kernel_hovered: Lane and launch under the pointer, both -1 when there is none.
        kernel_clicked: Lane and launch that were clicked, or chosen with Return.
    """

    kernel_hovered = Signal(int, int)
    kernel_clicked = Signal(int, int)

    def __init__(self, parent: QWidget | None = None, *, framed: bool = True) -> None:
        """Make an empty scene.

        Args:
            parent: Of the widget.
            framed: Draw a panel's face with the run's name; False inside a panel that does.
        """
        super().__init__(parent)
        self._framed = framed
        self._runs: tuple[Run, ...] = ()
        self._recorded: bool | tuple[bool, ...] = False
        self._t_us = 0.0
        self._slowdown: float | None = None
        self._hovered: tuple[int, int] | None = None
        self._is_ringed = False
        self._theme = DARK
        self._cache = SceneCache()
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName("Memory traffic")
        self._describe()

    @property
    def playback(self) -> Playback:
        """The runs on their clock; empty without runs."""
        return playback_of(self._runs)

    @property
    def t_us(self) -> float:
        """The moment shown."""
        return self._t_us

    def set_runs(self, runs: Sequence[Run], recorded: bool | tuple[bool, ...] = False) -> None:
        """Show other runs, from their start.

        Args:
            runs: One, or two to compare side by side.
            recorded: They were made elsewhere or earlier; all of them, or one by one.
        """
        self._runs = tuple(runs)
        self._recorded = recorded
        self._t_us = 0.0
        self._set_hovered(None)
        self._cache.clear()
        self._describe()
        self.update()

    def set_time(self, t_us: float) -> None:
        """Show another moment, in microseconds of the measured run."""
        if t_us == self._t_us:
            return
        self._t_us = t_us
        self._describe()
        self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self.update()

    def set_slowdown(self, factor: float | None) -> None:
        """Say how much slower than measured the runs are shown; None says nothing."""
        self._slowdown = factor
        self.update()

    def hit_at(self, point: QPointF) -> Hit | None:
        """What lies under a point of the widget."""
        if not self._runs or min(self.width(), self.height()) < LEAST_PX:
            return None
        layout = layout_of(self.playback, QRectF(self.rect()), self._t_us, self._framed)
        active = frozenset(
            number for lane in self.playback.lanes for number in lane.at(self._t_us).active
        )
        return hit(layout, point, active)

    def _options(self) -> SceneOptions:
        return SceneOptions(
            recorded=self._recorded,
            slowdown=self._slowdown,
            hovered=self._hovered,
            framed=self._framed,
        )

    def _describe(self) -> None:
        words = describe(self.playback, self._t_us) if self._runs else NO_RUN
        # A screen reader is told only what it would say differently.
        if words != self.accessibleDescription():
            self.setAccessibleDescription(words)

    def _set_hovered(self, hovered: tuple[int, int] | None) -> None:
        if hovered == self._hovered:
            return
        self._hovered = hovered
        self.setCursor(
            Qt.CursorShape.ArrowCursor if hovered is None else Qt.CursorShape.PointingHandCursor
        )
        self.kernel_hovered.emit(*(hovered or (NOTHING, NOTHING)))
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(840, 505)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(420, 252)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        draw(
            painter,
            QRectF(self.rect()),
            self._runs,
            self._t_us,
            self._theme,
            self._options(),
            self._cache,
        )
        if self._is_ringed:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self._theme.color("text"), 2))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 9, 9)
        painter.end()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._cache.clear()
        super().resizeEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        # The ring says where the keyboard is; a click says that itself.
        self._is_ringed = event.reason() in _BY_KEYBOARD
        self.update()
        super().focusInEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._is_ringed = False
        self.update()
        super().focusOutEvent(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        found = self.hit_at(event.position())
        kernel = found is not None and found.is_kernel and found.slot is not None
        self._set_hovered(
            (found.lane, found.slot.index) if kernel and found and found.slot else None
        )
        super().mouseMoveEvent(event)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(None)
        super().leaveEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self.hit_at(event.position())
        if event.button() is Qt.MouseButton.LeftButton and found and found.is_kernel:
            assert found.slot is not None  # is_kernel says so
            self.kernel_clicked.emit(found.lane, found.slot.index)
        super().mousePressEvent(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() not in (Qt.Key.Key_Return, Qt.Key.Key_Enter) or not self._runs:
            super().keyPressEvent(event)
            return
        lane = self.playback.lanes[0]
        if lane.slots:
            self.kernel_clicked.emit(0, shown_launch(lane.at(self._t_us)))

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            found = self.hit_at(QPointF(event.pos()))
            if found is None:
                QToolTip.hideText()
                event.ignore()
            else:
                words = tooltip(found, self.playback, self._t_us)
                QToolTip.showText(event.globalPos(), words, self, found.rect.toAlignedRect())
            return True
        return super().event(event)
