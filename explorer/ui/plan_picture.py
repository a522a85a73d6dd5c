"""What a fusion plan says of each link, if every group becomes exactly one kernel. No Qt."""

from explorer.model.fusion import FusionPlan
from explorer.model.opgraph import Op, OpGraph
from explorer.model.planned import planned_kernels
from explorer.ui.op_links import Link, LinkState, SideInput


class PlannedLinks:
    """Links and side inputs under a plan."""

    def __init__(self, graph: OpGraph, plan: FusionPlan) -> None:
        self._tensors = {tensor.id: tensor for tensor in graph.tensors}
        self._kernel = {}
        self._ops: dict[str, tuple[Op, ...]] = {}
        self._begun: dict[str, int] = {}
        by_name = {op.name: op for op in graph.ops}
        for kernel in planned_kernels(graph, plan):
            accesses = {access.tensor: access for access in kernel.accesses}
            ops = tuple(by_name[name] for name in kernel.ops)
            self._kernel.update(dict.fromkeys(kernel.ops, accesses))
            self._ops.update(dict.fromkeys(kernel.ops, ops))
            self._begun[kernel.ops[0]] = kernel.bytes_read + kernel.bytes_written

    def link(self, above: Op, below: Op, passed: list[str]) -> Link:
        """The link between two ops, over which some tensors pass."""
        is_fused = below in self._ops[above.name]
        both = [] if passed else shared_inputs(above, below)
        written = sum(self._written(above, tensor) for tensor in passed)
        read = 0 if is_fused else sum(self._tensors[t].n_bytes for t in passed)
        if not passed:
            state = LinkState.TOGETHER if is_fused else LinkState.NO_DATA
        elif not is_fused:
            state = LinkState.THROUGH_MEMORY
        else:
            state = LinkState.KEPT if written else LinkState.ON_CHIP
        return Link(
            first=above.name,
            second=below.name,
            tensors=tuple(self._tensors[t].name for t in passed),
            state=state,
            bytes_written=written,
            bytes_read=read,
            shared=tuple(self._tensors[t].name for t in both),
            shared_bytes=sum(self._tensors[t].n_bytes for t in both),
        )

    def bytes_begun(self, op: Op) -> int:
        """What a kernel reads and writes whose first op it is, 0 for the other ops."""
        return self._begun.get(op.name, 0)

    def _written(self, op: Op, tensor: str) -> int:
        """What an op's kernel writes of the value that the op makes."""
        ops = self._ops[op.name]
        if any(tensor in later.writes for later in ops[ops.index(op) + 1 :]):
            # Updated in place once more by the same kernel: only the last value is written.
            return 0
        access = self._kernel[op.name].get(tensor)
        return access.bytes_written if access else 0

    def side_inputs(self, op: Op, given: set[str]) -> tuple[SideInput, ...]:
        """What an op reads of no other op; 0 bytes where an op before it in its kernel did."""
        ops = self._ops[op.name]
        before = {tensor for other in ops[: ops.index(op)] for tensor in other.reads}
        return tuple(
            SideInput(
                name=self._tensors[t].name, n_bytes=0 if t in before else self._tensors[t].n_bytes
            )
            for t in dict.fromkeys(op.reads)
            if t not in given
        )


def shared_inputs(above: Op, below: Op) -> list[str]:
    """Ids of what two ops both read, and the first does not change."""
    return [
        tensor
        for tensor in dict.fromkeys(below.reads)
        if tensor in above.reads and tensor not in above.writes
    ]
