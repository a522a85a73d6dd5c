"""Keeps somebody's own code from ending this process before anything of it is told."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn
from unittest.mock import patch


class HardExit(SystemExit):
    """Own code called ``os._exit``; ``code`` is what with."""


@contextmanager
def raising_hard_exits() -> Iterator[None]:
    """Have ``os._exit`` raise inside the ``with`` block, so that its line can be told.

    Processes that are forked meanwhile end by it as they should.
    """
    ours, end_process = os.getpid(), os._exit

    def refused(status: int) -> NoReturn:
        if os.getpid() != ours:
            end_process(status)
        raise HardExit(status)

    with patch.object(os, "_exit", refused):
        yield


def exit_call(error: SystemExit) -> str:
    """The call that raised it, as it is written."""
    name = "os._exit" if isinstance(error, HardExit) else "sys.exit"
    return f"{name}({error.code!r})"
