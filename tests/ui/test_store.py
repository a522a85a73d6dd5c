"""The store: each part tells of its own changes, and of nothing else."""

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.errors import UsageError
from explorer.model.messages import GraphCaptured
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
