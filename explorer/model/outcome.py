"""What became of each fusion group: planned, then modelled from the kernels made, then counted.

Of a fusion plan the groups are the plan's. Of every other strategy they are what its launches
show: ops that one launch carries out together are a group. What was planned is then what the op
graph promises for such a group as one kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from explorer.model.fusion import FusionPlan, plan_of_launches
from explorer.model.opgraph import OpGraph
from explorer.model.planned import planned_kernels
from explorer.model.run import Pedigree, Run
from explorer.model.traffic import run_traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """A group and what carried it out. Bytes are (read, written), None where they are unknown.

    Attributes:
        ops: Names of its ops; empty for the launches that belong to no group.
        launches: Indices of the launches that carry it out.
        kernels: How many of them are no helpers.
        planned: If the group were exactly one kernel.
        modelled: By the arguments of the kernels made.
        counted: By hardware counters.
        time_us: Traced durations together.
        compile_s: Seconds to compile it for this run, where known.
        from_cache: Its kernels were there from an earlier run.
    """

    ops: tuple[str, ...]
    launches: tuple[int, ...] = ()
    kernels: int = 0
    planned: tuple[int, int] | None = None
    modelled: tuple[int, int] | None = None
    counted: tuple[int, int] | None = None
    time_us: float | None = None
    compile_s: float | None = None
    from_cache: bool = False

    def total(self, pedigree: Pedigree) -> int | None:
        """Read plus written bytes of a pedigree, None where they are unknown."""
        values: tuple[int, int] | None = getattr(self, pedigree.value, None)
        return None if values is None else sum(values)


def promised(graph: OpGraph, plan: FusionPlan) -> tuple[GroupOutcome, ...]:
    """The groups of a plan before any run: planned bytes alone."""
    return tuple(
        GroupOutcome(ops=kernel.ops, planned=(kernel.bytes_read, kernel.bytes_written))
        for kernel in planned_kernels(graph, plan)
    )


def outcomes(run: Run) -> tuple[GroupOutcome, ...]:
    """Every group of a run in the order of its first launch; launches of no group come last."""
    found = _of_plan(run) if run.groups else _of_launches(run)
    taken = {index for outcome in found for index in outcome.launches}
    rest = tuple(i for i in range(len(run.launches)) if i not in taken)
    if rest:
        found = (*found, _measured(run, GroupOutcome(ops=()), rest))
    return found


def _of_plan(run: Run) -> tuple[GroupOutcome, ...]:
    return tuple(
        _measured(
            run,
            GroupOutcome(
                ops=group.ops,
                planned=(group.bytes_read, group.bytes_written),
                compile_s=group.compile_s,
                from_cache=group.from_cache,
            ),
            group.launches,
        )
        for group in run.groups
    )


def _of_launches(run: Run) -> tuple[GroupOutcome, ...]:
    plan = plan_of_launches(run.graph, run.launches)
    made = []
    for outcome in promised(run.graph, plan):
        launches = tuple(
            i
            for i, launch in enumerate(run.launches)
            if not launch.is_helper and set(launch.ops) & set(outcome.ops)
        )
        if launches:
            made.append(_measured(run, outcome, launches))
    return tuple(sorted(made, key=lambda outcome: outcome.launches[0]))


def _measured(run: Run, outcome: GroupOutcome, launches: Sequence[int]) -> GroupOutcome:
    """The outcome with the sums over its launches."""
    own = tuple(run.launches[i] for i in launches)
    # A call's counted total is no group's: only what was counted launch by launch is summed.
    moved = run_traffic(replace(run, launches=own, counters=None))
    times = [launch.duration_us for launch in own]
    return replace(
        outcome,
        launches=tuple(launches),
        kernels=sum(not launch.is_helper for launch in own),
        modelled=moved.of(Pedigree.MODELLED) if own else None,
        counted=moved.of(Pedigree.COUNTED) if own else None,
        time_us=sum(t for t in times if t is not None) if own and None not in times else None,
    )
