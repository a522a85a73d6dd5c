"""Fusion plans: which ops share a kernel, as groups of op names, and how a plan is written down.

The text form of a plan is ``scale+mask|softmax+dropout``: ``+`` within a group, ``|`` between
groups. An op that is not named stays alone. On the command line it stands behind ``plan:``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from explorer.model.errors import UsageError
from explorer.model.opgraph import OpGraph, OpKind
from explorer.model.run import Launch

WITHIN, BETWEEN = "+", "|"
EACH, ALL, INDUCTOR, TRITON, SWEEP = "each", "all", "inductor", "triton", "*"
PRESETS = (EACH, INDUCTOR, ALL, TRITON)
"""Names that stand for a plan, in the order in which they are offered."""
MOST_SWEPT_LINKS = 8
"""A sweep runs two plans a link: 256 at most."""


@dataclass(frozen=True, slots=True)
class FusionPlan:
    """A partition of a chain's ops into groups, each meant to be one kernel.

    Attributes:
        groups: Op names. Every op is in exactly one group; within a group ops are in the chain's
            order, and groups are ordered by their first op.
    """

    groups: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """Every group written out: ``scale+mask|softmax|dropout``."""
        return BETWEEN.join(WITHIN.join(group) for group in self.groups)

    def group_of(self, op: str) -> tuple[str, ...]:
        """The group that an op is in.

        Raises:
            KeyError: The plan has no such op.
        """
        for group in self.groups:
            if op in group:
                return group
        raise KeyError(op)

    def shares(self, first: str, second: str) -> bool:
        """Whether two ops are in one group."""
        return second in self.group_of(first)


def plan_of(ops: Sequence[str], groups: Iterable[Iterable[str]]) -> FusionPlan:
    """The plan with these groups; ops in none of them stay alone.

    Args:
        ops: Names of all ops of the chain, in its order.
        groups: Disjoint groups of them, in any order.
    """
    place = {op: i for i, op in enumerate(ops)}
    ordered = [tuple(sorted(group, key=place.__getitem__)) for group in groups]
    ordered = [group for group in ordered if group]
    named = {op for group in ordered for op in group}
    ordered += [(op,) for op in ops if op not in named]
    return FusionPlan(tuple(sorted(ordered, key=lambda group: place[group[0]])))


def each_alone(ops: Sequence[str]) -> FusionPlan:
    """One op a kernel."""
    return plan_of(ops, ())


def all_in_one(ops: Sequence[str]) -> FusionPlan:
    """One kernel for everything."""
    return plan_of(ops, (ops,))


def parse_plan(text: str, ops: Sequence[str], chain: str) -> FusionPlan:
    """Read the text form; whether the plan is legal is :func:`~explorer.model.legality.check`'s.

    Args:
        text: ``scale+mask|softmax``; :data:`EACH` and :data:`ALL` are read too.
        ops: Names of the chain's ops, in order.
        chain: What the chain is called, for the sentence that refuses a text.

    Raises:
        UsageError: An op is unknown or named twice, or a name is missing between two signs.
    """
    stripped = text.strip()
    if stripped == EACH:
        return each_alone(ops)
    if stripped == ALL:
        return all_in_one(ops)
    if not stripped:
        raise UsageError(
            f"The plan is empty; name ops of {chain} such as {WITHIN.join(ops[:2])}, "
            f"{WITHIN} within a kernel and {BETWEEN} between kernels."
        )
    groups = [[name.strip() for name in part.split(WITHIN)] for part in stripped.split(BETWEEN)]
    seen: set[str] = set()
    before = ""
    for name in (name for group in groups for name in group):
        if not name:
            where = f"after {before!r}" if before else "at its beginning"
            raise UsageError(f"The plan {text!r} lacks the name of an op {where}.")
        if name not in ops:
            raise UsageError(f"{chain} has no op {name!r}; its ops are {', '.join(ops)}.")
        if name in seen:
            raise UsageError(
                f"The plan {text!r} names {name!r} twice; an op belongs to one kernel."
            )
        seen.add(name)
        before = name
    return plan_of(ops, groups)


def named_ops(text: str) -> tuple[str, ...]:
    """The names that a plan's text has between its signs, known or not."""
    parts = (part for group in text.split(BETWEEN) for part in group.split(WITHIN))
    return tuple(name for part in parts if (name := part.strip()))


def joined(plan: FusionPlan, ops: Sequence[str], members: Iterable[str]) -> FusionPlan:
    """The plan with the groups of some ops made into one group."""
    wanted = set(members)
    touched = [group for group in plan.groups if wanted & set(group)]
    rest = [group for group in plan.groups if group not in touched]
    return plan_of(ops, [*rest, [op for group in touched for op in group]])


def cut(plan: FusionPlan, ops: Sequence[str], first: str, second: str) -> FusionPlan:
    """The plan with a group that holds both ops parted between them, in the chain's order.

    What comes before ``second`` stays with ``first``. A plan in which they are apart already is
    returned as it is.
    """
    group = plan.group_of(first)
    if second not in group:
        return plan
    place = {op: i for i, op in enumerate(ops)}
    border = max(place[first], place[second])
    early = [op for op in group if place[op] < border]
    late = [op for op in group if place[op] >= border]
    rest = [other for other in plan.groups if other != group]
    return plan_of(ops, [*rest, early, late])


def plan_of_launches(graph: OpGraph, launches: Sequence[Launch]) -> FusionPlan:
    """The grouping that launches show: ops that a launch carries out together are in one group.

    Ops that no launch names stay alone. What a launch of the backward pass computes anew of the
    forward pass is in the group of the launch that computed it first.
    """
    is_backward = {op.name: op.is_backward for op in graph.ops}
    ops = list(is_backward)
    plan = each_alone(ops)
    done: set[str] = set()
    for launch in launches:
        members = [op for op in launch.ops if op in is_backward]
        if any(is_backward[op] for op in members):
            members = [op for op in members if is_backward[op] or op not in done]
        done |= set(members)
        if len(members) > 1:
            plan = joined(plan, ops, members)
    return plan


def fusable_links(graph: OpGraph) -> tuple[tuple[str, str], ...]:
    """Neighbours in the chain's order that could share a generated kernel.

    A matmul or an opaque op is a kernel of its own under Inductor's defaults, so that a link to
    one is left out; so is one across a graph break.
    """
    own = (OpKind.MATMUL, OpKind.OPAQUE)
    return tuple(
        (above.name, below.name)
        for above, below in pairwise(graph.ops)
        if above.kind not in own and below.kind not in own and above.piece == below.piece
    )


def sweep_plans(graph: OpGraph, chain: str) -> tuple[FusionPlan, ...]:
    """Every plan that sets a boundary, or none, on each fusable link; most boundaries first.

    On neighbours in one order each such plan is legal.

    Raises:
        UsageError: There are more than :data:`MOST_SWEPT_LINKS` such links, or none.
    """
    ops = [op.name for op in graph.ops]
    links = fusable_links(graph)
    if not links:
        raise UsageError(f"{chain} has no two ops that could share a kernel: nothing to sweep.")
    if len(links) > MOST_SWEPT_LINKS:
        raise UsageError(
            f"{chain} has {len(links)} links that can be fused, and a sweep takes up to "
            f"{MOST_SWEPT_LINKS}; name the plans that you want one by one."
        )
    plans = []
    for bits in range(1 << len(links)):
        plan = each_alone(ops)
        for i, link in enumerate(links):
            if bits >> i & 1:
                plan = joined(plan, ops, link)
        plans.append(plan)
    return tuple(sorted(plans, key=lambda plan: -len(plan.groups)))
