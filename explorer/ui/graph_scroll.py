"""The window onto the operator chain: scrolling, zooming about the pointer, the overview."""

from PySide6.QtCore import QEvent, QObject, QPointF, QRect, Qt, Signal
from PySide6.QtGui import QKeyEvent, QNativeGestureEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QGestureEvent, QPinchGesture, QScrollArea, QWidget
from typing_extensions import override

from explorer.ui.graph_overview import WIDTH_PX, GraphOverview
from explorer.ui.graph_view import GraphView

MOST_ZOOM = 2.0
STEP = 1.25
"""What one notch of the wheel or one key makes of the zoom."""
NOTCH = 120
"""Eighths of a degree of a notch, by Qt's convention."""
SNAP = 0.04
"""So near to 100 % is 100 %."""
OVERVIEW_FROM = 1.5
"""A graph so many times as high as its window has an overview beside it."""


class GraphScroll(QScrollArea):
    """Scrolls and zooms a :class:`GraphView`.

    Signals:
        zoomed: To this zoom, 1 for 100 %; also when only the room for it changed.
    """

    zoomed = Signal(float)

    def __init__(self, view: GraphView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._is_fitted = False
        self.overview = GraphOverview(view, self)
        self.overview.hide()
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(view)
        self.viewport().setAutoFillBackground(False)
        view.setAutoFillBackground(False)
        self.viewport().grabGesture(Qt.GestureType.PinchGesture)
        view.installEventFilter(self)
        view.panned.connect(self._pan)
        view.stop_changed.connect(self.bring_into_sight)
        view.active_moved.connect(self.follow)
        view.folds_changed.connect(self._on_folds)
        view.repainted.connect(self.overview.update)
        self.overview.place_chosen.connect(self._go_to)
        for bar in (self.verticalScrollBar(), self.horizontalScrollBar()):
            bar.valueChanged.connect(self._show_seen)
            bar.rangeChanged.connect(self._show_seen)

    # Zoom.

    @property
    def zoom(self) -> float:
        """The present zoom, 1 for 100 %."""
        return self._view.zoom

    @property
    def is_fitted(self) -> bool:
        """Whether the whole graph is kept in sight, whatever its size and the window's."""
        return self._is_fitted

    def set_zoom(self, zoom: float, about: QPointF | None = None) -> None:
        """Zoom between the whole graph and 200 %.

        Args:
            zoom: 1 for 100 %.
            about: What lies there, in the viewport, stays there; the middle where it is None.
        """
        about = about or QPointF(self.viewport().rect().center())
        zoom = 1.0 if abs(zoom - 1) < SNAP else zoom
        zoom = min(max(zoom, self._view.fitting_zoom), MOST_ZOOM)
        self._is_fitted = False
        self._take_zoom(zoom, about)

    def fit(self) -> None:
        """Show the whole graph, also once it or the window has another size."""
        self._is_fitted = True
        self._take_zoom(self._view.fitting_zoom, QPointF())

    def step(self, n_steps: float) -> None:
        """Zoom in by steps, or out where there are less than none."""
        self.set_zoom(self.zoom * STEP**n_steps)

    def _take_zoom(self, zoom: float, about: QPointF) -> None:
        before = self.zoom
        bars = self.horizontalScrollBar(), self.verticalScrollBar()
        at = QPointF(bars[0].value() + about.x(), bars[1].value() + about.y())
        policy = Qt.ScrollBarPolicy
        self.setHorizontalScrollBarPolicy(
            policy.ScrollBarAsNeeded if zoom > 1 else policy.ScrollBarAlwaysOff
        )
        self._view.set_zoom(zoom)
        # The bars' ranges are needed now, not in the next turn.
        QApplication.sendEvent(self, QEvent(QEvent.Type.LayoutRequest))
        for bar, old, point in zip(bars, (at.x(), at.y()), (about.x(), about.y()), strict=True):
            bar.setValue(round(old * zoom / before - point))
        self._show_overview()
        self.zoomed.emit(zoom)

    def _on_folds(self) -> None:
        self._keep_zoom()
        self.zoomed.emit(self.zoom)

    def _keep_zoom(self) -> None:
        """Keep to the zoom, or to the whole graph, after the graph or the window changed."""
        if self._is_fitted:
            self.fit()
        elif self.zoom < self._view.fitting_zoom:
            self.set_zoom(self._view.fitting_zoom)
        else:
            self._show_overview()

    # Events.

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._view.set_page(self.viewport().size())
        self._keep_zoom()
        self._place_overview()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if not is_control and event.key() == Qt.Key.Key_F:
            self.fit()
        elif is_control and event.key() in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.step(1)
        elif is_control and event.key() == Qt.Key.Key_Minus:
            self.step(-1)
        elif is_control and event.key() == Qt.Key.Key_0:
            self.set_zoom(1)
        else:
            super().keyPressEvent(event)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        control = Qt.KeyboardModifier.ControlModifier
        if isinstance(event, QWheelEvent) and event.modifiers() & control:
            notches = event.angleDelta().y() / NOTCH
            # Without rounding: what is under the pointer would drift.
            about = event.position() + QPointF(self._view.pos())
            self.set_zoom(self.zoom * STEP**notches, about)
            event.accept()
            return True
        if isinstance(event, QNativeGestureEvent) and _is_zoom(event):
            about = event.position() + QPointF(self._view.pos())
            self.set_zoom(self.zoom * (1 + event.value()), about)
            return True
        return super().eventFilter(watched, event)

    @override
    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QGestureEvent):
            pinch = event.gesture(Qt.GestureType.PinchGesture)
            if isinstance(pinch, QPinchGesture):
                about = QPointF(self.viewport().mapFromGlobal(pinch.hotSpot()))
                self.set_zoom(self.zoom * pinch.scaleFactor(), about)
                return True
        return super().viewportEvent(event)

    # Scrolling.

    def bring_into_sight(self, place: QRect) -> None:
        """Scroll as little as shows a place of the view, with air round it."""
        middle = place.center()
        reach = min(place.height() // 2 + 24, self.viewport().height() // 2)
        self.ensureVisible(middle.x(), middle.y(), 10, reach)

    def follow(self, place: QRect) -> None:
        """Keep the op that runs in sight: once it leaves, it comes to the upper part."""
        bar, height = self.verticalScrollBar(), self.viewport().height()
        if not bar.value() <= place.top() or not place.bottom() <= bar.value() + height:
            bar.setValue(place.center().y() - height // 3)

    def _pan(self, by: QPointF) -> None:
        for bar, length in ((self.horizontalScrollBar(), by.x()),
                            (self.verticalScrollBar(), by.y())):  # fmt: skip
            bar.setValue(bar.value() - round(length))

    # Overview.

    def _go_to(self, share: float) -> None:
        height = self.viewport().height()
        self.verticalScrollBar().setValue(round(share * self._view.height() - height / 2))

    def _show_overview(self) -> None:
        is_long = self._view.height_now > OVERVIEW_FROM * self.viewport().height()
        if is_long is self.overview.isHidden():
            self.overview.setVisible(is_long)
            policy = Qt.ScrollBarPolicy
            # The overview is a scroll bar that says more.
            self.setVerticalScrollBarPolicy(
                policy.ScrollBarAlwaysOff if is_long else policy.ScrollBarAsNeeded
            )
            self.setViewportMargins(0, 0, WIDTH_PX + 2 if is_long else 0, 0)
        self._place_overview()
        self._show_seen()

    def _place_overview(self) -> None:
        seen = self.viewport().geometry()
        self.overview.setGeometry(seen.right() + 3, seen.top(), WIDTH_PX, seen.height())

    def _show_seen(self) -> None:
        top, height = self.verticalScrollBar().value(), max(self._view.height(), 1)
        self.overview.show_seen(top / height, (top + self.viewport().height()) / height)


def _is_zoom(event: QNativeGestureEvent) -> bool:
    """Whether two fingers on a touchpad go apart or together."""
    return event.gestureType() is Qt.NativeGestureType.ZoomNativeGesture
