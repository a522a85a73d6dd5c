"""``kernel-explorer check``: measures a recording's plans again and fails where one got worse."""

import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from explorer.chains.own import chain_of
from explorer.cli import interrupts
from explorer.cli.measure import Measurement
from explorer.cli.own_code import announce
from explorer.cli.progress import ProgressDisplay
from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import (
    DONE,
    FAILED,
    INTERRUPTED,
    paragraphs,
    write_error,
    write_json,
    write_lines,
    write_note,
)
from explorer.model.errors import UsageError
from explorer.model.messages import RunRequest
from explorer.model.run import Run
from explorer.model.strategies import is_plan_run, parse_spec, plan_spec, plan_text
from explorer.model.units import format_bytes, format_us
from explorer.model.worsening import BytesChange, Limits, TimeChange, Worsening, compare
from explorer.recording import load_recording
from explorer.worker.blocking import WorkerClient

NAME_WIDTH = 40
NOTHING = "–"


def execute(options: Namespace) -> int:
    """Measure again, compare and print.

    Raises:
        UsageError: There is nothing to check, or what is asked for cannot be.
        ExplorerError: The recording cannot be read, or nothing could be measured.
    """
    chosen, left_out = runs_to_check(load_recording(options.file))
    if not chosen:
        raise UsageError(f"{options.file} holds no run that could be measured again.")
    for spec in left_out:
        write_note(f"{spec} is left out: it failed when it was recorded.")
    announce(chosen)
    limits = Limits(n_bytes=options.bytes, time=options.time)
    with WorkerClient(options.worker_python) as client:
        found, interrupted = _measure_again(client, chosen, options.device, limits)
    worse = [each for each in found if each.faults]
    if options.json:
        write_json(_plain(str(options.file), limits, found))
    elif found:
        write_lines(_table(found))
    for each in worse:
        for fault in each.faults:
            write_error(f"{_name(each.before)}: {fault}")
    incomparable = _incomparable(found)
    if incomparable:
        write_error(incomparable)
    if interrupted:
        write_error(f"interrupted after {len(found)} of {len(chosen)} runs.")
        return INTERRUPTED
    return FAILED if worse or incomparable else DONE


def _incomparable(found: Sequence[Worsening]) -> str:
    """Why nothing was checked although everything ran: a check that compares nothing must fail."""
    if not found or any(_was_compared(each) or each.faults for each in found):
        return ""
    before = ", ".join(dict.fromkeys(each.before.device.name for each in found))
    now = ", ".join(dict.fromkeys(each.now.device.name for each in found))
    return (
        f"neither bytes nor times could be compared: the runs were recorded on {before} and "
        f"measured again on {now}; check them where they were recorded."
    )


def _was_compared(each: Worsening) -> bool:
    return each.n_bytes is not None or each.time is not None


def runs_to_check(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """What of a recording is measured again: its plans, or every run if there is no plan.

    Args:
        runs: Oldest first; of several of the same work under one strategy the newest counts.

    Returns:
        Those runs, and the specs of those among them that failed when they were recorded.
    """
    planned = [run for run in runs if is_plan_run(run)]
    newest = {(_work(run), _spec(run)): run for run in planned or runs}
    failed = [_spec(run) for run in newest.values() if run.error is not None]
    return [run for run in newest.values() if run.error is None], failed


def _measure_again(
    client: WorkerClient, chosen: Sequence[Run], device: str, limits: Limits
) -> tuple[list[Worsening], bool]:
    """Measure the runs, those of the same work together; an interrupt keeps what is done.

    Raises:
        UsageError: The worker refused what was asked for.
        ExplorerError: Nothing could be measured.
    """
    display = ProgressDisplay()
    found: list[Worsening] = []

    def keeper(recorded: Sequence[Run]) -> Callable[[Sequence[Run]], None]:
        def keep(measured: Sequence[Run]) -> None:
            before = recorded[len(measured) - 1]
            found.append(compare(before, measured[-1], limits))

        return keep

    try:
        for _, group in groupby(chosen, key=_work):
            recorded = list(group)
            request = _request(recorded, device)
            Measurement(client, request, display, keeper(recorded)).measure()
        interrupts.ignore()
    except KeyboardInterrupt:
        client.cancel()
        return found, True
    finally:
        display.close()
    return found, False


def _request(recorded: Sequence[Run], device: str) -> RunRequest:
    first = recorded[0]
    # Both may be unknown to this release, which the sentences then say.
    chain_of(first.chain.name, first.chain.own)
    specs = tuple(_spec(run) for run in recorded)
    for spec in specs:
        parse_spec(spec)
    return RunRequest(
        chain=first.chain.name,
        parameters=dict(first.chain.parameters),
        strategies=specs,
        device=device,
        seed=first.seed,
        direction=first.chain.direction,
        own=first.chain.own,
    )


def _work(run: Run) -> tuple[object, ...]:
    parameters = tuple(sorted((name, str(v)) for name, v in run.chain.parameters.items()))
    return run.chain.name, run.chain.direction.value, parameters, run.seed


def _spec(run: Run) -> str:
    """What to ask for: the plan itself rather than a preset, which may mean another by now."""
    plan = run.strategy.plan
    return plan_spec(plan) if is_plan_run(run) and plan else run.strategy.spec


def _name(run: Run) -> str:
    return plan_text(run) if is_plan_run(run) else run.strategy.spec


def _table(found: Sequence[Worsening]) -> list[str]:
    chains = dict.fromkeys(each.before.chain.name for each in found)
    columns = [
        *([Column(title="chain", is_text=True)] if len(chains) > 1 else []),
        Column(title="run", is_text=True),
        Column(title="before", group="read + written"),
        Column(title="now", group="read + written"),
        Column(title="more", group="read + written"),
        Column(title="bytes are", is_text=True),
        Column(title="before", group="time"),
        Column(title="now", group="time"),
        Column(title="longer", group="time"),
        Column(title="result", is_text=True),
    ]
    rows = [
        [
            *([each.before.chain.name] if len(chains) > 1 else []),
            shortened(_name(each.before), NAME_WIDTH),
            *_bytes_cells(each.n_bytes),
            *_time_cells(each.time),
            "worse" if each.faults else "ok" if _was_compared(each) else "not compared",
        ]
        for each in found
    ]
    notes = dict.fromkeys(note for each in found for note in each.notes)
    worse = any(each.faults for each in found)
    devices = dict.fromkeys(each.now.device.name for each in found)
    return [
        f"{', '.join(chains)} on {', '.join(devices)}, as recorded and now",
        "",
        *render(columns, rows),
        *paragraphs(notes),
        *([_verdict(found)] if worse or any(map(_was_compared, found)) else []),
    ]


def _verdict(found: Sequence[Worsening]) -> str:
    worse = sum(bool(each.faults) for each in found)
    return f"{worse} of {len(found)} runs got worse." if worse else "No run got worse."


def _bytes_cells(change: BytesChange | None) -> list[str]:
    if change is None:
        return [NOTHING] * 4
    share = f"{change.share:+.1%}" if math.isfinite(change.share) else "more"
    before, now = format_bytes(change.before), format_bytes(change.now)
    return [before, now, share, change.pedigree.value]


def _time_cells(change: TimeChange | None) -> list[str]:
    if change is None:
        return [NOTHING] * 3
    longer = f"{change.share:+.1%}" if change.is_clear else "equal"
    return [format_us(change.before_us), format_us(change.now_us), longer]


def _plain(name: str, limits: Limits, found: Sequence[Worsening]) -> dict[str, Any]:
    return {
        "format": "kernel-explorer-check",
        "version": 1,
        "file": name,
        "limits": {"bytes": limits.n_bytes, "time": limits.time},
        "passed": not any(each.faults for each in found),
        "checks": [_check_to_plain(each) for each in found],
    }


def _check_to_plain(each: Worsening) -> dict[str, Any]:
    n_bytes, time, accuracy = each.n_bytes, each.time, each.now.accuracy
    return {
        "chain": each.before.chain.name,
        "strategy": _spec(each.before),
        "device": each.now.device.name,
        "bytes": n_bytes and {
            "pedigree": n_bytes.pedigree.value, "before": n_bytes.before, "now": n_bytes.now,
        },
        "time": time and {
            "condition": time.condition.value, "before_us": time.before_us,
            "now_us": time.now_us, "is_clear": time.is_clear,
        },
        "accuracy_passed": None if accuracy is None else accuracy.passed,
        "faults": list(each.faults),
        "notes": list(each.notes),
    }  # fmt: skip
