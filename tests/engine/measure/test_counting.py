"""Counting the launches of a call, with a stand-in for the GPU's trace and counters."""

from collections.abc import Callable

import pytest

from explorer.engine.cupti.counters import CounterReading, RangeBytes
from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.measure import launches
from explorer.engine.measure.launches import count_launches
from explorer.engine.measure.trace import GpuEvent

Call = Callable[[], object]

RANGES = (
    RangeBytes(bytes_read=34, bytes_written=1074, duration_us=321.0),
    RangeBytes(bytes_read=1074, bytes_written=1076, duration_us=501.0),
)
TOTAL = RangeBytes(bytes_read=1110, bytes_written=2140)


def reading(*ranges: RangeBytes, by_launch: bool = True) -> CounterReading:
    return CounterReading(
        ranges=ranges, by_launch=by_launch, chip="GH100", cupti_release="13.0",
        metric_names=("dram__bytes_read.sum", "dram__bytes_write.sum"), passes=1, run_calls=1,
        set_up_s=0.7, run_s=0.1,
    )  # fmt: skip


class StandIn:
    """Counters that know what they will say."""

    def __init__(self, *ranges: RangeBytes) -> None:
        self.ranges = ranges
        self.counted_whole: list[Call] = []

    def measure(self, work: Call) -> CounterReading:
        work()
        return reading(*self.ranges)

    def measure_total(self, work: Call) -> CounterReading:
        self.counted_whole.append(work)
        return reading(TOTAL, by_launch=False)


class Refusing(StandIn):
    """Counters that the driver keeps to itself."""

    def measure(self, work: Call) -> CounterReading:
        raise CounterRefused("The driver keeps the counters to the administrator.")


@pytest.fixture(autouse=True)
def traced(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = (("gemm", 320.0, True), ("Memset", 1.0, False), ("mul", 500.0, True))

    def trace(work: Call) -> tuple[GpuEvent, ...]:
        work()
        return tuple(
            GpuEvent(name=name, is_kernel=is_kernel, start_us=0.0, duration_us=duration)
            for name, duration, is_kernel in kernels
        )

    monkeypatch.setattr(launches, "trace", trace)


def test_ranges_join_and_the_run_says_how() -> None:
    calls = []
    counted, ranges = count_launches(StandIn(*RANGES), lambda: calls.append(1), None)
    assert ranges == RANGES
    assert counted.joined
    assert counted.source == "CUPTI range profiler"
    assert "GH100" in counted.sentence
    assert counted.passes == 1
    assert counted.seconds == pytest.approx(0.8)
    assert counted.total_bytes_read is None
    # A traced call before, the counted one, and a traced call after.
    assert len(calls) == 3


def test_a_kernel_the_counters_missed_joins_nothing() -> None:
    counted, ranges = count_launches(StandIn(RANGES[0]), lambda: None, None)
    assert ranges == ()
    assert not counted.joined
    assert "not joined" in counted.sentence


def test_a_refusal_is_passed_on_word_by_word() -> None:
    counted, ranges = count_launches(Refusing(), lambda: None, None)
    assert ranges == ()
    assert counted.source is None
    assert counted.sentence == "The driver keeps the counters to the administrator."


def test_a_graph_has_a_total_of_its_own() -> None:
    def replay() -> None:
        """Stands for a CUDA graph."""

    source = StandIn(*RANGES)
    counted, ranges = count_launches(source, lambda: None, replay)
    assert ranges == RANGES
    assert source.counted_whole == [replay]
    assert (counted.total_bytes_read, counted.total_bytes_written) == (1110, 2140)
    assert "one by one" in counted.sentence
