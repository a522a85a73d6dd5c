"""Where each launch of a run lies on the clock, those without a traced duration included."""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.run import Run
from explorer.model.streams import LaunchTraffic
from explorer.model.timeline import schedule

UNTIMED_TOTAL_US = 1_000.0
"""Length of the clock where a run holds no times at all; the picture then says so."""
LEAST_UNTIMED_SHARE = 0.02
"""Of the longest launch: without times lengths follow bytes, but none may vanish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSpans:
    """The launches on the clock.

    Attributes:
        spans: Start and end of each launch, in the run's order, in microseconds.
        total_us: Length of the clock.
        trace_total_us: The same under the profiler, None if not traced.
        is_timed: Whether the durations were traced; if not, they follow the bytes.
        duration_scale: What the traced durations were multiplied by.
        tail_us: Time at the end that is in no traced launch.
    """

    spans: tuple[tuple[float, float], ...]
    total_us: float
    trace_total_us: float | None
    is_timed: bool
    duration_scale: float
    tail_us: float


def lay_out(run: Run, traffic: Sequence[LaunchTraffic]) -> ClockSpans:
    """Place the launches of a run, on the same schedule that the timeline shows.

    A launch that the trace has no duration for takes no time, after the one before it. Without
    any trace the launches follow each other with lengths in proportion to their bytes.
    """
    traced = schedule(run)
    if traced is None:
        return _by_bytes(run, traffic)
    known = {span.index: span for span in traced.spans}
    total_us = traced.total_us
    spans: list[tuple[float, float]] = []
    reached_us = 0.0
    for i in range(len(run.launches)):
        start_us = end_us = reached_us
        if i in known:
            start_us = _snapped(known[i].start_us, reached_us, total_us)
            end_us = _snapped(known[i].end_us, total_us, total_us)
        spans.append((start_us, end_us))
        reached_us = max(reached_us, end_us)
    return ClockSpans(
        spans=tuple(spans),
        total_us=total_us,
        trace_total_us=traced.trace_total_us,
        is_timed=True,
        duration_scale=traced.duration_scale,
        tail_us=traced.unexplained_us,
    )


def _snapped(moment_us: float, edge_us: float, total_us: float) -> float:
    """The moment, or the edge where only rounding keeps them apart.

    The last launch must end with the clock, and two that follow each other without a gap must not
    run both at the moment between them.
    """
    return edge_us if abs(moment_us - edge_us) <= 1e-9 * total_us else moment_us


def _by_bytes(run: Run, traffic: Sequence[LaunchTraffic]) -> ClockSpans:
    timing = run.timing
    measured = timing and (timing.cold or timing.warm or timing.graph)
    total_us = measured.median_us if measured else UNTIMED_TOTAL_US
    weights = [one.read.n_bytes + one.written.n_bytes for one in traffic]
    least = max(1.0, LEAST_UNTIMED_SHARE * max(weights))
    lengths = [max(least, weight) for weight in weights]
    ends = [sum(lengths[: i + 1]) / sum(lengths) * total_us for i in range(len(lengths))]
    return ClockSpans(
        spans=tuple(zip([0.0, *ends], ends, strict=False)),
        total_us=total_us,
        trace_total_us=None,
        is_timed=False,
        duration_scale=1.0,
        tail_us=0.0,
    )
