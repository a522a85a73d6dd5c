"""What charts, cards and tables say about runs and launches: one wording for all of them.

Pure functions of the records; no number leaves here without its pedigree.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from explorer.model.comparison import (
    NOT_CHECKED_WORDS,
    SpeedUp,
    Verdict,
    distrust,
    find_baseline,
    headline,
    speed_up,
)
from explorer.model.errors import UsageError
from explorer.model.roofline import share_of_ceiling
from explorer.model.run import Clock, Direction, Pedigree, Run, Scalar
from explorer.model.strategies import parse_spec
from explorer.model.timeline import Schedule
from explorer.model.traffic import (
    achieved_bytes_per_s,
    launch_traffic,
    model_difference,
    run_traffic,
)
from explorer.model.units import format_bytes, format_rate, format_ratio, format_us

DASH = "–"
"""Stands where there is no value; the reason is in the tooltip beside it."""

SEPARATOR = " · "
"""Between the parts of a source line."""

CHECK_FAILED = "check failed"
"""Said in the place of a speed-up, of a run whose results or randomness are wrong."""

STALE_CEILINGS = "above the measured ceiling: measure the ceilings again"
"""Said in the place of a share over 1, which would be a lie of the ceiling's."""

_CLOCK_WORDS = {
    Clock.EVENTS: "device events",
    Clock.GRAPH: "graph replay",
    Clock.TRACE: "trace",
    Clock.HOST: "host clock",
}


def run_title(run: Run) -> str:
    """What a run is called: the user's name, or the strategy with the backend that really ran."""
    if run.label:
        return run.label
    strategy = run.strategy
    try:
        # The table's titles are short, and the same for recordings of every release.
        title = parse_spec(strategy.spec).title
    except UsageError:
        title = strategy.title or strategy.spec
    if strategy.backend and strategy.backend.lower() not in title.lower():
        title += f" · {strategy.backend}"
    return title


def direction_words(direction: Direction) -> str:
    """``forward``, or ``forward + backward``."""
    return " + ".join(direction.value.split("+"))


def with_direction(words: str, direction: Direction) -> str:
    """Words, with the direction behind them where it is not forward alone."""
    if direction is Direction.FORWARD:
        return words
    return SEPARATOR.join(filter(None, (words, direction_words(direction))))


def run_name(run: Run) -> str:
    """What a run is called among runs of any work: its title, and the direction if need be."""
    return run.label or with_direction(run_title(run), run.chain.direction)


def setting_text(run: Run) -> str:
    """Sizes, type of number and direction of a run: ``4,096 × 8,192 · bf16``."""
    return with_direction(size_text(run.chain.parameters), run.chain.direction)


def parameters_text(parameters: Mapping[str, Scalar]) -> str:
    """A setting on one line: sizes joined by ×, then its words: ``2 × 16 · bf16 · mask none``.

    Whole numbers are sizes up to the type of number; what comes behind it is told by name.
    """
    sizes: list[str] = []
    rest: list[str] = []
    for name, value in parameters.items():
        if isinstance(value, str):
            # A type of number says by itself what it is.
            rest.append(value if name == "dtype" else f"{name} {value}")
        elif isinstance(value, int) and not isinstance(value, bool):
            if rest:
                rest.append(f"{name} {value:,}")
            else:
                sizes.append(f"{value:,}")
    if len(parameters) == 1 and sizes:
        # A number alone would not say of what.
        return f"{next(iter(parameters))} {sizes[0]}"
    return SEPARATOR.join([" × ".join(sizes), *rest] if sizes else rest)


def parameters_sentence(parameters: Mapping[str, Scalar]) -> str:
    """A setting with every name: ``batch 2, heads 16, dropout 0.1``."""
    return ", ".join(
        f"{name} {value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else f"{name} {value}"
        for name, value in parameters.items()
    )


def size_text(parameters: Mapping[str, Scalar]) -> str:
    """Sizes and type of number alone: ``2 × 16 × 4,096 × 64 · bf16``."""
    kept = {k: v for k, v in parameters.items() if k == "dtype" or not isinstance(v, str)}
    return parameters_text(kept)


def short_title(title: str) -> str:
    """A title without its family's name: what tells two options apart is their end."""
    family, dot, option = title.partition(" · ")
    return option if dot and family == "compile" else title


def run_color_name(run: Run) -> str:
    """The theme colour that stands for a run: that of fused kernels if it has one."""
    return "fused" if any(launch.is_fused for launch in run.launches) else "plain"


def verdict_color_name(verdict: Verdict) -> str:
    """The theme colour of a comparison: faster is good, slower is worth a look."""
    return {
        Verdict.FASTER: "compute",
        Verdict.SLOWER: "warning",
        Verdict.EQUAL: "muted",
        Verdict.WITHHELD: "wrong",
    }[verdict]


def ratio_words(found: SpeedUp) -> str:
    """``1.42× faster``, ``1.10× slower`` or words where there must be no number."""
    if found.ratio is None or found.verdict is Verdict.EQUAL:
        return found.text
    word = (
        found.verdict.value if found.is_checked else f"{found.verdict.value}, {NOT_CHECKED_WORDS}"
    )
    ratio = found.ratio if found.verdict is Verdict.FASTER else 1 / found.ratio
    if ratio < 1.005:
        return f"{percent(ratio - 1)} {word}"
    return f"{format_ratio(ratio)} {word}"


def compared_words(run: Run, found: SpeedUp | None) -> tuple[str, Verdict]:
    """How a run compares, and of which kind that is; a check that failed comes before all else."""
    if distrust(run):
        return CHECK_FAILED, Verdict.WITHHELD
    return (ratio_words(found), found.verdict) if found else ("", Verdict.EQUAL)


def end_label(run: Run, runs: Sequence[Run], made: Schedule | None) -> tuple[str, SpeedUp | None]:
    """What stands behind a lane: its time, and how it compares with the baseline."""
    timed = headline(run)
    if timed is not None:
        time = format_us(timed.samples.median_us)
    elif made is not None:
        time = f"{format_us(made.total_us)} traced"
    else:
        return "", None
    base = find_baseline(run, runs)
    return time, speed_up(run, base) if base else None


def timing_sentence(run: Run) -> str:
    """The unprofiled time with everything that qualifies it."""
    timed = headline(run)
    if timed is None:
        return "Not timed without the profiler."
    samples = timed.samples
    return (
        f"Unprofiled: median {format_us(samples.median_us)}, quartiles {format_us(samples.q1_us)} "
        f"to {format_us(samples.q3_us)}, n = {samples.n}, {_CLOCK_WORDS[samples.clock]}, "
        f"{timed.condition.value}."
    )


def schedule_sentence(made: Schedule | None) -> str:
    """The traced time, and what was done to fit it to the unprofiled one."""
    if made is None:
        return "The trace has no durations for this run."
    parts = [f"Traced: {format_us(made.trace_total_us)}"]
    if made.duration_scale < 1:
        parts.append(f"durations shown × {made.duration_scale:.3f}, gaps left out")
    elif abs(made.gap_scale - 1) > 5e-3:
        parts.append(f"gaps shown × {made.gap_scale:.2f}")
    if made.unexplained_us > 0.005 * made.total_us:
        parts.append(f"the last {format_us(made.unexplained_us)} are in no traced launch")
    return "; ".join(parts) + "."


def pedigree_bytes(n_bytes: int | None, pedigree: Pedigree | None) -> str:
    """``1.07 GB counted``, or a dash."""
    if n_bytes is None or pedigree is None:
        return DASH
    return f"{format_bytes(n_bytes)} {pedigree.value}"


def percent(share: float) -> str:
    """``0.314`` -> ``31 %``; one decimal below ten per cent, and above 99: less than all of it."""
    value = share * 100
    if 99 < abs(value) < 100:
        return f"{math.copysign(min(abs(value), 99.9), value):.1f} %"
    return f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"


def signed_percent(share: float) -> str:
    """``-0.37`` -> ``−37 %`` with a true minus sign; no sign where it rounds to nothing.

    From elevenfold on the factor itself is given, ``× 192``.
    """
    if share >= 10:
        return f"× {share + 1:,.0f}"
    size = percent(abs(share))
    if size == percent(0):
        return size
    return f"{'+' if share > 0 else '−'}{size}"


def rate_words(run: Run, index: int) -> str:
    """Achieved bandwidth of a launch with its share of the measured ceiling, or why not."""
    launch = run.launches[index]
    achieved = achieved_bytes_per_s(launch)
    if achieved is None:
        return "bandwidth unknown: bytes or duration are missing"
    share = share_of_ceiling(launch, run.device.ceilings)
    if share is None:
        return f"{format_rate(achieved[0])} · ceiling not measured"
    if share > 1:
        return f"{format_rate(achieved[0])} · {STALE_CEILINGS}"
    return f"{format_rate(achieved[0])} · {percent(share)} of the measured ceiling"


def launch_lines(run: Run, index: int) -> tuple[str, ...]:
    """A launch in a few lines: title, kernel, ops, time, bytes with pedigree, bandwidth."""
    launch = run.launches[index]
    lines = [launch.title, launch.kernel]
    if launch.is_helper:
        lines.append("helper: the chain as written does not ask for it")
    elif launch.ops:
        lines.append(("fused: " if launch.is_fused else "op: ") + " + ".join(launch.ops))
    time = DASH if launch.duration_us is None else f"{format_us(launch.duration_us)} traced"
    lines.append(f"launch {index + 1} of {len(run.launches)} · {time}")
    best = launch_traffic(launch).best
    if best is None:
        lines.append("bytes unknown")
    else:
        read, written, pedigree = best
        lines.append(
            f"read {format_bytes(read)} · written {format_bytes(written)} · {pedigree.value}"
        )
        differences = [
            f"{word} {signed_percent(share)}"
            for word, n_bytes in (("read", launch.bytes_read), ("written", launch.bytes_written))
            if (share := model_difference(n_bytes)) is not None
        ]
        if differences:
            lines.append("counted against the model: " + ", ".join(differences))
    lines.append(rate_words(run, index))
    return tuple(lines)


def launch_tooltip(run: Run, index: int, made: Schedule | None) -> str:
    """A launch as rich text for a tooltip, with both totals of its run at the end."""
    title, kernel, *rest = launch_lines(run, index)
    lines = [f"<b>{escape(title)}</b>", f"<code>{escape(kernel)}</code>", *map(escape, rest)]
    return "<br>".join(lines) + "<hr>" + escape(f"{run_title(run)}. {run_sentences(run, made)}")


def run_tooltip(run: Run, made: Schedule | None) -> str:
    """A run as rich text for a tooltip."""
    return f"<b>{escape(run_title(run))}</b><br>{escape(run_sentences(run, made))}"


def run_sentences(run: Run, made: Schedule | None) -> str:
    """Both totals of a run, or its error."""
    return run.error or f"{timing_sentence(run)} {schedule_sentence(made)}"


def source_words(runs: Sequence[Run], *, recorded: bool) -> str:
    """Where a picture's numbers come from, for its foot: device, day, versions, pedigree."""
    if not runs:
        return "no runs"
    parts: list[str] = ["RECORDED"] if recorded else []
    parts += _unlike(run.device.name for run in runs)
    parts += [f"driver {driver}" for driver in _unlike(run.device.driver or "" for run in runs)]
    parts += _unlike(run.created_at[:10] for run in runs)
    parts += [f"torch {version}" for version in _unlike(run.versions.torch for run in runs)]
    parts += [f"triton {version}" for version in _unlike(run.versions.triton or "" for run in runs)]
    parts += [
        f"Kernel Explorer {version}" for version in _unlike(run.versions.explorer for run in runs)
    ]
    return SEPARATOR.join([*parts, pedigree_words(runs)])


def pedigree_words(runs: Sequence[Run]) -> str:
    """How the times and bytes of the runs were taken: ``times: events, cold L2 · bytes: ...``."""
    times = _unlike(
        f"{_CLOCK_WORDS[timed.samples.clock]}, {timed.condition.value}"
        for run in runs
        if (timed := headline(run))
    )
    kinds = _unlike(best[2].value for run in runs if (best := run_traffic(run).best))
    policies = _unlike(run.counters.cache_policy for run in runs if run.counters)
    parts = (f"times: {' / '.join(times) or 'none'}", f"bytes: {' / '.join(kinds) or 'none'}")
    told = SEPARATOR.join(parts)
    return told + (f" ({' / '.join(policies)})" if policies and "counted" in kinds else "")


def _unlike(words: Iterable[str]) -> list[str]:
    return [word for word in dict.fromkeys(words) if word]
