"""Peak memory of one call, over what the inputs hold.

On a GPU the caching allocator keeps the peak. On a CPU every allocation that torch's allocator
makes is reported to the profiler, generated code included; their running sum has a peak.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from explorer.engine.internals import moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """What a call held.

    Attributes:
        peak_bytes: Highest allocation above what was there before the call, with what a CUDA
            graph keeps for it.
        graph_pool_bytes: The latter alone, None where there is no graph.
    """

    peak_bytes: int
    graph_pool_bytes: int | None = None


def measure_peak(
    call: Callable[[], object], *, device: torch.device, uses_graph: bool = False
) -> Peak:
    """Run the call once and find its peak.

    Args:
        call: Runs the work, warmed up.
        device: Where.
        uses_graph: Whether it replays a CUDA graph, whose memory is held between calls.

    Raises:
        InternalMovedError: torch does not tell.
    """
    if device.type == "cuda":
        return _cuda_peak(call, device, uses_graph)
    return Peak(peak_bytes=_cpu_peak(call))


def _cuda_peak(call: Callable[[], object], device: torch.device, uses_graph: bool) -> Peak:
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = call()
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - before
    del result
    if not uses_graph:
        return Peak(peak_bytes=peak)
    pool_bytes = graph_pool_bytes(device)
    return Peak(peak_bytes=peak + pool_bytes, graph_pool_bytes=pool_bytes)


def graph_pool_bytes(device: torch.device) -> int:
    """Bytes reserved by the private pools of CUDA graphs on a device.

    Raises:
        InternalMovedError: torch does not tell.
    """
    index = torch.cuda.current_device() if device.index is None else device.index
    snapshot: Callable[[], list[dict[str, Any]]] = torch.cuda.memory_snapshot
    segments = [segment for segment in snapshot() if segment["device"] == index]
    if any("segment_pool_id" not in segment for segment in segments):
        raise moved("segment_pool_id in its memory snapshot", "to find a CUDA graph's memory")
    return sum(s["total_size"] for s in segments if tuple(s["segment_pool_id"]) != (0, 0))


def _cpu_peak(call: Callable[[], object]) -> int:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = call()
    del result
    recorded = getattr(profiler.profiler, "kineto_results", None)
    if recorded is None:
        raise moved("kineto_results in its profiler", "to find the peak memory of a CPU")
    changes = [event for event in recorded.events() if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    return running_peak(event.nbytes() for event in changes)


def running_peak(changes: Iterable[int]) -> int:
    """The highest sum on the way through allocations (positive) and frees (negative)."""
    held = peak = 0
    for n_bytes in changes:
        held += n_bytes
        peak = max(peak, held)
    return peak
