"""``kernel-explorer show``: the table of a recording, the same as after a run."""

from argparse import Namespace

from explorer.cli.group_table import refusals_of
from explorer.cli.plans import find_plan
from explorer.cli.report import report
from explorer.cli.terminal import DONE, write_json, write_note, write_result
from explorer.model.errors import RecordingError
from explorer.recording import load_recording, runs_to_plain


def execute(options: Namespace) -> int:
    """Print the runs of a recording.

    Raises:
        RecordingError: The file cannot be read, is no recording, or holds no run.
        UsageError: It holds no run of the plan that was asked for.
    """
    runs = load_recording(options.file)
    if options.plan is not None:
        runs = tuple(find_plan(runs, options.plan, str(options.file)))
    if options.json:
        write_json(runs_to_plain(runs))
        return DONE
    if not runs:
        raise RecordingError(f"{options.file} holds no run.")
    write_result(report(runs, raw=options.raw))
    if options.raw and not any(refusal.raw for run in runs for refusal in refusals_of(run)):
        write_note("No words of the compiler's own are recorded in these runs.")
    return DONE
