"""A sweep that runs: which plans are sent, what is kept, and how it goes on after a fault."""

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.messages import Progress, RunRequest, Stage
from explorer.ui.details_panel import SWEEP_TAB, DetailsPanel
from explorer.ui.session import SWEEP_TIMING_S, Session
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from explorer.ui.sweep_state import missing_plans, sweep_specs
from explorer.ui.sweeping import Sweeping
from explorer.ui.worker_process import WorkerProcess
from tests.fixtures_runs import cpu_attention
from tests.ui.conftest import MakeWorker
from tests.ui.drive import click

WAIT_MS = 10_000


def started(qtbot: QtBot, store: Store, worker: WorkerProcess) -> Session:
    """A session whose worker is up and whose chain (textbook attention: three links) is known."""
    session = Session(store, worker)
    session.start()
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    return session


def is_over(store: Store) -> bool:
    return store.state.worker.phase is WorkerPhase.READY and store.state.progress is None


def plans_in(store: Store) -> list[str]:
    return [i.run.strategy.spec for i in store.state.runs if i.run.strategy.name == "plan"]


def test_the_button_has_every_plan_run_and_the_shown_run_stays(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    store = Store()
    worker = make_worker()
    session = started(qtbot, store, worker)
    panel = DetailsPanel(store)
    qtbot.addWidget(panel)
    panel.resize(900, 260)
    panel.show()
    panel.tabs.setCurrentIndex(SWEEP_TAB)
    sent: list[RunRequest] = []
    shown: list[str | None] = []
    told: list[str] = []

    def keep_request() -> None:
        if isinstance(worker.current, RunRequest):
            sent.append(worker.current)

    worker.busy_changed.connect(keep_request)
    store.shown_changed.connect(lambda: shown.append(store.state.shown))
    store.progress_changed.connect(
        lambda: told.append(store.state.progress.sentence) if store.state.progress else None
    )
    wanted = sweep_specs(store.state)
    click(panel.sweep.view.button)
    qtbot.waitUntil(lambda: len(store.state.runs) == 10 and is_over(store), timeout=WAIT_MS)
    assert [request.strategies for request in sent] == [wanted]
    assert wanted[:2] == ("eager", "compile")
    assert len(set(wanted)) == 10
    assert sent[0].timing_s == SWEEP_TIMING_S
    assert sent[0].parameters == store.state.parameters.values
    assert [item.run.strategy.spec for item in store.state.runs] == list(wanted)
    assert shown == [store.state.runs[0].key], "the first result is shown, and it stays"
    assert "before 8 plans · Waiting for the worker" in told
    qtbot.waitUntil(lambda: len(panel.sweep.view.list.points) == 8, timeout=WAIT_MS)
    session.close()


def test_a_plan_that_ends_the_worker_is_a_failed_run_and_the_rest_go_on(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    store = Store()
    broken_spec = "plan:qk|scale+mask+softmax|dropout|pv"
    session = started(qtbot, store, make_worker(f"dies-at {broken_spec}"))
    assert broken_spec in sweep_specs(store.state)
    told: list[str] = []
    store.progress_changed.connect(
        lambda: told.append(store.state.progress.sentence) if store.state.progress else None
    )
    session.sweep()
    qtbot.waitUntil(lambda: len(store.state.runs) == 10 and is_over(store), timeout=WAIT_MS)
    failed = [item.run for item in store.state.runs if item.run.error]
    assert [run.strategy.spec for run in failed] == [broken_spec]
    assert len(plans_in(store)) == 8
    assert any(words.startswith("plan ") and " of 8 · " in words for words in told)
    assert missing_plans(store.state) == (broken_spec,), "it can be tried again"
    session.close()


def test_cancel_keeps_the_plans_that_are_done(qtbot: QtBot, make_worker: MakeWorker) -> None:
    store = Store()
    spec = "plan:qk|scale+mask|softmax|dropout|pv"
    session = started(qtbot, store, make_worker(f"hangs-at {spec}"))
    place = sweep_specs(store.state).index(spec)
    session.sweep()
    qtbot.waitUntil(
        lambda: bool(store.state.progress and f"at {spec}" in store.state.progress.sentence),
        timeout=WAIT_MS,
    )
    session.cancel()
    assert len(store.state.runs) == place
    assert store.state.progress is None
    assert store.state.notice is not None
    assert store.state.notice.sentence == (
        f"Cancelled; {place - 2} of 8 plans are done and stay in the list."
    )
    qtbot.waitUntil(lambda: is_over(store), timeout=WAIT_MS)
    assert len(missing_plans(store.state)) == 8 - (place - 2)
    session.close()


def test_a_sweep_that_cannot_start_says_why(qtbot: QtBot, make_worker: MakeWorker) -> None:
    store = Store()
    session = Session(store, make_worker())
    session.sweep()
    assert store.state.notice is not None
    assert "not known yet" in store.state.notice.sentence
    assert store.state.progress is None
    session.close()


def test_progress_of_a_part_is_that_of_the_whole() -> None:
    sweeping = Sweeping(RunRequest(chain="attention", strategies=("compile", "plan:a", "plan:b")))
    assert not sweeping.is_heard
    first = sweeping.progress(Progress(stage=Stage.COMPILE, sentence="compiling", fraction=0.2))
    assert first.sentence == "before 2 plans · compiling"
    assert first.fraction == pytest.approx(0.2)
    assert sweeping.is_heard
    sweeping.take(cpu_attention())
    second = sweeping.progress(Progress(stage=Stage.TIMING, sentence="timing", fraction=0.5))
    assert second.sentence == "plan 1 of 2 · timing"
    rest = sweeping.go_on()
    assert rest is not None
    assert rest.strategies == ("plan:a", "plan:b")
    assert not sweeping.is_heard
    third = sweeping.progress(Progress(stage=Stage.TIMING, sentence="timing", fraction=0.5))
    assert third.fraction == pytest.approx(2 / 3)
    sweeping.take(cpu_attention())
    sweeping.take(cpu_attention())
    assert sweeping.go_on() is None
    assert sweeping.progress().sentence.startswith("plan 2 of 2")
