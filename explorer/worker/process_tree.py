"""Ends a process with all that it started. No Qt, no torch.

A worker runs in a session of its own, so one signal to its group reaches the compilers that it
started. What left the group (a child with a session of its own) is found through ``/proc``, which
only Linux has.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
CAN_LIST = (PROC / "self" / "stat").exists()
POLL_S = 0.001
MOST_ROUNDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A live process: its id, its parent's and its group's."""

    id: int
    parent_id: int
    group_id: int


def live_processes() -> list[Process]:
    """All that run now, zombies left out; none where they cannot be listed."""
    if not CAN_LIST:
        return []
    found = []
    for folder in PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        # "pid (command) state parent group ...": the command may hold spaces and brackets.
        state, parent_id, group_id = stat.rpartition(")")[2].split()[:3]
        if state not in "ZX":
            found.append(
                Process(id=int(folder.name), parent_id=int(parent_id), group_id=int(group_id))
            )
    return found


def descendants(process_id: int) -> list[int]:
    """Ids of the live processes below ``process_id``, itself left out."""
    return _below(process_id, live_processes())


def _below(process_id: int, processes: Iterable[Process]) -> list[int]:
    children: dict[int, list[int]] = {}
    for process in processes:
        children.setdefault(process.parent_id, []).append(process.id)
    found: list[int] = []
    queue = [process_id]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def send_signal(group_id: int, others: Iterable[int], number: signal.Signals) -> None:
    """Signal a process group, and processes that may have left it; those gone are passed over."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group_id, number)
    for process_id in others:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process_id, number)


def kill_all_but_this() -> None:
    """Kill what is below this process, and what is in the group that it leads, but not itself.

    Whatever thread calls. Where processes cannot be listed, nothing happens.
    """
    own = os.getpid()
    leads_group = os.getpgrp() == own
    # Again and again: one that is killed last may have started another first.
    for _ in range(MOST_ROUNDS):
        processes = live_processes()
        others = set(_below(own, processes))
        if leads_group:
            others |= {each.id for each in processes if each.group_id == own} - {own}
        if not others:
            return
        for process_id in others:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        time.sleep(POLL_S)
