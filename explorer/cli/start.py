"""``kernel-explorer`` alone: the window, or without a display the main job on the command line."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from explorer.cli.export import write_picture
from explorer.cli.qt import explain_missing_qt
from explorer.cli.report import report
from explorer.cli.run import measure_and_save
from explorer.cli.terminal import write_note, write_result
from explorer.model.messages import RunRequest
from explorer.recording import check_writable

PICTURE = Path("kernel-explorer.png")
CHAIN = "attention"


def execute(options: Namespace) -> int:
    """Open the window, or run the attention chain and write a picture.

    Raises:
        ExplorerError: Neither can be done; the sentence says why.
    """
    if has_display(os.environ):
        with explain_missing_qt():
            from explorer.ui.app import run_window
        return run_window(None, options.worker_python)
    return run_without_display(options.worker_python)


def has_display(environ: Mapping[str, str]) -> bool:
    """Whether a window can open: there is a display server, or Qt was told what to draw on."""
    if sys.platform == "darwin":
        return True
    return any(environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def run_without_display(python: Path | None) -> int:
    """Measure the attention chain on the local device, print the table, write the picture.

    Raises:
        ExplorerError: Nothing could be measured, or the picture cannot be written.
    """
    write_note(f"No display: measuring {CHAIN} here. kernel-explorer --help lists the commands.")
    check_writable(PICTURE)
    runs, code = measure_and_save(RunRequest(chain=CHAIN), python, None, may_leave_out=True)
    if not runs:
        return code
    write_result(report(runs))
    write_picture(runs, PICTURE, recorded=False)
    write_result(f"\nPicture: {PICTURE.absolute()}")
    return code
