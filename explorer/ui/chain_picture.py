"""The op graph as the panel draws it: of a run from its launches, before one from a plan. No Qt."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from explorer.model.fusion import FusionPlan, each_alone
from explorer.model.legality import break_between
from explorer.model.opgraph import Op, OpGraph
from explorer.model.refusals import refusal_between
from explorer.model.run import Launch, Pedigree, RefusalReason, Run
from explorer.model.tensor import TensorRole
from explorer.ui.graph_lanes import in_lanes
from explorer.ui.op_links import ChainPicture, Link, LinkState, OpRow, SideInput, SideLink
from explorer.ui.plan_picture import PlannedLinks, shared_inputs

Passed = dict[tuple[str, str], list[str]]
"""Ids of what an op reads of an earlier one, by both names."""


def chain_picture(graph: OpGraph, run: Run | None, plan: FusionPlan | None = None) -> ChainPicture:
    """Lay the chain out.

    Args:
        graph: The chain.
        run: Whose launches say what is fused; None for the chain as planned.
        plan: What is planned where there is no run; None for one op a kernel.
    """
    passed = passed_values(graph)
    if run is not None and run.launches:
        picture = _of_run(graph, run, passed)
    else:
        plan = plan or each_alone([op.name for op in graph.ops])
        picture = _of_plan(graph, plan, passed)
    return _with_breaks(graph, picture) if graph.breaks else picture


def _with_breaks(graph: OpGraph, picture: ChainPicture) -> ChainPicture:
    """The picture with the graph breaks on the links that go over them."""
    ops = {op.name: op for op in graph.ops}

    def broken(link: Link) -> Link:
        found = break_between(graph, ops[link.first], ops[link.second])
        return link if found is None else replace(link, graph_break=found, refusal=None)

    sides = tuple(replace(side, link=broken(side.link)) for side in picture.side_links)
    return replace(picture, links=tuple(map(broken, picture.links)), side_links=sides)


def passed_values(graph: OpGraph) -> Passed:
    """What each op reads of which earlier one; of several that write a tensor, the last."""
    writer: dict[str, str] = {}
    passed: Passed = {}
    for op in graph.ops:
        for tensor in dict.fromkeys(op.reads):
            if tensor in writer:
                passed.setdefault((writer[tensor], op.name), []).append(tensor)
        writer.update(dict.fromkeys(op.writes, op.name))
    return passed


def _of_plan(graph: OpGraph, plan: FusionPlan, passed: Passed) -> ChainPicture:
    planned = PlannedLinks(graph, plan)
    ops, given = graph.ops, _given(passed)
    rows = tuple(
        OpRow(
            op=op,
            launches=(),
            side_inputs=planned.side_inputs(op, given.get(op.name, set())),
            n_bytes=planned.bytes_begun(op),
        )
        for op in ops
    )
    links = tuple(
        planned.link(above, below, passed.get((above.name, below.name), []))
        for above, below in pairwise(ops)
    )
    place = {op.name: i for i, op in enumerate(ops)}
    groups, bridges = _stretches([place[op] for op in group] for group in plan.groups)
    return ChainPicture(
        rows=rows,
        links=links,
        side_links=_side_links(ops, passed, planned.link),
        groups=groups,
        bridges=bridges,
        outputs=_outputs(graph),
        pedigree=Pedigree.PLANNED,
    )


def _of_run(graph: OpGraph, run: Run, passed: Passed) -> ChainPicture:
    made = _RunLinks(graph, run)
    given = _given(passed)
    rows = _with_bytes(run, [made.row(op, given.get(op.name, set())) for op in graph.ops])
    by_name = {row.op.name: row for row in rows}

    def link(above: Op, below: Op, tensors: list[str]) -> Link:
        return made.link(by_name[above.name], by_name[below.name], tensors)

    ops = graph.ops
    links = tuple(
        link(above, below, passed.get((above.name, below.name), []))
        for above, below in pairwise(ops)
    )
    groups, bridges = _launch_stretches(rows)
    return ChainPicture(
        rows=rows,
        links=links,
        side_links=_side_links(ops, passed, link),
        groups=groups,
        bridges=bridges,
        parted=_parted(run, [op.name for op in ops]),
        outputs=_outputs(graph),
        pedigree=Pedigree.MODELLED,
    )


def _given(passed: Passed) -> dict[str, set[str]]:
    """Ids of what ops read of other ops: links tell of it, not side inputs."""
    given: dict[str, set[str]] = {}
    for (_, second), ids in passed.items():
        given.setdefault(second, set()).update(ids)
    return given


def _with_bytes(run: Run, rows: Iterable[OpRow]) -> tuple[OpRow, ...]:
    """Each launch's bytes with the first of the ops that it carries out."""
    counted: set[int] = set()
    made = []
    for row in rows:
        begun = set(row.launches) - counted
        counted |= begun
        accesses = [access for i in begun for access in run.launches[i].accesses]
        n_bytes = sum(access.bytes_read + access.bytes_written for access in accesses)
        made.append(replace(row, n_bytes=n_bytes))
    return tuple(made)


def _outputs(graph: OpGraph) -> tuple[SideInput, ...]:
    """What the chain hands out: results, and inputs that it updates in place."""
    written = {tensor for op in graph.ops for tensor in op.writes}
    return tuple(
        SideInput(name=tensor.name, n_bytes=tensor.n_bytes)
        for tensor in graph.tensors
        if tensor.role is TensorRole.OUTPUT
        or (tensor.role is TensorRole.INPUT and tensor.id in written)
    )


def _side_links(
    ops: Sequence[Op], passed: Passed, make: Callable[[Op, Op, list[str]], Link]
) -> tuple[SideLink, ...]:
    """The links that go past an op."""
    place = {op.name: i for i, op in enumerate(ops)}
    return in_lanes(
        (place[first], place[second], make(ops[place[first]], ops[place[second]], tensors))
        for (first, second), tensors in passed.items()
        if place[second] - place[first] > 1
    )


Spans = tuple[tuple[int, int], ...]


def _stretches(groups: Iterable[list[int]]) -> tuple[Spans, Spans]:
    """Stretches of neighbouring rows of each group of several, and what joins one group's."""
    hulls, bridges = [], []
    for rows in (sorted(group) for group in groups):
        if len(rows) < 2:
            continue
        first = rows[0]
        for above, below in pairwise(rows):
            if below > above + 1:
                hulls.append((first, above))
                bridges.append((above, below))
                first = below
        hulls.append((first, rows[-1]))
    return tuple(sorted(hulls)), tuple(sorted(bridges))


def _launch_stretches(rows: Sequence[OpRow]) -> tuple[Spans, Spans]:
    """The stretches of rows that launches hold together."""
    groups: list[tuple[set[int], list[int]]] = []
    for place, row in enumerate(rows):
        launches = set(row.launches)
        same = [group for group in groups if group[0] & launches]
        rest = [group for group in groups if not group[0] & launches]
        merged = (
            launches.union(*(group[0] for group in same)),
            [*(i for group in same for i in group[1]), place],
        )
        groups = [*rest, merged]
    return _stretches(group for _, group in groups)


def _parted(run: Run, ops: list[str]) -> Spans:
    """The stretches of a plan's groups that did not become one launch each."""
    several = [
        [ops.index(op) for op in group.ops if op in ops]
        for group in run.groups
        if sum(not run.launches[i].is_helper for i in group.launches) > 1
    ]
    return _stretches(several)[0]


class _RunLinks:
    """What the launches of a run say about its ops and the links between them."""

    def __init__(self, graph: OpGraph, run: Run) -> None:
        self._tensors = {tensor.id: tensor for tensor in graph.tensors}
        self._launches = run.launches
        self._run = run

    def row(self, op: Op, given: set[str]) -> OpRow:
        """An op with its launches and what it reads of no other op."""
        launches = _carriers(op, self._launches)
        sides = tuple(
            SideInput(name=self._tensors[t].name, n_bytes=self._read_bytes(t, launches))
            for t in dict.fromkeys(op.reads)
            if t not in given
        )
        return OpRow(op=op, launches=launches, side_inputs=sides)

    def _read_bytes(self, tensor_id: str, carriers: tuple[int, ...]) -> int:
        """What the launches read of a tensor; all of it if they do not name it."""
        named = [
            access.bytes_read
            for i in carriers
            for access in self._launches[i].accesses
            if access.tensor == tensor_id
        ]
        return sum(named) if named else self._tensors[tensor_id].n_bytes

    def link(self, above: OpRow, below: OpRow, passed: list[str]) -> Link:
        """How what an op makes gets to another, by the launches of both."""
        shared = set(above.launches) & set(below.launches)
        both = [] if passed else shared_inputs(above.op, below.op)
        state, written, read = self._state(above, below, passed, shared)
        refusal = None
        if not shared:
            refusal = refusal_between(self._run, above.op.name, below.op.name)
        if refusal is not None and refusal.reason is RefusalReason.DRAWN:
            # That there is a boundary is what the picture says already.
            refusal = None
        return Link(
            first=above.op.name,
            second=below.op.name,
            tensors=tuple(self._tensors[t].name for t in passed),
            state=state,
            bytes_written=written,
            bytes_read=read,
            pedigree=Pedigree.MODELLED,
            shared=tuple(self._tensors[t].name for t in both),
            shared_bytes=sum(self._tensors[t].n_bytes for t in both),
            refusal=refusal,
        )

    def _state(
        self, above: OpRow, below: OpRow, passed: list[str], shared: set[int]
    ) -> tuple[LinkState, int, int]:
        """How a value gets on, with the bytes written and read for it."""
        if not passed:
            return (LinkState.TOGETHER if shared else LinkState.NO_DATA), 0, 0
        if not above.launches or not below.launches:
            return LinkState.UNKNOWN, 0, 0
        # What is updated in place has one name for several values: what a kernel that carries out
        # both reads of it was there before, and what it writes comes after.
        old = {t for t in passed if shared and t in above.op.reads}
        gone = {t for t in passed if shared and t in below.op.writes}
        written = sum(
            access.bytes_written
            for i in above.launches
            for access in self._launches[i].accesses
            if access.tensor in passed and access.tensor not in gone
        )
        read = sum(
            access.bytes_read
            for i in below.launches
            for access in self._launches[i].accesses
            if access.tensor in passed and access.tensor not in old
        )
        if not shared:
            is_passed = bool(written or read)
            return (
                LinkState.THROUGH_MEMORY if is_passed else LinkState.REWRITTEN, written, read
            )  # fmt: skip
        if written or read:
            return LinkState.KEPT, written, read
        size = sum(self._tensors[t].n_bytes for t in passed)
        is_doubted = any(_is_doubted(self._launches[i], size) for i in shared)
        return (LinkState.DOUBTED if is_doubted else LinkState.ON_CHIP), 0, 0


def _carriers(op: Op, launches: Sequence[Launch]) -> tuple[int, ...]:
    """The launches that carry the op out, in order; helpers only where there is nothing else."""
    found = [i for i, launch in enumerate(launches) if op.name in launch.ops]
    own = [i for i in found if not launches[i].is_helper]
    return tuple(own or found)


def _is_doubted(launch: Launch, size: int) -> bool:
    """Whether counters saw so much more both ways that a value of that size may have spilled."""
    excess = []
    for n_bytes in (launch.bytes_read, launch.bytes_written):
        if n_bytes.counted is None or n_bytes.modelled is None:
            return False
        excess.append(n_bytes.counted - n_bytes.modelled)
    return size > 0 and 2 * min(excess) >= size
