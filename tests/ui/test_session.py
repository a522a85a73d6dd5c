"""Runs through a real worker process: requests out, state in, faults as one sentence."""

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.fusion import parse_plan
from explorer.ui.plan_state import shows_plan
from explorer.ui.session import Session
from explorer.ui.state import WorkerPhase, peers, run_blocker
from explorer.ui.store import Store
from tests.fixtures_runs import CPU_GRAPH
from tests.ui.conftest import MakeWorker
from tests.ui.fake_worker import GROUPING

WAIT_MS = 10_000


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def session(store: Store, make_worker: MakeWorker) -> Iterator[Session]:
    session = Session(store, make_worker())
    yield session
    session.close()


def start(qtbot: QtBot, store: Store, session: Session) -> None:
    """Have the worker up and the graph captured."""
    session.start()
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)


def use(store: Store, way: str) -> None:
    """Let the fake worker break in that way: it looks at a parameter that no chain has."""
    object.__setattr__(store.state.parameters, "values", {"way": way})


def run_and_wait(qtbot: QtBot, store: Store, session: Session) -> None:
    session.run()
    qtbot.waitUntil(
        lambda: store.state.worker.phase is WorkerPhase.READY and store.state.progress is None,
        timeout=WAIT_MS,
    )


def test_a_warm_worker_tells_what_it_can_and_captures_the_graph(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    session.start()
    assert store.state.worker.sentence == "worker starting"
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    assert store.state.worker.phase is WorkerPhase.READY
    assert store.state.chosen_device is not None
    captured = store.state.captured
    assert captured is not None
    assert captured.parameters == store.state.parameters.values


def test_another_setting_is_captured_anew(qtbot: QtBot, store: Store, session: Session) -> None:
    start(qtbot, store, session)
    store.set_parameter("heads", "2")
    assert store.state.captured is None
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    captured = store.state.captured
    assert captured is not None
    assert captured.parameters["heads"] == 2


def test_a_run_fills_the_list_and_shows_its_first(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    run_and_wait(qtbot, store, session)
    assert [item.run.strategy.spec for item in store.state.runs] == ["eager", "compile"]
    assert store.state.shown == store.state.runs[0].key
    assert not any(item.is_recorded for item in store.state.runs)


def test_a_run_may_be_asked_for_before_the_worker_is_up(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    run_and_wait(qtbot, store, session)
    assert len(store.state.runs) == 2


def test_progress_is_told_while_a_run_lasts(qtbot: QtBot, store: Store, session: Session) -> None:
    start(qtbot, store, session)
    told: list[float | None] = []
    store.progress_changed.connect(
        lambda: told.append(store.state.progress.fraction if store.state.progress else -1.0)
    )
    run_and_wait(qtbot, store, session)
    assert told == [None, 0.25, -1.0]


@pytest.mark.parametrize("way", ["kill", "abort", "exception", "exit"])
def test_a_fault_is_one_sentence_and_the_next_run_works(
    qtbot: QtBot, store: Store, session: Session, way: str
) -> None:
    start(qtbot, store, session)
    use(store, way)
    session.run()
    qtbot.waitUntil(lambda: store.state.notice is not None, timeout=WAIT_MS)
    assert store.state.notice is not None
    assert store.state.notice.is_error
    assert "run again" in store.state.notice.sentence
    assert store.state.progress is None
    use(store, "run")
    run_and_wait(qtbot, store, session)
    assert len(store.state.runs) == 2
    assert store.state.notice is None


def test_cancel_of_a_hang_frees_the_window_at_once(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    use(store, "hang")
    session.run()
    qtbot.waitUntil(
        lambda: bool(store.state.progress and "grandchild" in store.state.progress.sentence),
        timeout=WAIT_MS,
    )
    assert store.state.worker.phase is WorkerPhase.BUSY
    session.cancel()
    assert store.state.worker.phase is not WorkerPhase.BUSY
    assert store.state.progress is None
    assert store.state.notice is not None
    assert not store.state.notice.is_error
    use(store, "run")
    run_and_wait(qtbot, store, session)
    assert len(store.state.runs) == 2


def test_a_second_run_is_refused_with_the_reason(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    session.run()
    session.run()
    assert store.state.notice is not None
    assert "in progress" in store.state.notice.sentence
    qtbot.waitUntil(lambda: store.state.worker.phase is WorkerPhase.READY, timeout=WAIT_MS)
    assert len(store.state.runs) == 2


def test_what_cannot_run_is_not_sent(store: Store, session: Session) -> None:
    store.set_parameter("batch", "0")
    session.run()
    assert store.state.notice is not None
    assert "batch=0" in store.state.notice.sentence
    assert store.state.worker.phase is WorkerPhase.OFF


def test_a_worker_without_torch_says_so_and_the_window_stays_usable(
    qtbot: QtBot, store: Store, make_worker: MakeWorker
) -> None:
    session = Session(store, make_worker("no-torch"))
    session.start()
    qtbot.waitUntil(lambda: store.state.notice is not None, timeout=WAIT_MS)
    assert store.state.notice is not None
    assert "install torch" in store.state.notice.sentence
    assert store.state.worker.phase is WorkerPhase.FAILED


MIDDLE = "qk|scale+mask+softmax+dropout|pv"


DRAWN = "qk|scale+mask|softmax|dropout|pv"


def draw(store: Store) -> None:
    """Draw a plan, as clicks in the op graph do."""
    store.plan.edit(parse_plan(DRAWN, [op.name for op in CPU_GRAPH.ops], "attention"))


def test_run_sends_the_plan_and_shows_what_came_of_it(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    run_and_wait(qtbot, store, session)
    assert store.state.shown == store.state.runs[0].key
    draw(store)
    assert shows_plan(store.state)
    run_and_wait(qtbot, store, session)
    specs = [item.run.strategy.spec for item in store.state.runs[2:]]
    assert specs == ["eager", f"plan:{DRAWN}", "compile"]
    shown = store.state.shown_run
    assert shown is not None
    assert shown.run.strategy.plan == DRAWN
    assert not shows_plan(store.state)


def test_a_plan_drawn_while_another_is_measured_stays_in_sight(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    draw(store)
    later = "qk+scale|mask|softmax|dropout|pv"
    plan = parse_plan(later, [op.name for op in CPU_GRAPH.ops], "attention")

    def click_after_the_first() -> None:
        if len(store.state.runs) == 1:
            store.plan.edit(plan)

    store.shown_changed.connect(click_after_the_first)
    run_and_wait(qtbot, store, session)
    store.shown_changed.disconnect(click_after_the_first)
    assert len(store.state.runs) == 3
    assert store.state.planning
    assert store.state.plans["attention"].text == later
    run_and_wait(qtbot, store, session)
    assert f"plan:{later}" in [item.run.strategy.spec for item in store.state.runs]
    assert store.state.shown_run is not None
    assert store.state.shown_run.run.strategy.plan == later


def test_inductors_grouping_comes_from_a_run_that_shows_it(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    run_and_wait(qtbot, store, session)
    session.ask_inductor()
    assert not store.state.asking
    assert store.state.plans["attention"].text == MIDDLE


def test_inductor_is_asked_without_a_run_and_nothing_is_blocked(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    session.ask_inductor()
    assert store.state.asking
    assert store.state.worker.phase is WorkerPhase.READY
    assert run_blocker(store.state) is None
    qtbot.waitUntil(lambda: not store.state.asking, timeout=WAIT_MS)
    assert store.state.plans["attention"].text == GROUPING
    assert store.state.progress is None


def test_asking_can_be_cancelled(qtbot: QtBot, store: Store, session: Session) -> None:
    start(qtbot, store, session)
    use(store, "hang")
    session.ask_inductor()
    session.cancel()
    assert not store.state.asking
    assert store.state.notice is None
    use(store, "run")
    run_and_wait(qtbot, store, session)
    assert len(store.state.runs) == 2
    assert store.state.plans == {}


def test_a_worker_that_dies_over_it_is_told_and_asking_ends(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    use(store, "abort")
    session.ask_inductor()
    qtbot.waitUntil(lambda: store.state.notice is not None, timeout=WAIT_MS)
    assert not store.state.asking


def test_a_sweep_runs_every_plan_and_keeps_what_is_shown(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    start(qtbot, store, session)
    run_and_wait(qtbot, store, session)
    shown = store.state.shown
    store.sweep_requested.emit()
    assert store.state.worker.phase is WorkerPhase.BUSY
    qtbot.waitUntil(lambda: store.state.worker.phase is WorkerPhase.READY, timeout=WAIT_MS)
    swept = [item.run.strategy.spec for item in store.state.runs[2:]]
    # Three links between scale, mask, softmax and dropout; matmuls are kernels of their own.
    assert len(swept) == 8
    assert swept[0] == "plan:qk|scale|mask|softmax|dropout|pv"
    assert store.state.shown == shown
    assert len(peers(store.state)) <= 3
