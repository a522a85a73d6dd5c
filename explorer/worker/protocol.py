"""JSON lines between the window and a worker: pure functions, no process, no Qt, no torch.

A line is ``{"type": NAME, "body": {...}}``, one record a line; NAME is the record's class.
The worker writes ``Ready`` once, then for each request any number of replies and ``RequestDone``.
A worker that cannot start writes ``RequestFailed`` in the place of ``Ready`` and ends.
Before the first message other lines may come: a user's Python may print while it starts.
"""

import json
from typing import Any, get_args

from explorer.model.codec import DecodeError, from_plain, to_plain
from explorer.model.messages import Reply, Request

CANNOT_START_EXIT = 3
"""Exit code after a ``RequestFailed`` in the place of ``Ready``."""

RESTART_EXIT = 75
"""Exit code of a worker that answered to the end and then gave itself up: its device's context is
lost, and the next request needs a new worker."""


class ProtocolError(ValueError):
    """A line is not a message; the text says what is wrong with it."""


def encode(message: Request | Reply) -> bytes:
    """One line of UTF-8 JSON, newline included."""
    body = {"type": type(message).__name__, "body": to_plain(message)}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


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


def _decode(line: bytes, records: tuple[type[Any], ...]) -> Any:
    try:
        data = json.loads(line)
    except ValueError:
        raise ProtocolError(f"not a message: {line[:80]!r}") from None
    if not isinstance(data, dict) or not isinstance(data.get("type"), str):
        raise ProtocolError(f"a message without a type: {line[:80]!r}")
    for record in records:
        if record.__name__ == data["type"]:
            try:
                return from_plain(record, data.get("body"))
            except DecodeError as error:
                raise ProtocolError(f"{data['type']}: {error}") from None
    raise ProtocolError(f"no message is called {data['type']!r}")
