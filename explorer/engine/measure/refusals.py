"""Why ops of a compiled chain do not share a kernel: each pair that might, with a sentence.

What is known comes from three sides: the plan draws boundaries, Inductor's log says no to pairs,
and what the log is silent about follows from what the scheduler made of each op: a call, a
template, loops of certain sizes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from explorer.engine.measure.observe_compile import CompileObservation
from explorer.engine.measure.provenance import ops_of_nodes
from explorer.engine.measure.refusal_facts import Explanation, ScheduledGraph
from explorer.engine.prepared import Prepared
from explorer.model.fusion import FusionPlan, parse_plan
from explorer.model.legality import dependencies
from explorer.model.opgraph import GraphBreak, OpGraph
from explorer.model.run import FusionRefusal, Launch, RefusalReason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """What refusals are found from.

    Attributes:
        graph: The chain's.
        launches: Of the run.
        modules: Of the compilation; empty where it was not observed.
        plan: The fusion plan of the run, None where the compiler grouped.
        breaks: Where Dynamo gave up one graph and began another.
    """

    graph: OpGraph
    launches: Sequence[Launch]
    modules: Sequence[ScheduledGraph]
    plan: FusionPlan | None = None
    breaks: Sequence[GraphBreak] = ()

    def find(self) -> tuple[FusionRefusal, ...]:
        """The refusals in the chain's order, those within one op behind those of its links."""
        found = [
            self._refusal(first, second)
            for first, second in linked(self.graph)
            if self._is_drawn(first, second)
            or (self._ran(first) and self._ran(second) and not self._share(first, second))
        ]
        found += [
            _made(op.name, op.name, why)
            for op in self.graph.ops
            for module in self.modules
            if (why := module.why_split(op.name)) is not None
        ]
        return tuple(found)

    def _refusal(self, first: str, second: str) -> FusionRefusal:
        if self._is_drawn(first, second):
            return FusionRefusal(
                first=first,
                second=second,
                sentence=f"The plan has a boundary between {first} and {second}.",
                reason=RefusalReason.DRAWN,
            )
        for module in self.modules:
            why = module.why_apart(first, second)
            if why is not None:
                return _made(first, second, why)
        return _made(first, second, self._across_graphs(first, second))

    def _is_drawn(self, first: str, second: str) -> bool:
        return self.plan is not None and not self.plan.shares(first, second)

    def _across_graphs(self, first: str, second: str) -> Explanation:
        holders = [{op for op in (first, second) if m.has(op)} for m in self.modules]
        backward = {op.name for op in self.graph.ops if op.is_backward}
        passes_apart = self.plan is None and len(self.modules) > 1
        if passes_apart and first not in backward and second in backward:
            return Explanation(
                RefusalReason.OTHER,
                f"{first} is in the forward pass and {second} in the backward pass, and "
                "torch.compile makes kernels for each pass by itself.",
            )
        if {first} in holders and {second} in holders:
            reasons = "\n".join(broken.reason for broken in self.breaks)
            return Explanation(
                RefusalReason.OTHER,
                f"{first} and {second} are in different graphs, which are compiled one by one.",
                reasons,
            )
        return Explanation(
            RefusalReason.OTHER,
            f"{first} and {second} are in different kernels, and what was seen of the compilation "
            "does not say why.",
        )

    def _ran(self, op: str) -> bool:
        return any(op in launch.ops for launch in self.launches)

    def _share(self, first: str, second: str) -> bool:
        both = [launch for launch in self.launches if {first, second} <= set(launch.ops)]
        return any(
            not launch.loop_nests
            or any({first, second} <= set(nest.ops) for nest in launch.loop_nests)
            for launch in both
        )


def find_refusals(
    prepared: Prepared,
    observation: CompileObservation | None,
    launches: Sequence[Launch],
    *,
    plan: str | None = None,
    breaks: Sequence[GraphBreak] = (),
) -> tuple[FusionRefusal, ...]:
    """Why ops of a run do not share a kernel: every link of the chain that goes through memory.

    An op that became several kernels, or several loop nests, has a refusal whose ``first`` and
    ``second`` are both that op.

    Args:
        prepared: The chain.
        observation: What was seen of the compilation; every piece's, where a plan made several.
        launches: What ran.
        plan: Text of the fusion plan, None where the compiler grouped the ops itself.
        breaks: Where Dynamo gave up one graph and began another.
    """
    ops = {op.name: op for op in prepared.graph.ops}
    drawn = None if plan is None else parse_plan(plan, tuple(ops), prepared.chain.id)
    notes = list(observation.modules.values()) if observation is not None else []
    node_ops = ops_of_nodes(notes, prepared)
    modules = [
        ScheduledGraph.of(module, node_ops, ops) for module in notes if module.fusion is not None
    ]
    return _Search(
        graph=prepared.graph, launches=launches, modules=modules, plan=drawn, breaks=breaks
    ).find()


def linked(graph: OpGraph) -> tuple[tuple[str, str], ...]:
    """Pairs of ops that a link of the chain joins: neighbours in its order, and data edges."""
    place = {op.name: i for i, op in enumerate(graph.ops)}
    pairs = {(above.name, below.name) for above, below in pairwise(graph.ops)}
    pairs |= {(link.before, link.after) for link in dependencies(graph)}
    return tuple(sorted(pairs, key=lambda pair: (place[pair[0]], place[pair[1]])))


def _made(first: str, second: str, why: Explanation) -> FusionRefusal:
    return FusionRefusal(
        first=first, second=second, sentence=why.sentence, raw=why.raw, reason=why.reason
    )
