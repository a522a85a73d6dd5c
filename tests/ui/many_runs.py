"""A session of a thousand runs in one window, in a process of its own; prints what it cost."""

import json
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path

from PySide6.QtWidgets import QApplication

from explorer.model.messages import RunFinished
from explorer.recording import load_recording
from explorer.ui.main_window import MainWindow, prepare_application
from explorer.ui.store import Store
from explorer.worker.protocol import decode_reply, encode
from tests.conftest import CHECKOUT

N_RUNS = 1000
N_SHARE = 100
RECORDINGS = ("attention-h200.kx", "decoder-block-h200.kx")
PAGE_BYTES = 4096


def main() -> None:
    application = QApplication(sys.argv)
    prepare_application(application)
    folder = CHECKOUT / "assets" / "recordings"
    told = [
        encode(RunFinished(run=run)) for name in RECORDINGS for run in load_recording(folder / name)
    ]
    store = Store()
    window = MainWindow(store)
    window.resize(1440, 900)
    window.show()
    took_s: list[float] = []
    held_bytes = 0
    for place in range(N_RUNS):
        # As a worker sends it: of parts that no other run has.
        reply = decode_reply(told[place % len(told)])
        assert isinstance(reply, RunFinished)
        started_s = time.process_time()
        store.add_runs([replace(reply.run, id=f"run-{place}")])
        application.processEvents()
        took_s.append(time.process_time() - started_s)
        if place == len(told):
            held_bytes = resident_bytes()
    found = {
        "runs": len(store.state.runs),
        "growth_bytes": resident_bytes() - held_bytes,
        "first_s": statistics.median(took_s[len(told) : len(told) + N_SHARE]),
        "last_s": statistics.median(took_s[-N_SHARE:]),
    }
    sys.stdout.write(json.dumps(found))


def resident_bytes() -> int:
    """Memory that the process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES


if __name__ == "__main__":
    main()
