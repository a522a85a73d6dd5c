"""A function of the test's own as a chain: compiled, its launches recorded, its refusals found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from explorer.chains.descriptor import Chain, OpName
from explorer.engine.capture import capture
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.internals import settings
from explorer.engine.measure.launches import record_launches
from explorer.engine.measure.observe_compile import CompileObservation, observing_compilation
from explorer.engine.measure.refusals import find_refusals
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Built, find_strategy
from explorer.model.refusals import find_refusal
from explorer.model.run import FusionRefusal, Launch, StrategyInfo

if TYPE_CHECKING:
    from collections.abc import Callable

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Found:
    """What came of compiling: the launches, and why ops do not share one."""

    launches: tuple[Launch, ...]
    refusals: tuple[FusionRefusal, ...]

    def between(self, first: str, second: str) -> FusionRefusal:
        """The refusal of two ops, which has to be there."""
        refusal = find_refusal(self.refusals, first, second)
        assert refusal is not None, self
        assert refusal.sentence.endswith(".") or refusal.raw in refusal.sentence
        return refusal

    def share(self, first: str, second: str) -> bool:
        """Whether two ops have no refusal."""
        return find_refusal(self.refusals, first, second) is None


def compiled(
    function: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]],
    ops: str,
    *shapes: tuple[int, ...],
    device: torch.device = CPU,
    dtype: torch.dtype = torch.float32,
    spec: str = "compile",
    **config: object,
) -> Found:
    """Compile a function, whose code has a line for each op.

    Args:
        function: Takes tensors of the shapes.
        ops: Names of its ops, with spaces between.
        shapes: Of its arguments.
        device: Where it runs.
        dtype: Of its arguments.
        spec: The strategy.
        config: Settings of Inductor.
    """
    prepared = _prepared(function, ops, shapes, device, dtype)
    with observing_compilation() as observation, settings("torch._inductor.config", **config):
        built = find_strategy(spec).build(prepared)
    found = found_in(built, prepared, observation)
    built.close()
    return found


def found_in(built: Built, prepared: Prepared, observation: CompileObservation) -> Found:
    """The launches of what was built, and the refusals."""
    record = record_launches(
        built.call,
        prepared=prepared,
        strategy=StrategyInfo(name="own"),
        counters=None,
        observation=observation,
        groups=built.groups,
    )
    refusals = find_refusals(prepared, observation, record.launches, plan=built.plan)
    return Found(record.launches, refusals)


def _prepared(
    function: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]],
    ops: str,
    shapes: tuple[tuple[int, ...], ...],
    device: torch.device,
    dtype: torch.dtype,
) -> Prepared:
    code = function.__code__
    by_name = dict(zip(code.co_varnames[: code.co_argcount], shapes, strict=True))
    captured = capture(
        function,
        {name: InputSpec(shape=shape, dtype=dtype) for name, shape in by_name.items()},
        tuple(OpName(name=op, detail="", output=f"{op}_out") for op in ops.split()),
        source_file=code.co_filename,
        device=device,
    )
    return Prepared(
        chain=Chain(id="own", title="", look_at="", formula="", parameters=(), all_ops=()),
        parameters={},
        device=device,
        seed=0,
        inputs={
            name: torch.randn(shape, dtype=dtype, device=device) for name, shape in by_name.items()
        },
        function=function,
        graph=captured.graph,
        graph_module=captured.graph_module,
        nodes=captured.nodes,
    )
