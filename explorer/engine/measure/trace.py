"""What the GPU ran and when, from ``torch.profiler``, in passes of their own.

A pass lists kernels, copies and fills in the order of their start. One pass carries a label round
each recorded call, so that every kernel is told which call launched it; the others carry none and
give the times.
"""

import json
import statistics
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from explorer.engine.measure.recorder import LABEL

_GPU_CATEGORIES = {"kernel": True, "gpu_memcpy": False, "gpu_memset": False}
_API_CATEGORIES = {"cuda_runtime", "cuda_driver"}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuEvent:
    """Something the GPU did.

    Attributes:
        name: As launched.
        is_kernel: A kernel, else a copy or fill by the driver.
        start_us: On the trace's clock.
        duration_us: How long it ran.
        stream: CUDA stream number.
        grid: Blocks in x, y, z.
        block: Threads a block in x, y, z.
        registers: Registers a thread.
        shared_bytes: Shared memory a block.
        n_bytes: Of a copy or fill by the driver: how much.
        in_graph: Launched by the replay of a CUDA graph.
        call: Index of the labelled call that launched it, None if none did.
    """

    name: str
    is_kernel: bool
    start_us: float
    duration_us: float
    stream: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    n_bytes: int | None = None
    in_graph: bool = False
    call: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where one launch lies on the common time axis: median of several traced calls."""

    start_us: float
    duration_us: float


def trace(work: Callable[[], object], *, with_labels: bool = False) -> tuple[GpuEvent, ...]:
    """Run the work once under the profiler.

    Args:
        work: Launches on the current device; warmed up.
        with_labels: Whether to look for the labels that ``recorder.CallLabels`` put.

    Returns:
        Everything the GPU did, in the order it started.
    """
    activities = [ProfilerActivity.CUDA]
    if with_labels:
        activities.append(ProfilerActivity.CPU)
    torch.cuda.synchronize()
    # One cycle is all there is; saying so keeps the profiler from warning of a second.
    with profile(activities=activities, acc_events=True) as profiler:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        document = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    return read_events(document["traceEvents"])


def trace_calls(work: Callable[[], object], count: int) -> list[tuple[GpuEvent, ...]]:
    """Trace several calls in one session, where a launch costs the host less than at its start.

    Args:
        work: One call; it launches the same each time, or the calls are traced one by one.
        count: How many calls.

    Returns:
        What the GPU did, call by call.
    """

    def calls() -> None:
        # One more, to be left out: the first launches of a session are slow.
        for _ in range(count + 1):
            work()
            torch.cuda.synchronize()

    passes = split_evenly(trace(calls), count + 1)
    return passes[1:] if passes else [trace(work) for _ in range(count)]


def split_evenly(events: Sequence[GpuEvent], count: int) -> list[tuple[GpuEvent, ...]]:
    """Split a trace of equal calls; nothing if the calls are not equal."""
    size, rest = divmod(len(events), count)
    if rest:
        return []
    parts = [tuple(events[place * size : (place + 1) * size]) for place in range(count)]
    return parts if all(names(part) == names(parts[0]) for part in parts) else []


def read_events(rows: Sequence[Mapping[str, Any]]) -> tuple[GpuEvent, ...]:
    """Read the GPU's events from the rows of a Chrome trace."""
    launched_by = {
        row["args"]["correlation"]: row
        for row in rows
        if row.get("cat") in _API_CATEGORIES and "correlation" in row.get("args", {})
    }
    labels = _Labels(rows)
    events = []
    for row in rows:
        is_kernel = _GPU_CATEGORIES.get(str(row.get("cat")))
        if is_kernel is None or row.get("ph") != "X":
            continue
        arguments = row.get("args", {})
        launch = launched_by.get(arguments.get("correlation"))
        events.append(
            GpuEvent(
                name=str(row["name"]),
                is_kernel=is_kernel,
                start_us=float(row["ts"]),
                duration_us=float(row["dur"]),
                stream=_whole(arguments.get("stream")),
                grid=_triple(arguments.get("grid")),
                block=_triple(arguments.get("block")),
                registers=_whole(arguments.get("registers per thread")),
                shared_bytes=_whole(arguments.get("shared memory")),
                n_bytes=None if is_kernel else _whole(arguments.get("bytes")),
                in_graph=launch is not None and "GraphLaunch" in str(launch["name"]),
                call=None if launch is None else labels.around(launch),
            )
        )
    return tuple(sorted(events, key=lambda event: event.start_us))


def names(events: Sequence[GpuEvent]) -> tuple[str, ...]:
    """Names in order, copies and fills among them."""
    return tuple(event.name for event in events)


def kernel_names(events: Sequence[GpuEvent]) -> tuple[str, ...]:
    """Names of the kernels in order, copies and fills left out: what a counter sees."""
    return tuple(event.name for event in events if event.is_kernel)


def common_axis(passes: Sequence[Sequence[tuple[float, float]]]) -> tuple[Slot, ...]:
    """One time axis for several traced calls of the same launches.

    Durations are medians, and so are the gaps between neighbours, so that no launch overlaps
    another that it did not overlap in the passes.

    Args:
        passes: For each call, the start and the duration of each launch in microseconds.
    """
    count = len(passes[0])
    durations = [statistics.median(p[place][1] for p in passes) for place in range(count)]
    slots: list[Slot] = []
    for place in range(count):
        start = 0.0
        if place:
            gap = statistics.median(p[place][0] - p[place - 1][0] - p[place - 1][1] for p in passes)
            start = slots[-1].start_us + slots[-1].duration_us + gap
        slots.append(Slot(start_us=start, duration_us=durations[place]))
    return tuple(slots)


def place_in(longer: Sequence[str], shorter: Sequence[str]) -> int | None:
    """Where a sequence of names stands in a longer one, without gaps; None if it does not."""
    for offset in range(len(longer) - len(shorter) + 1):
        if tuple(longer[offset : offset + len(shorter)]) == tuple(shorter):
            return offset
    return None


def places_of(events: Sequence[GpuEvent], twin: Sequence[GpuEvent]) -> tuple[int, ...] | None:
    """Where the launches of a twin stand among those of a call; None where that is not certain.

    They stand in a row, with what the call launches beside them before and behind. A call that
    replays several CUDA graphs has copies into a graph's memory before each of them: there the
    graphs' own launches have to be the twin's.
    """
    if not twin:
        return None
    offset = place_in(names(events), names(twin))
    if offset is not None:
        return tuple(range(offset, offset + len(twin)))
    inside = tuple(place for place, event in enumerate(events) if event.in_graph)
    return inside if names([events[place] for place in inside]) == names(twin) else None


class _Labels:
    """The labelled ranges of each thread, to be looked up by time."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self._ranges: dict[Any, list[tuple[float, float, int]]] = {}
        for row in rows:
            name = str(row.get("name", ""))
            if not name.startswith(LABEL) or row.get("ph") != "X":
                continue
            if str(row.get("cat")) == "gpu_user_annotation":
                continue
            begin = float(row["ts"])
            index = int(name.removeprefix(LABEL))
            self._ranges.setdefault(row.get("tid"), []).append(
                (begin, begin + float(row["dur"]), index)
            )
        for ranges in self._ranges.values():
            ranges.sort()

    def around(self, launch: Mapping[str, Any]) -> int | None:
        """The index of the labelled call inside which something was launched."""
        ranges = self._ranges.get(launch.get("tid"), [])
        moment = float(launch["ts"])
        place = bisect_right(ranges, (moment, float("inf"), 0)) - 1
        if place < 0:
            return None
        begin, end, index = ranges[place]
        return index if begin <= moment <= end else None


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) else None


def _triple(value: Any) -> tuple[int, int, int] | None:
    if not isinstance(value, list) or len(value) != 3:
        return None
    x, y, z = (int(item) for item in value)
    return x, y, z
