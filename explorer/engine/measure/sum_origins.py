"""Which op a sum is that a compiler merged with a matmul, where nothing stands on the new node.

Some releases of torch put such a node in the place of a matmul and of the sum that takes it without
the line, the autograd's number or the pass of either. What it adds to is known, and so is which
matmuls nothing else carries out: the sum that takes one of each is the one.
"""

from collections.abc import Collection, Mapping

from explorer.engine.measure.calls import packet_of
from explorer.engine.measure.observe_compile import GraphNode
from explorer.model.opgraph import Op, OpGraph, OpKind

ADDING_MATMULS = frozenset(("aten.addmm", "aten.baddbmm"))
"""Operators that add what a matmul makes to something."""


def sums_with_matmuls(
    nodes: Mapping[str, GraphNode],
    told: Mapping[str, str],
    carried: Collection[str],
    graph: OpGraph,
) -> dict[str, str]:
    """The op by node name: that of the sum. Where several could be it, none is.

    Args:
        nodes: Of one compiled graph, in order.
        told: The op of each node of it that is known.
        carried: Ops that are known to be in any graph.
        graph: The chain's.
    """
    found: dict[str, str] = {}
    done = set(carried)
    for node in nodes.values():
        if node.name in told or packet_of(node.target) not in ADDING_MATMULS:
            continue
        addend = _op_behind(node, nodes, {**told, **found})
        fitting = [
            (op, matmul)
            for op in graph.ops
            if op.name not in done and packet_of(op.aten) == "aten.add"
            for matmul in _matmuls_taken(op, graph)
            if matmul not in done and (addend is None or _takes(op, addend, graph))
        ]
        if len(fitting) == 1:
            [(op, matmul)] = fitting
            found[node.name] = op.name
            done |= {op.name, matmul}
    return found


def _op_behind(
    node: GraphNode, nodes: Mapping[str, GraphNode], told: Mapping[str, str]
) -> str | None:
    """The op that makes what a node adds to: its first input, views seen through."""
    first = nodes.get(node.inputs[0]) if node.inputs else None
    while first is not None and first.is_view and first.inputs:
        first = nodes.get(first.inputs[0])
    return None if first is None else told.get(first.name)


def _takes(op: Op, name: str, graph: OpGraph) -> bool:
    """Whether an op takes what the op of that name makes."""
    return any(set(op.reads) & set(other.writes) for other in graph.ops if other.name == name)


def _matmuls_taken(op: Op, graph: OpGraph) -> list[str]:
    """The matmuls whose results an op takes."""
    return [
        other.name
        for other in graph.ops
        if other.kind is OpKind.MATMUL and set(op.reads) & set(other.writes)
    ]
