"""How Inductor itself would group the ops of a chain: compiled as a whole, and not run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.engine.measure.naming import loop_nests
from explorer.engine.measure.observe_compile import CompileObservation, ModuleNotes
from explorer.engine.measure.provenance import ops_of_nodes
from explorer.engine.measure.refusals import find_refusals
from explorer.engine.pieces import DEFAULT_OPTIONS, PIECES
from explorer.engine.plan_pieces import partition_by
from explorer.engine.prepared import Prepared
from explorer.model.errors import ExplorerError
from explorer.model.fusion import FusionPlan, all_in_one, plan_of_launches
from explorer.model.legality import cured
from explorer.model.run import FusionRefusal, Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """Inductor's own grouping.

    Attributes:
        plan: A legal plan: ops that it computes in one kernel are in one group.
        refusals: Why others are not.
    """

    plan: FusionPlan
    refusals: tuple[FusionRefusal, ...]


def inductor_grouping(prepared: Prepared) -> Grouping:
    """Find it by compiling the chain; nothing of the chain's size is allocated.

    Args:
        prepared: The chain. Only names and shapes of its inputs count.

    Raises:
        ExplorerError: This torch does not let its compiler be watched.
    """
    graph = prepared.graph
    [piece] = partition_by(prepared, all_in_one([op.name for op in graph.ops])).pieces
    notes = PIECES.compiled(piece, DEFAULT_OPTIONS).notes
    if notes is None:
        raise ExplorerError(
            "How Inductor groups the ops is not known: its compilation could not be observed with "
            "this torch."
        )
    notes = notes.of_piece(0, [node.name for node in piece.nodes])
    kernels = tuple(_kernels(notes, prepared))
    return Grouping(
        plan=cured(graph, plan_of_launches(graph, kernels), ()),
        refusals=find_refusals(prepared, CompileObservation(modules={notes.key: notes}), kernels),
    )


def _kernels(notes: ModuleNotes, prepared: Prepared) -> Iterator[Launch]:
    """What would be launched: the ops of each kernel, without bytes or times."""
    of_node = {node: op for (_, node), op in ops_of_nodes([notes], prepared).items()}

    def ops(nodes: Sequence[str]) -> tuple[str, ...]:
        inside = {of_node[node] for node in nodes if node in of_node}
        return tuple(op.name for op in prepared.graph.ops if op.name in inside)

    for handle, nodes in notes.kernels.items():
        name = handle.rpartition(":")[0]
        functions = notes.functions.get(name, [])
        yield Launch(
            kernel=name,
            title=name,
            ops=ops(nodes),
            loop_nests=tuple(nest for each in functions for nest in loop_nests(each, ops)),
        )
