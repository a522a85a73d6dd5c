"""The worker as the window sees it: one QObject with typed signals round a QProcess."""

import signal
import time
from collections import deque
from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, QProcess, QProcessEnvironment, QTimer, Signal

from explorer.model.messages import Ready, Request, RequestDone, RequestFailed
from explorer.worker.client import exit_sentence, start_sentence
from explorer.worker.process_tree import descendants, send_signal
from explorer.worker.protocol import RESTART_EXIT, encode, read_reply

PUMP_INTERVAL_MS = 8
PUMP_BUDGET_S = 0.004
"""Reading in slices keeps a burst of replies from holding up paint and clicks."""
TERM_GRACE_MS = 500
KILL_GRACE_MS = 1000
STDERR_TAIL_BYTES = 16384


class WorkerProcess(QObject):
    """Runs one worker at a time and answers for its faults.

    Requests wait in line and are sent one by one. Whatever ends a worker, the rest of the line is
    dropped, one sentence is told, and the next request gets a fresh worker.

    Signals:
        starting: A process was started; it is not up yet.
        ready: Abilities of the worker that is up.
        reply: Any reply between a request and its end.
        busy_changed: Whether a request is under way or waits.
        failed: One sentence: the worker ended by itself, or could not start.
        cancelled: The request was given up on the user's word.
    """

    starting = Signal()
    ready = Signal(object)
    reply = Signal(object)
    busy_changed = Signal(bool)
    failed = Signal(str)
    cancelled = Signal()

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        parent: QObject | None = None,
    ) -> None:
        """Take what is needed to start a worker; nothing is started yet.

        Args:
            command: Program and arguments of the worker's stdio loop.
            environment: Its whole environment.
            parent: Owner.
        """
        super().__init__(parent)
        self._command = list(command)
        self._environment = dict(environment)
        self._process: QProcess | None = None
        self._group_id = 0
        self._is_ready = False
        self._is_ending = False
        self._is_closed = False
        self._start_again = False
        self._strays: list[int] = []
        self._waiting: deque[Request] = deque()
        self._current: Request | None = None
        self._is_answered = False
        self._refusal = ""
        self._was_busy = False
        self._buffer = bytearray()
        self._errors = bytearray()
        self._pump_timer = QTimer(self, interval=PUMP_INTERVAL_MS)
        self._pump_timer.timeout.connect(self._pump)
        self._kill_timer = QTimer(self, interval=TERM_GRACE_MS, singleShot=True)
        self._kill_timer.timeout.connect(self._kill)

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way or waits."""
        return self._current is not None or bool(self._waiting)

    @property
    def is_ready(self) -> bool:
        """Whether the worker is up."""
        return self._is_ready

    @property
    def is_running(self) -> bool:
        """Whether there is a process, up or not."""
        return self._process is not None and not self._is_ending

    @property
    def current(self) -> Request | None:
        """The request that replies belong to, also while its last reply is told."""
        return self._current

    @property
    def process_id(self) -> int | None:
        """Of the worker, None if there is none."""
        return self._group_id if self._process is not None else None

    def start(self) -> None:
        """Start a worker unless there is one."""
        if self._is_closed:
            return
        if self._process is not None:
            self._start_again = self._start_again or self._is_ending
            return
        self._start_again = False
        self._buffer.clear()
        self._errors.clear()
        self._refusal = ""
        process = QProcess(self)
        process.setProgram(self._command[0])
        process.setArguments(self._command[1:])
        environment = QProcessEnvironment()
        for name, value in self._environment.items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        parameters = QProcess.UnixProcessParameters()
        # A session of its own: one signal reaches the worker and the compilers it started.
        parameters.flags = QProcess.UnixProcessFlag.CreateNewSession
        process.setUnixProcessParameters(parameters)
        process.readyReadStandardOutput.connect(self._pump_timer.start)
        process.readyReadStandardError.connect(self._read_errors)
        process.errorOccurred.connect(self._on_error)
        process.finished.connect(self._on_finished)
        self._process = process
        self.starting.emit()
        process.start()
        self._group_id = process.processId()

    def send(self, request: Request) -> None:
        """Carry out a request after those that wait; starts a worker if there is none."""
        self._waiting.append(request)
        self.start()
        self._send_next()
        self._tell_busy()

    def cancel(self) -> None:
        """Give up all requests: end the worker with its children and start a fresh one."""
        if not self.is_busy:
            return
        self._drop_requests()
        self._start_again = True
        self._end()
        self.cancelled.emit()
        self._tell_busy()

    def close(self) -> None:
        """End the worker with its children and wait for it, at most about two seconds."""
        self._is_closed = True
        self._drop_requests()
        self._start_again = False
        process = self._process
        if process is not None:
            self._end()
            process.waitForFinished(TERM_GRACE_MS)
            if self._process is not None:
                self._kill()
                process.waitForFinished(KILL_GRACE_MS)
        self._kill_timer.stop()
        self._pump_timer.stop()

    def _send_next(self) -> None:
        if self._process is None or not self._is_ready or self._current is not None:
            return
        if self._waiting:
            self._current = self._waiting.popleft()
            self._is_answered = False
            self._process.write(encode(self._current))

    def _tell_busy(self) -> None:
        if self.is_busy != self._was_busy:
            self._was_busy = self.is_busy
            self.busy_changed.emit(self._was_busy)

    def _drop_requests(self) -> None:
        self._waiting.clear()
        self._current = None

    # Reading.

    def _pump(self) -> None:
        if self._process is not None:
            self._buffer += self._process.readAllStandardOutput().data()
        deadline_s = time.perf_counter() + PUMP_BUDGET_S
        while time.perf_counter() < deadline_s:
            end = self._buffer.find(b"\n")
            if end < 0:
                self._pump_timer.stop()
                return
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._take_line(line)

    def _take_line(self, line: bytes) -> None:
        reply = read_reply(line)
        if reply is None:
            # Not for us: kept with the errors, where a person would look for it.
            self._keep_errors(line + b"\n")
            return
        if self._is_ending:
            return
        if isinstance(reply, Ready):
            self._is_ready = True
            self.ready.emit(reply.abilities)
        elif not self._is_ready and isinstance(reply, RequestFailed):
            self._refusal = reply.sentence
        else:
            self._is_answered = True
            self.reply.emit(reply)
            if isinstance(reply, RequestDone):
                self._current = None
        self._send_next()
        self._tell_busy()

    def _read_errors(self) -> None:
        if self._process is not None:
            self._keep_errors(bytes(self._process.readAllStandardError().data()))

    def _keep_errors(self, data: bytes) -> None:
        self._errors += data
        del self._errors[:-STDERR_TAIL_BYTES]

    # Ending.

    def _end(self) -> None:
        if self._process is None or self._is_ending:
            return
        self._is_ending = True
        self._is_ready = False
        self._strays = descendants(self._group_id)
        send_signal(self._group_id, self._strays, signal.SIGTERM)
        self._kill_timer.start()

    def _kill(self) -> None:
        # Also after the worker itself is gone: a stuck compiler may have ignored the first signal.
        if self._group_id:
            send_signal(self._group_id, self._strays, signal.SIGKILL)

    def _on_error(self, error: QProcess.ProcessError) -> None:
        if error is not QProcess.ProcessError.FailedToStart or self._process is None:
            return
        reason = self._process.errorString()
        self._forget_process()
        self._drop_requests()
        self.failed.emit(
            f"The worker could not be started with {self._command[0]} ({reason}); "
            "name a Python that has torch with --worker-python."
        )
        self._tell_busy()

    def _on_finished(self, code: int, status: QProcess.ExitStatus) -> None:
        if self._process is None:
            return
        was_ending, was_ready = self._is_ending, self._is_ready
        while not was_ending and (b"\n" in self._buffer or self._process.bytesAvailable()):
            self._pump()
        self._read_errors()
        if not was_ending:
            # It may have left compilers behind that outlive it in its group.
            send_signal(self._group_id, [], signal.SIGKILL)
        else:
            self._kill()
        self._forget_process()
        if was_ending:
            if self._start_again:
                self.start()
            return
        is_cut_short = self._current is not None and self._is_answered
        if code == RESTART_EXIT and was_ready and not is_cut_short:
            self._begin_again()
            return
        self._drop_requests()
        # After a crash Qt gives the signal's number; as an exit code that would be its negative.
        returncode = -code if status is QProcess.ExitStatus.CrashExit else code
        self.failed.emit(self._sentence(returncode, was_ready))
        self._tell_busy()
        # One that died while starting would die again: the next request tries anew.
        if was_ready:
            self.start()

    def _begin_again(self) -> None:
        """The worker gave itself up between two requests: a fresh one takes over what waits."""
        if self._current is not None:
            self._waiting.appendleft(self._current)
            self._current = None
        self.start()

    def _sentence(self, returncode: int, was_ready: bool) -> str:
        if self._refusal:
            return self._refusal
        tail = self._errors.decode("utf-8", errors="replace")
        if was_ready:
            return exit_sentence(returncode, tail)
        return start_sentence(self._command[0], returncode, tail)

    def _forget_process(self) -> None:
        if self._process is not None:
            self._process.deleteLater()
        self._process = None
        self._is_ready = False
        self._is_ending = False
        self._pump_timer.stop()
        # It knows the group only by number, and the next worker has another one.
        self._kill_timer.stop()
