"""A sweep as text: a row a plan, the fastest first, and what the plans together say."""

from collections.abc import Sequence
from dataclasses import replace

from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import paragraphs
from explorer.model.errors import UsageError
from explorer.model.fusion import parse_plan
from explorer.model.run import Run
from explorer.model.strategies import is_plan_run, plan_text
from explorer.model.sweep import Sweep, SweepPoint, as_fast, sweep_of
from explorer.model.sweep_words import findings, pedigree_words
from explorer.model.units import format_bytes, format_us

LEAST_SWEPT = 4
"""From so many plans on they have a table of their own, without each one's launches."""
PLAN_WIDTH = 48
NOTHING = "–"
_MARKS = (
    ("*", "no other plan is better in time or traffic without being worse in the other"),
    ("I", "Inductor's own grouping"),
    ("!", "wrong or failed: its time is not to be used"),
)


def swept(runs: Sequence[Run]) -> bool:
    """Whether runs of the same work hold so many plans that they are told as a sweep."""
    return len({plan_text(run) for run in plan_runs(runs)}) >= LEAST_SWEPT


def plan_runs(runs: Sequence[Run]) -> list[Run]:
    """Those of a fusion plan."""
    return [run for run in runs if is_plan_run(run)]


def find_sweep(runs: Sequence[Run], inductor_plan: str | None) -> Sweep | None:
    """The plans of runs of the same work, with Inductor's own grouping where that is known.

    Args:
        runs: All of them.
        inductor_plan: Text of the plan, for when no run tells it.
    """
    sweep = sweep_of(runs)
    if sweep is None or sweep.inductor is not None or inductor_plan is None:
        return sweep
    # A run that failed early has no ops.
    ops = next(([op.name for op in run.graph.ops] for run in runs if run.graph.ops), [])
    try:
        found = parse_plan(inductor_plan, ops, runs[0].chain.name)
    except UsageError:
        return sweep
    return replace(sweep, inductor=found)


def sweep_lines(sweep: Sweep) -> list[str]:
    """The table, its marks explained, and a sentence for each finding."""
    rows = [(_marks(sweep, point), point) for point in _in_order(sweep)]
    columns = [
        Column(title="", is_text=True),
        Column(title="plan", is_text=True),
        Column(title="kernels"),
        Column(title="time"),
        Column(title=f"traffic, {sweep.pedigree.value}" if sweep.pedigree else "traffic"),
        Column(title="peak memory"),
    ]
    table = render(columns, [[marks, *_cells(point)] for marks, point in rows])
    shown = {mark for marks, _ in rows for mark in marks}
    state = f"time: {sweep.condition.value}, " if sweep.condition else ""
    return [
        *table,
        f"{state}{pedigree_words(sweep)}",
        *[f"{mark}: {meaning}" for mark, meaning in _MARKS if mark in shown],
        *_inductor_lines(sweep),
        "",
        *best_lines(sweep),
    ]


def best_lines(sweep: Sweep) -> list[str]:
    """The best plan by name, and what else the plans together say; empty without a timed plan."""
    return paragraphs([*_fastest(sweep), *findings(sweep)])


def detailed(sweep: Sweep) -> list[Run]:
    """The plans whose launches are worth a table: the fastest and the most fused."""
    found = []
    for point in (sweep.fastest, sweep.most_fused):
        if point is not None and point.run not in found:
            found.append(point.run)
    return found


def _in_order(sweep: Sweep) -> list[SweepPoint]:
    """What went wrong first, then by time; without a time last."""

    def key(point: SweepPoint) -> tuple[bool, bool, float]:
        time = point.time
        return (not point.distrust, time is None, time.median_us if time else 0.0)

    return sorted(sweep.points, key=key)


def _marks(sweep: Sweep, point: SweepPoint) -> str:
    applies = (
        point in sweep.front,
        sweep.inductor is not None and point.plan == sweep.inductor,
        bool(point.distrust),
    )
    return "".join(mark for (mark, _), does in zip(_MARKS, applies, strict=True) if does)


def _cells(point: SweepPoint) -> list[str]:
    return [
        shortened(point.text, PLAN_WIDTH),
        NOTHING if point.run.error else str(point.launches),
        "failed" if point.run.error else NOTHING if not point.time else _time(point),
        NOTHING if point.traffic is None else format_bytes(point.traffic),
        NOTHING if point.peak_bytes is None else format_bytes(point.peak_bytes),
    ]


def _time(point: SweepPoint) -> str:
    return NOTHING if point.time is None else format_us(point.time.median_us)


def _inductor_lines(sweep: Sweep) -> list[str]:
    if sweep.inductor is None:
        return ["Inductor's own grouping is not known here: no run of compile is beside."]
    if sweep.inductor_point is None:
        return paragraphs([f"Inductor's own grouping is {sweep.inductor.text}, which did not run."])
    return []


def _fastest(sweep: Sweep) -> list[str]:
    best = sweep.fastest
    if best is None or len(sweep.usable) < 2 or sweep.pedigree is None:
        return []
    peak = "" if best.peak_bytes is None else f", {format_bytes(best.peak_bytes)} at the peak"
    equals = [point for point in sweep.usable if point is not best and as_fast(point, best)]
    if len(equals) == 1:
        others = f" Within noise {equals[0].text} is as fast."
    else:
        others = f" Within noise {len(equals)} others are as fast." if equals else ""
    return [
        f"The fastest plan is {best.text}: {_time(best)}, {format_bytes(best.traffic or 0)} read "
        f"and written ({sweep.pedigree.value}){peak}.{others}"
    ]
