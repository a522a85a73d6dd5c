"""A fusion plan: each group of ops is compiled by Inductor on its own."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from explorer.chains.descriptor import Chain
from explorer.chains.own import is_own
from explorer.engine.grouping import inductor_grouping
from explorer.engine.partition import Partition, Piece, PiecewiseCall
from explorer.engine.pieces import PIECES, CompiledPiece
from explorer.engine.plan_pieces import ops_of, partition_by
from explorer.engine.prepared import Prepared, Returned
from explorer.engine.strategies.base import Built, BuiltGroup, PeakFamily, Strategy, always
from explorer.engine.toolchain import compile_refusal
from explorer.model.errors import UsageError
from explorer.model.fusion import (
    INDUCTOR,
    PRESETS,
    SWEEP,
    TRITON,
    FusionPlan,
    named_ops,
    parse_plan,
    plan_of,
)
from explorer.model.legality import check
from explorer.model.opgraph import OpGraph
from explorer.model.run import Scalar
from explorer.model.strategies import PLAN, parse_spec, plan_spec


def plan_strategy(spec: str) -> Strategy:
    """The strategy of a plan's spec.

    Raises:
        UsageError: It has no plan, or one that does not stand for itself.
    """
    info = parse_spec(spec)
    option = info.option or ""
    if option == SWEEP:
        raise UsageError(f"{spec} stands for many plans; name the plans to run, one a strategy.")
    if option == TRITON:
        others = ", ".join(plan_spec(preset) for preset in PRESETS if preset != TRITON)
        raise UsageError(
            f"{spec} is the grouping of a hand-written kernel, and there is none yet; "
            f"there are {others}."
        )
    return Strategy(
        name=PLAN,
        option=option,
        title=info.title,
        device_refusal=compile_refusal,
        build=_builder(option),
        peak=always(PeakFamily.COMPILED),
        compiles=True,
        plan_of=lambda graph: plan_for(option, graph),
        check_ops=_checker(option),
    )


def plan_for(option: str, graph: OpGraph) -> FusionPlan | None:
    """The plan on a graph; None where only compiling can tell.

    Ops that the graph lacks are left out of their groups: a chain without its random ops runs
    under the same plan.
    """
    if option == INDUCTOR:
        return None
    ops = [op.name for op in graph.ops]
    known = [*ops, *(name for name in _named(option) if name not in ops)]
    plan = parse_plan(option, list(dict.fromkeys(known)), "the chain")
    return plan_of(ops, [[op for op in group if op in ops] for group in plan.groups])


def _named(option: str) -> tuple[str, ...]:
    """The ops that a plan's text names; none if it is the name of a plan."""
    return () if option in PRESETS else named_ops(option)


def _checker(option: str) -> Callable[[Chain, Mapping[str, Scalar], OpGraph], None]:
    def check_ops(chain: Chain, parameters: Mapping[str, Scalar], graph: OpGraph) -> None:
        if graph.breaks:
            first = graph.breaks[0]
            place = f" at {first.place}" if first.place else ""
            raise UsageError(
                f"A fusion plan needs code that is one graph, and {chain.id} breaks{place}: "
                f"{first.reason}; eager and compile run it as it is."
            )
        if option not in PRESETS:
            known = (*(op.name for op in chain.all_ops), *(op.name for op in graph.ops))
            parse_plan(option, list(dict.fromkeys(known)), chain.id)
        if not is_own(chain.id):
            chain.check_has(_named(option), parameters)
        plan = plan_for(option, graph)
        illegal = None if plan is None else check(graph, plan)
        if illegal is not None:
            raise UsageError(f"The plan {option} cannot run: {illegal.sentence}")

    return check_ops


def _builder(option: str) -> Callable[[Prepared], Built]:
    def build(prepared: Prepared) -> Built:
        plan = plan_for(option, prepared.graph) or inductor_grouping(prepared).plan
        partition = partition_by(prepared, plan)
        compiled = [PIECES.compiled(piece) for piece in partition.pieces]
        built = Built(
            call=_call(prepared, partition, compiled),
            plan=plan.text,
            groups=tuple(
                _group(prepared, place, piece, had)
                for place, (piece, had) in enumerate(zip(partition.pieces, compiled, strict=True))
            ),
        )
        with warnings.catch_warnings():
            # Kernels are tuned when first run, and what tunes them warns of settings.
            warnings.simplefilter("ignore")
            built.call()
        return built

    return build


def _group(prepared: Prepared, place: int, piece: Piece, compiled: CompiledPiece) -> BuiltGroup:
    notes = compiled.notes
    names = [node.name for node in piece.nodes]
    return BuiltGroup(
        ops=ops_of(piece, prepared),
        notes=None if notes is None else notes.of_piece(place, names),
        compile_s=compiled.compile_s,
        from_cache=compiled.from_cache,
    )


def _call(
    prepared: Prepared, partition: Partition, compiled: Sequence[CompiledPiece]
) -> Callable[[], Returned]:
    run = PiecewiseCall(partition, [piece.call for piece in compiled])
    inputs = tuple(prepared.inputs.values())
    # An exported graph returns what it updates first, then what the code returns.
    first = len(prepared.updated)

    def call() -> Returned:
        with torch.no_grad():
            results: list[Any] = run(*inputs)[first:]
        tensors: tuple[torch.Tensor, ...] = tuple(value for value in results if value is not None)
        if len(tensors) == 1:
            return tensors[0]
        return tensors or None

    return call
