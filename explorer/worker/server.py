"""The worker's loop: requests in on stdin, replies out on stdout, one request at a time.

It must never leave a process behind and never let a stray print into the protocol:

- The pipes are moved to descriptors that no child inherits, before anything else is imported;
  what libraries and compilers print on stdout ends up on stderr.
- The worker leads a process group of its own. When its parent goes (stdin ends) or a signal comes,
  the whole group is ended at once, from a thread, since the main one may be deep in a compile.
- Whatever a request raises becomes one sentence, and the worker lives on. Only where the device's
  context is lost does it end, after answering, with the exit code that means "start another".
"""

import argparse
import ctypes
import faulthandler
import functools
import importlib
import io
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import BinaryIO, NoReturn, Protocol

from explorer.model.device import Abilities
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.messages import (
    Ready,
    Reply,
    Request,
    RequestDone,
    RequestFailed,
)
from explorer.worker.process_tree import CAN_LIST, kill_all_but_this
from explorer.worker.protocol import (
    CANNOT_START_EXIT,
    END_SIGNALS,
    RESTART_EXIT,
    ProtocolError,
    decode_request,
    encode,
    signal_exit,
)

DEFAULT_SESSION = "explorer.engine.session:Session"
PR_SET_PDEATHSIG = 1
ORPHANED_EXIT = 1
# What the loader says where memory, or the limit that ulimit sets on it, is too small.
NO_ROOM = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
# What torch raises once a kernel has faulted: no call on that device works in this process again.
LOST_CONTEXT = ("AcceleratorError", "device-side assert", "illegal memory access", "CUDA error")

Emit = Callable[[Reply], None]
# Ours to call also while code that is run finds another in its place.
_end_process = os._exit
_logger = logging.getLogger("explorer.worker")


class Session(Protocol):
    """What carries requests out; ``explorer.engine.session.Session`` is the one that measures.

    A session may also have an attribute ``needs_restart``: True once the process is of no more
    use (a lost CUDA context), even though the request itself was answered.
    """

    def abilities(self) -> Abilities:
        """What this worker can do; asked once, at the start."""

    def handle(self, request: Request, emit: Emit) -> None:
        """Carry one request out and emit its replies, ``RequestDone`` apart."""


class _LastingStream(io.TextIOWrapper):
    """Standard output that stays open though code that is run closes it."""

    def __init__(self, descriptor: int) -> None:
        file = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
        super().__init__(file, "utf-8", "backslashreplace", line_buffering=True)

    def close(self) -> None:
        """Write what is left, and stay open."""
        self.flush()


class Channel:
    """The worker's end of the pipes, out of reach of prints and of child processes."""

    def __init__(self, incoming: BinaryIO, outgoing: int) -> None:
        self.incoming = incoming
        self._outgoing = outgoing
        self._lock = threading.Lock()

    @classmethod
    def claim(cls) -> "Channel":
        """Take stdin and stdout away from everyone else: stdin is now empty, stdout is stderr."""
        sys.stdout.flush()
        incoming, outgoing = os.dup(0), os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        sys.stdout, sys.stderr = _LastingStream(1), _LastingStream(2)
        return cls(os.fdopen(incoming, "rb"), outgoing)

    def emit(self, reply: Reply) -> None:
        """Write a reply; when nobody is left to read it, end this worker and its children."""
        rest = memoryview(encode(reply))
        with self._lock:
            try:
                while rest:
                    rest = rest[os.write(self._outgoing, rest) :]
            except BrokenPipeError:
                leave_unwatched(ORPHANED_EXIT)


def lead_group() -> None:
    """Become the leader of a process group, so that ending it ends nobody else.

    Started by hand from a shell with job control, it leads one already.
    """
    if os.getpgrp() != os.getpid():
        os.setsid()


def end_with_parent() -> None:
    """Let SIGTERM, SIGINT and, on Linux, the parent's death end the group at once.

    A Python handler would wait for the main thread. The wake-up descriptor is written from the C
    handler, and the thread that reads it acts. SIGTERM rather than SIGKILL on the parent's death,
    because the children have to go too.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in END_SIGNALS:
        signal.signal(number, lambda number, _frame: leave_unwatched(signal_exit(number)))
    # A fork shares the pipe: a signal that ends it, as pools do, would end this worker.
    os.register_at_fork(after_in_child=_listen_to_nobody)
    threading.Thread(
        target=_end_on_signal, args=(reading,), name="worker-signals", daemon=True
    ).start()
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:
            # It died before it could be watched.
            leave_unwatched(ORPHANED_EXIT)


def _listen_to_nobody() -> None:
    signal.set_wakeup_fd(-1)
    for number in END_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _end_on_signal(reading: int) -> None:
    while number := os.read(reading, 1):
        if number[0] in END_SIGNALS:
            leave_unwatched(signal_exit(number[0]))


def read_requests(incoming: BinaryIO, requests: "queue.Queue[bytes]") -> None:
    """Queue each line that comes in; the end of the stream ends the worker, busy or not."""
    for line in incoming:
        requests.put(line)
    leave_unwatched(0)


def load_session(name: str) -> Session:
    """Import and make the session.

    Args:
        name: ``module:Class``.

    Raises:
        ExplorerError: It cannot be imported here; the sentence names what is missing.
    """
    module, _, attribute = name.partition(":")
    try:
        session: Session = getattr(importlib.import_module(module), attribute)()
    except ModuleNotFoundError as error:
        _logger.exception("the session cannot be imported")
        package = (error.name or "").partition(".")[0]
        if package == "explorer":
            raise ExplorerError(
                f"This installation of Kernel Explorer is incomplete, {error.name} is missing; "
                "install it again."
            ) from error
        raise ExplorerError(
            f"{sys.executable} has no module {error.name}: install it there with "
            f"'{sys.executable} -m pip install {package}', or name another Python with "
            "--worker-python."
        ) from error
    except (ImportError, OSError) as error:
        _logger.exception("the session cannot be imported")
        if any(sign in str(error) for sign in NO_ROOM):
            raise ExplorerError(
                f"There is not enough memory to load torch ({first_line(error)}); close other "
                "programs, or raise the limit."
            ) from error
        raise ExplorerError(
            f"torch cannot be loaded by {sys.executable} ({first_line(error)}); reinstall it, or "
            "name another Python with --worker-python."
        ) from error
    return session


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its kind where it has none."""
    lines = str(error).strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else type(error).__name__


def sentence_for(error: BaseException) -> str:
    """One sentence for whatever a request raised."""
    if isinstance(error, ExplorerError):
        return str(error)
    kind = type(error).__name__
    if isinstance(error, MemoryError) or kind == "OutOfMemoryError":
        return f"The memory did not suffice ({first_line(error)}); choose a smaller size."
    if isinstance(error, SystemExit):
        return "The code that was run tried to end the program (sys.exit); it was not let."
    if isinstance(error, KeyboardInterrupt):
        return (
            f"The code that was run raised KeyboardInterrupt{_place(error)}; have it raise an "
            "Exception, which is told with its line."
        )
    if is_context_lost(error):
        return (
            f"A kernel faulted on the device ({first_line(error)}); a new worker is started for "
            "the next run."
        )
    return f"The request failed: {kind}: {first_line(error)}{_place(error)}."


def is_context_lost(error: BaseException) -> bool:
    """Whether the device is lost to this process."""
    text = f"{type(error).__name__}: {error}"
    return type(error).__name__ != "OutOfMemoryError" and any(sign in text for sign in LOST_CONTEXT)


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({os.path.basename(trace.tb_frame.f_code.co_filename)}, line {trace.tb_lineno})"


def carry_out(session: Session, line: bytes, emit: Emit) -> bool:
    """Carry one request out and answer it to the end, whatever happens inside.

    Returns:
        Whether this worker can take another.
    """
    lost = False
    try:
        session.handle(decode_request(line), emit)
    except ProtocolError as error:
        emit(RequestFailed(sentence=f"The worker could not read the request: {error}."))
    except ExplorerError as error:
        emit(RequestFailed(sentence=str(error), usage=isinstance(error, UsageError)))
    except BaseException as error:
        # The outermost edge: a user's chain may raise anything, and the worker has to live on.
        _logger.exception("a request failed")
        lost = is_context_lost(error)
        emit(RequestFailed(sentence=sentence_for(error)))
    emit(RequestDone())
    return not (lost or getattr(session, "needs_restart", False))


def start(name: str, emit: Emit) -> Session | None:
    """Make the session and say what it can do, or say why not."""
    try:
        session = load_session(name)
        emit(Ready(abilities=session.abilities()))
    except BaseException as error:
        _logger.exception("the worker cannot start")
        emit(RequestFailed(sentence=sentence_for(error)))
        return None
    return session


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stdin ends; returns the exit code where the worker ends itself."""
    parser = argparse.ArgumentParser(prog="kernel-explorer worker", description=__doc__)
    parser.add_argument("--session", default=DEFAULT_SESSION, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    channel = Channel.claim()
    # A crash in C code then says where it was, for the tail of stderr that the client keeps.
    faulthandler.enable()
    logging.basicConfig(stream=sys.stderr, format="%(name)s: %(message)s")
    lead_group()
    end_with_parent()
    requests: queue.Queue[bytes] = queue.Queue()
    threading.Thread(
        target=functools.partial(read_requests, channel.incoming, requests),
        name="worker-requests",
        daemon=True,
    ).start()
    session = start(options.session, channel.emit)
    if session is None:
        return leave(CANNOT_START_EXIT)
    while carry_out(session, requests.get(), channel.emit):
        pass
    return leave(RESTART_EXIT)


def leave(code: int) -> NoReturn:
    """End with that exit code, without waiting for threads or for a broken device's clean-up.

    The children go too. Where they cannot be listed, the client ends the group that they are in.
    """
    kill_all_but_this()
    _end_process(code)


def leave_unwatched(code: int) -> NoReturn:
    """End as :func:`leave` does, with no client there to see to the children."""
    if not CAN_LIST and os.getpgrp() == os.getpid():
        # A signal to the group is then the one way to reach them, and it reaches us as well.
        os.killpg(0, signal.SIGKILL)
    leave(code)
