"""Whether a run names only what it holds, and nothing twice: a view may then look names up."""

from collections import Counter
from collections.abc import Iterable, Iterator

from explorer.model.fusion import named_ops
from explorer.model.run import Run


def reference_fault(run: Run) -> str | None:
    """Say which name leads nowhere or is held twice, or None if there is no such name.

    Looked at are the tensors of the graph's ops and of the launches' accesses, the ops that
    launches, loop nests and fusion groups carry out, the launches that carry out a group, and the
    ops of the plan.
    """
    for kind, names in (
        ("tensor of the graph", [tensor.id for tensor in run.graph.tensors]),
        ("tensor", [tensor.id for tensor in run.tensors]),
        ("op", [op.name for op in run.graph.ops]),
    ):
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            return f"it holds two of the {kind} {twice!r}"
    in_graph = {tensor.id for tensor in run.graph.tensors}
    in_memory = {tensor.id for tensor in run.tensors}
    ops = {op.name for op in run.graph.ops}
    checks = (
        ("tensor", _graph_tensors(run), in_graph),
        ("tensor", _accessed(run), in_memory),
        ("op", _carried_out(run), ops),
    )
    for kind, named, known in checks:
        for where, name in named:
            if name not in known:
                return f"{where} names the {kind} {name!r}, which it does not hold"
    return _group_fault(run) or _plan_fault(run)


def _group_fault(run: Run) -> str | None:
    """Groups part the ops, and the launches that carry them out: nothing is in two of them."""
    grouped: set[object] = set()
    for i, group in enumerate(run.groups):
        if not group.ops:
            return f"groups[{i}] names no op"
        place = next((place for place in group.launches if place >= len(run.launches)), None)
        if place is not None:
            return f"groups[{i}] names the launch {place}, which it does not hold"
        for kind, names in (("op", group.ops), ("launch", group.launches)):
            for name in names:
                if name in grouped:
                    return f"groups[{i}] names the {kind} {name!r}, which was in a group already"
                grouped.add(name)
    return None


def _plan_fault(run: Run) -> str | None:
    """A plan writes every group out, so that it names each op of the graph once."""
    plan, ops = run.strategy.plan, {op.name for op in run.graph.ops}
    if plan is None or not ops:
        return None
    left = set(ops)
    for name in named_ops(plan):
        if name not in left:
            known = "twice" if name in ops else "which it does not hold"
            return f"strategy.plan names the op {name!r}, {known}"
        left.remove(name)
    return f"strategy.plan lacks the op {min(left)!r}" if left else None


def _graph_tensors(run: Run) -> Iterator[tuple[str, str]]:
    for op in run.graph.ops:
        yield from _at(f"op {op.name}", (*op.reads, *op.writes))
    for i, launch in enumerate(run.launches):
        yield from _at(f"launches[{i}]", launch.stays_on_chip)


def _accessed(run: Run) -> Iterator[tuple[str, str]]:
    for i, launch in enumerate(run.launches):
        yield from _at(f"launches[{i}]", (access.tensor for access in launch.accesses))


def _carried_out(run: Run) -> Iterator[tuple[str, str]]:
    for i, launch in enumerate(run.launches):
        yield from _at(f"launches[{i}]", launch.ops)
        for nest in launch.loop_nests:
            yield from _at(f"launches[{i}]", nest.ops)
    for i, group in enumerate(run.groups):
        yield from _at(f"groups[{i}]", group.ops)


def _at(where: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        yield where, name
