"""Placing launches on the shared axis, ticks, the view, and the lanes' level of detail."""

from dataclasses import replace

import numpy as np
import pytest

from explorer.model.lanes import Category, category_of, make_lane
from explorer.model.run import Clock, Launch, Run, Samples, Timing
from explorer.model.timeline import (
    MAX_GAP_SCALE,
    TimeView,
    nice_ticks,
    schedule,
)
from tests.fixtures_runs import eager_attention, failed_run, long_run


def samples(median_us: float) -> Samples:
    return Samples(
        samples_us=(median_us,), median_us=median_us, q1_us=median_us, q3_us=median_us, n=1,
        clock=Clock.EVENTS,
    )  # fmt: skip


def run_of(pieces: list[tuple[float | None, float | None]], total_us: float | None) -> Run:
    """A run with launches at (start, duration) and a cold median."""
    launches = tuple(
        Launch(kernel=f"k{i}", title=f"k{i}", ops=(f"op{i}",), start_us=start, duration_us=duration)
        for i, (start, duration) in enumerate(pieces)
    )
    timing = None if total_us is None else Timing(cold=samples(total_us))
    return replace(eager_attention(), launches=launches, timing=timing)


def test_gaps_shrink_to_the_unprofiled_time_and_durations_stay() -> None:
    # Traced: 10 busy, 20 idle, 30 busy, 40 idle, 10 busy. Unprofiled 80: 60 of idle become 30.
    run = run_of([(0, 10), (30, 30), (100, 10)], 80)
    made = schedule(run)
    assert made is not None
    assert [span.duration_us for span in made.spans] == [10, 30, 10]
    assert [span.start_us for span in made.spans] == [0, 20, 70]
    assert made.spans[-1].end_us == made.total_us == 80
    assert (made.trace_total_us, made.gap_scale, made.duration_scale) == (110, 0.5, 1)
    assert made.unexplained_us == 0


def test_gaps_grow_but_no_further_than_is_believable() -> None:
    made = schedule(run_of([(0, 50), (60, 50)], 118))
    assert made is not None
    assert made.gap_scale == pytest.approx(1.8)
    assert made.spans[1].end_us == pytest.approx(118)

    slower = schedule(run_of([(0, 50), (60, 50)], 200))
    assert slower is not None
    assert slower.gap_scale == MAX_GAP_SCALE
    assert slower.spans[1].start_us == 70
    assert slower.unexplained_us == pytest.approx(200 - 120)


def test_durations_shrink_only_when_they_alone_exceed_the_total() -> None:
    made = schedule(run_of([(0, 60), (80, 40)], 50))
    assert made is not None
    assert made.duration_scale == 0.5
    assert [(s.start_us, s.duration_us) for s in made.spans] == [(0, 30), (30, 20)]


def test_overlapping_streams_leave_no_gap_and_keep_their_overlap() -> None:
    # 0-40 and 20-60 on two streams, idle 60-100, then 100-120: busy 80, idle 40; total 100.
    made = schedule(run_of([(0, 40), (20, 40), (100, 20)], 100))
    assert made is not None
    assert made.gap_scale == 0.5
    assert [s.start_us for s in made.spans] == [0, 20, 80]


def test_spans_come_by_start_and_the_first_starts_at_zero() -> None:
    made = schedule(run_of([(50, 5), (20, 10)], None))
    assert made is not None
    assert [(s.index, s.start_us) for s in made.spans] == [(1, 0), (0, 30)]


def test_without_starts_launches_follow_each_other() -> None:
    made = schedule(run_of([(None, 10), (None, 20)], 30))
    assert made is not None
    assert [(s.start_us, s.end_us) for s in made.spans] == [(0, 10), (10, 30)]


def test_an_untimed_run_keeps_the_trace_and_says_so() -> None:
    made = schedule(run_of([(0, 10), (30, 30)], None))
    assert made is not None
    assert (made.total_us, made.timed) == (60, False)


def test_a_run_without_durations_has_no_schedule() -> None:
    assert schedule(failed_run()) is None
    assert schedule(run_of([(0, None)], 10)) is None


def test_fixture_totals_match_the_event_time() -> None:
    run = eager_attention()
    made = schedule(run)
    assert made is not None
    assert run.timing is not None
    assert run.timing.cold is not None
    assert made.spans[-1].end_us + made.unexplained_us == pytest.approx(run.timing.cold.median_us)


@pytest.mark.parametrize(
    ("first", "last", "most", "expected"),
    [
        (0, 5350, 8, (0, 1000, 2000, 3000, 4000, 5000)),
        (0, 1, 5, (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        (0, 10, 2, (0, 5, 10)),
        (3.2, 4.1, 4, (3.5, 4.0)),
        (0, 7, 1, (0,)),
    ],
)
def test_ticks_are_round(first: float, last: float, most: int, expected: tuple[float, ...]) -> None:
    ticks = nice_ticks(first, last, most)
    assert ticks == pytest.approx(expected)
    assert len(ticks) <= most + 1


def test_zoom_keeps_the_point_under_the_pointer() -> None:
    view = TimeView(0, 100).zoomed(4, 30, 100)
    assert (view.start_us, view.end_us) == (22.5, 47.5)
    assert (30 - view.start_us) / view.span_us == pytest.approx(0.3)


def test_the_view_stays_on_the_axis() -> None:
    assert TimeView(40, 60).panned(-90, 100) == TimeView(0, 20)
    assert TimeView(40, 60).panned(90, 100) == TimeView(80, 100)
    assert TimeView(40, 60).zoomed(1e-9, 50, 100) == TimeView(0, 100)
    deepest = TimeView(0, 100)
    for _ in range(200):
        deepest = deepest.zoomed(1.5, 50, 100)
    assert deepest.span_us == pytest.approx(1e-3)


def test_panning_keeps_the_first_lane() -> None:
    assert TimeView(0, 10, 3).panned(5, 100).first_lane == 3


def test_categories() -> None:
    launch = Launch(kernel="k", title="k", ops=("a",))
    assert category_of(launch) is Category.PLAIN
    assert category_of(replace(launch, ops=("a", "b"))) is Category.FUSED
    assert category_of(replace(launch, ops=(), is_helper=True)) is Category.HELPER


def test_overlapping_launches_get_rows_of_their_own() -> None:
    lane = make_lane(run_of([(0, 40), (20, 40), (41, 10), (70, 5)], None))
    assert [row.indices.tolist() for row in lane.rows] == [[0, 2, 3], [1]]


def test_visible_slices() -> None:
    row = make_lane(run_of([(0, 10), (20, 10), (40, 10)], None)).rows[0]
    assert row.visible(0, 100) == slice(0, 3)
    assert row.visible(12, 18) == slice(1, 1)
    assert row.visible(9, 21) == slice(0, 2)
    assert row.visible(45, 46) == slice(2, 3)


def test_busy_time_is_exact_for_any_edges() -> None:
    rng = np.random.default_rng(0)
    durations = rng.uniform(0.5, 3, 300)
    gaps = rng.uniform(0, 2, 300)
    starts = np.cumsum(durations + gaps) - durations - gaps[0]
    row = make_lane(run_of(list(zip(starts, durations, strict=True)), None)).rows[0]
    edges = np.sort(rng.uniform(-5, starts[-1] + 10, 97))
    found = row.busy_between(edges)[:, Category.PLAIN]
    first = float(starts[0])
    for low, high, busy in zip(edges[:-1], edges[1:], found, strict=True):
        begin, end = starts - first, starts - first + durations
        expected = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0, None).sum()
        assert busy == pytest.approx(expected, abs=1e-9)


def test_pointing_at_launches() -> None:
    row = make_lane(run_of([(0, 10), (20, 10)], None)).rows[0]
    assert row.at(5) == 0
    assert row.at(15) is None
    assert row.at(18.5, reach_us=2) == 1
    assert row.at(11, reach_us=2) == 0
    assert row.at(-1) is None


def test_many_launches_keep_their_busy_time() -> None:
    lane = make_lane(long_run(20_000))
    row = lane.rows[0]
    busy = row.busy_between(np.linspace(0, lane.total_us, 1001)).sum()
    assert len(lane.rows) == 1
    assert busy == pytest.approx(float((row.ends - row.starts).sum()))
