"""``kernel-explorer`` alone: the window, or without a display the main job on the command line."""

import os
from argparse import Namespace
from pathlib import Path

from explorer.cli.display import display_fault
from explorer.cli.export import write_picture
from explorer.cli.qt import explain_missing_qt
from explorer.cli.report import report
from explorer.cli.run import measure_and_save
from explorer.cli.terminal import write_note, write_result
from explorer.model.errors import RecordingError
from explorer.model.messages import RunRequest
from explorer.recording import check_writable

PICTURE = Path("kernel-explorer.png")
CHAIN = "attention"


def execute(options: Namespace) -> int:
    """Open the window, or run the attention chain and write a picture.

    Raises:
        ExplorerError: Neither can be done; the sentence says why.
    """
    fault = display_fault(os.environ)
    if fault is not None:
        return run_without_display(options.worker_python, fault)
    with explain_missing_qt():
        from explorer.ui.app import run_window
    return run_window(None, options.worker_python)


def run_without_display(python: Path | None, fault: str) -> int:
    """Measure the attention chain on the local device, print the table, write the picture.

    Args:
        python: The worker's Python, None for the default.
        fault: Why there is no window.

    Raises:
        ExplorerError: Nothing could be measured, or the picture cannot be written.
    """
    write_note(f"{fault}: measuring {CHAIN} here. kernel-explorer --help lists the commands.")
    try:
        check_writable(PICTURE.absolute())
    except RecordingError as error:
        raise RecordingError(f"{error} Start it in a folder where you may write.") from error
    done = measure_and_save(RunRequest(chain=CHAIN), python, None, may_leave_out=True)
    if not done.runs:
        return done.code
    write_result(report(done.runs))
    write_picture(done.runs, PICTURE, recorded=False)
    write_result(f"\nPicture: {PICTURE.absolute()}")
    return done.code
