"""What a run will need, from the op graph alone: peak memory, the longest launch, what still fits.

Nothing is allocated here. The estimates err on the large side, since they decide what is refused.
"""

import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from explorer.engine.strategies.base import PeakFamily
from explorer.model.device import Ceilings
from explorer.model.fusion import FusionPlan
from explorer.model.legality import run_order
from explorer.model.opgraph import Op, OpGraph, OpKind
from explorer.model.tensor import Tensor, TensorRole
from explorer.model.units import BYTES_PER_ELEMENT

_ASSIGNED = re.compile(r"^(?P<name>\w+)\s*=(?!=)")
_FP32_BYTES = 4
_SMALL_BYTES = 1 << 20
"""Seeds, scalars, a library's scratch, and what a block of memory may be larger than its tensor:
CUDA's caching allocator leaves up to a MiB in it."""
_THREAD_BYTES = 2 << 20
"""Scratch of a thread of torch's fused CPU attention: a block of scores in fp32, and its parts."""
_PERSISTENT_ROW = 1024
"""Rows up to this length Inductor reduces in one piece, and keeps nothing of them in memory."""
_ALIGNED_BYTES = 16
_JOINING, _AVERAGING = "aten.cat.default", "aten.mean."
_PADDED_TIMES = 2.5
"""Padded copies of a matmul's operands, and trying whether padding pays: 2.3 times the tensors
while compiling and 1.5 times in a call were measured on an H200."""
_SEGMENT_BYTES, _ROUNDED_BYTES = 20 << 20, 2 << 20
"""CUDA's caching allocator takes memory for tensors of middle size, and rounds large ones up."""


def peak_bytes(graph: OpGraph, family: PeakFamily, *, on_cuda: bool) -> int:
    """The most bytes held at once over the inputs: an upper bound.

    Args:
        graph: The captured chain.
        family: How the strategy holds tensors.
        on_cuda: Whether it runs on a GPU, where dropout works in one kernel.
    """
    match family:
        case PeakFamily.EAGER:
            return _eager_peak(graph, on_cuda=on_cuda)
        case PeakFamily.EAGER_GRAPH:
            return _eager_peak(graph, on_cuda=on_cuda) + _pool_rounding(graph)
        case PeakFamily.COMPILED:
            return _compiled_peak(graph, on_cuda=on_cuda)
        case PeakFamily.COMPILED_GRAPH:
            return _compiled_graph_peak(graph, on_cuda=on_cuda)
        case PeakFamily.UPCAST:
            return _upcast_peak(graph, on_cuda=on_cuda)
        case PeakFamily.FUSED:
            return _fused_peak(graph, on_cuda=on_cuda)


def _compiled_graph_peak(graph: OpGraph, *, on_cuda: bool) -> int:
    """What Inductor's pool of a CUDA graph holds, the copies of the inputs among it.

    The pool serves a warm-up run first. When the graph is recorded, the copies of the inputs
    split blocks that the warm-up left, so that each tensor takes the next larger one and the
    largest a new one: 5.47 GB for 3.22 GB of tensors, measured on an H200.
    """
    copies = sum(t.n_bytes for t in graph.tensors if t.role is TensorRole.INPUT)
    made = [_compiled_own_bytes(ops, graph, on_cuda=on_cuda) for ops in fused_groups(graph)]
    made += [t.n_bytes for t in graph.tensors if t.role is not TensorRole.INPUT]
    return (
        _compiled_peak(graph, on_cuda=on_cuda)
        + copies
        + max(made, default=0)
        + _pool_rounding(graph)
    )


def _pool_rounding(graph: OpGraph) -> int:
    return _SEGMENT_BYTES + _ROUNDED_BYTES * len(graph.tensors)


def _upcast_peak(graph: OpGraph, *, on_cuda: bool) -> int:
    """Eager's peak, with everything in fp32: torch's attention without a fused kernel.

    It holds fp32 copies of narrower inputs as well.
    """
    narrow = [
        t for t in graph.tensors
        if t.role is TensorRole.INPUT and BYTES_PER_ELEMENT[t.dtype] < _FP32_BYTES
    ]  # fmt: skip
    if not narrow:
        return _eager_peak(graph, on_cuda=on_cuda) + _SMALL_BYTES
    widened = _FP32_BYTES // int(min(BYTES_PER_ELEMENT[t.dtype] for t in narrow))
    copies = sum(_FP32_BYTES * math.prod(t.shape) for t in narrow)
    return widened * _eager_peak(graph, on_cuda=on_cuda) + copies + _SMALL_BYTES


def _fused_peak(graph: OpGraph, *, on_cuda: bool) -> int:
    """The output, fp32 statistics of its rows, and scratch."""
    outputs = [t for t in graph.tensors if t.role is TensorRole.OUTPUT]
    held = sum(t.n_bytes + _FP32_BYTES * math.prod(t.shape[:-1]) for t in outputs) + _SMALL_BYTES
    if any(op.is_backward for op in graph.ops):
        # Gradients are summed up in fp32 before they are rounded.
        held += sum(_FP32_BYTES * math.prod(t.shape) for t in outputs)
    if not on_cuda:
        return held + _THREAD_BYTES * (os.cpu_count() or 1)
    # Inputs whose rows are no multiple of 8 elements are copied into some that are.
    inputs = [t for t in graph.tensors if t.role is TensorRole.INPUT]
    return held + sum(2 * t.n_bytes for t in inputs if t.shape[-1] % 8)


def _eager_peak(graph: OpGraph, *, on_cuda: bool) -> int:
    """Python frees a tensor when its variable is bound anew, not when it is last read.

    What an op updates in place is an input, and takes no memory of its own. In the backward pass
    there are no variables: what an op saved for it is held until it was read there.
    """
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    if not on_cuda:
        tensors |= _kept_as_numbers(graph, tensors)
    last_read = {name: i for i, op in enumerate(graph.ops) for name in op.reads}
    for i, end in _gradient_functions(graph):
        for name in (*graph.ops[i].reads, *graph.ops[i].writes):
            last_read[name] = max(last_read.get(name, -1), end)
    bound: dict[str, str] = {}
    held: set[str] = set()
    peak = 0
    for i, op in enumerate(graph.ops):
        held |= _made(op, tensors)
        now = _held_bytes(held, tensors)
        if not on_cuda:
            now += _cpu_scratch(op, tensors)
        peak = max(peak, now)
        assigned = _ASSIGNED.match(op.source_line or "")
        if op.is_backward:
            bound.clear()
        elif assigned is not None:
            bound[assigned["name"]] = op.writes[0]
        kept = set(bound.values())
        held = {
            name
            for name in held
            if name in kept
            or last_read.get(name, -1) > i
            or tensors[name].role is TensorRole.OUTPUT
        }
    return peak


def _cpu_scratch(op: Op, tensors: dict[str, Tensor]) -> int:
    """What eager holds on a CPU while an op runs, beside what it reads and writes."""
    if op.kind is OpKind.RANDOM:
        # The random numbers are a tensor of their own.
        return tensors[op.writes[0]].n_bytes
    if op.aten.startswith(_AVERAGING):
        averaged = tensors[op.reads[0]]
        if BYTES_PER_ELEMENT[averaged.dtype] < _FP32_BYTES:
            # It is widened as a whole before it is summed up.
            return _FP32_BYTES * math.prod(averaged.shape)
    return 0


def _gradient_functions(graph: OpGraph) -> Iterator[tuple[int, int]]:
    """The place of each backward op, and of the last of its gradient function, which holds all."""
    ends: list[int] = []
    for i, op in reversed(list(enumerate(graph.ops))):
        below = graph.ops[i + 1] if i + 1 < len(graph.ops) else None
        goes_on = below is not None and op.source_line and op.source_line == below.source_line
        ends.append(ends[-1] if goes_on and op.is_backward else i)
    for i, end in enumerate(reversed(ends)):
        if graph.ops[i].is_backward:
            yield i, end


def _kept_as_numbers(graph: OpGraph, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """What dropout kept, which on a CPU are numbers in the dtype of its result."""
    drawn = (op.writes for op in graph.ops if op.kind is OpKind.RANDOM and len(op.writes) > 1)
    return {
        kept: dataclasses.replace(tensors[kept], n_bytes=tensors[result].n_bytes)
        for result, kept, *_ in drawn
    }


def plan_peak_bytes(graph: OpGraph, plan: FusionPlan, *, on_cuda: bool) -> int:
    """The same for a fusion plan, each of whose groups is compiled by itself.

    A matmul in a group is a kernel of its own all the same.
    """
    by_name = {op.name: op for op in graph.ops}
    order = run_order(graph, plan)
    groups = [part for group in order for part in _fused_at_best([by_name[name] for name in group])]
    return _grouped_peak(graph, groups, on_cuda=on_cuda)


def _compiled_peak(graph: OpGraph, *, on_cuda: bool) -> int:
    """Each matmul a kernel, and what lies between matmuls one."""
    return _grouped_peak(graph, list(fused_groups(graph)), on_cuda=on_cuda)


def _grouped_peak(graph: OpGraph, groups: Sequence[tuple[Op, ...]], *, on_cuda: bool) -> int:
    """Each group of ops a kernel.

    Inductor may write a result over an input that dies; it does so for some shapes only, so it is
    not counted on.
    """
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    last_read = {name: i for i, ops in enumerate(groups) for op in ops for name in op.reads}

    def outlives(name: str, group: int) -> bool:
        return last_read.get(name, -1) > group or tensors[name].role is TensorRole.OUTPUT

    held: set[str] = set()
    peak = 0
    for i, ops in enumerate(groups):
        held |= {name for op in ops for name in _made(op, tensors) if outlives(name, i)}
        own = _compiled_own_bytes(ops, graph, on_cuda=on_cuda)
        peak = max(peak, _held_bytes(held, tensors) + own)
        held = {name for name in held if outlives(name, i)}
    if on_cuda and _has_odd_matmul(graph):
        peak = int(_PADDED_TIMES * peak)
    return peak + _SMALL_BYTES


def _made(op: Op, tensors: dict[str, Tensor]) -> set[str]:
    """What an op writes that was not there before."""
    return {name for name in op.writes if tensors[name].role is not TensorRole.INPUT}


def _held_bytes(held: set[str], tensors: dict[str, Tensor]) -> int:
    """Bytes of some tensors, each in a block that may be a little larger."""
    return sum(tensors[name].n_bytes + _SMALL_BYTES for name in held)


def _has_odd_matmul(graph: OpGraph) -> bool:
    """Whether Inductor would pad a matmul on a GPU: rows that do not begin at 16 bytes."""
    touched = {
        name for op in graph.ops if op.kind is OpKind.MATMUL for name in (*op.reads, *op.writes)
    }
    rows = ((t.shape[-1] * BYTES_PER_ELEMENT[t.dtype]) for t in graph.tensors if t.id in touched)
    return any(n_bytes % _ALIGNED_BYTES for n_bytes in rows)


def _compiled_own_bytes(ops: tuple[Op, ...], graph: OpGraph, *, on_cuda: bool) -> int:
    """Buffers that Inductor makes for itself within a group.

    With a reduction on a GPU that is an fp32 random number an element, where the rows are too long
    to be reduced in one piece. On a CPU it is the reduction's elements in fp32, unless that is what
    they are; and what is concatenated, which is written there part by part.
    """
    reduced = [graph.tensor(op.writes[0]) for op in ops if op.kind is OpKind.REDUCTION]
    if on_cuda:
        if all(math.prod(result.shape[-1:]) <= _PERSISTENT_ROW for result in reduced):
            return 0
        results = [graph.tensor(op.writes[0]) for op in ops if op.kind is OpKind.RANDOM]
    else:
        results = [t for t in reduced if BYTES_PER_ELEMENT[t.dtype] < _FP32_BYTES]
        results += [graph.tensor(op.writes[0]) for op in ops if op.aten == _JOINING]
    return sum(_FP32_BYTES * math.prod(result.shape) for result in results)


def fused_groups(graph: OpGraph) -> Iterator[tuple[Op, ...]]:
    """The ops as a compiler would group them at best: matmuls alone, the rest between them.

    Forward and backward are compiled one by one.
    """
    for is_backward in (False, True):
        yield from _fused_at_best([op for op in graph.ops if op.is_backward is is_backward])


def _fused_at_best(ops: Sequence[Op]) -> Iterator[tuple[Op, ...]]:
    group: list[Op] = []
    for op in ops:
        if op.kind in (OpKind.MATMUL, OpKind.OPAQUE):
            if group:
                yield tuple(group)
            group = []
            yield (op,)
        else:
            group.append(op)
    if group:
        yield tuple(group)


def longest_launch_s(graph: OpGraph, ceilings: Ceilings, dtype: str) -> float:
    """The longest op at the device's ceilings: by its bytes or by its FLOPs."""
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    flops_rate = ceilings.flops_per_s.get(dtype) or max(
        ceilings.flops_per_s.values(), default=math.inf
    )
    longest = 0.0
    for op in graph.ops:
        n_bytes = sum(tensors[name].n_bytes for name in (*op.reads, *op.writes))
        longest = max(longest, n_bytes / ceilings.memory_bytes_per_s, op.flops / flops_rate)
    return longest


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedGraph:
    """A chain's graph as a function of one size, from two captures.

    A dimension of a tensor either has nothing to do with the size or follows it along a line; so
    two captures tell the tensors of any size. FLOPs follow a power of the size.

    Attributes:
        first: The graph at ``first_size``.
        second: The graph at ``second_size``, which differs.
    """

    first: OpGraph
    first_size: int
    second: OpGraph
    second_size: int

    def at(self, size: int) -> OpGraph:
        """The graph at another size."""
        tensors = tuple(
            self._tensor(a, b, size)
            for a, b in zip(self.first.tensors, self.second.tensors, strict=True)
        )
        ops = tuple(
            dataclasses.replace(a, flops=self._flops(a.flops, b.flops, size))
            for a, b in zip(self.first.ops, self.second.ops, strict=True)
        )
        return OpGraph(ops=ops, tensors=tensors)

    def _tensor(self, first: Tensor, second: Tensor, size: int) -> Tensor:
        share = (size - self.first_size) / (self.second_size - self.first_size)
        shape = tuple(
            round(a + (b - a) * share) for a, b in zip(first.shape, second.shape, strict=True)
        )
        grown = math.prod(shape) / max(math.prod(first.shape), 1)
        return dataclasses.replace(first, shape=shape, n_bytes=round(first.n_bytes * grown))

    def _flops(self, first: int, second: int, size: int) -> int:
        if first <= 0 or second <= 0:
            return first
        power = math.log(second / first) / math.log(self.second_size / self.first_size)
        return int(first * (size / self.first_size) ** power + 0.5)


def largest_size(fits: Callable[[int], bool], *, below: int, step: int = 64) -> int | None:
    """The largest size under ``below`` that fits, in steps from ``step`` on; None if none does.

    Args:
        fits: Whether a size fits; must not become true again for a larger one.
        below: A size that does not fit.
        step: Sizes larger than this are multiples of it.
    """
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    if low > step:
        low -= low % step
    return low or None
