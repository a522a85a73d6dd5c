"""The timeline as a widget: hover, click, wheel and keys round the pure drawing."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, QSizeF, Qt, Signal
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from explorer.model.run import Run
from explorer.model.timeline import TimeView
from explorer.ui.controls import FocusRing, draw_focus
from explorer.ui.painting import draw_sentence
from explorer.ui.theme import DARK, Theme
from explorer.ui.timeline_layout import (
    AXIS_HEIGHT,
    NO_RUNS,
    TOP,
    Selected,
    TimelineLayout,
    heading_hint,
    lay_out,
    whole_view,
)
from explorer.ui.timeline_pick import bar_span_us, described, neighbour, revealed, scrolled
from explorer.ui.turns import Turns
from explorer.ui.words import launch_tooltip, run_tooltip

ZOOM_STEP = 1.25
DRAG_PX = 4
"""A press that moves less is a click."""


class TimelineView(QWidget):
    """Launches of every run as bars on one time axis from zero, a lane a run.

    Runs come in through :meth:`set_runs`, the playhead through :meth:`set_time`. The widget keeps
    the zoom and nothing else: what is selected comes back through :meth:`set_selected`.

    Wheel zooms, Shift and wheel scrolls lanes, dragging pans, a double click moves the playhead.
    Keys: Left and Right pick launches, Up and Down runs, + and - zoom, Shift with an arrow pans,
    0 shows everything, Return asks for the playhead at the picked launch.

    Signals:
        launch_selected: Place of the run and index of the launch that was clicked or picked.
        run_selected: Place of the run whose lane was clicked or picked.
        time_requested: Place of the run and microseconds in it where the playhead should go.
        view_changed: The stretch shown, as a TimeView.
    """

    launch_selected = Signal(int, int)
    run_selected = Signal(int)
    time_requested = Signal(int, float)
    view_changed = Signal(object)

    def __init__(self, parent: QWidget | None = None, *, turns: Turns | None = None) -> None:
        super().__init__(parent)
        self._turns = turns or Turns(self)
        self._ring = FocusRing(self)
        self._runs: tuple[Run, ...] = ()
        self._selected = Selected()
        self._time_us: float | None = None
        self._view: TimeView | None = None
        self._theme = DARK
        self._zoom = 1.0
        self._layout: TimelineLayout | None = None
        self._lanes_pixmap: QPixmap | None = None
        self._pressed: QPointF | None = None
        self._dragged_from: TimeView | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Timelines")
        self._describe()

    @property
    def view(self) -> TimeView:
        """The stretch of time on screen."""
        return self._view or TimeView(0.0, self.limit_us)

    @property
    def limit_us(self) -> float:
        """Length of the whole axis."""
        return whole_view(self._runs).end_us

    @property
    def hint(self) -> str:
        """What holds for every lane, for the panel's heading."""
        return heading_hint(self._runs)

    @property
    def selected(self) -> Selected:
        """What is framed."""
        return self._selected

    def layout_now(self) -> TimelineLayout:
        """Where things lie at the widget's present size."""
        if self._layout is None:
            self._layout = lay_out(self._canvas(), self._runs, self._view, self._zoom)
        return self._layout

    def set_runs(self, runs: Sequence[Run]) -> None:
        """Show these runs, in this order, all of the axis unless the view was zoomed."""
        if tuple(map(id, runs)) == tuple(map(id, self._runs)):
            return
        before = self.limit_us
        self._runs = tuple(runs)
        if self.limit_us != before:
            self._view = None
        if self._selected.run >= len(self._runs):
            self._selected = Selected()
        self._describe()
        self._forget_soon()

    def set_time(self, time_us: float | None) -> None:
        """Move the playhead; None takes it away."""
        if time_us != self._time_us:
            self._time_us = time_us
            # Lanes that are still to be painted bring the playhead with them.
            if self._lanes_pixmap is not None:
                self.update()

    def set_selected(self, run: int, launch: int | None = None) -> None:
        """Frame a launch and give its lane the playhead; -1 for no run."""
        wanted = Selected(run, launch)
        if wanted != self._selected:
            self._selected = wanted
            self._describe()
            self._reveal()
            self._forget_soon()

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme."""
        self._theme = theme
        self._forget_soon()

    def set_zoom_factor(self, zoom: float) -> None:
        """Enlarge fonts and margins, for a talk."""
        self._zoom = zoom
        self._forget()

    def set_view(self, view: TimeView | None) -> None:
        """Show a stretch of time; None for all of it."""
        if view != self._view:
            self._view = view
            self._forget()
            self.view_changed.emit(self.view)

    @override
    def sizeHint(self) -> QSize:
        lanes = max(len(self._runs), 3)
        return QSize(760, round((TOP + AXIS_HEIGHT + 36 * lanes) * self._zoom))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(260, round((TOP + AXIS_HEIGHT + 40) * self._zoom))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        # In an export the widget is rendered at another scale than the screen's.
        painter.drawPixmap(0, 0, self._drawn_lanes(painter.deviceTransform().m11()))
        if self._runs:
            from explorer.ui.timeline_draw import draw_playhead

            draw_playhead(painter, self.layout_now(), self._selected, self._time_us, self._theme)
        if self._ring.is_on:
            draw_focus(painter, QRectF(self.rect()), self._theme.color("text"))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._forget()

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        notches = (event.angleDelta().y() or event.angleDelta().x()) / 120
        if not self._runs or not notches:
            event.ignore()
            return
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.set_view(scrolled(self.view, self.layout_now(), -1 if notches > 0 else 1))
        else:
            around = self.layout_now().time_us(event.position().x())
            self._zoom_by(ZOOM_STEP**notches, around)
        event.accept()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = event.position()
            self._dragged_from = None

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return
        moved = event.position().x() - self._pressed.x()
        if self._dragged_from is None and abs(moved) >= DRAG_PX:
            self._dragged_from = self.view
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        if self._dragged_from is not None:
            by_us = -moved / self.layout_now().pixels_per_us
            self.set_view(self._dragged_from.panned(by_us, self.limit_us))

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            return
        dragged = self._dragged_from is not None
        self._pressed = self._dragged_from = None
        self.unsetCursor()
        if not dragged:
            self._click(event.position())

    @override
    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        layout = self.layout_now()
        place = layout.lane_at(event.position().y())
        if place is not None and event.position().x() >= layout.plot.left():
            wanted = layout.time_us(event.position().x())
            self.time_requested.emit(place, min(max(wanted, 0.0), layout.lanes[place].total_us))

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            text = self.tooltip_at(event.pos())
            if text:
                QToolTip.showText(event.globalPos(), text, self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, shifted = event.key(), event.modifiers() & Qt.KeyboardModifier.ShiftModifier
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Up: -1, Qt.Key.Key_Right: 1, Qt.Key.Key_Down: 1}
        if not self._runs:
            super().keyPressEvent(event)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self._zoom_by(ZOOM_STEP, self._centre_us())
        elif key == Qt.Key.Key_Minus:
            self._zoom_by(1 / ZOOM_STEP, self._centre_us())
        elif key in (Qt.Key.Key_0, Qt.Key.Key_Home):
            self.set_view(None)
        elif key in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self._pick_run(step[Qt.Key(key)])
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right) and shifted:
            self.set_view(
                self.view.panned(step[Qt.Key(key)] * self.view.span_us / 8, self.limit_us)
            )
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self._pick_launch(step[Qt.Key(key)])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._request_picked()
        else:
            super().keyPressEvent(event)

    def tooltip_at(self, position: QPoint) -> str:
        """Rich text for the launch or the run at a place; empty where there is none."""
        if not self._runs:
            return ""
        layout = self.layout_now()
        x, y = float(position.x()), float(position.y())
        place = layout.lane_at(y)
        if place is None:
            return ""
        lane, found = layout.lanes[place], layout.launch_at(x, y)
        if found is None:
            return run_tooltip(lane.run, lane.schedule)
        return launch_tooltip(lane.run, found[1], lane.schedule)

    def _canvas(self) -> QRectF:
        return QRectF(self.rect())

    def _forget(self) -> None:
        """Drop what was laid out and painted, and paint afresh."""
        self._layout = self._lanes_pixmap = None
        self.update()

    def _forget_soon(self) -> None:
        """The same in a turn of its own, since it takes as long as a few frames of the scene."""
        self._layout = self._lanes_pixmap = None
        self._turns.soon(self, self._paint_lanes)

    def _paint_lanes(self) -> None:
        if self.isVisible():
            self._drawn_lanes(self.devicePixelRatioF())
        self.update()

    def _drawn_lanes(self, ratio: float) -> QPixmap:
        """All but the playhead, painted once: playing then costs one bar a frame."""
        if self._lanes_pixmap is None or self._lanes_pixmap.devicePixelRatio() != ratio:
            pixmap = QPixmap((QSizeF(self.size()) * ratio).toSize())
            pixmap.setDevicePixelRatio(ratio)
            pixmap.fill(self._theme.color("panel"))
            painter = QPainter(pixmap)
            self._draw_lanes(painter)
            painter.end()
            self._lanes_pixmap = pixmap
        return self._lanes_pixmap

    def _draw_lanes(self, painter: QPainter) -> None:
        if not self._runs:
            draw_sentence(painter, self._canvas(), NO_RUNS, self._theme, self._zoom)
            return
        # Brings numpy, which an empty window comes up without.
        from explorer.ui.timeline_draw import draw_lanes

        self._layout = draw_lanes(
            painter,
            self._canvas(),
            self._runs,
            self._selected,
            self._view,
            self._theme,
            self._zoom,
        )

    def _centre_us(self) -> float:
        """What zooming by key keeps in place: the playhead where it is in sight."""
        view = self.view
        if self._time_us is not None and view.start_us <= self._time_us <= view.end_us:
            return self._time_us
        return (view.start_us + view.end_us) / 2

    def _zoom_by(self, factor: float, around_us: float) -> None:
        zoomed = self.view.zoomed(factor, around_us, self.limit_us)
        is_whole = zoomed.span_us >= self.limit_us and zoomed.first_lane == 0
        self.set_view(None if is_whole else zoomed)

    def _click(self, position: QPointF) -> None:
        if not self._runs:
            return
        layout = self.layout_now()
        found = layout.launch_at(position.x(), position.y())
        place = layout.lane_at(position.y())
        if found is not None:
            self.launch_selected.emit(*found)
        elif place is not None:
            self.run_selected.emit(place)

    def _pick_run(self, by: int) -> None:
        place = min(max(self._selected.run + by, 0), len(self._runs) - 1)
        self.run_selected.emit(place)

    def _pick_launch(self, by: int) -> None:
        run = max(self._selected.run, 0)
        launch = neighbour(self._runs[run], self._selected.launch, by)
        if launch is not None:
            self.launch_selected.emit(run, launch)

    def _request_picked(self) -> None:
        span = bar_span_us(self.layout_now(), self._selected)
        if span is not None:
            self.time_requested.emit(self._selected.run, span[0])

    def _reveal(self) -> None:
        view = revealed(self.view, self.layout_now(), self._selected, self.limit_us)
        if view != self.view:
            self.set_view(view)

    def _describe(self) -> None:
        self.setAccessibleDescription(described(self._runs, self._selected))
