"""The store: each part tells of its own changes, and of nothing else."""

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.device import StrategyAbility
from explorer.model.errors import UsageError
from explorer.model.fusion import FusionPlan, parse_plan
from explorer.model.messages import GraphCaptured
from explorer.model.run import Run, StrategyInfo
from explorer.ui.plan_state import plan_drawn, plan_to_run, shows_plan
from explorer.ui.state import (
    WorkerPhase,
    drawn,
    peers,
    result_of,
    run_blocker,
    strategy_abilities,
    wanted_strategies,
)
from explorer.ui.store import Store
from tests.fixtures_runs import (
    CPU_GRAPH,
    GPU_GRAPH,
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    long_run,
    sdpa_attention,
)
from tests.ui.fake_worker import ABILITIES


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def full(store: Store) -> Store:
    """Three runs of the same work on one device, the first shown."""
    store.add_runs([eager_attention(), compiled_attention(), sdpa_attention()])
    return store


def test_a_typed_value_is_taken(qtbot: QtBot, store: Store) -> None:
    with qtbot.waitSignal(store.parameters_changed):
        store.set_parameter("seq_len", "2048")
    assert store.state.parameters.values["seq_len"] == 2048
    assert store.state.parameters.errors == {}


def test_a_bad_value_is_kept_with_its_sentence_and_stops_the_run(store: Store) -> None:
    store.set_parameter("seq_len", "many")
    assert store.state.parameters.texts["seq_len"] == "many"
    assert "seq_len" not in store.state.parameters.values
    assert "whole number" in store.state.parameters.errors["seq_len"]
    assert run_blocker(store.state) == store.state.parameters.errors["seq_len"]
    store.set_parameter("seq_len", "")
    assert store.state.parameters.values["seq_len"] == 1024
    assert run_blocker(store.state) is None


def test_every_bad_field_has_its_own_sentence(store: Store) -> None:
    store.set_parameter("batch", "0")
    store.set_parameter("dropout", "1")
    assert set(store.state.parameters.errors) == {"batch", "dropout"}
    store.reset_parameters()
    assert store.state.parameters.errors == {}


def test_defaults_follow_the_device(store: Store) -> None:
    cpu = ABILITIES.devices[0]
    gpu = replace(cpu, device=eager_attention().device)
    store.set_parameter("heads", "8")
    store.set_abilities(replace(ABILITIES, devices=(gpu, cpu), default_device="cuda:0"))
    assert store.state.parameters.values["seq_len"] == 4096
    assert store.state.parameters.values["heads"] == 8
    store.choose_device("cpu")
    assert store.state.parameters.values["seq_len"] == 1024


def test_an_unknown_chain_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="no chain"):
        store.choose_chain("nothing")


def test_a_captured_graph_is_dropped_when_a_value_changes(qtbot: QtBot, store: Store) -> None:
    captured = GraphCaptured(
        graph=CPU_GRAPH, parameters=dict(store.state.parameters.values), estimate_bytes=1,
        device="cpu",
    )  # fmt: skip
    store.set_captured(captured)
    with qtbot.waitSignal(store.captured_changed):
        store.set_parameter("heads", "8")
    assert store.state.captured is None


def test_no_strategy_no_run(store: Store) -> None:
    for spec in store.state.strategies:
        store.toggle_strategy(spec, on=False)
    assert "strategy" in str(run_blocker(store.state))


def test_unavailable_strategies_are_not_run(store: Store) -> None:
    store.toggle_strategy("cudagraph", on=True)
    store.set_abilities(ABILITIES)
    assert wanted_strategies(store.state) == ("eager", "compile")
    reasons = {a.spec: a.reason for a in strategy_abilities(store.state)}
    assert "CUDA" in str(reasons["cudagraph"])


def test_strategies_run_in_the_order_of_the_list(store: Store) -> None:
    store.toggle_strategy("eager", on=False)
    store.toggle_strategy("sdpa", on=True)
    store.toggle_strategy("eager", on=True)
    assert wanted_strategies(store.state) == ("eager", "compile", "sdpa")


def test_a_running_worker_takes_no_second_run(store: Store) -> None:
    store.set_worker(WorkerPhase.BUSY, "measuring")
    assert "Cancel" in str(run_blocker(store.state))


def test_adding_shows_the_first_that_can_be_drawn(qtbot: QtBot, store: Store) -> None:
    with qtbot.waitSignals([store.runs_changed, store.shown_changed]):
        store.add_runs([failed_run(), compiled_attention()])
    assert store.state.shown == "compile"
    assert len(store.state.runs) == 2


def test_the_same_run_is_not_listed_twice(qtbot: QtBot, full: Store) -> None:
    with qtbot.assertNotEmitted(full.runs_changed):
        full.add_runs([sdpa_attention()], recorded_in="again.kx")
    assert len(full.state.runs) == 3
    assert full.state.shown == "sdpa"


def test_another_run_with_the_same_id_is_kept(full: Store) -> None:
    full.add_runs([replace(sdpa_attention(), seed=7)])
    assert [item.key for item in full.state.runs] == ["eager", "compile", "sdpa", "sdpa#2"]


def test_showing_another_run_rewinds(full: Store) -> None:
    full.set_playhead(100.0)
    full.pick_launch(3)
    full.show_run("compile")
    assert full.state.playhead_us == 0.0
    assert full.state.launch is None


def test_a_run_is_not_compared_with_itself(full: Store) -> None:
    full.compare_run("eager")
    assert full.state.compared is None
    full.compare_run("sdpa")
    assert full.state.compared == "sdpa"
    full.show_run("sdpa")
    assert full.state.compared is None


def test_removing_the_shown_run_shows_a_neighbour_and_undo_brings_it_back(full: Store) -> None:
    full.show_run("compile")
    full.remove_run("compile")
    assert [item.key for item in full.state.runs] == ["eager", "sdpa"]
    assert full.state.shown == "sdpa"
    assert full.state.notice is not None
    assert full.state.notice.can_undo
    full.undo_remove()
    assert [item.key for item in full.state.runs] == ["eager", "compile", "sdpa"]
    assert full.state.notice is None
    assert not full.can_undo


def test_several_removals_are_undone_one_by_one(full: Store) -> None:
    for key in ("eager", "sdpa", "compile"):
        full.remove_run(key)
    assert full.state.shown is None
    for _ in range(3):
        full.undo_remove()
    assert [item.key for item in full.state.runs] == ["eager", "compile", "sdpa"]
    assert full.state.shown == "compile"


def test_a_new_name_goes_into_what_is_saved(full: Store) -> None:
    full.rename_run("sdpa", "  Best so far ")
    full.rename_run("eager", "   ")
    found = {item.key: item for item in full.state.runs}
    assert found["sdpa"].name == found["sdpa"].run.label == "Best so far"
    assert found["eager"].name == "eager"


def test_peers_are_the_newest_of_each_strategy_in_the_same_setting(full: Store) -> None:
    full.add_runs([replace(eager_attention("eager-2"), seed=1), cpu_attention()], show=False)
    assert [item.key for item in peers(full.state)] == ["eager", "compile", "sdpa"]
    full.show_run("compile")
    assert [item.key for item in peers(full.state)] == ["eager-2", "compile", "sdpa"]


def test_a_failed_run_does_not_hide_an_earlier_success(full: Store) -> None:
    full.show_run("compile")
    full.add_runs([failed_run()])
    eager = result_of(full.state, "eager")
    assert eager is not None
    assert eager.key == "eager"
    assert [item.key for item in drawn(full.state)] == ["eager", "compile", "sdpa"]


def test_pinned_and_compared_runs_of_other_work_stay_in_sight(full: Store) -> None:
    full.add_runs([cpu_attention(), long_run()], show=False)
    full.pin_run("long", pinned=True)
    full.compare_run("cpu-compile")
    keys = [item.key for item in drawn(full.state)]
    assert keys == ["eager", "long", "compile", "cpu-compile", "sdpa"]
    compiled = result_of(full.state, "compile")
    assert compiled is not None
    assert compiled.key == "compile"


def test_what_does_not_change_is_not_told(qtbot: QtBot, full: Store) -> None:
    signals = [full.shown_changed, full.runs_changed, full.playhead_changed, full.theme_changed]
    for signal in signals:
        with qtbot.assertNotEmitted(signal):
            full.show_run("eager")
            full.pin_run("eager", pinned=False)
            full.set_playhead(0.0)
            full.set_theme("dark")
            full.set_theme("no such theme")


OPS = [op.name for op in GPU_GRAPH.ops]
MIDDLE = "qk|scale+mask+softmax+dropout|pv"


def plan_of(text: str) -> FusionPlan:
    return parse_plan(text, OPS, "attention")


def plan_run(text: str) -> Run:
    """A run of a plan, as the worker sends it."""
    strategy = StrategyInfo(name="plan", option=text, plan=plan_of(text).text)
    return replace(compiled_attention(text), strategy=strategy)


class TestPlan:
    def test_an_edit_ticks_the_plan_for_the_next_run(self, full: Store) -> None:
        assert wanted_strategies(full.state) == ("eager", "compile")
        full.plan.edit(plan_of("scale+mask"))
        expected = ("eager", "plan:qk|scale+mask|softmax|dropout|pv", "compile")
        assert wanted_strategies(full.state) == expected

    def test_undo_takes_back_what_was_done_last_whatever_it_was(self, full: Store) -> None:
        full.plan.edit(plan_of("scale+mask"))
        full.remove_run("sdpa")
        full.plan.edit(plan_of("mask+softmax"))
        full.plan.undo()
        assert full.state.plans["attention"] == plan_of("scale+mask")
        assert len(full.state.runs) == 2
        full.plan.undo()
        assert len(full.state.runs) == 3
        full.plan.undo()
        assert full.state.plans == {}
        for _ in range(3):
            full.plan.redo()
        assert full.state.plans["attention"] == plan_of("mask+softmax")
        assert [item.key for item in full.state.runs] == ["eager", "compile"]

    def test_the_bars_button_brings_the_run_back_and_leaves_the_plan(self, full: Store) -> None:
        full.remove_run("sdpa")
        full.plan.edit(plan_of("scale+mask"))
        full.undo_remove()
        assert len(full.state.runs) == 3
        assert full.state.plans["attention"] == plan_of("scale+mask")

    def test_edits_are_kept_by_chain(self, store: Store) -> None:
        store.set_captured(captured(store))
        store.plan.edit(plan_of("scale+mask"))
        store.choose_chain("swiglu")
        assert "plan" not in store.state.strategies
        store.plan.undo()
        assert store.state.plans["attention"] == plan_of("scale+mask")
        store.choose_chain("attention")
        assert "plan" in store.state.strategies
        store.plan.undo()
        assert store.state.plans == {}

    def test_ops_that_a_setting_takes_out_leave_the_plan(self, store: Store) -> None:
        store.set_captured(captured(store))
        store.plan.edit(plan_of("scale+mask+softmax"))
        store.set_parameter("mask", "none")
        assert plan_to_run(store.state) == FusionPlan(
            (("qk",), ("scale", "softmax"), ("dropout",), ("pv",))
        )
        store.set_parameter("mask", "additive")
        assert plan_to_run(store.state) == plan_of("scale+mask+softmax")

    def test_an_op_that_comes_back_between_two_of_a_group_joins_them(self, store: Store) -> None:
        store.set_captured(captured(store))
        store.plan.edit(FusionPlan((("qk",), ("scale", "softmax"), ("dropout",), ("pv",))))
        assert plan_drawn(store.state) == plan_of("scale+mask+softmax")

    def test_a_thousand_runs_of_plans_do_not_flood_the_lists(self, full: Store) -> None:
        full.plan.edit(plan_of("scale+mask"))
        texts = ("scale+mask", "mask+softmax", "softmax+dropout", "qk+scale")
        full.add_runs([plan_run(text) for text in texts], show=False)
        assert [item.key for item in peers(full.state)] == [
            "eager",
            "scale+mask",
            "compile",
            "sdpa",
        ]
        full.plan.edit(plan_of("qk+scale"))
        full.pin_run("mask+softmax", pinned=True)
        full.compare_run("softmax+dropout")
        keys = [item.key for item in peers(full.state)]
        assert keys == ["eager", "mask+softmax", "softmax+dropout", "qk+scale", "compile", "sdpa"]
        specs = [ability.spec for ability in strategy_abilities(full.state)]
        assert specs.count("plan") == 1
        assert not any(spec.startswith("plan:") for spec in specs)

    def test_another_plan_tells_that_other_runs_stand_beside(
        self, qtbot: QtBot, full: Store
    ) -> None:
        full.add_runs([plan_run("scale+mask")], show=False)
        with qtbot.waitSignal(full.runs_changed):
            full.plan.edit(plan_of("scale+mask"))
        with qtbot.assertNotEmitted(full.shown_changed):
            full.plan.edit(plan_of("qk+scale"))

    def test_the_row_has_the_result_of_the_plan_as_it_stands(self, full: Store) -> None:
        full.add_runs([plan_run("scale+mask")], show=False)
        assert result_of(full.state, "plan") is None
        full.plan.edit(plan_of("scale+mask"))
        found = result_of(full.state, "plan")
        assert found is not None
        assert found.key == "scale+mask"

    def test_a_shown_plan_run_is_the_plan_until_a_link_is_touched(self, full: Store) -> None:
        full.plan.edit(plan_of("qk+scale"))
        full.add_runs([plan_run(MIDDLE)])
        assert not shows_plan(full.state)
        assert plan_to_run(full.state) == plan_of(MIDDLE)
        full.plan.show()
        assert plan_to_run(full.state) == plan_of("qk+scale")

    def test_a_device_that_cannot_run_plans_says_so(self, store: Store) -> None:
        cpu = ABILITIES.devices[0]
        cannot = StrategyAbility(spec="plan", title="plan", available=False, reason="No compiler.")
        device = replace(cpu, strategies=(*cpu.strategies, cannot))
        store.set_abilities(replace(ABILITIES, devices=(device,)))
        store.toggle_strategy("plan", on=True)
        assert wanted_strategies(store.state) == ("eager", "compile")
        reasons = {a.spec: a.reason for a in strategy_abilities(store.state)}
        assert reasons["plan"] == "No compiler."


def captured(store: Store) -> GraphCaptured:
    """Attention's graph, for the setting as it is."""
    return GraphCaptured(
        graph=GPU_GRAPH, parameters=dict(store.state.parameters.values), estimate_bytes=1,
        device="cpu",
    )  # fmt: skip
