"""Counted ranges join the launches only where it is certain which is which."""

from explorer.engine.cupti.counters import RangeBytes
from explorer.engine.measure.join import join_ranges

NAMES = ("gemm", "mul", "softmax")
TIMES_US = (320.0, 500.0, 1650.0)


def ranges(*durations_us: float | None) -> tuple[RangeBytes, ...]:
    return tuple(
        RangeBytes(bytes_read=place, bytes_written=10 * place, duration_us=duration)
        for place, duration in enumerate(durations_us)
    )


def test_the_same_kernels_in_the_same_order_join() -> None:
    counted = ranges(330.0, 510.0, 1700.0)
    joined = join_ranges(counted, NAMES, NAMES, TIMES_US)
    assert joined.ranges == counted
    assert joined.refusal is None


def test_slower_clocks_under_the_profiler_do_not_matter() -> None:
    counted = ranges(1300.0, 2010.0, 6600.0)
    assert join_ranges(counted, NAMES, NAMES, TIMES_US).ranges == counted


def test_without_durations_the_names_decide() -> None:
    counted = ranges(None, None, None)
    assert join_ranges(counted, NAMES, NAMES, TIMES_US).ranges == counted


def test_a_kernel_more_or_less_joins_nothing() -> None:
    joined = join_ranges(ranges(330.0, 510.0), NAMES, NAMES, TIMES_US)
    assert joined.ranges == ()
    assert joined.refusal is not None
    assert "2 kernels and the trace 3" in joined.refusal


def test_other_kernels_than_in_the_trace_join_nothing() -> None:
    counted = ranges(330.0, 510.0, 1700.0)
    joined = join_ranges(counted, ("gemm", "softmax", "mul"), NAMES, TIMES_US)
    assert joined.ranges == ()
    assert joined.refusal is not None
    assert "number 2 is softmax, not mul" in joined.refusal


def test_a_swapped_order_shows_in_the_durations() -> None:
    joined = join_ranges(ranges(330.0, 1700.0, 510.0), NAMES, NAMES, TIMES_US)
    assert joined.ranges == ()
    assert joined.refusal is not None
    assert "kernel 2 (mul)" in joined.refusal


def test_short_kernels_may_differ_more() -> None:
    counted = ranges(330.0, 9.0, 1700.0)
    assert join_ranges(counted, NAMES, NAMES, (320.0, 2.0, 1650.0)).ranges == counted
