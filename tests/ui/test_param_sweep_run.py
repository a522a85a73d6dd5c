"""A parameter sweep that runs: what is sent, what is kept, and how it goes on after a fault."""

from pytestqt.qtbot import QtBot

from explorer.model.messages import Progress, RunRequest, Stage
from explorer.model.param_sweep import sweeps_in
from explorer.model.sweep_range import points
from explorer.ui.param_sweep_state import shown_param_sweep
from explorer.ui.point_sweep import PointSweep
from explorer.ui.session import Session
from explorer.ui.side_by_side import telling_pair
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from explorer.ui.worker_process import WorkerProcess
from tests.fixtures_param_sweep import failed, timed, variant_sweep
from tests.fixtures_runs import cpu_attention
from tests.ui.conftest import MakeWorker
from tests.ui.fake_worker import ABILITIES

WAIT_MS = 10_000


def started(qtbot: QtBot, store: Store, worker: WorkerProcess) -> Session:
    session = Session(store, worker)
    session.start()
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    return session


def is_over(store: Store) -> bool:
    return store.state.worker.phase is WorkerPhase.READY and store.state.progress is None


def run_points(qtbot: QtBot, store: Store, values: str) -> None:
    store.set_swept_text("seq_len", values)
    store.request_param_sweep("seq_len")
    qtbot.waitUntil(lambda: is_over(store), timeout=WAIT_MS)


def done(store: Store) -> list[tuple[object, str, bool]]:
    """Value, strategy and whether it failed, of each run."""
    return [
        (i.run.chain.parameters["seq_len"], i.run.strategy.spec, i.run.error is not None)
        for i in store.state.runs
    ]


def test_every_strategy_runs_at_every_value(qtbot: QtBot, make_worker: MakeWorker) -> None:
    store = Store()
    session = started(qtbot, store, make_worker())
    told: list[str] = []
    store.progress_changed.connect(
        lambda: told.append(store.state.progress.sentence) if store.state.progress else None
    )
    run_points(qtbot, store, "512,1024")
    session.close()
    assert done(store) == [
        (512, "eager", False), (512, "compile", False),
        (1024, "eager", False), (1024, "compile", False),
    ]  # fmt: skip
    assert "1 of 2 · seq_len 512 · compiling" in told
    assert "2 of 2 · seq_len 1,024 · compiling" in told
    found = shown_param_sweep(store.state)
    assert found is not None
    assert found.values == (512, 1024)
    assert store.state.shown == store.state.runs[0].key


def test_a_point_that_is_refused_is_kept_and_passed_over(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    store = Store()
    session = started(qtbot, store, make_worker("no-room-at"))
    run_points(qtbot, store, "512,1024,2048")
    session.close()
    assert [(value, is_failed) for value, _, is_failed in done(store)] == [
        (512, False), (512, False), (1024, True), (1024, True), (2048, False), (2048, False),
    ]  # fmt: skip
    (sweep,) = sweeps_in([item.run for item in store.state.runs])
    assert sweep.values == (512, 1024, 2048)


def test_a_strategy_that_ends_the_worker_fails_and_the_sweep_goes_on(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    store = Store()
    session = started(qtbot, store, make_worker("dies-at compile"))
    run_points(qtbot, store, "512,1024")
    session.close()
    assert done(store) == [
        (512, "eager", False), (512, "compile", True),
        (1024, "eager", False), (1024, "compile", True),
    ]  # fmt: skip


def test_cancel_keeps_what_is_done(qtbot: QtBot, make_worker: MakeWorker) -> None:
    store = Store()
    session = started(qtbot, store, make_worker("hangs-at compile"))
    store.set_swept_text("seq_len", "512,1024")
    store.request_param_sweep("seq_len")
    qtbot.waitUntil(lambda: bool(store.state.runs), timeout=WAIT_MS)
    store.cancel_requested.emit()
    notice = store.state.notice
    session.close()
    assert done(store) == [(512, "eager", False)]
    assert notice is not None
    assert notice.sentence == "Cancelled; 1 of 4 runs are done and stay in the list."


def test_a_sweep_that_cannot_be_says_why(qtbot: QtBot, make_worker: MakeWorker) -> None:
    store = Store()
    session = Session(store, make_worker())
    store.set_swept_text("seq_len", "nonsense")
    store.request_param_sweep("seq_len")
    session.close()
    assert store.state.notice is not None
    assert store.state.notice.sentence.startswith("seq_len=nonsense")


def test_a_chain_s_variants_run_and_are_shown_beside_each_other(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    store = Store()
    session = started(qtbot, store, make_worker())
    store.choose_chain("qkv")
    session.run()
    qtbot.waitUntil(lambda: is_over(store) and len(store.state.runs) == 4, timeout=WAIT_MS)
    session.close()
    runs = [(i.run.chain.parameters["projections"], i.run.strategy.spec) for i in store.state.runs]
    assert runs == [
        ("three", "eager"), ("three", "compile"), ("one", "eager"), ("one", "compile"),
    ]  # fmt: skip
    keys = [item.key for item in store.state.runs]
    assert (store.state.shown, store.state.compared) == (keys[0], keys[2])


class TestPoints:
    request = RunRequest(chain="attention", strategies=("eager", "compile"), device="cpu")

    def test_the_share_that_is_done_grows_over_the_whole_sweep(self) -> None:
        sweep = PointSweep(points(self.request, "seq_len", (512, 1024)))
        half = Progress(stage=Stage.TIMING, sentence="timing", fraction=0.5)
        assert sweep.progress(half).fraction == 0.25
        sweep.take(cpu_attention())
        sweep.take(cpu_attention())
        assert sweep.progress().fraction == 0.5
        assert sweep.next_request() is not None
        assert sweep.progress(half).fraction == 0.75

    def test_after_a_fault_the_rest_of_the_point_runs_then_the_next(self) -> None:
        sweep = PointSweep(points(self.request, "seq_len", (512, 1024)))
        assert sweep.lost("It died.", ABILITIES).error == "It died."
        rest = sweep.go_on()
        assert rest is not None
        assert (rest.strategies, rest.parameters["seq_len"]) == (("compile",), 512)
        sweep.lost("It died again.", ABILITIES)
        following = sweep.go_on()
        assert following is not None
        assert (following.strategies, following.parameters["seq_len"]) == (
            ("eager", "compile"),
            1024,
        )

    def test_every_run_of_a_point_keeps_what_was_swept(self) -> None:
        sweep = PointSweep(points(self.request, "seq_len", (512,)))
        assert [run.swept for run in sweep.refused("No room.", ABILITIES)] == ["seq_len"] * 2


def test_variants_are_shown_beside_each_other_where_they_differ_most() -> None:
    runs = [timed(run, 100.0) for run in variant_sweep()]
    store = Store()
    store.add_runs(runs)
    keys = [item.key for item in store.state.runs]
    assert telling_pair(store.state, runs) == (keys[0], keys[2])
    runs[3] = timed(runs[3], 60.0)
    store = Store()
    store.add_runs(runs)
    assert telling_pair(store.state, runs) == (keys[1], keys[3])
    runs[1] = failed(runs[1], "No room.")
    store = Store()
    store.add_runs(runs)
    assert telling_pair(store.state, runs) == (keys[0], keys[2])
