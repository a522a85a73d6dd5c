"""Runs as text: one row a strategy, then one row a launch, and what has to be known beside.

A number of bytes never stands without its pedigree, a speed-up never where the times overlap or a
check failed; which one did is told before all else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from explorer.cli.group_table import group_lines, refusal_lines
from explorer.cli.launch_table import launch_lines
from explorer.cli.own_code import call_lines, op_lines
from explorer.cli.param_sweep_table import is_told_at_length, param_sweep_lines
from explorer.cli.sweep_table import best_lines, detailed, find_sweep, plan_runs, sweep_lines, swept
from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import one_line, paragraphs
from explorer.model.comparison import check_words, distrust, find_baseline, headline, speed_up
from explorer.model.fusion import PRESETS
from explorer.model.param_sweep import ParameterSweep, is_point, point_title, sweeps_in
from explorer.model.run import Direction, Run, Samples
from explorer.model.strategies import is_plan_run, plan_text
from explorer.model.traffic import peak_bytes, run_traffic
from explorer.model.units import format_bytes, split_us, three_digits

NOTHING = "–"
NAME_WIDTH = 48


def report(runs: Sequence[Run], *, inductor_plan: str | None = None, raw: bool = False) -> str:
    """The whole table: runs of the same work on the same device under one heading.

    Args:
        runs: All of them.
        inductor_plan: How Inductor would group the ops, where no run tells it.
        raw: Whether the compiler's own words follow the reasons against fusing.
    """
    blocks: list[list[str]] = []
    for are_points, group in groupby(runs, key=is_point):
        if are_points:
            blocks += [_sweep_block(sweep, raw=raw) for sweep in sweeps_in(list(group))]
        else:
            works = groupby(group, key=_work)
            blocks += [_block(list(each), inductor_plan, raw=raw) for _, each in works]
    return "\n\n".join("\n".join(map(one_line, lines)) for lines in blocks)


def _work(run: Run) -> tuple[object, ...]:
    parameters = tuple(sorted((name, str(v)) for name, v in run.chain.parameters.items()))
    return (
        run.chain.name, run.chain.direction, parameters, run.device.id, run.device.name,
        run.versions,
    )  # fmt: skip


def _block(runs: list[Run], inductor_plan: str | None, *, raw: bool) -> list[str]:
    lines = [*_heading(runs[0]), *_wrong(runs)]
    sweep = find_sweep(runs, inductor_plan)
    told = runs
    if sweep is not None and swept(runs):
        others = [run for run in runs if not is_plan_run(run)]
        lines += ["", *sweep_lines(sweep)]
        if others:
            lines += ["", *_strategy_table(others), *_legend(others)]
        told = [*others, *detailed(sweep)]
        hidden = [run for run in plan_runs(runs) if run not in told]
    else:
        lines += ["", *_strategy_table(runs), *_legend(runs)]
        # Plans picked one by one are no sweep that was cut short.
        lines += best_lines(replace(sweep, possible=None)) if sweep is not None else []
        hidden = []
    lines += op_lines(runs[0], raw=raw)
    for run in told:
        lines += _details(run, raw=raw)
    for run in hidden:
        lines += _failure(run)
    if hidden:
        lines += ["", "The launches of the other plans: kernel-explorer show FILE --plan TEXT."]
    return lines


def _sweep_block(sweep: ParameterSweep, *, raw: bool) -> list[str]:
    """A parameter sweep: the chain without the swept parameter, the table, the few variants."""
    first = sweep.first
    lines = _heading(replace(first, chain=replace(first.chain, parameters=sweep.fixed)))
    lines += [*_wrong(sweep.runs), "", *param_sweep_lines(sweep)]
    if not is_told_at_length(sweep):
        return lines
    for run in sweep.runs:
        if run.launches:
            lines += ["", f"{point_title(run)}:", *_details(run, raw=raw)]
    return lines


def _details(run: Run, *, raw: bool) -> list[str]:
    lines = []
    if groups := group_lines(run):
        lines += ["", *groups]
    if run.launches:
        lines += ["", *launch_lines(run)]
    return [*lines, *refusal_lines(run, raw=raw), *_remarks(run)]


def _heading(run: Run) -> list[str]:
    chain, device, versions = run.chain, run.device, run.versions
    direction = "" if chain.direction is Direction.FORWARD else f", {chain.direction.words}"
    settings = ", ".join(f"{name}={value}" for name, value in chain.parameters.items())
    parts = [f"torch {versions.torch}"]
    if versions.triton:
        parts.append(f"triton {versions.triton}")
    if device.driver:
        parts.append(f"driver {device.driver}")
    return [
        f"{chain.title} ({chain.name}{direction})",
        *([f"  {settings}"] if settings else []),
        *call_lines(run),
        f"  on {device.name} ({device.id}), {', '.join(parts)}, measured {run.created_at}",
    ]


def _wrong(runs: Sequence[Run]) -> list[str]:
    """The runs whose check failed, above every number of theirs."""
    found = [f"CHECK FAILED: {_place(run)}: {doubt}" for run in runs if (doubt := distrust(run))]
    return ["", *paragraphs(found, "  ")] if found else []


def _place(run: Run) -> str:
    return point_title(run) if is_point(run) else _name(run)


def _strategy_table(runs: list[Run]) -> list[str]:
    baselines = {id(run): find_baseline(run, runs) for run in runs}
    has_baseline = any(baselines.values())
    memory = runs[0].device.memory_name
    columns = [
        Column(title="strategy", is_text=True),
        Column(title="time"),
        Column(title="quartiles"),
        Column(title="n"),
        Column(title="state", is_text=True),
        *([Column(title="over eager")] if has_baseline else []),
        Column(title="launches"),
        Column(title="read", group=f"{memory} traffic"),
        Column(title="written", group=f"{memory} traffic"),
        Column(title="bytes are", group=f"{memory} traffic", is_text=True),
        Column(title="peak memory"),
        Column(title="error vs fp64"),
    ]
    rows = []
    for run in runs:
        baseline = baselines[id(run)]
        over = [_over(run, baseline)] if has_baseline else []
        rows.append([_name(run), *_time_cells(run), *over, *_traffic_cells(run), *_end_cells(run)])
    return render(columns, rows)


def _name(run: Run) -> str:
    named = run.strategy.spec
    if run.strategy.backend:
        named = f"{named} = {run.strategy.backend}"
    elif is_plan_run(run) and run.strategy.option not in PRESETS:
        # A preset's plan is written out above its groups: two presets may mean the same one.
        named = shortened(plan_text(run), NAME_WIDTH)
    return f"{named} ({run.label})" if run.label else named


def _time_cells(run: Run) -> list[str]:
    if run.error is not None:
        return ["failed", NOTHING, NOTHING, NOTHING]
    timed = headline(run)
    if timed is None:
        return [NOTHING, NOTHING, NOTHING, NOTHING]
    samples = timed.samples
    number, unit = split_us(samples.median_us)
    state = f"{timed.condition.value}, {samples.clock.value}"
    return [f"{number} {unit}", quartiles(samples), str(samples.n), state]


def quartiles(samples: Samples) -> str:
    """``[5.33–5.37 ms]``, both ends in the median's unit."""
    _, unit = split_us(samples.median_us)
    scale = {"s": 1e6, "ms": 1e3, "µs": 1.0}[unit]
    low, high = three_digits(samples.q1_us / scale), three_digits(samples.q3_us / scale)
    return f"[{low}–{high} {unit}]"


def _over(run: Run, baseline: Run | None) -> str:
    if baseline is None:
        return "baseline" if run.strategy.spec == "eager" and run.error is None else NOTHING
    found = speed_up(run, baseline)
    return NOTHING if found is None else found.text


def _traffic_cells(run: Run) -> list[str]:
    if run.error is not None:
        return [NOTHING] * 4
    traffic = run_traffic(run)
    best = traffic.best
    launches = str(len(run.launches))
    if best is None:
        return [launches, NOTHING, NOTHING, NOTHING]
    read, written, pedigree = best
    count = traffic.launches_left_out
    left_out = f", {count} helper{'s' if count > 1 else ''} not" if count else ""
    return [launches, format_bytes(read), format_bytes(written), pedigree.value + left_out]


def _end_cells(run: Run) -> list[str]:
    peak = peak_bytes(run)
    cells = [NOTHING if peak is None else format_bytes(peak)]
    if run.accuracy is None:
        return [*cells, NOTHING]
    if run.accuracy.not_finite:
        return [*cells, "not finite"]
    error = f"{run.accuracy.max_abs_error:.1e}"
    return [*cells, error if run.accuracy.passed else f"{error} too large"]


def _legend(runs: Iterable[Run]) -> list[str]:
    lines = ["time: median of n calls; peak memory: over the inputs"]
    coverages = {run.accuracy.coverage for run in runs if run.accuracy is not None}
    if coverages:
        shares = " to ".join(f"{share:.0%}" for share in sorted({min(coverages), max(coverages)}))
        lines.append(f"error: largest absolute difference, on {shares} of the output")
    return lines


def _failure(run: Run) -> list[str]:
    if run.error is None:
        return []
    return paragraphs([f"{run.strategy.spec}: failed: {run.error}"], "  ")


def _remarks(run: Run) -> list[str]:
    remarks = []
    if run.compile is not None:
        cost = run.compile
        remarks.append(f"the first call took {three_digits(cost.first_call_s)} s")
        remarks += [
            f"graph break{f' at {found.place}' if found.place else ''}: {found.reason}"
            for found in cost.graph_breaks
            if found not in run.graph.breaks
        ]
    if run.counters is not None and run.counters.sentence:
        policy = f" Cache: {run.counters.cache_policy}." if run.counters.cache_policy else ""
        remarks.append(f"{run.counters.sentence}{policy}")
    if run.accuracy is not None:
        remarks += [
            f"{check_words(check)}{'' if check.passed else ': not passed'}"
            for check in run.accuracy.distribution
        ]
    remarks += run.warnings
    told = paragraphs((f"{run.strategy.spec}: {remark}" for remark in remarks), "  ")
    return [*_failure(run), *told]
