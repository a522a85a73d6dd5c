"""The traffic scene as a widget: it paints the pure scene and says what is under the pointer."""

from bisect import bisect_right
from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from explorer.model.playback import Playback
from explorer.model.run import Run
from explorer.ui.controls import FocusRing, draw_focus
from explorer.ui.scene.cache import SceneCache
from explorer.ui.scene.draw import (
    LEAST_PX,
    draw,
    layout_of,
    playback_of,
    still_picture,
)
from explorer.ui.scene.hit import Hit, hit
from explorer.ui.scene.layout import shown_launch
from explorer.ui.scene.options import SceneOptions
from explorer.ui.scene.still import HEADING, NO_RUN
from explorer.ui.scene.still_picture import StillPicture
from explorer.ui.scene.words import describe, tooltip
from explorer.ui.theme import DARK, Theme
from explorer.ui.turns import Turns

NOTHING = -1
SLICE_S = 0.004
"""Of drawing what stands still, between two turns of the event loop."""
STATES_AHEAD = 3
"""States after the present one whose pictures are drawn ahead: steps and short launches."""


class SceneView(QWidget):
    """Shows runs at a moment. It holds no clock: whoever drives it sets the time.

    Other runs are drawn over several turns of the event loop before they appear, and so are the
    states that come next; a paint that cannot wait draws everything at once, to the same pixels.

    Signals:
        kernel_hovered: Lane and launch under the pointer, both -1 when there is none.
        kernel_clicked: Lane and launch that were clicked, or chosen with Return.
    """

    kernel_hovered = Signal(int, int)
    kernel_clicked = Signal(int, int)

    def __init__(
        self,
        parent: QWidget | None = None,
        *,
        framed: bool = True,
        turns: Turns | None = None,
    ) -> None:
        """Make an empty scene.

        Args:
            parent: Of the widget.
            framed: Draw a panel's face with the run's name; False inside a panel that does.
            turns: Shared with the other views of the window; None for one of its own.
        """
        super().__init__(parent)
        self._turns = turns or Turns(self)
        self._framed = framed
        self._runs: tuple[Run, ...] = ()
        self._recorded: bool | tuple[bool, ...] = False
        self._t_us = 0.0
        self._slowdown: float | None = None
        self._hovered: tuple[int, int] | None = None
        self._ring = FocusRing(self)
        self._theme = DARK
        self._cache = SceneCache()
        self._changes_us: tuple[float, ...] = ()
        self._state = -1
        self._is_getting_ready = False
        self._next: StillPicture | None = None
        self._ahead: StillPicture | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAccessibleName(HEADING)
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
        lanes = self.playback.lanes
        self._changes_us = tuple(sorted({t for lane in lanes for t in lane.change_times()}))
        self._set_hovered(None)
        self._describe()
        self._show_soon()

    def set_time(self, t_us: float) -> None:
        """Show another moment, in microseconds of the measured run."""
        if t_us == self._t_us:
            return
        self._t_us = t_us
        self._describe()
        if not self._is_getting_ready:
            self.update()
            if self._state_at(t_us) != self._state:
                self._look_ahead()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self._show_soon()

    def set_slowdown(self, factor: float | None) -> None:
        """Say how much slower than measured the runs are shown; None says nothing."""
        if factor != self._slowdown:
            self._slowdown = factor
            if not self._is_getting_ready:
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

    # Drawing before it is needed.

    def _show_soon(self) -> None:
        """Draw what stands still by and by, then show it."""
        self._next = self._ahead = None
        self._cache.clear()
        self._is_getting_ready = True
        self._turns.drop(self)
        self._turns.soon((self, "show"), self._get_ready)

    def _get_ready(self) -> bool:
        """Draw a slice of what is to be shown; returns whether there is more of it."""
        if self._can_draw_ahead:
            self._next = self._next or self._still_at(self._t_us)
            if not self._draw_slice(self._next):
                return True
        self._next = None
        self._is_getting_ready = False
        self.update()
        self._look_ahead()
        return False

    def _look_ahead(self) -> None:
        """Have the states after the present one drawn, if they are not."""
        self._state = self._state_at(self._t_us)
        if self._can_draw_ahead:
            self._turns.soon(self, self._draw_ahead)

    def _draw_ahead(self) -> bool:
        """Draw a slice of the next state that is not drawn; returns whether there is more."""
        self._ahead = self._ahead or self._first_undrawn()
        if self._ahead is None or not self._can_draw_ahead:
            return False
        if self._draw_slice(self._ahead):
            self._ahead = None
        return True

    def _draw_slice(self, still: StillPicture) -> bool:
        """Draw a little more of a picture; returns whether it is whole, and then kept."""
        if still.key not in self._cache:
            image = still.advance(SLICE_S)
            if image is None:
                return False
            self._cache.put(still.key, image)
        return True

    def _first_undrawn(self) -> StillPicture | None:
        after = self._changes_us[self._state : self._state + STATES_AHEAD]
        stills = (self._still_at(t_us) for t_us in after)
        return next((still for still in stills if still.key not in self._cache), None)

    def _still_at(self, t_us: float) -> StillPicture:
        rect, ratio = QRectF(self.rect()), self.devicePixelRatioF()
        return still_picture(rect, self._runs, t_us, self._theme, self._options(), ratio)

    @property
    def _can_draw_ahead(self) -> bool:
        is_seen = self.isVisible() and min(self.width(), self.height()) >= LEAST_PX
        return bool(self._runs) and is_seen

    def _state_at(self, t_us: float) -> int:
        """How many changes of state lie before a moment or at it."""
        return bisect_right(self._changes_us, t_us)

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
        if self._ring.is_on:
            draw_focus(painter, QRectF(self.rect()), self._theme.color("text"), 9)
        painter.end()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._next = self._ahead = None
        self._cache.clear()
        self._look_ahead()
        super().resizeEvent(event)

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
