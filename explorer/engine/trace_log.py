"""What torch tells tools while it compiles: artifacts, by name, in a log of their own."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_TRACE = "torch.__trace"


class _Listener(logging.Handler):
    def __init__(self, artifact: str, hear: Callable[[str], object]) -> None:
        super().__init__()
        self._artifact = artifact
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        metadata: dict[str, Any] = getattr(record, "metadata", {})
        payload = getattr(record, "payload", None)
        if metadata.get("artifact", {}).get("name") == self._artifact and isinstance(payload, str):
            self._hear(payload)


@contextmanager
def hearing(artifact: str, hear: Callable[[str], object]) -> Iterator[None]:
    """Have every artifact of a name that is told inside the ``with`` block heard.

    Args:
        artifact: Its name in torch's log.
        hear: Called with the text of each.
    """
    listener = _Listener(artifact, hear)
    log = logging.getLogger(_TRACE)
    before, propagates = log.level, log.propagate
    log.addHandler(listener)
    log.setLevel(logging.DEBUG)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.setLevel(before)
        log.propagate = propagates
