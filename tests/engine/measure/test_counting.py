"""Counting the launches of a call, with a stand-in for the GPU's trace and counters."""

import pytest
import torch

from explorer.engine.cupti.counters import CounterReading, RangeBytes
from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.measure import counting
from explorer.engine.measure.counting import Call, Counted, count_launches
from explorer.engine.measure.trace import GpuEvent
from explorer.model.run import Counters

Kernels = tuple[tuple[str, float, bool], ...]

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


def counted_of(counted: Counted) -> tuple[Counters, tuple[RangeBytes, ...]]:
    return counted.counters, counted.ranges


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
        """Refuse."""
        raise CounterRefused("The driver keeps the counters to the administrator.")


class Trace:
    """Stands for the profiler; ``inside`` is what it sees while the counters are at work."""

    kernels: Kernels = (("gemm", 320.0, True), ("Memset", 1.0, False), ("mul", 500.0, True))
    inside: Kernels = (
        ("gemm", 321.0, True), ("WaitNs", 40.0, True), ("Memset", 1.0, False),
        ("mul", 501.0, True), ("WaitNs", 40.0, True),
    )  # fmt: skip

    def __init__(self) -> None:
        self.traced = 0

    def __call__(self, work: Call) -> tuple[GpuEvent, ...]:
        work()
        self.traced += 1
        kernels = self.inside if self.traced == 2 else self.kernels
        return tuple(
            GpuEvent(name=name, is_kernel=is_kernel, start_us=0.0, duration_us=duration)
            for name, duration, is_kernel in kernels
        )


@pytest.fixture(autouse=True)
def trace(monkeypatch: pytest.MonkeyPatch) -> Trace:
    stand_in = Trace()
    monkeypatch.setattr(counting, "trace", stand_in)
    return stand_in


def test_ranges_join_and_the_run_says_how() -> None:
    calls = []
    counted, ranges = counted_of(count_launches(StandIn(*RANGES), lambda: calls.append(1), None))
    assert ranges == RANGES
    assert counted.joined
    assert counted.source == "CUPTI range profiler"
    assert "GH100" in counted.sentence
    assert counted.passes == 1
    assert counted.seconds == pytest.approx(0.8)
    assert counted.total_bytes_read is None
    # A traced call, and one that is traced and counted at once.
    assert len(calls) == 2


def test_a_kernel_the_counters_missed_joins_nothing() -> None:
    counted, ranges = counted_of(count_launches(StandIn(RANGES[0]), lambda: None, None))
    assert ranges == ()
    assert not counted.joined
    assert "not joined" in counted.sentence


def test_other_kernels_while_counting_join_nothing(trace: Trace) -> None:
    trace.inside = (("mul", 501.0, True), ("gemm", 321.0, True))
    counted, ranges = counted_of(count_launches(StandIn(*RANGES), lambda: None, None))
    assert ranges == ()
    assert not counted.joined
    assert "number 1 is mul, not gemm" in counted.sentence


def test_where_a_trace_and_counters_exclude_each_other_a_trace_follows(trace: Trace) -> None:
    class Exclusive(StandIn):
        """Refuses while a trace runs."""

        def measure(self, work: Call) -> CounterReading:
            before = trace.traced
            result = super().measure(work)
            if trace.traced > before:
                raise CounterRefused("Another collector is at work.")
            return result

    trace.inside = trace.kernels
    counted, ranges = counted_of(count_launches(Exclusive(*RANGES), lambda: None, None))
    assert ranges == RANGES
    assert counted.joined


def test_a_trace_that_sees_nothing_of_the_counted_call_is_taken_again(trace: Trace) -> None:
    trace.inside = ()
    counted, ranges = counted_of(count_launches(StandIn(*RANGES), lambda: None, None))
    assert ranges == RANGES
    assert counted.joined


def test_a_refusal_is_passed_on_word_by_word() -> None:
    counted, ranges = counted_of(count_launches(Refusing(), lambda: None, None))
    assert ranges == ()
    assert counted.source is None
    assert counted.sentence == "The driver keeps the counters to the administrator."


def test_a_graph_has_a_total_of_its_own() -> None:
    def replay() -> None:
        """Stands for a CUDA graph."""

    source = StandIn(*RANGES)
    counted, ranges = counted_of(count_launches(source, lambda: None, replay))
    assert ranges == RANGES
    assert source.counted_whole == [replay]
    assert (counted.total_bytes_read, counted.total_bytes_written) == (1110, 2140)
    assert "one by one" in counted.sentence
    assert counted.sentence.endswith("counted as a whole, read 1.11 kB and wrote 2.14 kB.")


COPY = RangeBytes(bytes_read=42, bytes_written=41, duration_us=25.0)


class FakeGraph:
    """Stands for ``torch.cuda.CUDAGraph``, which a torch without CUDA cannot make."""

    def replay(self) -> None:
        """Launch what was captured."""
        raise AssertionError("the graph is replayed where it is to be left out")


class Graphed:
    """A call that copies its input and replays a graph, and a GPU that is looked at."""

    def __init__(self, *beside: RangeBytes) -> None:
        self.beside = beside
        self.graph = FakeGraph()
        self.launched: list[str] = []

    def bare(self) -> None:
        self.launched += ["gemm", "mul"]

    def replay(self) -> None:
        self.launched.append("foreach_copy")
        self.graph.replay()

    def trace(self, work: Call) -> tuple[GpuEvent, ...]:
        self.launched.clear()
        work()
        times = {"gemm": 321.0, "mul": 501.0, "foreach_copy": 25.0}
        return tuple(
            GpuEvent(name=name, is_kernel=True, start_us=0.0, duration_us=times[name])
            for name in self.launched
        )

    def measure(self, work: Call) -> CounterReading:
        """Count."""
        work()
        return reading(*(RANGES if "gemm" in self.launched else self.beside))

    def measure_total(self, _work: Call) -> CounterReading:
        """Count as a whole."""
        return reading(TOTAL, by_launch=False)


@pytest.fixture
def _fake_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)


@pytest.mark.usefixtures("_fake_graphs")
def test_what_is_launched_beside_a_graph_is_counted_without_the_graph(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Graphed(COPY)
    monkeypatch.setattr(counting, "trace", gpu.trace)
    counted = count_launches(gpu, gpu.bare, gpu.replay)
    assert counted.ranges == RANGES
    assert counted.beside == (("foreach_copy", COPY),)
    assert "beside" not in counted.counters.sentence


@pytest.mark.usefixtures("_fake_graphs")
@pytest.mark.parametrize("beside", [(), (COPY, COPY)], ids=["none", "too many"])
def test_copies_of_which_another_number_was_counted_stay_without_bytes(
    monkeypatch: pytest.MonkeyPatch, beside: tuple[RangeBytes, ...]
) -> None:
    gpu = Graphed(*beside)
    monkeypatch.setattr(counting, "trace", gpu.trace)
    counted = count_launches(gpu, gpu.bare, gpu.replay)
    assert counted.ranges == RANGES
    assert counted.counters.joined
    assert counted.beside == ()
    assert f"the counters saw {len(beside)} kernels" in counted.counters.sentence


@pytest.mark.usefixtures("_fake_graphs")
def test_a_refusal_beside_a_graph_keeps_what_was_counted_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class RefusesCopies(Graphed):
        """Refuses once the graph's own launches are counted."""

        def measure(self, work: Call) -> CounterReading:
            result = super().measure(work)
            if "gemm" not in self.launched:
                raise CounterRefused("Not these.")
            return result

    gpu = RefusesCopies(COPY)
    monkeypatch.setattr(counting, "trace", gpu.trace)
    counted = count_launches(gpu, gpu.bare, gpu.replay)
    assert counted.ranges == RANGES
    assert counted.beside == ()
    assert counted.counters.sentence.endswith("has no counted bytes: Not these.")


@pytest.mark.usefixtures("_fake_graphs")
def test_a_refused_total_keeps_the_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    class RefusesWholes(Graphed):
        """Counts launch by launch only."""

        def measure_total(self, work: Call) -> CounterReading:
            """Refuse."""
            raise CounterRefused("No user ranges here.")

    gpu = RefusesWholes(COPY)
    monkeypatch.setattr(counting, "trace", gpu.trace)
    counted = count_launches(gpu, gpu.bare, gpu.replay)
    assert counted.ranges == RANGES
    assert counted.beside == (("foreach_copy", COPY),)
    assert counted.counters.total_bytes_read is None
    assert counted.counters.sentence.endswith("has no counted bytes: No user ranges here.")
