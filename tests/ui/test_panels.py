"""Header, form, strategies, graph, status and message: store to view, and view to store."""

from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from explorer.model.comparison import Verdict
from explorer.model.device import Abilities, StrategyAbility
from explorer.model.fusion import parse_plan
from explorer.model.messages import Progress, Stage
from explorer.model.run import Run, StrategyInfo
from explorer.ui.header import Header
from explorer.ui.message_bar import MessageBar
from explorer.ui.panel import wrapped
from explorer.ui.results_panel import ResultsPanel
from explorer.ui.state import WorkerPhase, wanted_strategies
from explorer.ui.status_line import StatusLine
from explorer.ui.store import Store
from explorer.ui.strategies_panel import StrategiesPanel
from explorer.ui.strategy_row import row_text
from tests.fixtures_runs import (
    GPU_GRAPH,
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    sdpa_attention,
)
from tests.ui.drive import click, press, write
from tests.ui.fake_worker import ABILITIES


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def full(store: Store) -> Store:
    store.add_runs([eager_attention(), compiled_attention(), sdpa_attention()])
    return store


def with_gpu() -> Abilities:
    cpu = ABILITIES.devices[0]
    gpu = replace(cpu, device=eager_attention().device)
    return replace(ABILITIES, devices=(gpu, cpu), default_device="cuda:0")


def cold_us(run: Run) -> float:
    """The headline time of a fixture."""
    assert run.timing is not None
    assert run.timing.cold is not None
    return run.timing.cold.median_us


class TestHeader:
    @pytest.fixture
    def header(self, qtbot: QtBot, store: Store) -> Header:
        header = Header(store)
        qtbot.addWidget(header)
        header.show()
        return header

    def test_typing_a_bad_value_disables_run_and_says_why(
        self, qtbot: QtBot, store: Store, header: Header
    ) -> None:
        edit = header.form.field("seq_len")
        assert isinstance(edit, QLineEdit)
        write(edit, "12x")
        assert store.state.parameters.texts["seq_len"] == "12x"
        assert "whole number" in header.form.message("seq_len")
        assert edit.property("invalid") is True
        assert not header.run.isEnabled()
        assert header.run.toolTip() == header.form.message("seq_len")
        assert header.parameters.text() == "1 to correct"
        press(edit, Qt.Key.Key_Backspace)
        assert header.run.isEnabled()
        assert edit.property("invalid") is False
        assert "12 " in header.parameters.text()
        assert "Tokens" in header.form.message("seq_len")

    def test_the_form_opens_with_the_keyboard_at_what_is_to_be_corrected(
        self, store: Store, header: Header
    ) -> None:
        header.show()
        form = header.form
        header.open_form()
        order: list[QWidget] = []
        widget: QWidget | None = form.field("batch")
        while widget is not None and widget not in order:
            order.append(widget)
            widget = widget.nextInFocusChain()
        names = [parameter.name for parameter in store.state.chain_descriptor.parameters]
        places = [order.index(form.field(name)) for name in names]
        assert places == sorted(places)
        assert form.focusWidget() is form.field("batch")
        form.hide()
        store.set_parameter("seq_len", "12x")
        header.open_form()
        assert form.focusWidget() is form.field("seq_len")
        form.hide()

    def test_a_choice_goes_to_the_store_and_defaults_come_back(
        self, qtbot: QtBot, store: Store, header: Header
    ) -> None:
        picker = header.form.field("mask")
        press(picker, Qt.Key.Key_Down)
        assert store.state.parameters.values["mask"] == "causal"
        store.reset_parameters()
        assert picker.property("currentText") == "additive"

    def test_the_form_opens_below_its_button_and_enter_closes_it(
        self, qtbot: QtBot, header: Header
    ) -> None:
        click(header.parameters)
        assert header.form.isVisible()
        press(header.form.field("batch"), Qt.Key.Key_Return)
        assert not header.form.isVisible()

    def test_the_device_gives_the_run_button_its_name(
        self, qtbot: QtBot, store: Store, header: Header
    ) -> None:
        assert header.run.text() == "Run"
        store.set_abilities(with_gpu())
        assert header.run.text() == "Run on GPU"
        assert "4,096" in header.parameters.text()
        press(header.device, Qt.Key.Key_Down)
        assert store.state.device == "cpu"
        assert header.run.text() == "Run on CPU"

    def test_run_becomes_cancel_while_busy(
        self, qtbot: QtBot, store: Store, header: Header
    ) -> None:
        with qtbot.waitSignal(header.run_requested):
            click(header.run)
        store.set_worker(WorkerPhase.BUSY, "measuring")
        assert header.cancel.isVisible()
        assert not header.run.isVisible()
        with qtbot.waitSignal(header.cancel_requested):
            click(header.cancel)

    def test_the_keyboard_stays_at_the_button_that_changes(
        self, store: Store, header: Header
    ) -> None:
        header.show()
        header.activateWindow()
        header.run.setFocus()
        store.set_worker(WorkerPhase.BUSY, "measuring")
        assert header.cancel.hasFocus()
        store.set_worker(WorkerPhase.READY, "worker ready")
        assert header.run.hasFocus()

    def test_the_theme_button_switches_there_and_back(
        self, qtbot: QtBot, store: Store, header: Header
    ) -> None:
        click(header.theme)
        assert store.state.theme == "light"
        click(header.theme)
        assert store.state.theme == "dark"

    def test_the_worker_is_told_with_a_dot(self, store: Store, header: Header) -> None:
        store.set_worker(WorkerPhase.READY, "worker ready")
        assert header.worker.text() == "● worker ready"
        assert header.worker.property("phase") == "ready"


class TestStrategies:
    @pytest.fixture
    def panel(self, qtbot: QtBot, full: Store) -> StrategiesPanel:
        panel = StrategiesPanel(full)
        qtbot.addWidget(panel)
        panel.resize(300, 500)
        panel.show()
        return panel

    def test_a_result_has_launches_time_and_speed_up(self, panel: StrategiesPanel) -> None:
        text = panel.rows["compile"].text_shown
        eager, compiled = (cold_us(run) for run in (eager_attention(), compiled_attention()))
        assert text.below == "3 kernels + 1 helper"
        assert text.time == f"{compiled / 1000:.2f} ms"
        assert text.ratio == f"{eager / compiled:.2f}× faster"
        assert text.verdict is Verdict.FASTER
        assert panel.rows["eager"].text_shown.ratio == ""
        assert panel.rows["sdpa"].text_shown.below == "cuDNN · 1 kernel"

    def test_a_click_shows_the_run_and_the_toggle_does_not(
        self, qtbot: QtBot, full: Store, panel: StrategiesPanel
    ) -> None:
        row = panel.rows["sdpa"]
        click(row)
        assert full.state.shown == "sdpa"
        click(panel.rows["compile"].box)
        assert full.state.shown == "sdpa"
        assert full.state.strategies == ("eager",)
        assert not panel.rows["compile"].box.isChecked()
        full.toggle_strategy("compile", on=True)
        assert panel.rows["compile"].box.isChecked()

    def test_space_toggles(self, qtbot: QtBot, full: Store, panel: StrategiesPanel) -> None:
        press(panel.rows["sdpa"].box, Qt.Key.Key_Space)
        assert "sdpa" in full.state.strategies

    def test_what_is_unavailable_is_off_with_its_reason(
        self, full: Store, panel: StrategiesPanel
    ) -> None:
        full.toggle_strategy("cudagraph", on=True)
        full.set_abilities(ABILITIES)
        row = panel.rows["cudagraph"]
        assert not row.box.isEnabled()
        assert not row.box.isChecked()
        assert row.text_shown.below == "CUDA graphs need a CUDA device."
        assert row.text_shown.tip.endswith(row.text_shown.below)
        assert row.toolTip() == wrapped(row.text_shown.tip)

    def test_a_refusal_does_not_repeat_its_strategy(self) -> None:
        for spec, reason, below in (
            ("sdpa:cudnn", "sdpa:cudnn needs an NVIDIA GPU.", "Needs an NVIDIA GPU."),
            (
                "sdpa:flash",
                "torch refuses sdpa:flash here (dropout).",
                "torch refuses it here (dropout).",
            ),
        ):
            ability = StrategyAbility(spec=spec, title="SDPA", available=False, reason=reason)
            text = row_text(ability, None, [])
            assert text.below == below
            assert text.tip.endswith(reason)

    def test_a_recorded_strategy_that_the_worker_lacks_still_has_its_result(
        self, full: Store, panel: StrategiesPanel
    ) -> None:
        full.set_abilities(ABILITIES)
        row = panel.rows["sdpa"]
        assert not row.box.isEnabled()
        assert row.text_shown.time == "1.14 ms"
        assert "recording" in row.toolTip()

    def test_a_failure_says_so_in_the_row_and_at_a_click(self, qtbot: QtBot, store: Store) -> None:
        store.add_runs([compiled_attention(), failed_run()])
        panel = StrategiesPanel(store)
        qtbot.addWidget(panel)
        row = panel.rows["eager"]
        assert "out of memory" in row.text_shown.below
        click(row)
        assert store.state.shown == "compile"
        assert store.state.notice is not None
        assert "out of memory" in store.state.notice.sentence

    def test_a_row_tells_what_a_strategy_does_until_it_was_measured(
        self, panel: StrategiesPanel
    ) -> None:
        row = panel.rows["compile:max-autotune"]
        assert row.text_shown.below.startswith("Kernels chosen by timing candidates")
        assert {each.height() for each in panel.rows.values()} == {row.height()}

    def test_the_row_being_measured_says_how_far_it_is(
        self, full: Store, panel: StrategiesPanel
    ) -> None:
        before = panel.rows["compile"].grab().toImage()
        full.set_progress(
            Progress(stage=Stage.TIMING, sentence="timing", fraction=0.42, strategy="compile")
        )
        assert panel.rows["compile"].progress == "timing · 42 %"
        assert panel.rows["eager"].progress == ""
        assert panel.rows["compile"].grab().toImage() != before
        sentence = "2 of 6 · k 8 · Compiling compile"
        full.set_progress(Progress(stage=Stage.COMPILE, sentence=sentence, strategy="compile"))
        assert panel.rows["compile"].progress == "Compiling"
        full.set_progress(None)
        assert panel.rows["compile"].progress == ""
        assert panel.rows["compile"].grab().toImage() == before

    def test_attentions_own_operator_is_not_offered_for_other_chains(
        self, store: Store, panel: StrategiesPanel
    ) -> None:
        store.toggle_strategy("sdpa", on=True)
        assert panel.rows["sdpa"].box.isEnabled()
        assert "sdpa" in wanted_strategies(store.state)
        store.choose_chain("rmsnorm")
        assert not panel.rows["sdpa"].box.isEnabled()
        assert "known once the chain is captured" in panel.rows["sdpa"].text_shown.tip
        assert "sdpa" not in wanted_strategies(store.state)
        store.choose_chain("attention")
        assert panel.rows["sdpa"].box.isChecked()

    def test_the_plan_has_a_row_that_says_what_it_promises(
        self, qtbot: QtBot, full: Store, panel: StrategiesPanel
    ) -> None:
        row = panel.rows["plan"]
        assert not row.box.isChecked()
        ops = [op.name for op in GPU_GRAPH.ops]
        plan = parse_plan("scale+mask", ops, "attention")
        full.plan.edit(plan)
        assert row.box.isChecked()
        assert row.text_shown.title == "Your fusion"
        assert row.text_shown.below == f"5 launches planned · {plan.text}"
        full.show_run("compile")
        click(row)
        assert full.state.planning

    def test_the_plans_row_has_its_result_and_its_progress(
        self, full: Store, panel: StrategiesPanel
    ) -> None:
        text = "qk|scale+mask+softmax+dropout|pv"
        run = compiled_attention("planned")
        strategy = StrategyInfo(name="plan", option=text, plan=text)
        full.plan.edit(parse_plan(text, [op.name for op in GPU_GRAPH.ops], "attention"))
        full.set_progress(Progress(stage=Stage.TIMING, sentence="timing", strategy=f"plan:{text}"))
        assert panel.rows["plan"].progress
        full.set_progress(None)
        full.add_runs([replace(run, strategy=strategy)], show=False)
        shown = panel.rows["plan"].text_shown
        assert shown.below == "3 kernels + 1 helper"
        assert shown.ratio == panel.rows["compile"].text_shown.ratio
        assert text in panel.rows["plan"].text_shown.tip
        # One long word without a blank would reach across the screen.
        assert text.replace("|", "|\u200b").replace("+", "+\u200b") in panel.rows["plan"].toolTip()

    def test_no_ratio_where_the_ranges_overlap(self, qtbot: QtBot, store: Store) -> None:
        compiled = compiled_attention()
        store.add_runs([eager_attention(), replace(compiled, timing=eager_attention().timing)])
        panel = StrategiesPanel(store)
        qtbot.addWidget(panel)
        text = panel.rows["compile"].text_shown
        assert text.ratio == "equal within noise"
        assert text.verdict is Verdict.EQUAL


class TestStatus:
    @pytest.fixture
    def status(self, qtbot: QtBot, store: Store) -> StatusLine:
        status = StatusLine(store)
        qtbot.addWidget(status)
        status.show()
        return status

    def test_a_run_is_told_with_device_versions_and_pedigree(
        self, store: Store, status: StatusLine
    ) -> None:
        store.add_runs([eager_attention()], recorded_in="a.kx")
        for word in ("RECORDED", "NVIDIA H200", "driver 580.0", "torch 2.11.0", "triton 3.6.0",
                     "counted", "Counted per launch in 0.9 s."):  # fmt: skip
            assert word in status.source

    def test_a_run_measured_here_is_not_called_recorded(
        self, store: Store, status: StatusLine
    ) -> None:
        store.add_runs([cpu_attention()])
        assert "RECORDED" not in status.source
        assert "modelled" in status.source

    def test_without_a_run_it_says_what_can_be_measured(
        self, store: Store, status: StatusLine
    ) -> None:
        store.set_abilities(ABILITIES)
        assert "Two-core test processor" in status.source
        assert "no counter that we read" in status.source

    def test_progress_comes_with_percent_and_goes(self, store: Store, status: StatusLine) -> None:
        store.set_progress(
            Progress(stage=Stage.TIMING, sentence="timing", fraction=0.42, strategy="compile")
        )
        assert status.stage == "compile · timing · 42 %"
        for told, said in (
            ("Compiling compile", "compile · Compiling"),
            (
                "Tracing and counting DRAM bytes of compile",
                "compile · Tracing and counting DRAM bytes",
            ),
            (
                "Comparing compile with the fp64 reference",
                "compile · Comparing with the fp64 reference",
            ),
        ):
            store.set_progress(Progress(stage=Stage.TRACE, sentence=told, strategy="compile"))
            assert status.stage == said
        store.set_progress(None)
        assert status.stage == ""

    def test_what_is_cut_off_can_be_read_in_the_message_bar(
        self, qtbot: QtBot, store: Store, status: StatusLine
    ) -> None:
        store.add_runs([eager_attention()], recorded_in="attention-h200.kx")
        status.resize(4000, 30)
        status.show()
        assert not status.more_button.isVisible()
        status.resize(700, 30)
        assert status.more_button.isVisible()
        click(status.more_button)
        assert store.state.notice is not None
        assert store.state.notice.sentence == status.source
        assert not store.state.notice.is_error

    def test_the_reason_why_run_is_off(self, store: Store, status: StatusLine) -> None:
        store.set_parameter("batch", "none")
        assert status.blocker.startswith("Run is off: batch=none")
        store.reset_parameters()
        assert status.blocker == ""

    def test_warnings_of_the_shown_run(
        self, qtbot: QtBot, store: Store, status: StatusLine
    ) -> None:
        run = replace(eager_attention(), warnings=("The clock fell.", "L2 is small."))
        store.add_runs([run])
        assert status.warnings_button.text() == "2 warnings"
        click(status.warnings_button)
        assert store.state.notice is not None
        assert store.state.notice.sentence == "The clock fell. L2 is small."


def test_the_message_bar_tells_dismisses_and_undoes(qtbot: QtBot, full: Store) -> None:
    bar = MessageBar(full)
    qtbot.addWidget(bar)
    assert bar.isHidden()
    full.tell("Something is wrong; do this.")
    assert bar.sentence == "Something is wrong; do this."
    assert not bar.undo_button.isVisibleTo(bar)
    click(bar.close_button)
    assert full.state.notice is None
    full.remove_run("sdpa")
    assert bar.undo_button.isVisibleTo(bar)
    click(bar.undo_button)
    assert full.state.find_run("sdpa") is not None
    assert full.state.notice is None


def test_before_a_run_the_cards_are_named_after_the_chosen_device(
    qtbot: QtBot, store: Store
) -> None:
    panel = ResultsPanel(store)
    qtbot.addWidget(panel)
    store.set_abilities(with_gpu())
    assert [card.label for card in panel.cards.cards[1:3]] == ["GPU time", "HBM traffic"]
    store.choose_device("cpu")
    assert [card.label for card in panel.cards.cards[1:3]] == ["CPU time", "DRAM traffic"]
