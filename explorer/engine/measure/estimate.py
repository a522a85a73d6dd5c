"""What a run will need, from the op graph alone: peak memory, the longest launch, what still fits.

Nothing is allocated here. The estimates err on the large side, since they decide what is refused.
"""

import dataclasses
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explorer.engine.strategies.base import PeakFamily
from explorer.model.device import Ceilings
from explorer.model.opgraph import Op, OpGraph, OpKind
from explorer.model.tensor import Tensor, TensorRole
from explorer.model.units import BYTES_PER_ELEMENT

_ASSIGNED = re.compile(r"^(?P<name>\w+)\s*=(?!=)")
_FP32_BYTES = 4


def peak_bytes(graph: OpGraph, family: PeakFamily, *, on_cuda: bool) -> int:
    """Most bytes held at once over the inputs.

    Args:
        graph: The captured chain.
        family: How the strategy holds tensors.
        on_cuda: Whether it runs on a GPU, where dropout works in one kernel.
    """
    if family is PeakFamily.EAGER:
        return _eager_peak(graph, on_cuda=on_cuda)
    if family is PeakFamily.COMPILED:
        return _compiled_peak(graph, on_cuda=on_cuda)
    return sum(t.n_bytes for t in graph.tensors if t.role is TensorRole.OUTPUT)


def _eager_peak(graph: OpGraph, *, on_cuda: bool) -> int:
    """Python frees a tensor when its variable is bound anew, not when it is last read."""
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    last_read = {name: i for i, op in enumerate(graph.ops) for name in op.reads}
    bound: dict[str, str] = {}
    held: set[str] = set()
    peak = 0
    for i, op in enumerate(graph.ops):
        held.update(op.writes)
        now = sum(tensors[name].n_bytes for name in held)
        if op.kind is OpKind.RANDOM and not on_cuda:
            # There the random numbers are a tensor of their own while the op runs.
            now += tensors[op.writes[0]].n_bytes
        peak = max(peak, now)
        assigned = _ASSIGNED.match(op.source_line or "")
        if assigned is not None:
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


def _compiled_peak(graph: OpGraph, *, on_cuda: bool) -> int:
    """Each matmul a kernel, and what lies between matmuls one; a dying input's memory is reused."""
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    groups = list(fused_groups(graph))
    last_read = {name: i for i, ops in enumerate(groups) for op in ops for name in op.reads}
    held: set[str] = set()
    peak = 0
    for i, ops in enumerate(groups):
        written = {
            name
            for op in ops
            for name in op.writes
            if last_read.get(name, -1) > i or tensors[name].role is TensorRole.OUTPUT
        }
        dying = [name for name in held if last_read.get(name, -1) <= i]
        own = _own_bytes(ops, tensors, on_cuda=on_cuda)
        if not own and ops[0].kind is not OpKind.MATMUL:
            for name in written:
                twin = next((d for d in dying if _same_size(tensors, d, name)), None)
                if twin is not None:
                    dying.remove(twin)
                    held.discard(twin)
        held |= written
        now = sum(tensors[name].n_bytes for name in held) + own
        peak = max(peak, now)
        held = {
            name
            for name in held
            if last_read.get(name, -1) > i or tensors[name].role is TensorRole.OUTPUT
        }
    return peak


def _same_size(tensors: dict[str, Tensor], first: str, second: str) -> bool:
    return tensors[first].n_bytes == tensors[second].n_bytes


def _own_bytes(ops: tuple[Op, ...], tensors: dict[str, Tensor], *, on_cuda: bool) -> int:
    """Buffers that Inductor makes for itself where a reduction is in the group.

    On a GPU that is an fp32 random number an element. On a CPU it is the reduction's elements in
    fp32, unless that is what they are anyway.
    """
    if not any(op.kind is OpKind.REDUCTION for op in ops):
        return 0
    kind = OpKind.RANDOM if on_cuda else OpKind.REDUCTION
    results = [tensors[op.writes[0]] for op in ops if op.kind is kind]
    return sum(
        _FP32_BYTES * math.prod(result.shape)
        for result in results
        if on_cuda or BYTES_PER_ELEMENT[result.dtype] < _FP32_BYTES
    )


def fused_groups(graph: OpGraph) -> Iterator[tuple[Op, ...]]:
    """The ops as a compiler would group them at best: matmuls alone, the rest between them."""
    group: list[Op] = []
    for op in graph.ops:
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

    def inputs_bytes(self, size: int) -> int:
        """Bytes of the inputs at a size."""
        return sum(t.n_bytes for t in self.at(size).tensors if t.role is TensorRole.INPUT)


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
