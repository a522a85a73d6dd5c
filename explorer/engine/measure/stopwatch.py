"""The timing pass: warm-up by time, cold and warm L2, medians and quartiles, samples kept.

A cold sample is taken after the last-level cache was filled with other data by *reading* twice its
size, outside the timed span: a flush that writes would leave dirty lines for the call to pay for.
On a GPU the flush is enqueued ahead of the call, so that the host is ahead of the device as it is
in a busy program. The flush lasts some 30 µs on an H200; where a call takes the host longer than
that and than the device, its gaps are in the time, and cold and warm then differ by the head start
rather than by the cache. ``doubts`` says so of such a run.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from explorer.model.device import Clocks
from explorer.model.run import Clock, Samples, Timing

Call = Callable[[], object]
ClockReader = Callable[[], Clocks | None]

_LEAST_SAMPLES = 5
_MOST_SAMPLES = 1000
_BATCH = 20
_MOST_FLUSH_BYTES = 512 << 20

_WARM_UP_SHARE = 0.2
_COLD_SHARE = 0.5
_WARM_SHARE = 0.2
_HOST_SHARE = 0.1
_REPLAY_SHARE = 0.1
_REPLAYS_IN_A_ROW = 10


def summarize(samples_us: list[float], clock: Clock) -> Samples:
    """Median and quartiles of some times.

    Raises:
        ValueError: There is not one sample.
    """
    if not samples_us:
        raise ValueError("no samples")
    if len(samples_us) == 1:
        q1 = median = q3 = samples_us[0]
    else:
        q1, median, q3 = statistics.quantiles(samples_us, n=4, method="inclusive")
    return Samples(
        samples_us=tuple(samples_us), median_us=median, q1_us=q1, q3_us=q3, n=len(samples_us),
        clock=clock,
    )  # fmt: skip


def flush_bytes(cache_bytes: int) -> int:
    """Bytes to read so that a cache of that size holds nothing else; at most 512 MiB."""
    return min(max(2 * cache_bytes, 1 << 20), _MOST_FLUSH_BYTES)


class Flusher:
    """Pushes everything out of the last-level cache by reading other memory."""

    def __init__(self, device: torch.device, cache_bytes: int) -> None:
        """Allocate what is to be read."""
        self._filler = torch.ones(flush_bytes(cache_bytes) // 4, dtype=torch.float32, device=device)
        self._sum = torch.empty((), dtype=torch.float32, device=device)

    def __call__(self) -> None:
        """Read it all; on a GPU this only enqueues the work."""
        torch.sum(self._filler, dim=0, out=self._sum)


@dataclass(slots=True)
class _Stopper:
    """Decides how long a series goes on: by time, with a least and a most number of samples."""

    budget_s: float
    least: int = _LEAST_SAMPLES
    most: int = _MOST_SAMPLES
    started_s: float = 0.0

    def start(self) -> "_Stopper":
        self.started_s = time.perf_counter()
        return self

    def wants_more(self, n_samples: int) -> bool:
        if n_samples >= self.most:
            return False
        return n_samples < self.least or time.perf_counter() - self.started_s < self.budget_s


def time_call(
    call: Call,
    *,
    device: torch.device,
    budget_s: float,
    cache_bytes: int,
    read_clocks: ClockReader,
    replays: bool = False,
) -> Timing:
    """Time a call, cold and warm.

    Args:
        call: Runs the work once; need not wait for the device.
        device: Where it runs.
        budget_s: Seconds for everything together; a call so slow that five samples do not fit
            takes longer.
        cache_bytes: Size of the last-level cache.
        read_clocks: Called once a batch of samples, on a GPU while it works on them.
        replays: Whether the call replays a CUDA graph, which is then timed in a row as well.

    Returns:
        Cold, warm and (on a GPU) host times, and those of a graph; the totals of the trace are
        not filled in.
    """
    flush = Flusher(device, cache_bytes)
    on_gpu = device.type == "cuda"
    gpu_series = _GpuSeries(device) if on_gpu else None
    series = gpu_series or _CpuSeries()
    clocks: list[Clocks] = []

    def note_clocks() -> None:
        reading = read_clocks()
        if reading is not None:
            clocks.append(reading)

    series.warm_up(call, _WARM_UP_SHARE * budget_s)
    cold = series.take(call, _Stopper(_COLD_SHARE * budget_s), note_clocks, before=flush)
    warm = series.take(call, _Stopper(_WARM_SHARE * budget_s), note_clocks, before=None)
    host = graph = None
    if gpu_series is not None:
        in_a_row = gpu_series.host(call, _Stopper(_HOST_SHARE * budget_s))
        host = summarize(in_a_row, Clock.HOST)
        if replays:
            in_a_row = gpu_series.in_a_row(call, _Stopper(_REPLAY_SHARE * budget_s))
            graph = summarize(in_a_row, Clock.GRAPH)
    return Timing(
        cold=summarize(cold, series.clock),
        warm=summarize(warm, series.clock),
        graph=graph,
        host=host,
        clocks=tuple(clocks),
    )


class _CpuSeries:
    """Times by the host's clock: on a CPU a call is over when it returns."""

    clock = Clock.HOST

    def warm_up(self, call: Call, budget_s: float) -> None:
        stopper = _Stopper(budget_s, least=2).start()
        n_calls = 0
        while stopper.wants_more(n_calls):
            call()
            n_calls += 1

    def take(
        self, call: Call, stopper: _Stopper, note_clocks: Callable[[], None], before: Call | None
    ) -> list[float]:
        samples: list[float] = []
        stopper.start()
        while stopper.wants_more(len(samples)):
            if before is not None:
                before()
            start_ns = time.perf_counter_ns()
            result = call()
            samples.append((time.perf_counter_ns() - start_ns) / 1e3)
            # Freed outside the timed span, as on a GPU.
            del result
        note_clocks()
        return samples


class _GpuSeries:
    """Times by CUDA events, a batch of samples between two waits."""

    clock = Clock.EVENTS

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def warm_up(self, call: Call, budget_s: float) -> None:
        stopper = _Stopper(budget_s, least=3, most=1 << 30).start()
        n_calls = 0
        while stopper.wants_more(n_calls):
            call()
            n_calls += 1
            # Else the host would enqueue minutes of work within the budget.
            torch.cuda.synchronize(self._device)

    def take(
        self, call: Call, stopper: _Stopper, note_clocks: Callable[[], None], before: Call | None
    ) -> list[float]:
        samples: list[float] = []
        stopper.start()
        while stopper.wants_more(len(samples)):
            batch = min(_BATCH, max(_LEAST_SAMPLES, len(samples)))
            samples.extend(self._take_batch(call, batch, note_clocks, before))
        return samples

    def _take_batch(
        self, call: Call, n_samples: int, note_clocks: Callable[[], None], before: Call | None
    ) -> list[float]:
        new_event: Callable[..., Any] = torch.cuda.Event
        with torch.cuda.device(self._device):
            starts = [new_event(enable_timing=True) for _ in range(n_samples)]
            ends = [new_event(enable_timing=True) for _ in range(n_samples)]
            for start, end in zip(starts, ends, strict=True):
                if before is not None:
                    before()
                start.record()
                call()
                end.record()
            # The device is still at work: idle it would show the clocks of an idle one.
            note_clocks()
            torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in zip(starts, ends, strict=True)]

    def host(self, call: Call, stopper: _Stopper) -> list[float]:
        """Time until the call returns, the device idle before each."""
        samples: list[float] = []
        stopper.start()
        while stopper.wants_more(len(samples)):
            torch.cuda.synchronize(self._device)
            start_ns = time.perf_counter_ns()
            result = call()
            samples.append((time.perf_counter_ns() - start_ns) / 1e3)
            del result
        torch.cuda.synchronize(self._device)
        return samples

    def in_a_row(self, call: Call, stopper: _Stopper) -> list[float]:
        """Time a call by several of them between two events: each sample is their mean."""
        new_event: Callable[..., Any] = torch.cuda.Event
        samples: list[float] = []
        stopper.start()
        with torch.cuda.device(self._device):
            while stopper.wants_more(len(samples)):
                start, end = new_event(enable_timing=True), new_event(enable_timing=True)
                start.record()
                for _ in range(_REPLAYS_IN_A_ROW):
                    call()
                end.record()
                torch.cuda.synchronize()
                samples.append(start.elapsed_time(end) * 1e3 / _REPLAYS_IN_A_ROW)
        return samples
