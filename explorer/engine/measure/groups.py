"""What became of each group of a fusion plan: which launches carry it out, and what was planned."""

import dataclasses
from collections.abc import Sequence

from explorer.engine.measure.observe_compile import CompileObservation
from explorer.engine.strategies.base import BuiltGroup
from explorer.model.fusion import plan_of
from explorer.model.opgraph import OpGraph
from explorer.model.planned import planned_kernels
from explorer.model.run import FusionGroup, Launch


def observation_of(groups: Sequence[BuiltGroup]) -> CompileObservation:
    """What was seen of the compilation of a plan's pieces, now or when they were compiled."""
    notes = (group.notes for group in groups)
    return CompileObservation(modules={n.key: n for n in notes if n is not None})


def fusion_groups(
    graph: OpGraph, built: Sequence[BuiltGroup], launched_by: Sequence[int | None]
) -> tuple[FusionGroup, ...]:
    """The groups with what is planned for them and the launches that they became.

    Args:
        graph: The chain's.
        built: The groups in the order in which they run.
        launched_by: For each launch, the place of its group in ``built``; None where unknown.
    """
    plan = plan_of([op.name for op in graph.ops], [group.ops for group in built])
    planned = {kernel.ops: kernel for kernel in planned_kernels(graph, plan)}
    return tuple(
        FusionGroup(
            ops=group.ops,
            bytes_read=planned[group.ops].bytes_read,
            bytes_written=planned[group.ops].bytes_written,
            launches=tuple(i for i, by in enumerate(launched_by) if by == place),
            compile_s=group.compile_s,
            from_cache=group.from_cache,
        )
        for place, group in enumerate(built)
        # A piece without ops only stores an input in another, as own code may.
        if group.ops
    )


def with_planned(launches: Sequence[Launch], groups: Sequence[FusionGroup]) -> tuple[Launch, ...]:
    """The launches; one that carries out a group by itself has the group's planned bytes."""
    result = list(launches)
    for group in groups:
        carrying = [i for i in group.launches if not result[i].is_helper]
        if len(carrying) == 1:
            launch = result[carrying[0]]
            result[carrying[0]] = dataclasses.replace(
                launch,
                bytes_read=dataclasses.replace(launch.bytes_read, planned=group.bytes_read),
                bytes_written=dataclasses.replace(
                    launch.bytes_written, planned=group.bytes_written
                ),
            )
    return tuple(result)
