"""Graphs of a hundred ops: links from far away, what is drawn, and what is followed."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QRectF
from pytestqt.qtbot import QtBot

from explorer.model.opgraph import OpGraph
from explorer.ui.chain_picture import chain_picture
from explorer.ui.graph_draw import draw_chain
from explorer.ui.graph_lanes import CUT_ROWS, FAR_ROWS
from explorer.ui.graph_layout import Layout, Stop, stops
from explorer.ui.graph_panel import GraphPanel
from explorer.ui.op_links import ChainPicture
from explorer.ui.store import Store
from explorer.ui.theme import DARK
from tests.fixtures_sweep import long_graph
from tests.ui.graph_drive import capture, show

N_OPS = 100


def mirrored(n_ops: int = N_OPS) -> OpGraph:
    """Ops in a row, of which the second half also reads the first, last first, as backward does."""
    graph = long_graph(n_ops)
    ops = list(graph.ops)
    for place in range(n_ops // 2 + 1, n_ops):
        ops[place] = replace(ops[place], reads=(*ops[place].reads, *ops[n_ops - 1 - place].writes))
    return replace(graph, ops=tuple(ops))


@pytest.fixture(scope="module")
def picture() -> ChainPicture:
    return chain_picture(mirrored(), None)


def test_a_link_from_far_above_takes_room_only_at_its_end(picture: ChainPicture) -> None:
    for side in picture.side_links:
        is_far = side.below - side.above > FAR_ROWS
        assert side.is_cut is is_far
        assert side.top == (side.below - CUT_ROWS if is_far else side.above)
    # Whole, 49 links would lie beside each other in the middle.
    assert len(picture.side_links) == N_OPS // 2 - 1
    assert picture.lanes <= 8


def test_lanes_are_shared_only_where_nothing_else_is(picture: ChainPicture) -> None:
    for i, one in enumerate(picture.side_links):
        for other in picture.side_links[:i]:
            if one.lane == other.lane:
                assert one.below <= other.top or other.below <= one.top


def test_the_keyboard_comes_to_a_cut_link_where_it_is_drawn(picture: ChainPicture) -> None:
    order = stops(picture)
    for k, side in enumerate(picture.side_links):
        assert order.index(Stop("side", k)) > order.index(Stop("op", side.top))
        assert order.index(Stop("side", k)) < order.index(Stop("op", side.top + 1))


def test_only_what_is_seen_is_drawn(qtbot: QtBot, picture: ChainPicture) -> None:
    """A click waits for the picture; drawing a hundred ops would take as long as ten times ten."""
    texts = [_texts_drawn(picture, (0.0, 400.0)), _texts_drawn(picture, None)]
    assert 4 * texts[0] < texts[1]


def _texts_drawn(picture: ChainPicture, seen: tuple[float, float] | None) -> int:
    from PySide6.QtGui import QPainter, QPicture

    held = QPicture()
    painter = QPainter(held)
    layout = Layout.fit(300, 400, len(picture.rows), picture.lanes)
    draw_chain(painter, layout, picture, DARK, "HBM", seen=seen)
    painter.end()
    return held.size()


def test_the_op_that_runs_stays_in_sight(qtbot: QtBot) -> None:
    store = Store()
    store.choose_chain("elementwise")
    capture(store, mirrored())
    panel = show(qtbot, store)
    _run_op(panel, store, 80)
    assert _is_seen(panel, 80)
    _run_op(panel, store, 2)
    assert _is_seen(panel, 2)


def test_somebody_at_work_is_not_taken_elsewhere(qtbot: QtBot) -> None:
    store = Store()
    store.choose_chain("elementwise")
    capture(store, mirrored())
    panel = show(qtbot, store)
    panel.activateWindow()
    panel.view.setFocus()
    qtbot.waitUntil(panel.view.hasFocus)
    _run_op(panel, store, 80)
    assert not _is_seen(panel, 80)


def _run_op(panel: GraphPanel, store: Store, place: int) -> None:
    captured = store.state.captured
    assert captured is not None
    panel.view.set_active((captured.graph.ops[place].name,))
    panel.view._turns.finish()


def _is_seen(panel: GraphPanel, place: int) -> bool:
    seen = QRectF(panel.view.visibleRegion().boundingRect())
    return seen.contains(panel.view.rect_of(Stop("op", place)))
