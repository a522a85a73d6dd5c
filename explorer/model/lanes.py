"""Lanes of the timeline with their level of detail: numpy arrays that answer in O(log n).

A lane holds one run. Launches that overlap (several streams) lie in rows of the lane, so that
within a row starts and ends both rise and a binary search finds what is visible.
"""

import heapq
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from explorer.model.run import Launch, Run
from explorer.model.timeline import Schedule, schedule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Category(IntEnum):
    """How a launch is coloured."""

    HELPER = 0
    PLAIN = 1
    FUSED = 2


def category_of(launch: Launch) -> Category:
    """Helper (a copy, fill or seed), fused (carries more than one op) or plain."""
    if launch.is_helper:
        return Category.HELPER
    return Category.FUSED if launch.is_fused else Category.PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Launches that do not overlap, by start.

    Attributes:
        starts: Microseconds, [n].
        ends: Microseconds, [n].
        categories: Category values, [n].
        indices: Of the launches in ``run.launches``, [n].
        busy: Running sums of the durations by category, [n + 1, 3]; row i is before launch i.
    """

    starts: Floats
    ends: Floats
    categories: Ints
    indices: Ints
    busy: Floats

    def visible(self, start_us: float, end_us: float) -> slice:
        """The launches that touch the stretch."""
        first = int(np.searchsorted(self.ends, start_us, "right"))
        last = int(np.searchsorted(self.starts, end_us, "left"))
        return slice(first, max(first, last))

    def busy_between(self, edges_us: Floats) -> Floats:
        """Busy time by category in each interval between neighbouring edges, exactly.

        Args:
            edges_us: Rising times, [n + 1].

        Returns:
            Microseconds, [n, 3].
        """
        started = np.searchsorted(self.starts, edges_us, "right")
        sums = self.busy[started].copy()
        last = np.maximum(started - 1, 0)
        # The launch under an edge counts only as far as the edge.
        ahead = np.where(started > 0, np.maximum(self.ends[last] - edges_us, 0.0), 0.0)
        sums[np.arange(len(edges_us)), self.categories[last]] -= ahead
        return np.diff(sums, axis=0)

    def at(self, time_us: float, reach_us: float = 0.0) -> int | None:
        """Index of the launch that runs at a time, or lies within ``reach_us`` of it."""
        place = int(np.searchsorted(self.starts, time_us, "right")) - 1
        near: list[tuple[float, int]] = []
        for i in (place, place + 1):
            if 0 <= i < len(self.starts):
                distance = max(self.starts[i] - time_us, time_us - self.ends[i], 0.0)
                near.append((float(distance), i))
        if not near or min(near)[0] > reach_us:
            return None
        return int(self.indices[min(near)[1]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One run on the timeline.

    Attributes:
        run: The run.
        schedule: Where its launches lie; None if the trace has no durations.
        rows: Its launches without overlaps; one row for one stream.
    """

    run: Run
    schedule: Schedule | None
    rows: tuple[Row, ...]

    @property
    def total_us(self) -> float:
        """The lane's length; 0 where nothing is known."""
        return self.schedule.total_us if self.schedule else 0.0


def make_lane(run: Run) -> Lane:
    """Lay the launches of a run out; O(n log n), once a run."""
    placed = schedule(run)
    if placed is None:
        return Lane(run=run, schedule=None, rows=())
    spans, n = placed.spans, len(placed.spans)
    starts = np.fromiter((span.start_us for span in spans), np.float64, n)
    durations = np.fromiter((span.duration_us for span in spans), np.float64, n)
    indices = np.fromiter((span.index for span in spans), np.int64, n)
    categories = np.fromiter((category_of(run.launches[i]) for i in indices), np.int64, n)
    ends = starts + durations
    number = _row_numbers(starts, ends)
    rows = []
    for each in range(int(number.max()) + 1):
        mine = number == each
        rows.append(_make_row(starts[mine], ends[mine], categories[mine], indices[mine]))
    return Lane(run=run, schedule=placed, rows=tuple(rows))


def _make_row(starts: Floats, ends: Floats, categories: Ints, indices: Ints) -> Row:
    busy = np.zeros((len(starts) + 1, len(Category)))
    by_category = np.zeros((len(starts), len(Category)))
    by_category[np.arange(len(starts)), categories] = ends - starts
    np.cumsum(by_category, axis=0, out=busy[1:])
    return Row(starts=starts, ends=ends, categories=categories, indices=indices, busy=busy)


def _row_numbers(starts: Floats, ends: Floats) -> Ints:
    """The lowest row that is free when a launch starts; rounding is no overlap."""
    numbers = np.zeros(len(starts), np.int64)
    slack_us = 1e-9 * max(float(ends.max()), 1.0)
    if len(starts) < 2 or bool(np.all(starts[1:] >= ends[:-1] - slack_us)):
        return numbers
    running: list[tuple[float, int]] = []
    free: list[int] = []
    n_rows = 0
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        while running and running[0][0] <= start + slack_us:
            heapq.heappush(free, heapq.heappop(running)[1])
        if not free:
            free.append(n_rows)
            n_rows += 1
        numbers[i] = heapq.heappop(free)
        heapq.heappush(running, (end, int(numbers[i])))
    return numbers
