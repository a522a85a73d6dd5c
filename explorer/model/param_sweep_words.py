"""What a parameter sweep shows, in sentences and labels: for the window and the command line."""

from collections.abc import Sequence

from explorer.model.comparison import ranges_overlap
from explorer.model.device import DeviceKind
from explorer.model.param_sweep import ParameterPoint, ParameterSweep, Series, is_number
from explorer.model.run import Run, Samples, Scalar
from explorer.model.sweep_payoff import Crossover, Growth, Payoff, crossovers, growth
from explorer.model.units import format_bytes, format_ratio, format_us

OUT_OF_MEMORY, FAILED = "out of memory", "failed"
_NO_ROOM_SIGNS = ("out of memory", "are free on", "memory runs out")
"""What the sentences of runs say that there was no room for, before or while they ran."""
SHARE_OF_LAUNCHING = 0.8
"""Kernels that fill less of a call than this wait for the host that launches them."""


def findings(sweep: ParameterSweep) -> tuple[str, ...]:
    """What the points together say, the most telling first; empty where there is nothing."""
    return (
        *(_payoff(sweep, found) for found in crossovers(sweep)),
        *_traffic(sweep),
        *_best_values(sweep),
        *_failures(sweep),
        *_distrusted(sweep),
    )


def short_finding(sweep: ParameterSweep) -> str:
    """The most telling finding in a line; empty where there is nothing to tell."""
    return next(iter(findings(sweep)), "")


def value_text(value: Scalar) -> str:
    """A value of the parameter as on an axis: ``8,192``, ``0.1``, ``bf16``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def values_text(sweep: ParameterSweep) -> str:
    """The values that were run: ``256 to 8,192 (6 values)``, ``fp32, bf16``."""
    if sweep.is_numeric and len(sweep.values) > 3:
        ends = (value_text(sweep.values[0]), value_text(sweep.values[-1]))
        return f"{ends[0]} to {ends[1]} ({len(sweep.values)} values)"
    return ", ".join(map(value_text, sweep.values))


def heading(sweep: ParameterSweep) -> str:
    """``Attention scores: seq_len 256 to 8,192 (6 values)``."""
    return f"{sweep.first.chain.title}: {sweep.name} {values_text(sweep)}"


def failure_label(run: Run) -> str:
    """In two or three words why a run failed; its sentence has the whole. Empty if it did not."""
    if run.error is None:
        return ""
    no_room = any(sign in run.error for sign in _NO_ROOM_SIGNS)
    return OUT_OF_MEMORY if no_room else FAILED


def point_words(sweep: ParameterSweep, series: Series, point: ParameterPoint) -> tuple[str, ...]:
    """All that is known of a point, a line each: what it is, then the numbers with pedigrees."""
    lines = [f"{series.title} at {sweep.name} {value_text(point.value)}"]
    if point.error:
        return (*lines, point.error)
    if point.distrust:
        lines.append(point.distrust)
    if point.head is None:
        lines.append("not timed")
    else:
        samples = point.head.samples
        lines.append(
            f"{format_us(samples.median_us)}, half of {samples.n} calls between "
            f"{format_us(samples.q1_us)} and {format_us(samples.q3_us)}, "
            f"{point.head.condition.value}"
        )
    if point.speed_up is not None:
        lines.append(f"over {point.speed_up.baseline}: {point.speed_up.text}")
    if point.bytes_read is not None and point.bytes_written is not None and point.pedigree:
        lines.append(
            f"{format_bytes(point.bytes_read)} read, {format_bytes(point.bytes_written)} written, "
            f"{point.pedigree.value}"
        )
    else:
        lines.append("traffic not known")
    kernels = f"{point.launches} kernel{'' if point.launches == 1 else 's'}"
    peak = "" if point.peak_bytes is None else f", peak {format_bytes(point.peak_bytes)}"
    return (*lines, f"{kernels}{peak}")


def _payoff(sweep: ParameterSweep, found: Crossover) -> str:
    """Where a strategy starts to pay."""
    name, title, base = sweep.name, found.series.title, found.baseline.title
    first, last = found.compared[0], found.compared[-1]
    if found.at is None:
        return _no_payoff(sweep, found)
    to = f"{_ratio(found.at)} there, {_ratio(last)} at {value_text(last.value)}"
    if found.at is last:
        to = f"{_ratio(last)} there"
    if found.payoff is Payoff.FROM_THE_START:
        return (
            f"{title} is faster than {base} at every {name} compared: {_ratio(first)} at "
            f"{value_text(first.value)}, {_ratio(last)} at {value_text(last.value)}."
        )
    start = f"{title} is faster than {base} from {name} {value_text(found.at.value)} on ({to})"
    below = found.below
    reason = _launching(below) if below is not None else ""
    if not reason:
        return f"{start}."
    return f"{start}; below that launching dominates: {reason}."


def _no_payoff(sweep: ParameterSweep, found: Crossover) -> str:
    title, base = found.series.title, found.baseline.title
    last = found.compared[-1]
    if found.payoff is Payoff.NEVER:
        return (
            f"{title} is nowhere faster than {base} beyond noise: {len(found.compared)} values of "
            f"{sweep.name} compared, up to {value_text(last.value)}."
        )
    return (
        f"{title} is faster than {base} at some {sweep.name} and not at the largest compared, "
        f"{value_text(last.value)}."
    )


def _launching(point: ParameterPoint) -> str:
    """Evidence that a call waits for the host: its kernels take less than launching them does."""
    timing, samples = point.run.timing, point.usable_time
    if timing is None or samples is None or point.run.device.kind is not DeviceKind.CUDA:
        return ""
    host, kernels_us = timing.host, timing.launch_total_us
    if host is None or kernels_us is None or kernels_us >= SHARE_OF_LAUNCHING * samples.median_us:
        return ""
    if host.median_us < kernels_us:
        return ""
    return (
        f"at {value_text(point.value)} its kernels take {format_us(kernels_us)} and the host takes "
        f"{format_us(host.median_us)} to launch them"
    )


def _traffic(sweep: ParameterSweep) -> tuple[str, ...]:
    """How traffic grows, where it grows under one strategy and not under another."""
    found = [each for s in sweep.series if (each := growth(sweep, s.spec)) is not None]
    growing = [each for each in found if each.bytes_a_unit > 0]
    constant = [each for each in found if each.is_constant]
    if not growing or not constant:
        return ()
    both = [_growing(each, sweep.name) for each in growing] + [_constant(each) for each in constant]
    n = growing[0].n
    return (f"{'; '.join(both)}. Read off {n} points.",)


def _growing(found: Growth, name: str) -> str:
    return (
        f"{found.series.title} reads and writes {format_bytes(found.bytes_a_unit)} more for each "
        f"{name} ({found.pedigree.value})"
    )


def _constant(found: Growth) -> str:
    return (
        f"{found.series.title} stays at {format_bytes(found.mean_bytes)} ({found.pedigree.value})"
    )


def _best_values(sweep: ParameterSweep) -> tuple[str, ...]:
    """Of values that are no numbers: which is the fastest under each strategy.

    Where it matters most comes first.
    """
    if all(map(is_number, sweep.values)):
        return ()
    series = sorted(sweep.series, key=_spread, reverse=True)
    return tuple(filter(None, (_best_value(sweep.name, each) for each in series)))


def _spread(series: Series) -> float:
    """How many times as long the slowest value takes as the fastest; 0 where there are no two."""
    times = [time.median_us for point in series.points if (time := point.usable_time)]
    return max(times) / min(times) if len(times) > 1 and min(times) > 0 else 0.0


def _best_value(name: str, series: Series) -> str:
    timed = [(point, point.usable_time) for point in series.points]
    known = [(point, time) for point, time in timed if time is not None]
    if len(known) < 2:
        return ""
    known.sort(key=lambda item: item[1].median_us)
    (best, time), (second, next_time) = known[0], known[1]
    if ranges_overlap(time, next_time):
        return (
            f"{series.title}: {name}={value_text(best.value)} and {name}="
            f"{value_text(second.value)} are equal within noise, {format_us(time.median_us)}."
        )
    others = ", ".join(
        f"{name}={value_text(point.value)} takes {_times(other, time)} as long"
        for point, other in known[1:]
    )
    return (
        f"{series.title}: {name}={value_text(best.value)} is the fastest, "
        f"{format_us(time.median_us)}; {others}."
    )


def _times(other: Samples, best: Samples) -> str:
    return format_ratio(other.median_us / best.median_us)


def _failures(sweep: ParameterSweep) -> tuple[str, ...]:
    told = []
    for series in sweep.series:
        by_label: dict[str, list[Scalar]] = {}
        for point in series.points:
            if point.error:
                by_label.setdefault(failure_label(point.run), []).append(point.value)
        told += [
            f"{series.title} {_ended(label)} at {sweep.name} {_listed(values)}."
            for label, values in by_label.items()
        ]
    return tuple(told)


def _ended(label: str) -> str:
    return "did not fit in memory" if label == OUT_OF_MEMORY else "failed"


def _distrusted(sweep: ParameterSweep) -> tuple[str, ...]:
    told = []
    for series in sweep.series:
        values = [point.value for point in series.points if point.distrust]
        if values:
            told.append(
                f"The times of {series.title} at {sweep.name} {_listed(values)} are not used: "
                "a check failed."
            )
    return tuple(told)


def _listed(values: Sequence[Scalar]) -> str:
    texts = [value_text(value) for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _ratio(point: ParameterPoint) -> str:
    assert point.speed_up is not None
    return point.speed_up.text
