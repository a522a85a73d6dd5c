"""What a fusion plan would read and write if every group became exactly one kernel: ``planned``.

Each tensor from outside a group is read once, or as much of it as its ops look at, and each result
that is needed outside is written once.
What Inductor makes of a group may differ; that is what measuring is for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.fusion import FusionPlan
from explorer.model.opgraph import Op, OpGraph
from explorer.model.run import Access
from explorer.model.tensor import Tensor, TensorRole


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedKernel:
    """A group as one kernel.

    Attributes:
        ops: Names of its ops.
        accesses: Bytes by tensor, in the order of first use.
        stays_on_chip: Ids of tensors made and used inside and never in memory.
    """

    ops: tuple[str, ...]
    accesses: tuple[Access, ...]
    stays_on_chip: tuple[str, ...]

    @property
    def bytes_read(self) -> int:
        """From memory."""
        return sum(access.bytes_read for access in self.accesses)

    @property
    def bytes_written(self) -> int:
        """To memory."""
        return sum(access.bytes_written for access in self.accesses)


def planned_kernels(graph: OpGraph, plan: FusionPlan) -> tuple[PlannedKernel, ...]:
    """One kernel a group, in the plan's order."""
    by_name = {op.name: op for op in graph.ops}
    return tuple(_kernel(graph, [by_name[name] for name in group]) for group in plan.groups)


def planned_bytes(graph: OpGraph, plan: FusionPlan) -> tuple[int, int]:
    """Bytes read and written by all kernels of a plan."""
    kernels = planned_kernels(graph, plan)
    return sum(k.bytes_read for k in kernels), sum(k.bytes_written for k in kernels)


def _kernel(graph: OpGraph, ops: Sequence[Op]) -> PlannedKernel:
    inside = {op.name for op in ops}
    made: dict[str, None] = {}
    readers: dict[str, list[Op]] = {}
    for op in ops:
        for tensor in op.reads:
            if tensor not in made:
                readers.setdefault(tensor, []).append(op)
        made.update(dict.fromkeys(op.writes))
    read = {t: _bytes_read(graph.tensor(t), by) for t, by in readers.items()}
    written = {t: graph.tensor(t).n_bytes for t in made if _leaves(graph, t, inside)}
    return PlannedKernel(
        ops=tuple(op.name for op in ops),
        accesses=tuple(
            Access(tensor=t, bytes_read=read.get(t, 0), bytes_written=written.get(t, 0))
            for t in dict.fromkeys((*read, *written))
        ),
        stays_on_chip=tuple(
            t for t in made if t not in written and any(t in op.reads for op in ops)
        ),
    )


def _bytes_read(tensor: Tensor, readers: Sequence[Op]) -> int:
    """What some ops read of a tensor together: each part once, and no more than all of it."""
    parts: dict[str, int] = {}
    for op in readers:
        own = {part.part: part.n_bytes for part in op.parts if part.tensor == tensor.id}
        if not own:
            return tensor.n_bytes
        parts.update(own)
    return min(tensor.n_bytes, sum(parts.values()))


def _leaves(graph: OpGraph, tensor: str, inside: set[str]) -> bool:
    """Whether a tensor that a group makes has to be in memory afterwards."""
    role = graph.tensor(tensor).role
    if role in (TensorRole.OUTPUT, TensorRole.INPUT):
        return True
    return any(tensor in op.reads for op in graph.ops if op.name not in inside)
