"""Where the launches of a run lie on its clock: traced durations, gaps fitted to the true total."""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.run import Launch, Run
from explorer.model.streams import LaunchTraffic

UNTIMED_TOTAL_US = 1_000.0
"""Length of the clock where a run holds no times at all; the picture then says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSpans:
    """The launches on the clock.

    Attributes:
        spans: Start and end of each, in microseconds.
        total_us: Length of the clock.
        trace_total_us: The same under the profiler, None if not traced.
        is_timed: Whether the durations were traced.
        duration_scale: 1, or less where the traced durations exceed the measured total.
    """

    spans: tuple[tuple[float, float], ...]
    total_us: float
    trace_total_us: float | None
    is_timed: bool
    duration_scale: float


def lay_out(run: Run, traffic: Sequence[LaunchTraffic]) -> ClockSpans:
    """Place the launches: traced durations, gaps scaled to the unprofiled total."""
    spans, is_traced = _traced_spans(run.launches, traffic)
    timing = run.timing
    measured = timing and (timing.cold or timing.warm or timing.graph)
    busy_us, gaps = _busy_and_gaps(spans)
    trace_total_us = busy_us + sum(gaps.values())
    total_us = measured.median_us if measured else trace_total_us
    # Profiled kernels can add up to more than the whole call takes without the profiler.
    scale = min(1.0, total_us / busy_us)
    spare_us = max(0.0, total_us - busy_us)
    moved = _with_gaps(spans, _scaled_gaps(gaps, spare_us))
    if not is_traced and not measured:
        scale, total_us = UNTIMED_TOTAL_US / busy_us, UNTIMED_TOTAL_US
    return ClockSpans(
        spans=tuple((start * scale, _snap(end * scale, total_us)) for start, end in moved),
        total_us=total_us,
        trace_total_us=trace_total_us if is_traced else None,
        is_timed=is_traced,
        duration_scale=scale if is_traced else 1.0,
    )


def _snap(end_us: float, total_us: float) -> float:
    """The end, or the total where only rounding keeps them apart: the last launch must end."""
    return total_us if abs(end_us - total_us) <= 1e-9 * total_us else end_us


def _traced_spans(
    launches: Sequence[Launch], traffic: Sequence[LaunchTraffic]
) -> tuple[list[tuple[float, float]], bool]:
    """Start and end of each launch as traced, from 0; and whether they were traced at all.

    A launch the trace has no duration for gets the mean of the others; without any trace the
    launches follow each other with lengths in proportion to their bytes.
    """
    known = [launch.duration_us for launch in launches if launch.duration_us]
    if known:
        mean_us = sum(known) / len(known)
        lengths = [launch.duration_us or mean_us for launch in launches]
    else:
        weights = [t.read.n_bytes + t.written.n_bytes for t in traffic]
        least = max(1.0, 0.02 * max(weights))
        lengths = [max(least, weight) for weight in weights]
    spans: list[tuple[float, float]] = []
    reached_us = 0.0
    origin_us = min((x.start_us for x in launches if x.start_us is not None), default=0.0)
    for launch, length in zip(launches, lengths, strict=True):
        start_us = reached_us
        if known and launch.start_us is not None:
            start_us = launch.start_us - origin_us
        spans.append((start_us, start_us + length))
        reached_us = max(reached_us, start_us + length)
    return spans, bool(known)


def _busy_and_gaps(spans: Sequence[tuple[float, float]]) -> tuple[float, dict[int, float]]:
    """Time in which at least one launch runs, and the gap before each one that nothing overlaps.

    A launch that starts as another ends has a gap of 0; the first has none.
    """
    busy_us, reached_us = 0.0, 0.0
    gaps: dict[int, float] = {}
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        start_us, end_us = spans[i]
        if reached_us > 0 and start_us >= reached_us:
            gaps[i] = start_us - reached_us
        reached_us = max(reached_us, start_us)
        busy_us += max(0.0, end_us - reached_us)
        reached_us = max(reached_us, end_us)
    return busy_us, gaps


def _scaled_gaps(gaps: dict[int, float], spare_us: float) -> dict[int, float]:
    """The gaps with the sum ``spare_us``; equal ones where the trace has launches end to end."""
    traced_us = sum(gaps.values())
    if traced_us > 0:
        return {i: gap * spare_us / traced_us for i, gap in gaps.items()}
    return {i: spare_us / len(gaps) for i in gaps}


def _with_gaps(
    spans: Sequence[tuple[float, float]], gaps: dict[int, float]
) -> list[tuple[float, float]]:
    """The spans moved so that each has the gap given before it; overlaps stay as they are."""
    moved: list[tuple[float, float]] = list(spans)
    old_us, new_us = 0.0, 0.0
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        start_us, end_us = spans[i]
        begins_us = new_us + gaps.get(i, 0.0) + min(0.0, start_us - old_us)
        moved[i] = (begins_us, begins_us + end_us - start_us)
        old_us, new_us = max(old_us, end_us), max(new_us, moved[i][1])
    return moved
