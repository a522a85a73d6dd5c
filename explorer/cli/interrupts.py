"""Ctrl-C and SIGTERM: the first interrupts, and none after it keeps what is done from being told.

Imports next to nothing: it has to be in place before anything else is loaded.
"""

import signal
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def hear_once() -> None:
    """Let the first signal raise ``KeyboardInterrupt``, and ignore those after it.

    A signal that whoever started us wants ignored (``nohup``, a job in the background) stays so.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, _interrupt)


def ignore() -> None:
    """From here on there is nothing left to interrupt; does nothing unless we listened."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _interrupt:
            # One that arrived before, and whose handler has not run yet, would be complained about
            # on stderr once it is ignored. So none may arrive now, and those that have are heard.
            signal.signal(number, _hear_nothing)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    ignore()
    raise KeyboardInterrupt


def _hear_nothing(_number: int, _frame: FrameType | None) -> None:
    """Those after the first."""
