"""The op graph with runs: their links, what was planned beside what was made, and reasons."""

from dataclasses import replace

import pytest
from PySide6.QtGui import QColor
from pytestqt.qtbot import QtBot

from explorer.model.run import (
    CompileCost,
    FusionRefusal,
    RefusalReason,
)
from explorer.ui.graph_layout import LEAST_PILL_PX, why_rect
from explorer.ui.graph_panel import GraphPanel, picture_of
from explorer.ui.store import Store
from explorer.ui.theme import DARK
from tests.fixtures_runs import (
    GPU_GRAPH,
    compiled_attention,
    cpu_attention,
    eager_attention,
    sdpa_attention,
)
from tests.model.graphs import RMS_NORM
from tests.ui.drive import click, press
from tests.ui.graph_drive import (
    KEY,
    capture,
    focus,
    link,
    plan,
    plan_run,
    show,
    to_link,
)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def full(store: Store) -> Store:
    store.add_runs([eager_attention(), compiled_attention(), sdpa_attention()])
    return store


class TestRuns:
    def color_on_link(self, panel: GraphPanel, place: int) -> QColor:
        """Inside a link's face, above its words."""
        pill = panel.view.layout_now().pill(place)
        image = panel.view.grab().toImage()
        return image.pixelColor(round(pill.left()) + 12, round(pill.top() + LEAST_PILL_PX / 4))

    def test_fused_links_are_filled_and_the_others_are_not(self, qtbot: QtBot, full: Store) -> None:
        full.show_run("compile")
        panel = show(qtbot, full)
        assert self.color_on_link(panel, 1) == DARK.color("fused")
        assert self.color_on_link(panel, 0) == DARK.color("sunken")
        full.show_run("eager")
        assert self.color_on_link(panel, 1) == DARK.color("sunken")

    def test_before_a_run_the_graph_is_planned(self, qtbot: QtBot, store: Store) -> None:
        panel = show(qtbot, store)
        assert "softmax" in panel.view.accessibleDescription()
        capture(store, GPU_GRAPH)
        assert panel.hint.endswith("planned")
        assert "planned" in panel.view.accessibleDescription()
        store.add_runs([cpu_attention()])
        assert panel.hint.endswith("modelled")
        assert "DRAM" in panel.view.accessibleDescription()

    def test_a_link_of_a_shown_run_starts_from_its_grouping(
        self, qtbot: QtBot, full: Store
    ) -> None:
        full.show_run("compile")
        panel = show(qtbot, full)
        click(panel.view, link(panel.view, "qk", "scale"))
        assert plan(full) == "qk+scale+mask+softmax+dropout|pv"
        assert panel.hint.endswith("planned")
        click(panel.view, link(panel.view, "qk", "scale"))
        assert panel.hint.endswith("modelled"), "the plan is what the shown run did"

    def test_showing_a_run_shows_its_graph_and_keeps_the_plan(
        self, qtbot: QtBot, full: Store
    ) -> None:
        panel = show(qtbot, full)
        click(panel.view, link(panel.view, "qk", "scale"))
        full.show_run("compile")
        assert panel.hint.endswith("modelled")
        assert plan(full) == "qk+scale|mask|softmax|dropout|pv"
        full.plan.show()
        assert panel.title == "Your fusion"
        assert panel.text.field.text() == plan(full)

    def test_what_was_planned_stands_beside_what_was_made(self, qtbot: QtBot, store: Store) -> None:
        store.add_runs([plan_run()])
        panel = show(qtbot, store)
        # Planned: 4 squares and 2 bytes. Made, by the arguments: scores and dropped there and back
        # and 2 squares of random numbers are 6, and 100.7 MB of q, k, mask, v and out.
        assert panel.title == "Your fusion"
        assert panel.hint == "6.54 GB modelled, plan 4.29"

    def test_a_group_that_became_two_launches_is_drawn_as_two(
        self, qtbot: QtBot, store: Store
    ) -> None:
        store.add_runs([plan_run(parted=True)])
        picture, _ = picture_of(store.state)
        assert picture is not None
        assert picture.parted == ((1, 4),)
        assert picture.groups == ((1, 2), (3, 4))

    def test_another_recordings_chain_is_chosen_when_its_link_is_touched(
        self, qtbot: QtBot, full: Store
    ) -> None:
        full.choose_chain("swiglu")
        full.show_run("compile")
        panel = show(qtbot, full)
        click(panel.view, link(panel.view, "qk", "scale"))
        assert full.state.chain == "attention"
        assert plan(full) == "qk+scale+mask+softmax+dropout|pv"

    def test_another_chain_shows_its_own_graph(self, qtbot: QtBot, full: Store) -> None:
        panel = show(qtbot, full)
        full.choose_chain("residual-rmsnorm")
        capture(full, RMS_NORM)
        assert "residual" in panel.view.accessibleDescription()
        click(panel.view, link(panel.view, "square", "mean"))
        assert plan(full) == "residual|square+mean|rsqrt|normalize|weight"
        full.choose_chain("attention")
        assert "attention" not in full.state.plans


class TestWhy:
    @pytest.fixture
    def refused(self, qtbot: QtBot, store: Store) -> GraphPanel:
        refusal = FusionRefusal(
            first="qk", second="scale", sentence="A matmul is a kernel of its own.",
            raw="cannot fuse buf0 with buf1: is extern", reason=RefusalReason.MATMUL,
        )  # fmt: skip
        run = compiled_attention()
        cost = CompileCost(first_call_s=1.0, refusals=(refusal,))
        store.add_runs([replace(run, compile=cost)])
        return show(qtbot, store)

    def test_hovering_says_why(self, refused: GraphPanel) -> None:
        told = refused.view.text_at(link(refused.view, "qk", "scale"))
        assert "A matmul is a kernel of its own." in told

    def test_the_mark_and_w_open_the_sentence_and_raw_is_a_click_away(
        self, store: Store, refused: GraphPanel
    ) -> None:
        view = refused.view
        click(view, why_rect(view.layout_now().pill(0)).center())
        assert store.state.plans == {}
        assert refused.callout.sentence == "A matmul is a kernel of its own."
        assert not refused.callout.raw.isVisible()
        click(refused.callout.raw_button)
        assert refused.callout.raw.isVisible()
        assert "is extern" in refused.callout.raw.toPlainText()
        refused.callout.close_it()
        to_link(focus(refused), 0)
        press(view, KEY.Key_W)
        assert refused.callout.isVisible()
