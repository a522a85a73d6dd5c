"""JSON lines between the window and a worker: pure functions, no process, no Qt, no torch.

A line is ``{"type": NAME, "body": {...}}``, one record a line; NAME is the record's class.
The worker writes ``Ready`` once, then for each request any number of replies and ``RequestDone``.
A worker that cannot start writes ``RequestFailed`` in the place of ``Ready`` and ends.
Before the first message other lines may come: a user's Python may print while it starts.
"""

import contextlib
import json
import signal
from typing import Any, get_args

from explorer.model.codec import DecodeError, from_plain, to_plain
from explorer.model.messages import DoctorReport, Ready, Reply, Request, RequestFailed, RunFinished

CANNOT_START_EXIT = 3
"""Exit code after a ``RequestFailed`` in the place of ``Ready``."""

RESTART_EXIT = 75
"""Exit code of a worker that answered to the end and then gave itself up: its device's context is
lost, and the next request needs a new worker."""

END_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""What tells a worker to end, with the exit code that a shell would give it."""

MESSAGE_START = b'{"type":'
MOST_QUOTED = 80
_AWAITED = (Ready, RunFinished, DoctorReport)


class ProtocolError(ValueError):
    """A line is not a message; the text says what is wrong with it."""


class UnreadableError(ProtocolError):
    """A line is a message of a kind that is known, and what it holds does not fit.

    Attributes:
        kind: The message's class.
    """

    def __init__(self, kind: type[Any], reason: str) -> None:
        super().__init__(f"{kind.__name__}: {reason}")
        self.kind = kind


def signal_exit(number: int) -> int:
    """The exit code of a worker that a signal told to end."""
    return 128 + number


def encode(message: Request | Reply) -> bytes:
    """One line of JSON in ASCII, newline included."""
    body = {"type": type(message).__name__, "body": to_plain(message)}
    return json.dumps(body, separators=(",", ":")).encode() + b"\n"


def decode_request(line: bytes) -> Request:
    """Read what the window asks.

    Raises:
        ProtocolError: The line is no request.
    """
    request: Request = _decode(line, get_args(Request))
    return request


def decode_reply(line: bytes) -> Reply:
    """Read what the worker answers.

    Raises:
        ProtocolError: The line is no reply.
    """
    reply: Reply = _decode(line, get_args(Reply))
    return reply


def read_reply(line: bytes) -> Reply | None:
    """Read a line of a worker's output, where other things may have been printed.

    Returns:
        The reply; None if there is none in the line. One that somebody waits for and that cannot
        be read is told as a failure: passed over, it would leave a run that never comes.
    """
    # A library that prints without an end of line puts its text before a message.
    start = line.find(MESSAGE_START)
    if start < 0:
        return None
    try:
        return decode_reply(line[start:])
    except ProtocolError as error:
        if isinstance(error, UnreadableError) and error.kind in _AWAITED:
            return RequestFailed(sentence=f"What the worker answered cannot be read: {error}.")
        return None


def _decode(line: bytes, records: tuple[type[Any], ...]) -> Any:
    data: Any = None
    # Nested deeper than Python can follow, it is no message of ours either.
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(line)
    if data is None:
        raise ProtocolError(f"not a message: {line[:MOST_QUOTED]!r}")
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        raise ProtocolError(f"a message without a type: {line[:MOST_QUOTED]!r}")
    for record in records:
        if record.__name__ == data["type"]:
            try:
                return from_plain(record, data.get("body"))
            except DecodeError as error:
                raise UnreadableError(record, str(error)) from None
    raise ProtocolError(f"no message is called {data['type'][:MOST_QUOTED]!r}")
