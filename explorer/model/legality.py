"""Which fusion plans are legal, why one is not, and what would cure it. No torch.

Kernels run one after the other, each whole. So a group must not need, half way through, what a
kernel outside makes of its results (it must be convex), two groups must not wait for each other,
and what an op overwrites in place must have been read before by whoever needs the old values.
Python runs at a graph break, and no kernel goes on behind it.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.model.fusion import FusionPlan, joined, plan_of
from explorer.model.opgraph import GraphBreak, Op, OpGraph


@dataclass(frozen=True, slots=True)
class Dependency:
    """An op that has to wait for an earlier one.

    Attributes:
        before: Name of the earlier op.
        after: Name of the op that waits.
        tensor: Id of the tensor because of which it does.
        overwrites: It waits to overwrite what the earlier op reads or wrote, not to read it.
    """

    before: str
    after: str
    tensor: str
    overwrites: bool = False


class IllegalReason(StrEnum):
    """Why a plan cannot run."""

    BETWEEN = "between"
    """An op outside the group lies on the way from one of its ops to another."""
    CIRCLE = "circle"
    """Two groups wait for each other."""
    OVERWRITTEN = "overwritten"
    """The same as either, because of a tensor that is updated in place."""
    GRAPH_BREAK = "graph break"
    """There is a graph break between two of its ops, which nothing cures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Illegal:
    """Why a plan is refused.

    Attributes:
        reason: Which rule it breaks.
        ops: The group at fault, or the first of the groups that wait for each other.
        between: Ops that are in the way: on the path, or the other group of a circle.
        cure: The smallest group that contains ``ops`` and breaks no rule; empty if none does.
        sentence: For a person who has not heard of convexity.
    """

    reason: IllegalReason
    ops: tuple[str, ...]
    between: tuple[str, ...]
    cure: tuple[str, ...]
    sentence: str


def dependencies(graph: OpGraph) -> tuple[Dependency, ...]:
    """Which op waits for which, in the chain's order: for values, and to overwrite them."""
    found: dict[tuple[str, str], Dependency] = {}
    writer: dict[str, str] = {}
    readers: dict[str, list[str]] = {}

    def note(before: str, after: str, tensor: str, *, overwrites: bool) -> None:
        if before != after:
            # What it reads says more than what it overwrites: the first one noted stays.
            found.setdefault((before, after), Dependency(before, after, tensor, overwrites))

    for op in graph.ops:
        for tensor in op.reads:
            if tensor in writer:
                note(writer[tensor], op.name, tensor, overwrites=False)
        for tensor in op.writes:
            for reader in readers.get(tensor, ()):
                note(reader, op.name, tensor, overwrites=True)
            if tensor in writer:
                note(writer[tensor], op.name, tensor, overwrites=True)
        for tensor in op.reads:
            readers.setdefault(tensor, []).append(op.name)
        for tensor in op.writes:
            writer[tensor] = op.name
            readers[tensor] = []
    return tuple(found.values())


def check(graph: OpGraph, plan: FusionPlan) -> Illegal | None:
    """Why a plan cannot run, or None if it can."""
    broken = _broken(graph, plan)
    if broken is not None:
        return broken
    links = _Links(graph)
    for group in plan.groups:
        path = links.way_out_and_back(set(group))
        if path is not None:
            return _not_convex(graph, links, plan, group, path)
    circle = _circle(links, plan)
    if circle is None:
        return None
    return _waits(graph, links, plan, circle)


def run_order(graph: OpGraph, plan: FusionPlan) -> tuple[tuple[str, ...], ...]:
    """The groups in an order in which each finds what it needs; the chain's order where free.

    Raises:
        ValueError: The plan is not legal.
    """
    illegal = check(graph, plan)
    if illegal is not None:
        raise ValueError(illegal.sentence)
    links = _Links(graph)
    waiting, done, order = list(plan.groups), set[str](), []
    while waiting:
        ready = next(g for g in waiting if links.needs(g) <= done | set(g))
        waiting.remove(ready)
        done |= set(ready)
        order.append(ready)
    return tuple(order)


def cured(graph: OpGraph, plan: FusionPlan, ops: Iterable[str]) -> FusionPlan:
    """The plan with these ops in one group, and as many more as it takes to be legal.

    At a graph break they are parted all the same.
    """
    names = [op.name for op in graph.ops]
    merged = parted(graph, joined(plan, names, ops))
    while (illegal := check(graph, merged)) is not None:
        merged = joined(merged, names, illegal.cure)
    return merged


def parted(graph: OpGraph, plan: FusionPlan) -> FusionPlan:
    """The plan with its groups cut at the graph breaks."""
    if not graph.breaks:
        return plan
    piece = {op.name: op.piece for op in graph.ops}
    groups: dict[tuple[int, int], list[str]] = {}
    for number, group in enumerate(plan.groups):
        for name in group:
            groups.setdefault((number, piece[name]), []).append(name)
    return plan_of([op.name for op in graph.ops], groups.values())


def break_between(graph: OpGraph, first: Op, second: Op) -> GraphBreak | None:
    """The first graph break between two ops, None if they are in one piece."""
    if first.piece == second.piece or not graph.breaks:
        return None
    place = min(first.piece, second.piece)
    return graph.breaks[min(place, len(graph.breaks) - 1)]


def break_sentence(first: str, second: str, found: GraphBreak) -> str:
    """Why two ops with a graph break between them share no kernel."""
    at = f" at {found.place}" if found.place else ""
    return (
        f"A graph break{at} lies between {first} and {second}: {found.reason.rstrip('.')}. Python "
        "runs there, so that no kernel holds both."
    )


def _broken(graph: OpGraph, plan: FusionPlan) -> Illegal | None:
    """The first group that goes across a graph break."""
    ops = {op.name: op for op in graph.ops}
    for group in plan.groups if graph.breaks else ():
        for above, below in itertools.pairwise(group):
            found = break_between(graph, ops[above], ops[below])
            if found is not None:
                return Illegal(
                    reason=IllegalReason.GRAPH_BREAK,
                    ops=group,
                    between=(),
                    cure=(),
                    sentence=break_sentence(above, below, found),
                )
    return None


class _Links:
    """The dependencies as a graph of op names."""

    def __init__(self, graph: OpGraph) -> None:
        self.order = [op.name for op in graph.ops]
        self.edges = {(d.before, d.after): d for d in dependencies(graph)}
        self.after: dict[str, list[str]] = {name: [] for name in self.order}
        self.before: dict[str, list[str]] = {name: [] for name in self.order}
        for first, second in self.edges:
            self.after[first].append(second)
            self.before[second].append(first)

    def needs(self, group: Sequence[str]) -> set[str]:
        """The ops that a group's ops wait for."""
        return {before for op in group for before in self.before[op]}

    def reach(self, start: set[str], links: Mapping[str, list[str]]) -> set[str]:
        """Everything that can be reached from some ops, themselves only if by a way."""
        found: set[str] = set()
        waiting = list(start)
        while waiting:
            for op in links[waiting.pop()]:
                if op not in found:
                    found.add(op)
                    waiting.append(op)
        return found

    def closure(self, ops: set[str]) -> tuple[str, ...]:
        between = self.reach(ops, self.after) & self.reach(ops, self.before)
        return tuple(name for name in self.order if name in ops or name in between)

    def way_out_and_back(self, group: set[str]) -> list[str] | None:
        """A shortest way from an op of a group through others back into it; None if there is none.

        Its first and last op are of the group, all between are not.
        """
        shortest: list[str] | None = None
        for start in (name for name in self.order if name in group):
            came: dict[str, str] = {op: start for op in self.after[start] if op not in group}
            waiting = list(came)
            while waiting:
                op = waiting.pop(0)
                back = next((b for b in self.after[op] if b in group), None)
                if back is not None:
                    way = [op]
                    while came[way[0]] != start:
                        way.insert(0, came[way[0]])
                    if shortest is None or len(way) + 2 < len(shortest):
                        shortest = [start, *way, back]
                    break
                for further in self.after[op]:
                    if further not in came:
                        came[further] = op
                        waiting.append(further)
        return shortest

    def has_update(self, path: Sequence[str]) -> Dependency | None:
        """A dependency on a way that is there only to overwrite something."""
        steps = itertools.pairwise(path)
        found = (self.edges[step] for step in steps if step in self.edges)
        return next((d for d in found if d.overwrites), None)


def _not_convex(
    graph: OpGraph, links: _Links, plan: FusionPlan, group: tuple[str, ...], path: list[str]
) -> Illegal:
    first, *between, last = path
    cure = _cure(graph, plan, group)
    update = links.has_update(path)
    why = (
        f"{between[0]} works on what {first} makes, and {last} on what {between[-1]} makes"
        if update is None
        else _overwriting(graph, update)
    )
    return Illegal(
        reason=IllegalReason.BETWEEN if update is None else IllegalReason.OVERWRITTEN,
        ops=group,
        between=tuple(between),
        cure=cure,
        sentence=(
            f"{first} and {last} cannot share a kernel without {_listed(between)} in between: "
            f"{why}, and a kernel runs as a whole; {_listed(cure)} together can."
        ),
    )


def _waits(
    graph: OpGraph, links: _Links, plan: FusionPlan, circle: list[tuple[str, ...]]
) -> Illegal:
    first, second = circle[0], circle[1]
    steps = [
        d
        for d in links.edges.values()
        for a, b in zip(circle, [*circle[1:], circle[0]], strict=True)
        if d.before in a and d.after in b
    ]
    update = next((d for d in steps if d.overwrites), None)
    ahead = next(d for d in steps if d.before in first and d.after in second)
    back = next(d for d in steps if d.after in first and d.before not in first)
    cure = _cure(graph, plan, {op for group in circle for op in group})
    why = (
        f"{ahead.after} works on what {ahead.before} makes, and {back.after} on what "
        f"{back.before} makes"
        if update is None
        else _overwriting(graph, update)
    )
    others = [op for group in circle[1:] for op in group]
    return Illegal(
        reason=IllegalReason.CIRCLE if update is None else IllegalReason.OVERWRITTEN,
        ops=first,
        between=tuple(others),
        cure=cure,
        sentence=(
            f"The kernels {_joined(first)} and {_joined(second)} would wait for each other: {why}; "
            f"{_listed(cure)} together in one kernel can run."
        ),
    )


def _circle(links: _Links, plan: FusionPlan) -> list[tuple[str, ...]] | None:
    """Groups that wait for each other in a circle, the one that comes first in front."""
    of = {op: group for group in plan.groups for op in group}
    after: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {g: {} for g in plan.groups}
    for first, second in links.edges:
        if of[first] != of[second]:
            after[of[first]][of[second]] = None
    for start in plan.groups:
        came: dict[tuple[str, ...], tuple[str, ...]] = {}
        waiting = [start]
        while waiting:
            group = waiting.pop(0)
            for further in after[group]:
                if further == start:
                    way = [group]
                    while way[0] != start:
                        way.insert(0, came[way[0]])
                    return way
                if further not in came:
                    came[further] = group
                    waiting.append(further)
    return None


def _cure(graph: OpGraph, plan: FusionPlan, ops: Iterable[str]) -> tuple[str, ...]:
    """The group that these ops end in once the plan is legal."""
    members = set(ops)
    names = [op.name for op in graph.ops]
    links = _Links(graph)
    members = set(links.closure(members))
    merged = joined(plan, names, members)
    while True:
        group = merged.group_of(next(name for name in names if name in members))
        closed = links.closure(set(group))
        circle = _circle(links, merged) if len(closed) == len(group) else None
        if circle is not None and group in circle:
            closed = links.closure({op for each in circle for op in each})
        if closed == group:
            return group
        merged = joined(merged, names, closed)


def _overwriting(graph: OpGraph, update: Dependency) -> str:
    name = graph.tensor(update.tensor).name
    return f"{update.after} overwrites {name}, which {update.before} has to be done with first"


def _listed(names: Sequence[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _joined(group: Sequence[str]) -> str:
    return "+".join(group)
