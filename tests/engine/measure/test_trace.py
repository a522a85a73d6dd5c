"""Reading a Chrome trace, and one time axis for several passes."""

from typing import Any

from explorer.engine.measure.recorder import LABEL
from explorer.engine.measure.trace import (
    GpuEvent,
    common_axis,
    kernel_names,
    names,
    place_in,
    places_of,
    read_events,
    split_evenly,
)


def gpu(
    name: str, start: float, duration: float, correlation: int, category: str = "kernel"
) -> dict[str, Any]:
    arguments = {
        "correlation": correlation, "stream": 7, "grid": [4, 2, 1], "block": [128, 1, 1],
        "registers per thread": 32, "shared memory": 1024,
    }  # fmt: skip
    return {
        "ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": arguments,
    }  # fmt: skip


def api(start: float, correlation: int, name: str = "cudaLaunchKernel") -> dict[str, Any]:
    return {
        "ph": "X", "cat": "cuda_runtime", "name": name, "ts": start, "dur": 3.0, "tid": 1,
        "args": {"correlation": correlation},
    }  # fmt: skip


def label(index: int, start: float, duration: float, tid: int = 1) -> dict[str, Any]:
    return {
        "ph": "X", "cat": "user_annotation", "name": f"{LABEL}{index}", "ts": start,
        "dur": duration, "tid": tid,
    }  # fmt: skip


def test_events_come_in_the_order_they_start() -> None:
    events = read_events([gpu("b", 200.0, 5.0, 2), gpu("a", 100.0, 50.0, 1), {"ph": "M"}])
    assert names(events) == ("a", "b")
    first = events[0]
    assert (first.duration_us, first.stream, first.grid, first.block) == (
        50.0, 7, (4, 2, 1), (128, 1, 1),
    )  # fmt: skip
    assert (first.registers, first.shared_bytes, first.in_graph) == (32, 1024, False)


def test_copies_and_fills_are_no_kernels() -> None:
    events = read_events(
        [
            gpu("Memcpy DtoD", 10.0, 1.0, 1, "gpu_memcpy"),
            gpu("k", 20.0, 1.0, 2),
            gpu("Memset", 30.0, 1.0, 3, "gpu_memset"),
        ]
    )
    assert names(events) == ("Memcpy DtoD", "k", "Memset")
    assert kernel_names(events) == ("k",)


def test_how_much_a_fill_moves_is_in_the_trace() -> None:
    row = gpu("Memset (Device)", 10.0, 1.0, 1, "gpu_memset")
    row["args"]["bytes"] = 4096
    kernel = gpu("k", 20.0, 1.0, 2)
    kernel["args"]["bytes"] = 5
    assert [event.n_bytes for event in read_events([row, kernel])] == [4096, None]


def test_a_kernel_belongs_to_the_call_that_launched_it() -> None:
    rows = [
        label(0, 100.0, 20.0),
        label(1, 130.0, 20.0),
        api(105.0, 1),
        api(112.0, 2),
        api(125.0, 3),
        api(135.0, 4),
        gpu("split", 300.0, 9.0, 1),
        gpu("reduce", 310.0, 2.0, 2),
        gpu("seed", 320.0, 1.0, 3),
        gpu("mul", 330.0, 5.0, 4),
    ]
    events = read_events(rows)
    assert [(event.name, event.call) for event in events] == [
        ("split", 0), ("reduce", 0), ("seed", None), ("mul", 1),
    ]  # fmt: skip


def test_a_label_of_another_thread_is_none_of_its_business() -> None:
    rows = [label(0, 100.0, 20.0, tid=2), api(105.0, 1), gpu("k", 300.0, 9.0, 1)]
    assert read_events(rows)[0].call is None


def test_a_label_on_the_gpu_s_own_row_is_passed_over() -> None:
    shadow = label(0, 100.0, 900.0) | {"cat": "gpu_user_annotation"}
    assert read_events([shadow, api(105.0, 1), gpu("k", 300.0, 9.0, 1)])[0].call is None


def test_a_graph_s_kernels_are_known_as_such() -> None:
    rows = [api(5.0, 1, "cudaGraphLaunch"), gpu("a", 10.0, 1.0, 1), gpu("b", 12.0, 1.0, 1)]
    assert [event.in_graph for event in read_events(rows)] == [True, True]


def test_the_common_axis_takes_medians_and_starts_at_zero() -> None:
    passes = [
        [(1000.0, 10.0), (1012.0, 5.0)],
        [(2000.0, 12.0), (2015.0, 5.0)],
        [(3000.0, 90.0), (3091.0, 6.0)],
    ]
    first, second = common_axis(passes)
    assert (first.start_us, first.duration_us) == (0.0, 12.0)
    # The gaps are 2, 3 and 1.
    assert (second.start_us, second.duration_us) == (14.0, 5.0)


def test_overlapping_launches_stay_overlapped() -> None:
    first, second = common_axis([[(100.0, 50.0), (120.0, 50.0)]])
    assert second.start_us - first.start_us == 20.0


def test_nothing_traced_is_an_empty_axis() -> None:
    assert common_axis([[]]) == ()


def test_a_sequence_is_found_inside_a_longer_one() -> None:
    assert place_in(("seed", "a", "b"), ("a", "b")) == 1
    assert place_in(("a", "b"), ("a", "b")) == 0
    assert place_in(("a", "x", "b"), ("a", "b")) is None
    assert place_in(("a",), ("a", "b")) is None


def test_equal_calls_are_told_apart() -> None:
    events = read_events([gpu(name, place, 0.5, place) for place, name in enumerate("ababab")])
    assert [names(part) for part in split_evenly(events, 3)] == [("a", "b")] * 3
    assert split_evenly(events, 4) == []


def test_unequal_calls_are_not_split() -> None:
    events = read_events([gpu(name, place, 0.5, place) for place, name in enumerate("abbaab")])
    assert split_evenly(events, 3) == []


def in_a_row(*launched: tuple[str, bool]) -> list[GpuEvent]:
    """Events one after the other: a name, and whether a CUDA graph launched it."""
    return [
        GpuEvent(name=name, is_kernel=True, start_us=float(i), duration_us=1.0, in_graph=inside)
        for i, (name, inside) in enumerate(launched)
    ]


def test_the_launches_of_several_graphs_stand_among_the_copies_before_each() -> None:
    twin = in_a_row(("forward", False), ("backward", False))
    replayed = in_a_row(("copy", False), ("forward", True), ("copy", False), ("backward", True))
    assert places_of(replayed, twin) == (1, 3)
    assert places_of(replayed[1:2], twin[:1]) == (0,)
    assert places_of(in_a_row(("forward", True), ("copy", True), ("backward", True)), twin) is None
    assert places_of(replayed, []) is None
