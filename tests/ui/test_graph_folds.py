"""Folding parts of the op graph: which there are, what comes up folded, and what a fold hides."""

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.fusion import all_in_one, each_alone
from explorer.model.opgraph import OpGraph
from explorer.model.planned import planned_bytes
from explorer.model.units import format_bytes
from explorer.ui.chain_picture import chain_picture
from explorer.ui.graph_folds import Folding
from explorer.ui.graph_layout import Stop
from explorer.ui.graph_panel import GraphPanel
from explorer.ui.graph_parts import closed_at_first, parts_of
from explorer.ui.store import Store
from tests.fixtures_sweep import long_graph
from tests.ui.drive import click, press
from tests.ui.graph_drive import KEY, capture, focus, link, plan, show


def both_ways(n_ops: int = 60) -> OpGraph:
    """A row of ops whose second half is the backward pass."""
    graph = long_graph(n_ops)
    ops = tuple(replace(op, is_backward=i >= n_ops // 2) for i, op in enumerate(graph.ops))
    return replace(graph, ops=ops)


def looped(rounds: int, period: int) -> OpGraph:
    """Rounds of a loop: each line comes again after as many ops as a round has."""
    graph = long_graph(rounds * period)
    ops = tuple(replace(op, source_line=f"line{i % period}") for i, op in enumerate(graph.ops))
    return replace(graph, ops=ops)


def pieces(n_ops: int = 60) -> OpGraph:
    graph = long_graph(n_ops)
    return replace(graph, ops=tuple(replace(op, piece=i // 20) for i, op in enumerate(graph.ops)))


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> GraphPanel:
    store.choose_chain("elementwise")
    capture(store, both_ways())
    return show(qtbot, store)


@pytest.mark.parametrize(
    ("graph", "titles"),
    [
        (both_ways(), ["forward pass", "backward pass"]),
        (pieces(), ["piece 1 of 3", "piece 2 of 3", "piece 3 of 3"]),
        (looped(3, 5), ["repeat 1 of 3", "repeat 2 of 3", "repeat 3 of 3"]),
        (looped(2, 3), []),
        (long_graph(60), []),
    ],
)
def test_parts_are_what_the_graph_knows(graph: OpGraph, titles: list[str]) -> None:
    assert [part.title for part in parts_of(graph.ops)] == titles


def test_a_small_graph_never_comes_up_folded() -> None:
    ops = looped(8, 5).ops
    assert parts_of(ops)
    assert not closed_at_first(parts_of(ops), len(ops))


def test_a_large_one_comes_up_with_its_first_part_open(panel: GraphPanel) -> None:
    picture = panel.view.picture
    assert picture is not None
    assert len(picture.rows) == 31
    assert picture.rows[-1].name == "backward pass"
    assert panel.bar.sentence.text() == "60 ops in 31 boxes: click one to open it"
    assert panel.bar.sentence.isVisible()


def test_a_click_opens_and_the_triangle_folds(store: Store, panel: GraphPanel) -> None:
    view = panel.view
    click(view, view.rect_of(Stop("op", 30)).center())
    assert view.picture is not None
    assert len(view.picture.rows) == 60
    assert not panel.bar.sentence.isVisible()
    click(view, view.layout_now().fold_rect(0).center())
    assert len(view.picture.rows) == 31
    assert view.picture.rows[0].name == "forward pass"
    assert not store.state.plans


def test_keys_open_and_fold_and_stay_where_they_are(panel: GraphPanel) -> None:
    view = focus(panel)
    press(view, KEY.Key_End)
    assert view.accessibleName() == "Operator chain: backward pass, folded"
    press(view, KEY.Key_Right)
    assert view.current == Stop("op", 30)
    assert view.accessibleName() == "Operator chain: op31"
    press(view, KEY.Key_Down)
    press(view, KEY.Key_Left)
    assert view.accessibleName() == "Operator chain: backward pass, folded"
    press(view, KEY.Key_Return)
    assert view.accessibleName() == "Operator chain: op31"


def test_a_fold_changes_no_plan_and_keeps_its_links(store: Store, panel: GraphPanel) -> None:
    view = panel.view
    view.fold_all(False)
    click(view, link(view, "op40", "op41"))
    before = plan(store)
    view.fold_all(True)
    assert plan(store) == before
    assert view.picture is not None
    assert [row.name for row in view.picture.rows] == ["forward pass", "backward pass"]
    click(view, link(view, "op30", "op31"))
    assert "op30+op31|" in plan(store)
    view.fold_all(False)
    assert all(link_.is_fused for link_ in (view.picture.links[29], view.picture.links[39]))


@pytest.mark.parametrize("is_fused", [False, True])
def test_the_bytes_of_all_boxes_are_those_of_the_plan(is_fused: bool) -> None:
    graph = both_ways()
    names = [op.name for op in graph.ops]
    made = all_in_one(names) if is_fused else each_alone(names)
    folding = Folding()
    whole = chain_picture(graph, None, made)
    folding.take(whole)
    folding.set_all(True)
    rows = folding.folded(whole).rows
    assert sum(row.n_bytes for row in rows) == sum(planned_bytes(graph, made))


def test_a_tool_tip_says_what_a_box_holds(panel: GraphPanel) -> None:
    view = panel.view
    assert view.picture is not None
    told = view.text_at(view.rect_of(Stop("op", 30)).center())
    assert told.startswith("backward pass, folded: 30 ops, op31 to op60\n")
    assert format_bytes(view.picture.rows[30].n_bytes) in told
