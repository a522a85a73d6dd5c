"""Whatever happens to a worker, the window hears one sentence and the next request works."""

import os
import signal
import time
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.messages import (
    DoctorRequest,
    Progress,
    Reply,
    RequestDone,
    RequestFailed,
    RunFinished,
    RunRequest,
)
from explorer.ui.worker_process import WorkerProcess
from tests.ui.conftest import MakeWorker, fake_environment

WAIT_MS = 10_000


def is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def run_request(chain: str = "run") -> RunRequest:
    return RunRequest(chain=chain, strategies=("eager",))


class Replies:
    """Everything a worker replied, in order."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.all: list[Reply] = []
        worker.reply.connect(self.all.append)

    def of(self, kind: type[Reply]) -> list[Reply]:
        return [reply for reply in self.all if isinstance(reply, kind)]

    def clear(self) -> None:
        self.all.clear()


def carry_out(qtbot: QtBot, worker: WorkerProcess, chain: str = "run") -> list[Reply]:
    """Send a run and wait for its end."""
    replies = Replies(worker)
    worker.send(run_request(chain))
    qtbot.waitUntil(lambda: bool(replies.of(RequestDone)), timeout=WAIT_MS)
    return replies.all


def grandchild_of(qtbot: QtBot, replies: Replies) -> int:
    """Wait until the worker names the process it started."""

    def named() -> list[int]:
        return [
            int(reply.sentence.split()[1])
            for reply in replies.of(Progress)
            if isinstance(reply, Progress) and reply.sentence.startswith("grandchild")
        ]

    qtbot.waitUntil(lambda: bool(named()), timeout=WAIT_MS)
    return named()[0]


def test_starts_and_answers(qtbot: QtBot, make_worker: MakeWorker) -> None:
    worker = make_worker()
    with qtbot.waitSignal(worker.ready, timeout=WAIT_MS) as ready:
        worker.start()
    assert ready.args is not None
    assert ready.args[0].default_device == "cpu"
    kinds = [type(reply) for reply in carry_out(qtbot, worker)]
    assert kinds == [Progress, RunFinished, RequestDone]
    assert not worker.is_busy


def test_a_request_starts_the_worker_and_requests_keep_their_order(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    worker = make_worker()
    replies = Replies(worker)
    worker.send(run_request("refused"))
    worker.send(run_request())
    assert worker.is_busy
    qtbot.waitUntil(lambda: len(replies.of(RequestDone)) == 2, timeout=WAIT_MS)
    kinds = [type(reply) for reply in replies.all if not isinstance(reply, Progress)]
    assert kinds == [RequestFailed, RunFinished, RequestDone, RunFinished, RequestDone]
    assert not worker.is_busy


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("kill", "signal 9"),
        ("abort", "aborted"),
        ("exception", "the chain went wrong"),
        ("exit", "exit code 0"),
    ],
)
def test_after_a_fault_one_sentence_and_the_next_run_works(
    qtbot: QtBot, make_worker: MakeWorker, fault: str, words: str
) -> None:
    worker = make_worker()
    sentences: list[str] = []
    worker.failed.connect(sentences.append)
    with qtbot.waitSignal(worker.failed, timeout=WAIT_MS):
        worker.send(run_request(fault))
    assert len(sentences) == 1
    assert words in sentences[0]
    assert "run again" in sentences[0]
    assert not worker.is_busy
    assert any(isinstance(reply, RunFinished) for reply in carry_out(qtbot, worker))
    assert len(sentences) == 1


def test_killed_from_outside_while_idle(qtbot: QtBot, make_worker: MakeWorker) -> None:
    worker = make_worker()
    with qtbot.waitSignal(worker.ready, timeout=WAIT_MS):
        worker.start()
    assert worker.process_id is not None
    # A warm worker follows at once, so that the next run need not wait for the import of torch.
    with qtbot.waitSignals([worker.failed, worker.ready], timeout=WAIT_MS, order="strict"):
        os.kill(worker.process_id, signal.SIGKILL)


def test_cancel_of_a_hang_is_quick_and_leaves_no_child(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    worker = make_worker()
    replies = Replies(worker)
    worker.send(run_request("hang"))
    grandchild = grandchild_of(qtbot, replies)
    hung = worker.process_id
    assert hung is not None
    before_s = time.monotonic()
    with qtbot.assertNotEmitted(worker.failed), qtbot.waitSignal(worker.cancelled):
        worker.cancel()
    assert not worker.is_busy
    qtbot.waitUntil(lambda: not is_alive(hung) and not is_alive(grandchild), timeout=WAIT_MS)
    assert time.monotonic() - before_s < 1.0
    assert any(isinstance(reply, RunFinished) for reply in carry_out(qtbot, worker))


def test_cancel_without_a_request_does_nothing(qtbot: QtBot, make_worker: MakeWorker) -> None:
    worker = make_worker()
    with qtbot.waitSignal(worker.ready, timeout=WAIT_MS):
        worker.start()
    process_id = worker.process_id
    with qtbot.assertNotEmitted(worker.cancelled):
        worker.cancel()
    assert worker.process_id == process_id


def test_a_request_made_while_the_cancelled_worker_dies_is_carried_out(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    worker = make_worker()
    replies = Replies(worker)
    worker.send(run_request("hang"))
    grandchild_of(qtbot, replies)
    worker.cancel()
    assert any(isinstance(reply, RunFinished) for reply in carry_out(qtbot, worker))


def test_a_worker_that_dies_takes_what_it_started_along(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    worker = make_worker()
    replies = Replies(worker)
    with qtbot.waitSignal(worker.failed, timeout=WAIT_MS):
        worker.send(run_request("orphan"))
    grandchild = grandchild_of(qtbot, replies)
    qtbot.waitUntil(lambda: not is_alive(grandchild), timeout=WAIT_MS)


@pytest.mark.parametrize("way", ["noise", "binary"])
def test_what_a_library_prints_is_passed_over(
    qtbot: QtBot, make_worker: MakeWorker, way: str
) -> None:
    worker = make_worker()
    with qtbot.assertNotEmitted(worker.failed):
        replies = carry_out(qtbot, worker, way)
    assert [type(reply) for reply in replies] == [Progress, RunFinished, RequestDone]


def test_close_while_busy_ends_everything_in_time(qtbot: QtBot, make_worker: MakeWorker) -> None:
    worker = make_worker()
    replies = Replies(worker)
    worker.send(run_request("hang"))
    grandchild = grandchild_of(qtbot, replies)
    hung = worker.process_id
    assert hung is not None
    before_s = time.monotonic()
    with qtbot.assertNotEmitted(worker.failed):
        worker.close()
    assert time.monotonic() - before_s < 3.0
    assert not is_alive(hung)
    qtbot.waitUntil(lambda: not is_alive(grandchild), timeout=1000)
    assert worker.process_id is None


def test_close_while_starting(qtbot: QtBot, make_worker: MakeWorker) -> None:
    worker = make_worker("never-ready")
    worker.send(DoctorRequest())
    process_id = worker.process_id
    assert process_id is not None
    worker.close()
    assert not is_alive(process_id)
    worker.start()
    assert worker.process_id is None


def test_a_worker_that_cannot_start_says_why_and_is_not_started_again(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    worker = make_worker("no-torch")
    with qtbot.waitSignal(worker.failed, timeout=WAIT_MS) as failed:
        worker.start()
    assert failed.args == ["There is no torch here; install torch."]
    assert worker.process_id is None


def test_a_worker_that_dies_before_it_is_up(qtbot: QtBot, make_worker: MakeWorker) -> None:
    worker = make_worker("dies")
    with qtbot.waitSignal(worker.failed, timeout=WAIT_MS) as failed:
        worker.send(run_request())
    assert failed.args is not None
    assert "no worker today" in failed.args[0]
    assert "--worker-python" in failed.args[0]
    assert not worker.is_busy


def test_a_program_that_is_not_there(qtbot: QtBot) -> None:
    worker = WorkerProcess(["/nowhere/python"], fake_environment())
    with qtbot.waitSignal(worker.failed, timeout=WAIT_MS) as failed:
        worker.send(run_request())
    assert failed.args is not None
    assert "/nowhere/python" in failed.args[0]
    assert "--worker-python" in failed.args[0]
    assert not worker.is_busy


def test_a_worker_that_gave_itself_up_is_replaced_without_a_word(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    worker = make_worker()
    replies = Replies(worker)
    with qtbot.assertNotEmitted(worker.failed):
        worker.send(run_request("lost"))
        worker.send(run_request())
        qtbot.waitUntil(lambda: len(replies.of(RequestDone)) == 2, timeout=WAIT_MS)
    assert len(replies.of(RunFinished)) == 2


def test_busy_is_told_once_each_way(qtbot: QtBot, make_worker: MakeWorker) -> None:
    worker = make_worker()
    told: list[bool] = []
    worker.busy_changed.connect(told.append)
    carry_out(qtbot, worker)
    qtbot.waitUntil(lambda: told == [True, False], timeout=WAIT_MS)
