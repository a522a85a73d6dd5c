"""Counts the DRAM bytes of each launch of a call, and makes sure which range is which launch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from unittest.mock import patch

import torch

from explorer.engine.cupti.counters import CounterReading, RangeBytes
from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.measure.join import Joined, join_ranges
from explorer.engine.measure.trace import GpuEvent, kernel_names, trace
from explorer.model.run import Counters
from explorer.model.units import format_bytes

_GRAPH_TWIN = (
    "A CUDA graph's replay shows its launches to no counter: their bytes are those of the same "
    "kernels launched one by one."
)

_WHOLE = "The call with its replay, counted as a whole,"
_BESIDE = "What the call launches beside its graph has no counted bytes:"

_POLICIES = {"none": "caches as the launch before left them"}
_PROFILER_KERNELS = {"WaitNs"}
"""Kernels that CUPTI itself launches between those that it counts."""

Call = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What was counted of a call.

    Attributes:
        counters: How it was done.
        ranges: One a kernel; none where they could not be joined.
        beside: Where the call replays a CUDA graph: name and range of each kernel that it launches
            itself before, such as copies into the graph's memory; none where they could not be
            joined.
    """

    counters: Counters
    ranges: tuple[RangeBytes, ...] = ()
    beside: tuple[tuple[str, RangeBytes], ...] = ()


class CounterSource(Protocol):
    """What counts DRAM bytes: ``DramCounters``, or a stand-in."""

    def measure(self, work: Call) -> CounterReading:
        """Count each launch of the work, in launch order."""

    def measure_total(self, work: Call) -> CounterReading:
        """Count the work as a whole."""


def count_launches(source: CounterSource, bare: Call, replay: Call | None) -> Counted:
    """Count each launch of a call.

    The counters give no names, so the call is traced while it is counted. Where the two do not go
    together, the names come from a call traced right after.

    Args:
        source: Counts.
        bare: Launches kernel by kernel.
        replay: The same by a CUDA graph, whose total is wanted as well; None if there is none.
    """
    try:
        reading, joined, _ = _count(source, bare)
    except CounterRefused as refused:
        return Counted(counters=Counters(sentence=refused.sentence))
    sentences = [joined.refusal or _how_counted(reading)]
    total: CounterReading | None = None
    beside: tuple[tuple[str, RangeBytes], ...] = ()
    if replay is not None:
        sentences.append(_GRAPH_TWIN)
        total, of_total = _count_whole(source, replay)
        beside, of_beside = _count_beside(source, replay)
        sentences += [sentence for sentence in (of_total, of_beside) if sentence]
    counters = Counters(
        source="CUPTI range profiler",
        cache_policy=_POLICIES.get(reading.cache_policy, reading.cache_policy),
        joined=joined.refusal is None,
        sentence=" ".join(sentences),
        passes=reading.passes,
        seconds=reading.set_up_s + reading.run_s,
        total_bytes_read=None if total is None else total.bytes_read,
        total_bytes_written=None if total is None else total.bytes_written,
    )
    return Counted(counters=counters, ranges=joined.ranges, beside=beside)


def _count(source: CounterSource, call: Call) -> tuple[CounterReading, Joined, tuple[str, ...]]:
    """Count each launch of a call, joined to the names of its kernels.

    Raises:
        CounterRefused: The counters are refused.
    """
    traced = trace(call)
    reading, counted = _count_with_names(source, call)
    if not counted:
        reading, counted = source.measure(call), trace(call)
    durations = [event.duration_us for event in counted if event.is_kernel]
    names = kernel_names(counted)
    return reading, join_ranges(reading.ranges, names, kernel_names(traced), durations), names


def _count_whole(source: CounterSource, replay: Call) -> tuple[CounterReading | None, str]:
    """Count a call that replays a graph as a whole, and say what came out."""
    try:
        total = source.measure_total(replay)
    except CounterRefused as refused:
        return None, f"{_WHOLE} has no counted bytes: {refused.sentence}"
    read, written = format_bytes(total.bytes_read), format_bytes(total.bytes_written)
    return total, f"{_WHOLE} read {read} and wrote {written}."


def _count_beside(
    source: CounterSource, replay: Call
) -> tuple[tuple[tuple[str, RangeBytes], ...], str]:
    """Count what a call launches before it replays its graph; or nothing and why.

    The replay itself is left out meanwhile: counters that go launch by launch do not know a graph.
    """

    def without_graph() -> None:
        with patch.object(torch.cuda.CUDAGraph, "replay", _no_replay):
            replay()

    if not kernel_names(trace(without_graph)):
        return (), ""
    try:
        _, joined, names = _count(source, without_graph)
    except CounterRefused as refused:
        return (), f"{_BESIDE} {refused.sentence}"
    if joined.refusal is not None:
        return (), f"{_BESIDE} {joined.refusal}"
    return tuple(zip(names, joined.ranges, strict=True)), ""


def _no_replay(_graph: torch.cuda.CUDAGraph) -> None:
    """Stand in for a replay that is to be left out."""


def _count_with_names(
    source: CounterSource, bare: Call
) -> tuple[CounterReading, tuple[GpuEvent, ...]]:
    """Count and trace one call at a time; no events where the trace saw none of it.

    Raises:
        CounterRefused: The counters are refused with or without a trace.
    """
    events: tuple[GpuEvent, ...] = ()

    def traced() -> None:
        nonlocal events
        events = trace(bare)

    try:
        reading = source.measure(traced)
    except CounterRefused:
        return source.measure(bare), trace(bare)
    return reading, tuple(event for event in events if event.name not in _PROFILER_KERNELS)


def _how_counted(reading: CounterReading) -> str:
    passes = "one pass" if reading.passes == 1 else f"{reading.passes} passes"
    return (
        f"Counted by the {reading.chip}'s hardware counters, {passes} a kernel, in a run of its "
        "own."
    )
