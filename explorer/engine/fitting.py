"""What fits the device: defaults are made smaller, and what the user asked for is refused."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from explorer.engine.devices import free_bytes
from explorer.engine.measure.estimate import (
    SizedGraph,
    largest_size,
    longest_launch_s,
    peak_bytes,
    plan_peak_bytes,
)
from explorer.engine.measure.stopwatch import flush_bytes
from explorer.engine.prepare import ChosenChain, Subject, capture_subject
from explorer.engine.strategies import Strategy
from explorer.model.device import Device, DeviceKind
from explorer.model.legality import check
from explorer.model.opgraph import OpGraph, OpKind
from explorer.model.tensor import TensorRole
from explorer.model.units import format_bytes

DEFAULT_SHARE = 0.25
"""Share of the free memory that a run may take whose size the user did not choose."""
MOST_LAUNCH_S = 0.2
"""On a GPU that draws the desktop, which stands still while a kernel runs."""
_LIBRARIES_BYTES = 64 << 20
"""What matmul libraries keep on a GPU: 34 MB were seen on an H200."""
_CHECKED_BYTES = 26
"""An element of a result while its distribution is looked at: three times in fp64, and a bool."""
_COMPARED_BYTES, _COMPARED_SLICE_BYTES = 64, 512 << 20
"""An element of a result while it is compared with the truth, eight times in fp64; a slice at a
time, which bounds the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the device has to offer at the moment.

    Attributes:
        device: Its record, ceilings included where they are known.
        free_bytes: Memory that can be had.
    """

    device: Device
    free_bytes: int

    @classmethod
    def of(cls, device: Device) -> "Room":
        """Look at the device now."""
        return cls(device=device, free_bytes=free_bytes(torch.device(device.id)))


def bytes_of(graph: OpGraph, role: TensorRole) -> int:
    """Bytes of all tensors with a role."""
    return sum(tensor.n_bytes for tensor in graph.tensors if tensor.role is role)


def estimate(graph: OpGraph, strategy: Strategy, chosen: ChosenChain) -> int:
    """Peak over the inputs under a strategy, bytes; see ``measure.estimate``."""
    on_cuda = chosen.device.type == "cuda"
    plan = None if strategy.plan_of is None else strategy.plan_of(graph)
    if plan is not None and check(graph, plan) is None:
        return plan_peak_bytes(graph, plan, on_cuda=on_cuda)
    family = strategy.peak(chosen.parameters, chosen.device)
    return peak_bytes(graph, family, on_cuda=on_cuda)


def capture_that_fits(
    subject: Subject,
    strategies: Sequence[Strategy],
    room: Room,
) -> tuple[ChosenChain, tuple[str, ...]]:
    """Capture the chain; where its size is a default that is too large here, lower it.

    Returns:
        The captured chain, and what was changed in words.

    Raises:
        UsageError: The chain or a parameter does not exist, or a value is out of range.
    """
    device = torch.device(room.device.id)
    chosen = capture_subject(subject, device)
    name = chosen.code.size_parameter
    limit = room.free_bytes * DEFAULT_SHARE
    if (
        name is None
        or name in subject.settings
        or _fits(chosen.captured.graph, chosen, strategies, room, limit)
    ):
        return chosen, ()
    sized = _sized(chosen, name)
    size = wanted = _size(chosen, name)
    while size > 1 and not _fits(sized.at(size), chosen, strategies, room, limit):
        size //= 2
    lowered = capture_subject(subject.with_settings(**{name: size}), device)
    return lowered, (
        f"The default of {name} was lowered from {wanted} to {size}, so that the run takes at most "
        f"a quarter of the free memory ({format_bytes(room.free_bytes)}); set {name} to choose it "
        "yourself.",
    )


def refuse(chosen: ChosenChain, strategy: Strategy, room: Room) -> str | None:
    """Why the chain cannot run at this size under a strategy, with the size that can; or None."""
    graph = chosen.captured.graph
    needed = _needed(graph, chosen, strategy, room)
    if needed > room.free_bytes:
        reason = (
            f"{strategy.spec} needs about {format_bytes(needed)} for this size and "
            f"{format_bytes(room.free_bytes)} are free on {room.device.id}"
        )
    elif _freezes_display(graph, chosen, room):
        reason = (
            f"A launch of {strategy.spec} would take more than {MOST_LAUNCH_S} s at this size, "
            f"and {room.device.id} drives a display, which would stand still meanwhile"
        )
    else:
        return None
    name = chosen.code.size_parameter
    if name is None:
        return f"{reason}; give it smaller inputs."
    sized = _sized(chosen, name)
    largest = largest_size(
        lambda size: _fits(sized.at(size), chosen, [strategy], room, room.free_bytes),
        below=_size(chosen, name),
    )
    if largest is not None:
        return f"{reason}; the largest size that fits is {name}={largest}."
    others = [p.name for p in chosen.chain.parameters if p.kind == "int" and p.name != name]
    cure = f"; lower {' or '.join(others)} as well" if others else ""
    return f"{reason}; not even {name}=1 fits{cure}."


def _fits(
    graph: OpGraph, chosen: ChosenChain, strategies: Sequence[Strategy], room: Room, limit: float
) -> bool:
    needed = max((_needed(graph, chosen, strategy, room) for strategy in strategies), default=0)
    return needed <= limit and not _freezes_display(graph, chosen, room)


def _needed(graph: OpGraph, chosen: ChosenChain, strategy: Strategy, room: Room) -> int:
    """Inputs, peak, and what is needed beside it: to flush the cache, then to check the result."""
    inputs = bytes_of(graph, TensorRole.INPUT)
    updated = {name for op in graph.ops for name in op.writes}
    results = sum(
        math.prod(t.shape) for t in graph.tensors
        if t.role is TensorRole.OUTPUT or (t.role is TensorRole.INPUT and t.id in updated)
    )  # fmt: skip
    # The inputs count once more: those that calls update are made anew to be checked.
    checking = inputs + min(_COMPARED_BYTES * results, _COMPARED_SLICE_BYTES)
    if any(op.kind is OpKind.RANDOM for op in graph.ops):
        checking = max(checking, inputs + _CHECKED_BYTES * results)
    beside = max(flush_bytes(room.device.l2_bytes), checking)
    if room.device.kind is DeviceKind.CUDA:
        beside += _LIBRARIES_BYTES
    return inputs + estimate(graph, strategy, chosen) + beside


def _freezes_display(graph: OpGraph, chosen: ChosenChain, room: Room) -> bool:
    if not room.device.drives_display or room.device.ceilings is None:
        return False
    dtype = str(chosen.parameters.get("dtype", "fp32"))
    return longest_launch_s(graph, room.device.ceilings, dtype) > MOST_LAUNCH_S


def _size(chosen: ChosenChain, name: str) -> int:
    value = chosen.parameters[name]
    if not isinstance(value, int):
        raise TypeError(f"{name} is no whole number")
    return value


def _sized(chosen: ChosenChain, name: str) -> SizedGraph:
    size = _size(chosen, name)
    other = size // 2 if size > 1 else 2
    second = capture_subject(chosen.subject.with_settings(**{name: other}), chosen.device)
    return SizedGraph(
        first=chosen.captured.graph,
        first_size=size,
        second=second.captured.graph,
        second_size=other,
    )
