"""Zooming the op graph with real wheels, keys and drags, and what stays as it was."""

import time

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QNativeGestureEvent, QPainter, QPointingDevice, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.ui.chain_picture import chain_picture
from explorer.ui.graph_canvas import GraphCanvas
from explorer.ui.graph_layout import Stop
from explorer.ui.graph_panel import GraphPanel
from explorer.ui.graph_scroll import MOST_ZOOM, STEP
from explorer.ui.store import Store
from tests.fixtures_runs import GPU_GRAPH
from tests.fixtures_sweep import long_graph
from tests.ui.drive import NO_MODIFIER, click, press
from tests.ui.graph_drive import CTRL, KEY, capture, focus, link, plan, show, to_link
from tests.ui.test_large_graphs import mirrored

PAINT_S = 0.05
"""Time of the processor in which a thousand ops have to be laid out and painted."""


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> GraphPanel:
    store.choose_chain("elementwise")
    capture(store, long_graph(30))
    return show(qtbot, store)


def wheel(panel: GraphPanel, at: QPoint, notches: int) -> None:
    """Turn the wheel with Ctrl held over a point of what is seen."""
    view = panel.view
    point = QPointF(view.mapFrom(panel.sight.viewport(), at))
    event = QWheelEvent(
        point, QPointF(view.mapToGlobal(point.toPoint())), QPoint(), QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton, CTRL, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)


def test_the_wheel_zooms_about_the_pointer(panel: GraphPanel) -> None:
    panel.sight.verticalScrollBar().setValue(300)
    at = QPoint(100, 120)
    before = panel.view.mapFrom(panel.sight.viewport(), at).y()
    wheel(panel, at, 1)
    assert panel.view.zoom == STEP
    after = panel.view.mapFrom(panel.sight.viewport(), at).y()
    assert after == pytest.approx(before * STEP, abs=1.5)


def test_zoom_stays_between_all_of_it_and_200_percent(panel: GraphPanel) -> None:
    wheel(panel, QPoint(50, 50), 40)
    assert panel.view.zoom == MOST_ZOOM
    assert panel.view.width() == pytest.approx(panel.sight.viewport().width() * 2, abs=1)
    wheel(panel, QPoint(50, 50), -40)
    assert panel.view.height() == panel.sight.viewport().height()
    assert panel.view.zoom < 0.5


def test_a_pinch_zooms(panel: GraphPanel) -> None:
    view, at = panel.view, QPointF(80, 60)
    event = QNativeGestureEvent(
        Qt.NativeGestureType.ZoomNativeGesture, QPointingDevice.primaryPointingDevice(), 2,
        at, at, QPointF(view.mapToGlobal(at.toPoint())), 0.5, QPointF(),
    )  # fmt: skip
    QApplication.sendEvent(view, event)
    assert view.zoom == 1.5


def test_keys_zoom_and_go_back(panel: GraphPanel) -> None:
    view = focus(panel)
    press(view, KEY.Key_Plus, CTRL)
    assert view.zoom == STEP
    press(view, KEY.Key_0, CTRL)
    assert view.zoom == 1
    press(view, KEY.Key_Minus, CTRL)
    assert view.zoom == pytest.approx(1 / STEP)
    press(view, KEY.Key_F)
    assert view.height() <= panel.sight.viewport().height()
    assert panel.bar.fit.isChecked()


def test_a_fitted_graph_stays_fitted(qtbot: QtBot, panel: GraphPanel) -> None:
    click(panel.bar.fit)
    panel.resize(panel.width(), 700)
    qtbot.waitUntil(lambda: panel.view.height() == panel.sight.viewport().height())
    assert panel.sight.verticalScrollBar().maximum() == 0


@pytest.mark.parametrize("zoom", [0.3, 0.7, 1.6])
def test_links_are_switched_at_every_zoom(store: Store, panel: GraphPanel, zoom: float) -> None:
    panel.sight.set_zoom(zoom)
    view = panel.view
    view.ensurePolished()
    click(view, link(view, "op2", "op3"))
    assert "op2+op3|" in plan(store)
    focus(panel)
    to_link(view, 4)
    press(view, KEY.Key_Space)
    assert "op5+op6|" in plan(store)


def test_the_keyboard_is_scrolled_to_at_every_zoom(panel: GraphPanel) -> None:
    panel.sight.set_zoom(1.8)
    view = focus(panel)
    press(view, KEY.Key_End)
    bar = panel.sight.verticalScrollBar()
    rect = view.rect_of(Stop("op", 29))
    assert bar.value() <= rect.top()
    assert rect.bottom() <= bar.value() + panel.sight.viewport().height()


def test_the_middle_button_drags_and_switches_nothing(store: Store, panel: GraphPanel) -> None:
    view, bar = panel.view, panel.sight.verticalScrollBar()
    bar.setValue(200)
    start = QPoint(60, 300)
    QTest.mousePress(view, Qt.MouseButton.MiddleButton, NO_MODIFIER, start)
    QTest.mouseMove(view, start - QPoint(0, 40))
    QTest.mouseRelease(view, Qt.MouseButton.MiddleButton, NO_MODIFIER, start - QPoint(0, 40))
    assert bar.value() > 200
    assert not store.state.plans


def test_the_overview_frames_what_is_seen_and_leads_there(panel: GraphPanel) -> None:
    overview, bar = panel.sight.overview, panel.sight.verticalScrollBar()
    assert overview.isVisible()
    assert overview.seen[0] == 0
    click(overview, QPointF(8, overview.height() * 0.9))
    assert bar.value() > bar.maximum() * 0.7
    assert overview.seen[1] == pytest.approx(1, abs=0.15)


def test_a_graph_that_is_seen_whole_has_neither_row_nor_overview(
    qtbot: QtBot, store: Store
) -> None:
    capture(store, GPU_GRAPH)
    panel = show(qtbot, store)
    assert not panel.bar.isVisible()
    assert not panel.sight.overview.isVisible()


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_thousand_ops_are_laid_out_and_painted_at_once(qtbot: QtBot, is_whole: bool) -> None:
    picture = chain_picture(mirrored(1000), None)
    canvas = GraphCanvas()
    qtbot.addWidget(canvas)
    canvas.set_page(canvas.sizeHint())
    image = QImage(canvas.sizeHint(), QImage.Format.Format_ARGB32_Premultiplied)
    took = []
    for _ in range(3):
        start = time.process_time()
        canvas.set_picture(picture, "HBM")
        canvas.set_zoom(canvas.fitting_zoom if is_whole else 1)
        canvas.resize(260, max(canvas.minimumHeight(), 420))
        painter = QPainter(image)
        canvas.render(painter, QPoint(), canvas.rect().intersected(image.rect()))
        painter.end()
        took.append(time.process_time() - start)
    assert min(took) < PAINT_S
