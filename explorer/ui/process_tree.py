"""Ends a process with all that it started. Linux; no Qt.

A worker runs in a session of its own, so one signal to its group reaches the compilers that it
started. What left the group (a child with a session of its own) is found through ``/proc``.
"""

import contextlib
import os
import signal
from pathlib import Path


def descendants(process_id: int) -> list[int]:
    """Ids of the live processes below ``process_id``, itself left out."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # "pid (command) state parent ...": the command may hold spaces and brackets.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    queue = [process_id]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def send_signal(group_id: int, others: list[int], number: signal.Signals) -> None:
    """Signal a process group, and processes that may have left it; those gone are passed over."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group_id, number)
    for process_id in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process_id, number)
