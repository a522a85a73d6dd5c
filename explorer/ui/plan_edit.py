"""What a person does to a fusion plan: set a link, take a preset, paste a text. No Qt.

Every function gives a new plan, or says why there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.errors import UsageError
from explorer.model.fusion import (
    SWEEP,
    FusionPlan,
    cut,
    each_alone,
    joined,
    parse_plan,
    plan_of,
    plan_of_launches,
)
from explorer.model.legality import Illegal, check, cured, parted
from explorer.model.opgraph import OpGraph
from explorer.model.planned import planned_bytes
from explorer.model.run import Run
from explorer.model.strategies import PLAN

PASTED_PREFIX = f"{PLAN}:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTotals:
    """What a plan costs if every group becomes exactly one kernel.

    Attributes:
        launches: One a group.
        n_bytes: Read and written, ``planned``.
    """

    launches: int
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What setting a link would change, by the plan.

    Attributes:
        launches: More launches; fewer are negative.
        n_bytes: More bytes read and written; fewer are negative.
    """

    launches: int
    n_bytes: int


def op_names(graph: OpGraph) -> list[str]:
    """The names of a graph's ops, in order."""
    return [op.name for op in graph.ops]


def totals(graph: OpGraph, plan: FusionPlan) -> PlanTotals:
    """Launches and bytes of a plan."""
    return PlanTotals(launches=len(plan.groups), n_bytes=sum(planned_bytes(graph, plan)))


def restricted(plan: FusionPlan, ops: Sequence[str]) -> FusionPlan:
    """The plan for the ops that are left; those it does not know stay alone."""
    kept = [[op for op in group if op in ops] for group in plan.groups]
    return plan_of(ops, kept)


def fitted(plan: FusionPlan, graph: OpGraph) -> FusionPlan:
    """The plan for a graph's ops, legal there.

    An op that came back between two of one group joins them: nothing else would run.
    """
    return cured(graph, restricted(plan, op_names(graph)), ())


def grouping_of(run: Run) -> FusionPlan:
    """The grouping that a run shows: its plan, or the ops that its launches carry out together."""
    # Not needed before there is a run, and so not before the window is on the screen.
    from explorer.model.sweep import plan_of_run

    plan = plan_of_run(run, run.graph)
    if plan is None:
        plan = plan_of_launches(run.graph, run.launches)
    return fitted(plan, run.graph)


def set_link(
    graph: OpGraph, plan: FusionPlan, first: str, second: str, *, fused: bool
) -> FusionPlan | Illegal:
    """The plan with two ops in one group or in two; why that cannot be where it is not legal."""
    ops = op_names(graph)
    pair = (first, second)
    changed = joined(plan, ops, pair) if fused else cut(plan, ops, *pair)
    return check(graph, changed) or changed


def change_of(graph: OpGraph, plan: FusionPlan, first: str, second: str) -> Change | Illegal:
    """What setting a link the other way would change."""
    changed = set_link(graph, plan, first, second, fused=not plan.shares(first, second))
    if isinstance(changed, Illegal):
        return changed
    before, after = totals(graph, plan), totals(graph, changed)
    return Change(launches=after.launches - before.launches, n_bytes=after.n_bytes - before.n_bytes)


def plan_from_text(text: str, graph: OpGraph, chain: str) -> FusionPlan | Illegal:
    """Read a plan as a person pastes it: with or without ``plan:`` and quotation marks.

    Raises:
        UsageError: An op is unknown, named twice or missing; the sentence names it.
    """
    bare = bare_text(text)
    if len(bare.splitlines()) > 1:
        raise UsageError("A plan is one line, such as scale+mask|softmax.")
    if bare == SWEEP:
        raise UsageError(f"{PASTED_PREFIX}{SWEEP} is every plan; the tab Sweep runs them.")
    plan = parse_plan(bare, op_names(graph), chain)
    return check(graph, plan) or plan


def bare_text(text: str) -> str:
    """What was pasted without what the command line needs round it."""
    stripped = text.strip().strip("'\"`").strip()
    stripped = stripped.removeprefix("--strategy").strip().strip("'\"")
    return stripped.removeprefix(PASTED_PREFIX).strip()


def as_whole(graph: OpGraph) -> FusionPlan:
    """All in one kernel, or in one a piece where graph breaks part them: legal on every graph."""
    return parted(graph, plan_of(op_names(graph), (op_names(graph),)))


def as_written(graph: OpGraph) -> FusionPlan:
    """One op a kernel."""
    return each_alone(op_names(graph))
