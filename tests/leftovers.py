"""Finds what a test left running: processes by a mark in their environment, Qt's by the collector.

A grandchild whose parent died belongs to init, so parentage alone would miss the very orphans
that must never exist. The mark, set in this process's environment, is inherited by all of them.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

MARK_NAME = "KERNEL_EXPLORER_TEST_RUN"
MARK = uuid.uuid4().hex
os.environ[MARK_NAME] = MARK
_MARK_ENTRY = f"{MARK_NAME}={MARK}".encode()

# Processes that are none of ours, by id and start time: they never become so.
_foreign: set[tuple[int, str]] = set()
# Counted from the field after the command's closing bracket: proc(5) calls it field 22.
_START_TIME_FIELD = 19

# A process that was told to end needs a moment to do so; one that was not will stay.
GRACE_S = 1.0
POLL_S = 0.01


@dataclass(frozen=True)
class Snapshot:
    """What runs at one moment.

    Attributes:
        processes: Process id to command line, for the live descendants of this process.
        qt_objects: Address to description, for running threads and active timers.
        with_qt: Whether Qt objects were looked for.
    """

    processes: MappingProxyType[int, str]
    qt_objects: MappingProxyType[int, str]
    with_qt: bool

    @classmethod
    def take(cls, *, with_qt: bool) -> Snapshot:
        """Look at what runs now.

        Args:
            with_qt: Whether to look for Qt objects too, which takes tens of milliseconds.
        """
        qt_objects = _running_qt_objects() if with_qt else {}
        return cls(MappingProxyType(_descendants()), MappingProxyType(qt_objects), with_qt)


def wait_until_gone(before: Snapshot) -> list[str]:
    """Describe what runs now and did not before, after a grace period in which it may end."""
    deadline_s = time.monotonic() + GRACE_S
    while True:
        left = _new_since(before)
        if not left or time.monotonic() > deadline_s:
            return left
        time.sleep(POLL_S)


def end_processes(before: Snapshot) -> None:
    """Kill the processes that were not there before, so that later tests start clean."""
    for process_id in _descendants():
        if process_id not in before.processes:
            os.kill(process_id, signal.SIGKILL)


def _new_since(before: Snapshot) -> list[str]:
    now = Snapshot.take(with_qt=before.with_qt)
    found = [
        f"process {process_id} ({command})"
        for process_id, command in now.processes.items()
        if process_id not in before.processes
    ]
    found += [text for key, text in now.qt_objects.items() if key not in before.qt_objects]
    return found


def _descendants() -> dict[int, str]:
    """Live processes that carry the mark or have this process as parent."""
    own = os.getpid()
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == own:
            continue
        folder = Path("/proc", name)
        try:
            # "pid (command) state parent ...": the command may hold spaces and brackets.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            identity = (int(name), fields[_START_TIME_FIELD])
            if identity in _foreign:
                continue
            parent = int(fields[1])
            if parent != own and _MARK_ENTRY not in (folder / "environ").read_bytes().split(b"\0"):
                _foreign.add(identity)
                continue
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
        except (OSError, IndexError):
            # Gone while we looked, or another user's.
            continue
        # A zombie has ended; it only waits for its parent to take notice.
        if fields[0] not in "ZX":
            found[int(name)] = command.strip()
    return found


def _running_qt_objects() -> dict[int, str]:
    """Running QThreads and active QTimers that Python holds, if there is a Qt application."""
    if "PySide6.QtCore" not in sys.modules:
        return {}
    import shiboken6
    from PySide6.QtCore import QCoreApplication, QEvent, QThread, QTimer

    application = QCoreApplication.instance()
    if application is None:
        return {}
    _set_aside_what_is_old()
    # What was handed to deleteLater() has been let go and is no leftover.
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    # Comparing types is several times faster than isinstance() over all that torch has made.
    kinds = _with_subclasses(QThread) | _with_subclasses(QTimer)
    found = {}
    for thing in [thing for thing in gc.get_objects() if type(thing) in kinds]:
        if not shiboken6.isValid(thing):
            continue
        if isinstance(thing, QThread) and thing.isRunning() and thing != application.thread():
            found[id(thing)] = f"running {thing.objectName() or type(thing).__name__}"
        elif isinstance(thing, QTimer) and thing.isActive():
            found[id(thing)] = f"active {thing.objectName() or type(thing).__name__}"
    return found


@functools.cache
def _set_aside_what_is_old() -> None:
    """Keep out of the collector's sight what was there before the first test that uses Qt.

    After the engine's tests that is all of torch, and each look at it costs a tenth of a second.
    """
    gc.collect()
    gc.freeze()


def _with_subclasses(kind: type) -> set[type]:
    subclasses: list[type] = type.__subclasses__(kind)
    return {kind}.union(*map(_with_subclasses, subclasses))
