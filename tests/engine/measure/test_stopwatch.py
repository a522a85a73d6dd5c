"""The timing pass on a CPU, with a clock that the test moves."""

import contextlib

import pytest
import torch

from explorer.engine.measure import stopwatch
from explorer.engine.measure.stopwatch import Flusher, flush_bytes, summarize, time_call
from explorer.model.device import Clocks
from explorer.model.run import Clock

CPU = torch.device("cpu")


class FakeTime:
    """A clock that stands still but for what a call is said to take."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.calls = 0

    def perf_counter(self) -> float:
        return self.now_ns / 1e9

    def perf_counter_ns(self) -> int:
        return self.now_ns

    def call(self) -> None:
        self.calls += 1
        # Every third call is slower.
        self.now_ns += 30_000_000 if self.calls % 3 == 0 else 10_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeTime:
    fake = FakeTime()
    monkeypatch.setattr(stopwatch, "time", fake)
    return fake


def test_quartiles_of_a_few_samples() -> None:
    samples = summarize([4.0, 1.0, 3.0, 2.0, 5.0], Clock.HOST)
    assert (samples.q1_us, samples.median_us, samples.q3_us, samples.n) == (2.0, 3.0, 4.0, 5)
    assert samples.samples_us == (4.0, 1.0, 3.0, 2.0, 5.0)


def test_one_sample_is_its_own_quartiles_and_none_is_refused() -> None:
    samples = summarize([7.0], Clock.EVENTS)
    assert (samples.q1_us, samples.median_us, samples.q3_us) == (7.0, 7.0, 7.0)
    with pytest.raises(ValueError, match="no samples"):
        summarize([], Clock.EVENTS)


def test_the_budget_is_kept_and_every_sample_is_there(clock: FakeTime) -> None:
    readings: list[None] = []

    def read() -> None:
        readings.append(None)

    timing = time_call(clock.call, device=CPU, budget_s=10.0, cache_bytes=1 << 10, read_clocks=read)
    assert clock.now_ns == pytest.approx(9e9, abs=0.1e9)
    assert timing.cold is not None
    assert timing.warm is not None
    assert timing.host is None
    assert timing.cold.clock is Clock.HOST
    assert timing.cold.median_us == timing.cold.q1_us == 10_000
    assert timing.cold.q3_us == 30_000
    # Half of ten seconds at 50 ms for every three calls; a fifth for the warm ones.
    assert timing.cold.n == pytest.approx(300, abs=3)
    assert timing.warm.n == pytest.approx(120, abs=3)
    assert len(readings) == 2
    assert timing.clocks == ()


def test_a_slow_call_gets_its_five_samples_all_the_same(clock: FakeTime) -> None:
    timing = time_call(
        clock.call,
        device=CPU,
        budget_s=0.001,
        cache_bytes=1 << 10,
        read_clocks=lambda: Clocks(sm_mhz=1980),
    )
    assert timing.cold is not None
    assert timing.warm is not None
    assert (timing.cold.n, timing.warm.n) == (5, 5)
    assert [clocks.sm_mhz for clocks in timing.clocks] == [1980, 1980]


def test_the_flush_is_outside_the_timed_span(
    clock: FakeTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushes: list[int] = []

    def flush(_self: Flusher) -> None:
        flushes.append(clock.calls)
        clock.now_ns += 77_000_000

    monkeypatch.setattr(Flusher, "__call__", flush)
    timing = time_call(
        clock.call, device=CPU, budget_s=0.01, cache_bytes=1 << 10, read_clocks=lambda: None
    )
    assert timing.cold is not None
    assert set(timing.cold.samples_us) <= {10_000, 30_000}
    # One before each cold sample, none before the warm ones.
    assert flushes == [2, 3, 4, 5, 6]


def test_the_flush_reads_twice_the_cache() -> None:
    assert flush_bytes(60 << 20) == 120 << 20
    assert flush_bytes(0) == 1 << 20
    assert flush_bytes(1 << 30) == 512 << 20
    flusher = Flusher(CPU, 1 << 20)
    flusher()
    assert float(flusher._sum) == (2 << 20) / 4


class FakeGpu:
    """Stands for a GPU: work piles up until it is waited for, each call takes 100 µs."""

    def __init__(self) -> None:
        self.now_us = 0.0
        self.waiting = 0
        self.read_while_waiting: list[int] = []

    def call(self) -> None:
        self.waiting += 1
        self.now_us += 100.0

    def synchronize(self, _device: object = None) -> None:
        self.waiting = 0

    def read_clocks(self) -> Clocks:
        self.read_while_waiting.append(self.waiting)
        return Clocks(sm_mhz=1980)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    fake = FakeGpu()

    class Event:
        def __init__(self, *, enable_timing: bool) -> None:
            assert enable_timing
            self.at_us = 0.0

        def record(self) -> None:
            self.at_us = fake.now_us

        def elapsed_time(self, end: "Event") -> float:
            return (end.at_us - self.at_us) / 1e3

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", fake.synchronize)
    monkeypatch.setattr(torch.cuda, "device", lambda _device: contextlib.nullcontext())
    monkeypatch.setattr(stopwatch, "Flusher", lambda _device, _bytes: lambda: None)
    return fake


@pytest.mark.parametrize("replays", [False, True])
def test_on_a_gpu_clocks_are_read_while_it_works(gpu: FakeGpu, replays: bool) -> None:
    timing = time_call(
        gpu.call,
        device=torch.device("cuda:0"),
        budget_s=1e-6,
        cache_bytes=1 << 10,
        read_clocks=gpu.read_clocks,
        replays=replays,
    )
    assert timing.cold is not None
    assert timing.host is not None
    assert timing.cold.median_us == pytest.approx(100.0)
    assert timing.cold.clock is Clock.EVENTS
    # Once in the cold batch of five samples and once in the warm one.
    assert gpu.read_while_waiting == [5, 5]
    assert [clocks.sm_mhz for clocks in timing.clocks] == [1980, 1980]
    assert (timing.graph is not None) is replays
    if timing.graph is not None:
        assert timing.graph.median_us == pytest.approx(100.0)
        assert timing.graph.clock is Clock.GRAPH
        assert timing.graph.n == 5
