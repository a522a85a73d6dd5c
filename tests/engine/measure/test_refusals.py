"""Each reason why ops do not share a kernel, made to happen on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._inductor.choices import InductorChoices
from torch._inductor.scheduler import WhyNoFuse

from explorer.chains.descriptor import Chain, OpName
from explorer.engine.capture import capture
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.internals import settings
from explorer.engine.measure.groups import observation_of
from explorer.engine.measure.launches import record_launches
from explorer.engine.measure.observe_compile import CompileObservation, observing_compilation
from explorer.engine.measure.refusals import find_refusals
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Built, find_strategy
from explorer.model.refusals import find_refusal
from explorer.model.run import FusionRefusal, RefusalReason, StrategyInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


CPU = torch.device("cpu")
Refusals = tuple[FusionRefusal, ...]


def refusals_of(
    function: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]],
    ops: str,
    *shapes: tuple[int, ...],
    **config: object,
) -> Refusals:
    """Compile a function of fp32 tensors for the CPU; its code has a line for each op."""
    names = tuple(OpName(name=op, detail="", output=f"{op}_out") for op in ops.split())
    arguments = function.__code__.co_varnames[: function.__code__.co_argcount]
    captured = capture(
        function,
        {
            name: InputSpec(shape=shape, dtype=torch.float32)
            for name, shape in zip(arguments, shapes, strict=True)
        },
        names,
        source_file=__file__,
        device=CPU,
    )
    prepared = Prepared(
        chain=Chain(id="own", title="", look_at="", formula="", parameters=(), all_ops=()),
        parameters={},
        device=CPU,
        seed=0,
        inputs={name: torch.randn(shape) for name, shape in zip(arguments, shapes, strict=True)},
        function=function,
        graph=captured.graph,
        graph_module=captured.graph_module,
        nodes=captured.nodes,
    )
    with observing_compilation() as observation, settings("torch._inductor.config", **config):
        built = find_strategy("compile").build(prepared)
    found = refusals_of_call(built, prepared, observation)
    built.close()
    return found


def refusals_of_call(built: Built, prepared: Prepared, observation: CompileObservation) -> Refusals:
    record = record_launches(
        built.call,
        prepared=prepared,
        strategy=StrategyInfo(name="own"),
        counters=None,
        observation=observation,
        groups=built.groups,
    )
    return find_refusals(prepared, observation, record.launches, plan=built.plan)


def between(refusals: Refusals, first: str, second: str) -> FusionRefusal:
    found = find_refusal(refusals, first, second)
    assert found is not None, refusals
    assert found.sentence.endswith(".") or found.raw in found.sentence
    return found


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.bmm(q, k)
    weights = torch.softmax(scores, dim=-1)
    squared = weights * weights
    return torch.bmm(squared, v)


def test_a_matmul_is_a_kernel_of_its_own_and_softmax_beside_it_needs_another_algorithm() -> None:
    found = refusals_of(attend, "qk softmax square pv", (2, 48, 16), (2, 16, 48), (2, 48, 16))

    above = between(found, "qk", "softmax")
    assert above.reason is RefusalReason.OTHER_ALGORITHM
    assert "online softmax" in above.sentence
    below = between(found, "square", "pv")
    assert below.reason is RefusalReason.MATMUL
    assert below.sentence == (
        "pv is a matmul, which runs as a kernel of its own from a library (extern_kernels.bmm), "
        "and square cannot be put into it."
    )
    assert below.raw == ""
    assert find_refusal(found, "softmax", "square") is None


def share_of_all(x: torch.Tensor) -> torch.Tensor:
    total = x.sum()
    return x / total


def test_a_result_to_which_everyone_contributes_needs_the_whole_grid() -> None:
    found = between(refusals_of(share_of_all, "total share", (96, 80)), "total", "share")

    assert found.reason is RefusalReason.GRID_SYNC
    assert "share needs the finished result of total" in found.sentence


def both_axes(x: torch.Tensor) -> torch.Tensor:
    columns = x.sum(0)
    weighted = x * columns
    return weighted.sum(1)


def test_reductions_over_two_axes_do_not_fit() -> None:
    found = refusals_of(both_axes, "columns weighted rows", (96, 80))

    apart = between(found, "columns", "weighted")
    assert apart.reason is RefusalReason.OTHER_AXIS
    assert "columns reduces 96 for each of 80 and weighted 80 for each of 96" in apart.sentence
    assert apart.raw == "cannot fuse op0 with op1: no shared data"
    assert find_refusal(found, "weighted", "rows") is None


def spread(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    rows = x.sum(1)
    return rows * weights


def test_ops_over_other_numbers_of_elements_do_not_fit() -> None:
    found = between(refusals_of(spread, "rows spread", (64, 32), (100, 64)), "rows", "spread")

    assert found.reason is RefusalReason.OTHER_SIZE
    assert "32 for each of 64" in found.sentence
    assert "6400" in found.sentence or "100 × 64" in found.sentence


def running_sum(x: torch.Tensor) -> torch.Tensor:
    doubled = x * 2.0
    summed = torch.cumsum(doubled, 0)
    return summed + 1.0


def test_an_operator_that_is_called_as_it_is_takes_nothing_along() -> None:
    found = refusals_of(running_sum, "double cumsum plus", (64, 32))

    for pair in (("double", "cumsum"), ("cumsum", "plus")):
        refusal = between(found, *pair)
        assert refusal.reason is RefusalReason.OPAQUE
        assert refusal.sentence.startswith("cumsum is called as it is (")


def less_total(x: torch.Tensor) -> torch.Tensor:
    total = x.sum(1, keepdim=True)
    return x - total


def test_a_limit_of_the_compiler_is_told_with_its_words() -> None:
    found = between(
        refusals_of(less_total, "total less", (64, 32), max_fusion_size=1), "total", "less"
    )

    assert found.reason is RefusalReason.TOO_LARGE
    assert found.raw == "cannot fuse op0 with op1: exceeds max fusion"


def test_a_reason_that_is_not_known_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def can_fuse(_scheduler: Any, node1: Any, node2: Any, _score: int) -> bool:
        WhyNoFuse(node1, node2)("the moon is in its %s quarter", "last")
        return False

    monkeypatch.setattr(InductorChoices, "can_fuse", staticmethod(can_fuse))
    refusals = refusals_of(less_total, "total less", (64, 32))
    found = between(refusals, "total", "less")

    assert found.reason is RefusalReason.OTHER
    assert found.raw == "cannot fuse op0 with op1: the moon is in its last quarter"
    assert found.raw in found.sentence


def strangers(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows = x.sum(1)
    columns = y.sum(0)
    return rows, columns


def test_neighbours_that_share_no_data_have_nothing_to_gain() -> None:
    found = between(refusals_of(strangers, "rows columns", (64, 32), (64, 48)), "rows", "columns")

    assert found.reason is RefusalReason.NOT_WORTH_IT


def test_a_plan_has_its_boundaries_for_a_reason_and_the_compiler_s_within_its_groups() -> None:
    prepared = prepare("attention", {"heads": 2, "seq_len": 48, "head_dim": 16}, CPU)

    for is_cached in (False, True):
        built = find_strategy("plan:scale+mask+softmax").build(prepared)
        assert all(group.from_cache for group in built.groups) is is_cached
        found = refusals_of_call(built, prepared, observation_of(built.groups))
        built.close()

        assert {(refusal.first, refusal.second): refusal.reason for refusal in found} == {
            ("qk", "scale"): RefusalReason.DRAWN,
            ("softmax", "softmax"): RefusalReason.OTHER_AXIS,
            ("softmax", "dropout"): RefusalReason.DRAWN,
            ("dropout", "pv"): RefusalReason.DRAWN,
        }
        assert found[0].sentence == "The plan has a boundary between qk and scale."


def masked_softmax(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    masked = x + mask
    return torch.softmax(masked, dim=-1)


def test_an_op_in_two_loop_nests_says_what_split_it() -> None:
    found = refusals_of(masked_softmax, "mask softmax", (2, 64, 64), (1, 64, 64))

    split = between(found, "softmax", "softmax")
    assert split.reason is RefusalReason.OTHER_AXIS
    assert split.sentence.startswith("softmax became several loop nests: the loops of its exp (2 ×")
    assert find_refusal(found, "mask", "softmax") is None
