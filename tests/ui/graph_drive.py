"""What tests of the op graph share: a panel with a graph, places in it, strokes and steps."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from explorer.model.messages import GraphCaptured
from explorer.model.opgraph import OpGraph
from explorer.model.run import FusionGroup, Run, StrategyInfo
from explorer.ui.graph_layout import Stop
from explorer.ui.graph_panel import GraphPanel
from explorer.ui.graph_view import GraphView
from explorer.ui.store import Store
from tests.fixtures_runs import GPU_GRAPH, compiled_attention
from tests.model.graphs import RMS_NORM
from tests.ui.drive import NO_MODIFIER, press

KEY, CTRL = Qt.Key, Qt.KeyboardModifier.ControlModifier
LEFT = Qt.MouseButton.LeftButton
SQUARE = GPU_GRAPH.tensor("scores").n_bytes


def capture(store: Store, graph: OpGraph) -> None:
    store.set_captured(
        GraphCaptured(
            graph=graph, parameters=dict(store.state.parameters.values), estimate_bytes=1,
            device="cpu",
        )
    )  # fmt: skip


def show(qtbot: QtBot, store: Store, height: int = 480) -> GraphPanel:
    panel = GraphPanel(store, can_run=True)
    qtbot.addWidget(panel)
    panel.resize(309, height)
    panel.show()
    return panel


def branched(qtbot: QtBot, store: Store, graph: OpGraph = RMS_NORM) -> GraphPanel:
    """The panel with a graph whose data goes past some ops."""
    store.choose_chain("residual-rmsnorm")
    capture(store, graph)
    return show(qtbot, store)


def link(view: GraphView, first: str, second: str) -> QPointF:
    """The middle of the link between two ops."""
    return QPointF(view.rect_between(first, second).center())


def plan(store: Store) -> str:
    """The text of the plan drawn by hand."""
    return store.state.plans[store.state.chain].text


def stroke(view: GraphView, *points: QPointF) -> None:
    """Press at the first point, go over the others, and let go."""
    QTest.mousePress(view, LEFT, NO_MODIFIER, points[0].toPoint())
    for point in points[1:]:
        QTest.mouseMove(view, point.toPoint())
    QTest.mouseRelease(view, LEFT, NO_MODIFIER, points[-1].toPoint())


def focus(panel: GraphPanel) -> GraphView:
    panel.activateWindow()
    panel.view.setFocus(Qt.FocusReason.TabFocusReason)
    return panel.view


def to_link(view: GraphView, place: int) -> None:
    """Walk to the link below an op with the arrow keys."""
    press(view, KEY.Key_Home)
    for _ in range(200):
        if view.current == Stop("link", place):
            return
        press(view, KEY.Key_Down)
    pytest.fail(f"no way to link {place}")


def plan_run(*, parted: bool = False) -> Run:
    """A run of the plan that fuses the four in the middle, made of one launch or of two."""
    run = compiled_attention("planned")
    launches = run.launches
    if parted:
        first = replace(launches[2], ops=("scale", "mask"))
        second = replace(launches[2], ops=("softmax", "dropout"))
        launches = (*launches[:2], first, second, launches[3])
    middle = (2, 3) if parted else (2,)
    groups = (
        FusionGroup(ops=("qk",), bytes_read=1, bytes_written=SQUARE, launches=(1,)),
        FusionGroup(
            ops=("scale", "mask", "softmax", "dropout"), bytes_read=SQUARE,
            bytes_written=SQUARE, launches=middle,
        ),
        FusionGroup(ops=("pv",), bytes_read=SQUARE, bytes_written=1, launches=(len(launches) - 1,)),
    )  # fmt: skip
    text = "qk|scale+mask+softmax+dropout|pv"
    strategy = StrategyInfo(name="plan", option="scale+mask+softmax+dropout", plan=text)
    return replace(run, strategy=strategy, groups=groups, launches=launches)
