"""``kernel-explorer export``: a picture or table of a recording, or a module of its plan."""

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from explorer.cli.arguments import (
    BUILT_FORMATS,
    LATER_FORMATS,
    LEAST_SIDE_PX,
    TABLE_SUFFIX,
    VIEWS,
    Size,
)
from explorer.cli.plans import find_plan
from explorer.cli.terminal import DONE, write_note
from explorer.model.errors import RecordingError, UsageError
from explorer.model.param_sweep import sweeps_in
from explorer.model.plan_module import MODULE_SUFFIX, plan_module
from explorer.model.run import Run
from explorer.model.strategies import is_plan_run, plan_text
from explorer.model.table_csv import launches_csv, sweep_csv
from explorer.recording import check_writable, load_recording, save_text

TABLES = ("table", "sweep")
"""The views that are rows and columns."""


def execute(options: Namespace) -> int:
    """Write the picture, the table or the module.

    Raises:
        UsageError: The view or the format is unknown, or not yet built, or there is no such plan.
        RecordingError: The recording cannot be read or the file not be written.
    """
    if options.out.suffix.lower() == MODULE_SUFFIX:
        return _export_module(options)
    check_format(options.out)
    if options.plan is not None:
        raise UsageError(f"--plan is for a module; name a file that ends in {MODULE_SUFFIX}.")
    if options.view is not None and options.view not in VIEWS:
        raise UsageError(f"There is no view {options.view!r}; there are {', '.join(VIEWS)}.")
    if options.out.suffix.lower() == TABLE_SUFFIX:
        return _export_table(options)
    for name, value in (("--duration", options.duration), ("--fps", options.fps)):
        if value is not None:
            raise UsageError(f"{name} is for clips, which are not yet built; leave it out.")
    sides = [round(side * options.scale) for side in (options.size.width, options.size.height)]
    if min(sides) < LEAST_SIDE_PX:
        raise UsageError(
            f"The picture would have {sides[0]}x{sides[1]} pixels, and needs {LEAST_SIDE_PX} or "
            "more each way; take a larger size or scale."
        )
    runs = load_recording(options.file)
    if not runs:
        raise RecordingError(f"{options.file} holds no run.")
    check_writable(options.out)
    write_picture(
        runs, options.out, view=options.view or "window", size=options.size, scale=options.scale,
        theme=options.theme, at_us=options.at,
    )  # fmt: skip
    write_note(f"wrote {options.out}")
    return DONE


def _export_module(options: Namespace) -> int:
    name = str(options.file)
    runs = load_recording(options.file)
    if options.plan is not None:
        able = find_plan(runs, options.plan, name)
    else:
        able = [run for run in runs if is_plan_run(run) and run.strategy.plan is not None]
    if not able:
        raise UsageError(
            f"{name} holds no run of a fusion plan; measure one with --strategy plan:…"
        )
    save_text(options.out, plan_module(able[-1]))
    write_note(f"wrote {options.out}: the plan {plan_text(able[-1])}")
    return DONE


def _export_table(options: Namespace) -> int:
    view = options.view or "table"
    if view not in TABLES:
        raise UsageError(
            f"The view {view} cannot be a {TABLE_SUFFIX} file; {' and '.join(TABLES)} can."
        )
    runs = load_recording(options.file)
    if not runs:
        raise RecordingError(f"{options.file} holds no run.")
    if view == "table":
        save_text(options.out, launches_csv(runs))
    else:
        sweeps = sweeps_in(runs)
        if not sweeps:
            raise UsageError(
                f"{options.file} holds no parameter sweep; measure one with --sweep NAME=RANGE, "
                "or take --view table."
            )
        save_text(options.out, sweep_csv(sweeps))
    write_note(f"wrote {options.out}")
    return DONE


def check_format(out: Path) -> None:
    """Make sure that the format can be written.

    Raises:
        UsageError: It cannot, for now or at all.
    """
    suffix = out.suffix.lower()
    if suffix in (*BUILT_FORMATS, TABLE_SUFFIX):
        return
    built = ", ".join((*BUILT_FORMATS, TABLE_SUFFIX, f"{MODULE_SUFFIX} for a fusion plan"))
    if suffix in LATER_FORMATS:
        raise UsageError(f"Export to {suffix} is not yet built; name a file that ends in {built}.")
    raise UsageError(f"{out} has no known format; name a file that ends in {built}.")


def write_picture(
    runs: Sequence[Run],
    out: Path,
    *,
    view: str = "window",
    size: Size | None = None,
    scale: float = 1.0,
    theme: str = "dark",
    at_us: float | None = None,
    recorded: bool = True,
) -> None:
    """Draw the runs into a file, on a machine with or without a display.

    Args:
        runs: What to draw.
        out: The picture.
        view: One of ``VIEWS``.
        size: Of the layout; None for that of the window.
        scale: Pixels a pixel of the size.
        theme: ``dark`` or ``light``.
        at_us: Moment of the run, None for a telling one.
        recorded: Whether the runs come from a file, which the picture then says.

    Raises:
        UsageError: The view is not yet built.
        RecordingError: The file cannot be written.
        ExplorerError: Qt cannot be loaded.
    """
    # The same picture everywhere: a desktop's scaling, style and fonts stay out of it.
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from explorer.cli.qt import explain_missing_qt

    with explain_missing_qt():
        from explorer.ui.export import export_png
    size = size or Size(width=1440, height=900)
    export_png(
        runs, out, view=view, size=(size.width, size.height), scale=scale, theme=theme,
        at_us=at_us, recorded=recorded,
    )  # fmt: skip
