"""A worker that fails in every way there is: one sentence, no process left, and the next works."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, NoReturn

import pytest

from explorer.model.errors import UsageError
from explorer.model.messages import Progress, Reply, RequestDone, RequestFailed, RunRequest
from explorer.worker import blocking
from explorer.worker.blocking import WorkerClient, WorkerEndedError
from explorer.worker.client import worker_command, worker_environment
from explorer.worker.protocol import encode
from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def our_tests_importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))


def fake(name: str = "FakeSession") -> tuple[str, str]:
    return "--session", f"tests.worker.fake_sessions:{name}"


@pytest.fixture
def client() -> Iterator[WorkerClient]:
    with WorkerClient(server_arguments=fake()) as made:
        yield made


def ask(client: WorkerClient, deed: str) -> list[Reply]:
    return list(client.request(RunRequest(chain=deed)))


def sentence(replies: list[Reply]) -> str:
    reply = replies[-1]
    assert isinstance(reply, Progress | RequestFailed)
    return reply.sentence


def assert_works(client: WorkerClient) -> None:
    assert sentence(ask(client, "work")) == f"pid {client.process_id}"


def test_a_signal_to_a_fork_ends_the_fork_alone(client: WorkerClient) -> None:
    assert_works(client)
    first = client.process_id
    assert sentence(ask(client, "end_a_fork")) == f"ended by {-signal.SIGTERM}"
    assert_works(client)
    assert client.process_id == first


def test_one_worker_serves_many_requests(client: WorkerClient) -> None:
    assert_works(client)
    first = client.process_id
    assert_works(client)
    assert client.process_id == first
    assert client.abilities is not None
    assert client.abilities.default_device == "cpu"


def test_the_worker_loads_no_torch_until_the_session_does(client: WorkerClient) -> None:
    modules = set(client.start().warnings)
    assert "explorer.worker.server" in modules
    assert not modules & {"torch", "triton", "numpy", "PySide6", "explorer.engine"}


def test_prints_stay_out_of_the_protocol(client: WorkerClient) -> None:
    assert [type(reply) for reply in ask(client, "print_everywhere")] == [Progress]
    assert_works(client)


def test_children_cannot_eat_requests(client: WorkerClient) -> None:
    assert sentence(ask(client, "read_stdin")) == "a child read 0 bytes; stdin holds 0"
    assert_works(client)


@pytest.mark.parametrize(
    ("deed", "words", "usage"),
    [
        ("raise_error", "KeyError: 'a key\\nand a second line' (fake_sessions.py, line ", False),
        ("refuse", "There is no such thing.", True),
        ("fail", "It did not work; try the other way.", False),
        ("exit_program", "tried to end the program", False),
        ("interrupt", "KeyboardInterrupt", False),
        ("run_out_of_memory", "choose a smaller size", False),
    ],
)
def test_an_exception_becomes_a_sentence_and_the_worker_lives(
    client: WorkerClient, deed: str, words: str, usage: bool
) -> None:
    client.start()
    first = client.process_id
    reply = ask(client, deed)[-1]
    assert isinstance(reply, RequestFailed)
    assert words in reply.sentence
    assert "\n" not in reply.sentence
    assert reply.usage == usage
    assert_works(client)
    assert client.process_id == first


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("abort", "crashed (aborted, SIGABRT)"),
        ("kill", "killed from outside (signal 9)"),
        ("leave", "(exit code 7), its last words being 'last words'"),
        ("leave_with_child", "(exit code 7)"),
        ("fork_and_leave", "(exit code 7)"),
        ("give_up", "gave up a device"),
        ("terminate", "told to end from outside (SIGTERM)"),
    ],
)
def test_an_end_becomes_a_sentence_and_the_next_run_works(
    client: WorkerClient, deed: str, words: str
) -> None:
    with pytest.raises(WorkerEndedError) as caught:
        ask(client, deed)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert client.process_id is None
    assert_works(client)


def test_a_kill_from_outside_while_idle_goes_unnoticed(client: WorkerClient) -> None:
    client.start()
    assert client.process_id is not None
    os.kill(client.process_id, signal.SIGKILL)
    os.waitid(os.P_PID, client.process_id, os.WEXITED | os.WNOWAIT)
    assert_works(client)


def test_a_lost_device_is_told_and_gets_a_new_worker(client: WorkerClient) -> None:
    client.start()
    first = client.process_id
    assert "a new worker is started" in sentence(ask(client, "lose_context"))
    assert_works(client)
    assert client.process_id != first


def test_a_session_can_ask_for_a_new_worker() -> None:
    with WorkerClient(server_arguments=fake("Poisoned")) as client:
        first = sentence(ask(client, "work"))
        assert sentence(ask(client, "work")) != first


def test_cancel_ends_a_compile_within_a_second(client: WorkerClient) -> None:
    replies = client.request(RunRequest(chain="compile_forever"))
    said = sentence([next(replies)])
    child = int(said.split()[-1])
    began_s = time.monotonic()
    client.cancel()
    assert time.monotonic() - began_s < 1
    # Killed children are handed to init, which may take a moment to bury them.
    assert state_of(child) in ("", "Z", "X")
    assert client.process_id is None
    assert_works(client)


def test_cancel_reaches_what_left_the_workers_group(client: WorkerClient) -> None:
    next(client.request(RunRequest(chain="compile_in_a_session_of_its_own")))
    client.cancel()
    # The fixture that looks for leftovers finds the child if it still runs.


def test_rubbish_between_the_messages_does_no_harm(client: WorkerClient) -> None:
    assert sentence(ask(client, "write_rubbish")) == "after the rubbish"
    assert_works(client)


def test_a_long_line_is_one_message_and_a_longer_one_none(
    client: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(sentence(ask(client, "say_much"))) == 3_000_000
    monkeypatch.setattr(blocking, "MOST_LINE_BYTES", 1 << 20)
    with pytest.raises(WorkerEndedError, match="a line of more than 1 MiB, which is no answer"):
        ask(client, "say_much")
    assert client.process_id is None
    assert_works(client)


def test_requests_wait_in_line(client: WorkerClient) -> None:
    client.start()
    for deed in ("raise_error", "work"):
        client._send(encode(RunRequest(chain=deed)))
    replies = client._replies()
    kinds = [type(next(replies)) for _ in range(5)]
    assert kinds == [Progress, RequestFailed, RequestDone, Progress, RequestDone]


def test_no_folder_for_temporary_files_is_told(
    client: WorkerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> NoReturn:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "TemporaryFile", fail)
    with pytest.raises(WorkerEndedError, match=r"No usable temporary directory .*; set TMPDIR to"):
        client.start()


def test_a_request_that_is_given_up_half_way_disturbs_no_other(client: WorkerClient) -> None:
    replies = client.request(RunRequest(chain="raise_error"))
    next(replies)
    assert_works(client)


def state_of(process_id: int) -> str:
    try:
        with open(f"/proc/{process_id}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def test_leaving_the_context_ends_a_busy_worker() -> None:
    with WorkerClient(server_arguments=fake()) as client:
        next(client.request(RunRequest(chain="compile_forever")))
    assert client.process_id is None


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGTERM"])
@pytest.mark.parametrize("deed", ["compile_forever", "talk_forever"])
def test_a_worker_whose_client_dies_goes_with_all_its_children(deed: str, signal_name: str) -> None:
    code = (
        "import sys; from explorer.worker.blocking import WorkerClient;"
        "from explorer.model.messages import RunRequest;"
        f"client = WorkerClient(server_arguments={fake()!r});"
        f"replies = client.request(RunRequest(chain={deed!r}));"
        "next(replies); print(client.process_id, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdin is not None
    with parent.stdout, parent.stdin:
        assert int(parent.stdout.readline()) > 0
        parent.send_signal(signal.Signals[signal_name])
        parent.wait()
    # The fixture that looks for leftovers finds any process that is still there.


@contextlib.contextmanager
def busy_worker() -> Iterator[subprocess.Popen[bytes]]:
    """A worker without a client, deep in a compile."""
    worker = subprocess.Popen(
        [*worker_command(), *fake()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=worker_environment(),
    )
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker.stdin, worker.stdout:
        worker.stdin.write(encode(RunRequest(chain="compile_forever")))
        worker.stdin.flush()
        assert b'"Ready"' in worker.stdout.readline()
        assert b"compiling" in worker.stdout.readline()
        yield worker
    # The fixture that looks for leftovers finds any child that is still there.


def test_the_end_of_stdin_ends_a_busy_worker() -> None:
    with busy_worker() as worker:
        assert worker.stdin is not None
        worker.stdin.close()
        assert worker.wait(timeout=5) == 0


@pytest.mark.parametrize(("name", "returncode"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_ends_a_busy_worker_with_its_children(name: str, returncode: int) -> None:
    with busy_worker() as worker:
        worker.send_signal(signal.Signals[name])
        assert worker.wait(timeout=5) == returncode


def test_a_worker_that_nobody_asks_anything_ends_well() -> None:
    done = subprocess.run(
        [*worker_command(), *fake()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        env=worker_environment(),
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_is_no_request_is_answered(client: WorkerClient) -> None:
    client.start()
    client._send(b"not a message\n")
    reply = next(client._replies())
    assert isinstance(reply, RequestFailed)
    assert "could not read the request" in reply.sentence


@pytest.mark.parametrize(
    ("session", "words"),
    [
        ("NoAbilities", "RuntimeError: no driver"),
        ("LacksPackage", "-m pip install left_out"),
        ("LacksRoom", "There is not enough memory to load torch (libtorch_cpu.so: failed to map"),
        ("Missing", "has no attribute 'Missing'"),
    ],
)
def test_a_session_that_cannot_start_says_why(session: str, words: str) -> None:
    with (
        WorkerClient(server_arguments=fake(session)) as client,
        pytest.raises(WorkerEndedError) as caught,
    ):
        client.start()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_prints_while_starting_do_no_harm() -> None:
    with WorkerClient(server_arguments=fake("PrintsWhileStarting")) as client:
        assert_works(client)


@pytest.mark.parametrize("end", ["\\n", "", "\\x00{"])
def test_a_python_that_prints_before_our_code_runs_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(f"print('hello', end='{end}', flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{CHECKOUT}")
    with WorkerClient(server_arguments=fake()) as client:
        assert_works(client)


def test_what_cannot_be_run_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no program")
    for python, words in (
        (tmp_path / "missing", "missing does not exist"),
        (text, "notes.txt is not an executable file"),
        (tmp_path, "is a folder without bin/python"),
    ):
        with pytest.raises(UsageError) as caught:
            WorkerClient(python)
        assert words in str(caught.value)
        assert "--worker-python" in str(caught.value)
