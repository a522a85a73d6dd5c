"""What torch leaves out of what was asked for and only its log tells: graphs, tuning, compiling."""

import importlib
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

_LOGS = ("torch._inductor.cudagraph_utils", "torch._inductor.utils", "torch._dynamo.convert_frame")
"""By the modules that say it; torch logs some of it under a name below theirs."""
_NO_GRAPH = re.compile(r"skipping cudagraphs due to (?P<reason>[^\n]+)", re.IGNORECASE)
_NOT_TUNED = re.compile(
    r"not enough SMs to use max_autotune|not support max_autotune", re.IGNORECASE
)
_GAVE_UP = re.compile(r"hit config\.\w*recompile_limit \((?P<n>\d+)\)")
_MOST_REASON = 160
_TUNING = "max-autotune"

_untuned: set[str] = set()
"""Why this process tunes no matmuls: torch says so once, and in whichever mode comes first."""


class _Listener(logging.Handler):
    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        untuned = _untuned_sentence(record)
        if untuned is not None:
            _untuned.add(untuned)
        sentence = _sentence(record.getMessage())
        if sentence is not None and sentence not in self._found:
            self._found.append(sentence)


@contextmanager
def watching_setbacks(*, compiles: bool) -> Iterator[list[str]]:
    """List, a sentence each, what torch says inside the ``with`` block that it does not do.

    Args:
        compiles: Something is compiled there; else torch's compiler need not even be loaded.
    """
    found: list[str] = []
    if compiles:
        with suppress(ImportError):
            # Its logs are made when it is loaded.
            importlib.import_module(_LOGS[0])
    listener = _Listener(found)
    below = tuple(f"{log}." for log in _LOGS)
    names = [name for name in logging.Logger.manager.loggerDict if name.startswith(below)]
    with ExitStack() as stack:
        for name in (*_LOGS, *names):
            log = logging.getLogger(name)
            log.addHandler(listener)
            stack.callback(log.removeHandler, listener)
        yield found


def setback_doubts(found: Sequence[str], spec: str) -> tuple[str, ...]:
    """The sentences for a run.

    Args:
        found: What torch said while it was made.
        spec: Of its strategy: that matmuls are not tuned matters to one that tunes.
    """
    return (*found, *(sorted(_untuned) if _TUNING in spec else ()))


def _sentence(message: str) -> str | None:
    """What a message means for the run that is made, None if nothing."""
    if match := _NO_GRAPH.search(message):
        reason = match["reason"].strip().rstrip(".")[:_MOST_REASON]
        return f"torch made no CUDA graph of it ({reason}): the host launches each kernel."
    if match := _GAVE_UP.search(message):
        return (
            f"torch gave up compiling after {match['n']} versions of the code and runs it "
            "uncompiled from then on: keep what changes with each call in a tensor."
        )
    return None


def _untuned_sentence(record: logging.LogRecord) -> str | None:
    message = record.getMessage()
    if not _NOT_TUNED.search(message):
        return None
    least, has = getattr(record, "min_sms", None), getattr(record, "avail_sms", None)
    why = f"this GPU has {has} multiprocessors, and torch wants {least}" if has else message
    return f"torch tuned no matmul ({why}): they are those of the default mode."
