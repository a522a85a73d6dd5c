"""A graph in pieces: the gap, why nothing fuses over it, and where own code's ops come from."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from explorer.ui.chain_picture import chain_picture
from explorer.ui.graph_layout import BREAK_PX, Layout, Stop, breaks_of, least_height
from explorer.ui.graph_panel import GraphPanel
from explorer.ui.op_links import link_sentence, link_text
from explorer.ui.plan_edit import as_whole
from explorer.ui.store import Store
from explorer.ui.theme import DARK
from tests.model.graphs import RMS_NORM, in_pieces
from tests.ui.drive import click, press
from tests.ui.graph_drive import KEY, branched, focus, link, plan, stroke, to_link

GRAPH = in_pieces(RMS_NORM, 2, 5)
"""residual square | mean rsqrt normalize | weight"""
SENTENCE = (
    "A graph break at net.py:2 lies between square and mean: print(2). Python runs there, so that "
    "no kernel holds both."
)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def panel(qtbot: QtBot, store: Store) -> GraphPanel:
    return branched(qtbot, store, GRAPH)


def test_links_over_a_break_say_so() -> None:
    picture = chain_picture(GRAPH, None)
    assert breaks_of(picture) == (1, 4)
    broken = picture.links[1]
    assert link_text(broken, "HBM").startswith("graph break")
    assert link_sentence(broken, "HBM").startswith(SENTENCE)
    assert [side.link.graph_break for side in picture.side_links] == [GRAPH.breaks[0]]
    assert breaks_of(chain_picture(RMS_NORM, None)) == ()


def test_a_break_has_room_for_its_reason() -> None:
    plain, broken = (Layout.fit(300, 400, 6, 1, breaks) for breaks in ((), (1, 4)))
    assert broken.link_rect(1).height() == broken.gap + BREAK_PX
    assert broken.link_rect(0).height() == broken.gap
    assert broken.op_rect(2).top() == broken.link_rect(1).bottom()
    assert broken.pill(1).bottom() < broken.link_rect(1).bottom() - BREAK_PX + 2
    assert least_height(6, 2) == least_height(6) + 2 * BREAK_PX
    assert broken.op_rect(5).bottom() <= max(400, plain.op_rect(5).bottom() + 2 * BREAK_PX)


def test_the_gap_is_drawn_in_the_colour_of_warnings(qtbot: QtBot, panel: GraphPanel) -> None:
    view = panel.view
    image = view.grab().toImage()
    ratio = image.devicePixelRatio()
    room = view.layout_now().link_rect(1)
    pixels = [
        image.pixelColor(round(x * ratio), round(y * ratio))
        for x in range(round(room.left()), round(room.right()), 2)
        for y in range(round(room.top()), round(room.bottom()))
    ]
    warning = QColor(DARK.color("warning"))
    assert sum(_is_near(pixel, warning) for pixel in pixels) > 40


def _is_near(pixel: QColor, other: QColor) -> bool:
    pairs = zip(pixel.getRgb()[:3], other.getRgb()[:3], strict=True)  # type: ignore[index]
    return all(abs(a - b) < 40 for a, b in pairs)


def _by_click(panel: GraphPanel) -> None:
    click(panel.view, link(panel.view, "square", "mean"))


def _by_key(panel: GraphPanel) -> None:
    view = focus(panel)
    to_link(view, 1)
    press(view, KEY.Key_Space)


def _by_w(panel: GraphPanel) -> None:
    view = focus(panel)
    to_link(view, 1)
    press(view, KEY.Key_W)


@pytest.mark.parametrize("way", [_by_click, _by_key, _by_w])
def test_a_link_over_a_break_is_explained_and_not_switched(
    store: Store, panel: GraphPanel, way: Callable[[GraphPanel], None]
) -> None:
    way(panel)
    assert not store.state.plans
    assert panel.callout.isVisible()
    assert panel.callout.sentence == SENTENCE
    assert not panel.callout.remedy_button.isVisible()


def test_a_link_at_the_side_that_goes_over_a_break_is_explained_too(
    store: Store, panel: GraphPanel
) -> None:
    click(panel.view, panel.view.rect_of(Stop("side", 0)).center())
    assert not store.state.plans
    assert "A graph break at net.py:2 lies between" in panel.callout.sentence


def test_a_stroke_leaves_breaks_as_they_are(store: Store, panel: GraphPanel) -> None:
    view = panel.view
    start, end = link(view, "residual", "square"), link(view, "rsqrt", "normalize")
    stroke(view, start, QPointF(start.x(), end.y()))
    assert plan(store) == "residual+square|mean+rsqrt+normalize|weight"
    assert not panel.callout.isVisible()


def test_all_in_one_stops_at_the_breaks(store: Store, panel: GraphPanel) -> None:
    panel.presets.all_requested.emit()
    assert plan(store) == as_whole(GRAPH).text == "residual+square|mean+rsqrt+normalize|weight"


def test_a_plan_as_text_that_goes_over_a_break_is_refused_without_a_cure(
    store: Store, panel: GraphPanel
) -> None:
    panel.take_text("square+mean")
    assert panel.callout.sentence == SENTENCE
    assert not panel.callout.remedy_button.isVisible()
    assert not store.state.plans


def test_an_op_of_own_code_tells_its_line(panel: GraphPanel) -> None:
    point = panel.view.rect_of(Stop("op", 2)).center()
    assert panel.view.text_at(point).splitlines()[-1] == "net.py:3: y = mean(y)"
