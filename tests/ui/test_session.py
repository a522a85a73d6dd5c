"""Runs through a real worker process: requests out, state in, faults as one sentence."""

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer.ui.session import Session
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from tests.ui.conftest import MakeWorker

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
