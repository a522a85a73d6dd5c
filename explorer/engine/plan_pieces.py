"""A captured chain in the pieces of a fusion plan."""

from explorer.engine.aten_graph import results_of, updates_of
from explorer.engine.partition import Partition, Piece, split
from explorer.engine.prepared import Prepared
from explorer.model.fusion import FusionPlan


def partition_by(prepared: Prepared, plan: FusionPlan) -> Partition:
    """The captured graph in pieces, one a group, in the order in which they run.

    Raises:
        PartitionError: The plan is not legal.
    """
    nodes = {node.name: node for node in prepared.graph_module.graph.nodes}
    placeholders = [node for node in nodes.values() if node.op == "placeholder"]
    inputs = dict(zip(prepared.inputs, placeholders, strict=True))
    by_op = {captured.op: nodes[captured.node] for captured in prepared.nodes}
    stored = updates_of(prepared.graph_module)
    updates = stored | {
        value: inputs[name]
        for captured in prepared.nodes
        for value, name in zip(results_of(nodes[captured.node]), captured.updates, strict=False)
    }
    groups = [[by_op[op] for op in group] for group in plan.groups]
    return split(prepared.graph_module, groups, updates)


def ops_of(piece: Piece, prepared: Prepared) -> tuple[str, ...]:
    """Names of the ops that a piece carries out, in the chain's order."""
    inside = {node.name for node in piece.nodes}
    return tuple(captured.op for captured in prepared.nodes if captured.node in inside)
