"""The command line's client: starts a worker, asks, and waits for the answers.

No Qt and no torch. Linux and macOS: a worker leads a process group, so that ending it ends the
compilers it started.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

from explorer.model.device import Abilities
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.messages import Ready, Reply, Request, RequestDone, RequestFailed
from explorer.worker.client import (
    DEBUG_VARIABLE,
    exit_sentence,
    start_sentence,
    worker_command,
    worker_environment,
)
from explorer.worker.process_tree import descendants, send_signal
from explorer.worker.protocol import RESTART_EXIT, encode, read_reply

TERM_GRACE_S = 0.5
KILL_GRACE_S = 5.0
POLL_S = 0.1
CHUNK_BYTES = 1 << 16
MOST_LINE_BYTES = 256 * 1024 * 1024
"""A longer line is no message: a run is some tens of kilobytes."""
STDERR_TAIL_BYTES = 16 * 1024


class WorkerEndedError(ExplorerError):
    """The worker ended before it had answered; the sentence says why and what to do."""


class WorkerClient:
    """One worker at a time, started when first needed and again after it ended.

    A context manager: leaving it ends the worker with all its children. To be used from the
    thread that made it, and that thread has to live on: on Linux the worker is told to end when
    the thread that started it does.

    Attributes:
        abilities: What the worker said of itself; None before it is up.
    """

    def __init__(
        self,
        python: Path | None = None,
        *,
        server_arguments: Sequence[str] = (),
    ) -> None:
        """Take what is needed to start a worker; nothing is started yet.

        Args:
            python: The interpreter with torch, None for the default.
            server_arguments: More arguments of ``explorer.worker.server``.

        Raises:
            UsageError: ``python`` cannot be run.
        """
        self._command = [*worker_command(python), *server_arguments]
        self._is_named = python is not None
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._selector: selectors.BaseSelector | None = None
        self._buffer = bytearray()
        self._searched = 0
        self._at_end = False
        self._is_busy = False
        self.abilities: Abilities | None = None

    def __enter__(self) -> "WorkerClient":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def process_id(self) -> int | None:
        """Of the worker, None if there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> Abilities:
        """Start a worker unless one is up, and wait until it is ready.

        Raises:
            UsageError: The Python cannot be a worker: it lacks torch, or is too old.
            WorkerEndedError: The worker ended before it was ready.
        """
        if self._process is not None and self._has_exited():
            self._end(signal.SIGKILL)
        if self._process is not None and self.abilities is not None:
            return self.abilities
        self._spawn()
        for reply in self._replies():
            if isinstance(reply, Ready):
                self.abilities = reply.abilities
                return reply.abilities
            if isinstance(reply, RequestFailed):
                self.cancel()
                kind = UsageError if reply.usage else WorkerEndedError
                raise kind(reply.sentence)
        code, tail = self._bury()
        # A program that was named and is no Python with torch was the wrong one to name.
        error = UsageError if self._is_named and code >= 0 else WorkerEndedError
        raise error(start_sentence(self._command[0], code, tail))

    def request(self, request: Request) -> Iterator[Reply]:
        """Send a request and give its replies as they come, ``RequestDone`` left out.

        Leaving the iterator early gives the request up: the next one gets a new worker.

        Raises:
            UsageError: As :meth:`start`.
            WorkerEndedError: The worker ended before it had answered.
        """
        if self._is_busy:
            self.cancel()
        is_answered = False
        for is_last in (False, True):
            self.start()
            self._is_busy = True
            self._send(encode(request))
            for reply in self._replies():
                if isinstance(reply, RequestDone):
                    self._is_busy = False
                    return
                is_answered = True
                yield reply
            code, tail = self._bury()
            # It had given itself up after the request before, and this one crossed its exit.
            if code != RESTART_EXIT or is_answered or is_last:
                raise WorkerEndedError(exit_sentence(code, tail))

    def cancel(self) -> None:
        """End the worker and all it started, within a second; the next request gets a new one."""
        if self._process is not None:
            self._end(signal.SIGTERM)

    def close(self) -> None:
        """End the worker; the same as :meth:`cancel`, and harmless when there is none."""
        self.cancel()

    def _spawn(self) -> None:
        try:
            # A file rather than a pipe: nobody has to read it for the worker to go on.
            self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by _release
        except OSError as error:
            raise WorkerEndedError(
                "The worker needs a folder for temporary files, and none can be written "
                f"({error.strerror or error}); set TMPDIR to one that can."
            ) from error
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get(DEBUG_VARIABLE) else self._errors,
                env=worker_environment(),
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            self._release()
            reason = error.strerror or str(error)
            raise UsageError(
                f"{self._command[0]} cannot be run ({reason}); name a Python interpreter with "
                "--worker-python."
            ) from error
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        self._selector.register(self._process.stdout, selectors.EVENT_READ)

    def _send(self, line: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        # If it has just ended, reading says so, and why.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)

    def _replies(self) -> Iterator[Reply]:
        """Every message until the worker ends; what is no message is passed over."""
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end < 0:
                self._searched = len(self._buffer)
                if self._searched > MOST_LINE_BYTES:
                    self.cancel()
                    raise WorkerEndedError(
                        f"The worker wrote a line of more than {MOST_LINE_BYTES >> 20} MiB, which "
                        "is no answer; name another Python with --worker-python."
                    )
                if not self._fill():
                    return
                continue
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._searched = 0
            # Others are printed by a user's Python before our code takes its stdout away.
            reply = read_reply(line)
            if reply is not None:
                yield reply

    def _fill(self) -> bool:
        """Wait for more of the worker's answers; False once it has ended and all is read."""
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._selector is not None
        while not self._at_end:
            # A child that outlives the worker may hold the pipe open, so its end alone won't do.
            exited = self._has_exited()
            if not self._selector.select(timeout=0 if exited else POLL_S):
                if exited:
                    return False
                continue
            chunk = os.read(self._process.stdout.fileno(), CHUNK_BYTES)
            self._buffer += chunk
            if chunk:
                return True
            self._at_end = True
        return False

    def _has_exited(self) -> bool:
        """Whether the worker has ended; it stays a zombie, which keeps its group's number ours."""
        assert self._process is not None
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, options) is not None

    def _bury(self) -> tuple[int, str]:
        """Take leave of a worker that ended by itself: its exit code and its last words."""
        assert self._process is not None
        assert self._errors is not None
        self._wait(KILL_GRACE_S)
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - STDERR_TAIL_BYTES))
        tail = self._errors.read().decode("utf-8", errors="replace")
        return self._end(signal.SIGKILL), tail

    def _end(self, first: signal.Signals) -> int:
        process = self._process
        assert process is not None
        others = descendants(process.pid)
        send_signal(process.pid, others, first)
        if first is not signal.SIGKILL:
            self._wait(TERM_GRACE_S)
            # Also when the worker is gone: what it started may have ignored the first signal.
            send_signal(process.pid, others, signal.SIGKILL)
        returncode = process.wait(KILL_GRACE_S)
        self._release()
        return returncode

    def _wait(self, seconds: float) -> None:
        deadline_s = time.monotonic() + seconds
        while not self._has_exited() and time.monotonic() < deadline_s:
            time.sleep(0.01)

    def _release(self) -> None:
        if self._selector is not None:
            self._selector.close()
        if self._process is not None:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._errors is not None:
            self._errors.close()
        self._process = self._selector = self._errors = self.abilities = None
        self._buffer.clear()
        self._searched = 0
        self._at_end = self._is_busy = False
