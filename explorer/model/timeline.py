"""Where a run's launches lie on the shared time axis: arithmetic only, tested without Qt.

The trace says how long each launch took, the unprofiled timing how long the call took. A profiler
stretches the gaps between launches, so the gaps are what is scaled to make the two agree.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.model.run import Run, Samples

Floats = NDArray[np.float64]

MAX_GAP_SCALE = 2.0
"""Gaps are stretched at most so far. A timed call that is longer still was slower for a reason the
trace does not show; drawing that as idle time between launches would invent a launch-bound chain."""


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


def headline_samples(run: Run) -> Samples | None:
    """The unprofiled times a run is judged by: cold L2, else CUDA graph, else warm."""
    if run.timing is None:
        return None
    return run.timing.cold or run.timing.graph or run.timing.warm


def scaled_launch_spans(run: Run) -> tuple[Span, ...]:
    """The launches of ``run`` by start, scaled so that the call lasts its unprofiled time.

    Empty if no launch has a duration. The one schedule that timeline, scene and export share.
    """
    made = schedule(run)
    return made.spans if made else ()


def schedule(run: Run) -> Schedule | None:
    """The launches of ``run`` with both totals and the factors between them.

    Returns:
        None if no launch has a duration: then there is nothing to draw to scale.
    """
    known = [i for i, launch in enumerate(run.launches) if launch.duration_us is not None]
    if not known:
        return None
    durations = np.array([run.launches[i].duration_us for i in known], dtype=np.float64)
    starts = _starts(run, known, durations)
    order = np.argsort(starts, kind="stable")
    starts, durations = starts[order], durations[order]
    samples = headline_samples(run)
    total = samples.median_us if samples else None
    return _scaled([known[i] for i in order], starts, durations, total)


def _starts(run: Run, known: list[int], durations: Floats) -> Floats:
    """Traced starts; back to back where the trace has none."""
    starts = [run.launches[i].start_us for i in known]
    if any(start is None for start in starts):
        return np.concatenate(([0.0], np.cumsum(durations)[:-1]))
    return np.array(starts, dtype=np.float64)


def _scaled(
    indices: list[int], starts: Floats, durations: Floats, total_us: float | None
) -> Schedule:
    """Scale gaps, and durations only where they alone exceed the total.

    Launches on several streams may overlap; a gap is time in which none of them runs.
    """
    origin = starts[0]
    busy_until = np.maximum.accumulate(starts + durations)
    gaps = np.maximum(starts[1:] - busy_until[:-1], 0.0)
    idle_before = np.concatenate(([0.0], np.cumsum(gaps)))
    gap_us = float(idle_before[-1])
    trace_us = float(busy_until[-1] - origin)
    busy_us = trace_us - gap_us
    total = trace_us if total_us is None else total_us
    duration_scale = min(1.0, total / busy_us) if busy_us > 0 else 1.0
    left_us = max(total - busy_us, 0.0)
    gap_scale = min(left_us / gap_us, MAX_GAP_SCALE) if gap_us > 0 else 1.0
    shown_starts = (starts - origin - idle_before) * duration_scale + idle_before * gap_scale
    shown_durations = durations * duration_scale
    return Schedule(
        spans=tuple(map(Span, indices, shown_starts.tolist(), shown_durations.tolist())),
        total_us=total,
        trace_total_us=trace_us,
        gap_scale=gap_scale,
        duration_scale=duration_scale,
        unexplained_us=max(left_us - gap_us * gap_scale, 0.0),
        timed=total_us is not None,
    )
