"""Where a run's launches lie on the shared time axis: arithmetic only, tested without Qt.

The trace says how long each launch took, the unprofiled timing how long the call took. A profiler
stretches the gaps between launches, so the gaps are what is scaled to make the two agree.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from explorer.model.comparison import headline
from explorer.model.run import Run

MAX_GAP_SCALE = 2.0
"""Gaps are stretched at most so far. A timed call that is longer still was slower for a reason
the trace does not show; drawn as idle time it would make any chain look launch-bound."""


MIN_SPAN_US = 1e-3
"""Zooming in ends at a nanosecond from edge to edge, the resolution of a trace."""


@dataclass(frozen=True, slots=True)
class Span:
    """One launch on the shared axis.

    Attributes:
        index: Of the launch in ``run.launches``.
        start_us: Since the start of the call.
        duration_us: As drawn and played.
    """

    index: int
    start_us: float
    duration_us: float

    @property
    def end_us(self) -> float:
        """When it ends, since the start of the call."""
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A run's launches scaled onto its unprofiled time.

    Attributes:
        spans: The launches that have a duration, by start.
        total_us: The unprofiled time of the call; the lane's length.
        trace_total_us: First launch's start to last launch's end as traced.
        gap_scale: What the traced gaps were multiplied by.
        duration_scale: What the traced durations were multiplied by: 1 unless they alone
            exceed ``total_us``.
        unexplained_us: Part of ``total_us`` after the last launch, in no launch and no traced gap.
        timed: Whether ``total_us`` was measured unprofiled; else it is the trace's own.
    """

    spans: tuple[Span, ...]
    total_us: float
    trace_total_us: float
    gap_scale: float
    duration_scale: float
    unexplained_us: float
    timed: bool


def schedule(run: Run) -> Schedule | None:
    """The launches of ``run``, scaled so that the call lasts its unprofiled time.

    The one schedule that timeline, scene and export share.

    Returns:
        None if no launch has a duration: then there is nothing to draw to scale.
    """
    known = [i for i, launch in enumerate(run.launches) if launch.duration_us is not None]
    if not known:
        return None
    durations = [run.launches[i].duration_us or 0.0 for i in known]
    starts = _starts(run, known, durations)
    order = sorted(range(len(known)), key=starts.__getitem__)
    timed = headline(run)
    return _scaled(
        [known[i] for i in order],
        [starts[i] for i in order],
        [durations[i] for i in order],
        timed.samples.median_us if timed else None,
    )


def _starts(run: Run, known: Sequence[int], durations: Sequence[float]) -> list[float]:
    """Traced starts; back to back where the trace has none."""
    starts = [start for i in known if (start := run.launches[i].start_us) is not None]
    if len(starts) < len(known):
        return [0.0, *accumulate(durations[:-1])]
    return starts


def _scaled(
    indices: Sequence[int],
    starts: Sequence[float],
    durations: Sequence[float],
    total_us: float | None,
) -> Schedule:
    """Scale gaps, and durations only where they alone exceed the total.

    Launches on several streams may overlap; a gap is time in which none of them runs.
    """
    origin = busy_until = starts[0]
    gap_us, idle_before = 0.0, []
    for start, duration in zip(starts, durations, strict=True):
        gap_us += max(start - busy_until, 0.0)
        idle_before.append(gap_us)
        busy_until = max(busy_until, start + duration)
    trace_us = busy_until - origin
    busy_us = trace_us - gap_us
    total = trace_us if total_us is None else total_us
    duration_scale = min(1.0, total / busy_us) if busy_us > 0 else 1.0
    left_us = max(total - busy_us, 0.0)
    gap_scale = min(left_us / gap_us, MAX_GAP_SCALE) if gap_us > 0 else 1.0
    return Schedule(
        spans=tuple(
            Span(
                index,
                (start - origin - idle) * duration_scale + idle * gap_scale,
                duration * duration_scale,
            )
            for index, start, duration, idle in zip(
                indices, starts, durations, idle_before, strict=True
            )
        ),
        total_us=total,
        trace_total_us=trace_us,
        gap_scale=gap_scale,
        duration_scale=duration_scale,
        unexplained_us=max(left_us - gap_us * gap_scale, 0.0),
        timed=total_us is not None,
    )


def nice_ticks(first: float, last: float, most: int) -> tuple[float, ...]:
    """Round values from ``first`` to ``last``, 1, 2 or 5 times a power of ten apart.

    Args:
        first: Lower end of the axis.
        last: Upper end, above ``first``.
        most: At most so many steps fit, at least 1.

    Returns:
        Multiples of the step within the ends, which are not forced onto a tick.
    """
    rough = (last - first) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    lowest, highest = math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9)
    return tuple(i * step for i in range(lowest, highest + 1))


@dataclass(frozen=True, slots=True)
class TimeView:
    """The stretch of the time axis on screen.

    Attributes:
        start_us: At the left edge.
        end_us: At the right edge, above ``start_us``.
        first_lane: The topmost lane, where not all of them fit.
    """

    start_us: float
    end_us: float
    first_lane: int = 0

    @property
    def span_us(self) -> float:
        """How much time is shown."""
        return self.end_us - self.start_us

    def zoomed(self, factor: float, around_us: float, limit_us: float) -> "TimeView":
        """Show ``factor`` times less time, ``around_us`` staying where it is on screen.

        Args:
            factor: Above 1 zooms in.
            around_us: The fixed point.
            limit_us: The whole axis; the view never leaves it, nor shows less than 1 ns.
        """
        span = min(max(self.span_us / factor, min(MIN_SPAN_US, limit_us)), limit_us)
        share = (around_us - self.start_us) / self.span_us
        return self._clamped(around_us - share * span, span, limit_us)

    def panned(self, by_us: float, limit_us: float) -> "TimeView":
        """Move later (positive) or earlier, as far as the axis goes."""
        return self._clamped(self.start_us + by_us, self.span_us, limit_us)

    def _clamped(self, start_us: float, span_us: float, limit_us: float) -> "TimeView":
        start = min(max(start_us, 0.0), max(limit_us - span_us, 0.0))
        return replace(self, start_us=start, end_us=start + span_us)
