"""Each reason why ops do not share a kernel, made to happen on a CPU."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._inductor.choices import InductorChoices
from torch._inductor.scheduler import WhyNoFuse

from explorer.engine.measure.fusion_log import NodeKind, ScheduledNode
from explorer.engine.measure.groups import observation_of
from explorer.engine.measure.refusal_facts import ScheduledGraph
from explorer.engine.prepare import prepare
from explorer.engine.strategies import find_strategy
from explorer.model.run import RefusalReason
from tests.engine.measure.own_chain import CPU, compiled, found_in


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.bmm(q, k)
    weights = torch.softmax(scores, dim=-1)
    squared = weights * weights
    return torch.bmm(squared, v)


def test_a_matmul_is_a_kernel_of_its_own_and_softmax_beside_it_needs_another_algorithm() -> None:
    found = compiled(attend, "qk softmax square pv", (2, 48, 16), (2, 16, 48), (2, 48, 16))

    above = found.between("qk", "softmax")
    assert above.reason is RefusalReason.OTHER_ALGORITHM
    assert "online softmax" in above.sentence
    below = found.between("square", "pv")
    assert below.reason is RefusalReason.MATMUL
    assert below.sentence == (
        "pv is a matmul, which runs as a kernel of its own from a library (extern_kernels.bmm), "
        "and square cannot be put into it."
    )
    assert below.raw == ""
    assert found.share("softmax", "square")


def share_of_all(x: torch.Tensor) -> torch.Tensor:
    total = x.sum()
    return x / total


def test_a_result_to_which_everyone_contributes_needs_the_whole_grid() -> None:
    found = compiled(share_of_all, "total share", (96, 80)).between("total", "share")

    assert found.reason is RefusalReason.GRID_SYNC
    assert "share needs the finished result of total" in found.sentence


def both_axes(x: torch.Tensor) -> torch.Tensor:
    columns = x.sum(0)
    weighted = x * columns
    return weighted.sum(1)


def test_reductions_over_two_axes_do_not_fit() -> None:
    found = compiled(both_axes, "columns weighted rows", (96, 80))

    apart = found.between("columns", "weighted")
    assert apart.reason is RefusalReason.OTHER_AXIS
    assert "columns reduces 96 for each of 80 and weighted 80 for each of 96" in apart.sentence
    assert apart.raw == "cannot fuse op0 with op1: no shared data"
    assert found.share("weighted", "rows")


def spread(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    rows = x.sum(1)
    return rows * weights


def test_ops_over_other_numbers_of_elements_do_not_fit() -> None:
    found = compiled(spread, "rows spread", (64, 32), (100, 64)).between("rows", "spread")

    assert found.reason is RefusalReason.OTHER_SIZE
    assert "32 for each of 64" in found.sentence
    assert "6400" in found.sentence or "100 × 64" in found.sentence


def swapped(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    joined = torch.cat((second, first), dim=-1)
    return joined * x


def test_what_is_joined_is_written_part_by_part_on_a_cpu() -> None:
    found = compiled(swapped, "join product", (96, 64)).between("join", "product")

    assert found.reason is RefusalReason.OTHER_SIZE
    assert found.sentence == (
        "join is written part by part, in loops over one part each, and product goes over the "
        "whole."
    )


def running_sum(x: torch.Tensor) -> torch.Tensor:
    doubled = x * 2.0
    summed = torch.cumsum(doubled, 0)
    return summed + 1.0


def test_an_operator_that_is_called_as_it_is_takes_nothing_along() -> None:
    found = compiled(running_sum, "double cumsum plus", (64, 32))

    for pair in (("double", "cumsum"), ("cumsum", "plus")):
        refusal = found.between(*pair)
        assert refusal.reason is RefusalReason.OPAQUE
        assert refusal.sentence.startswith("cumsum is called as it is (")


def less_total(x: torch.Tensor) -> torch.Tensor:
    total = x.sum(1, keepdim=True)
    return x - total


def test_a_limit_of_the_compiler_is_told_with_its_words() -> None:
    found = compiled(less_total, "total less", (64, 32), max_fusion_size=1).between("total", "less")

    assert found.reason is RefusalReason.TOO_LARGE
    assert found.raw == "cannot fuse op0 with op1: exceeds max fusion"


def test_too_many_tensors_for_one_kernel_are_told_as_such() -> None:
    found = compiled(less_total, "total less", (64, 32), max_fusion_unique_io_buffers=1)

    refusal = found.between("total", "less")
    assert refusal.reason is RefusalReason.TOO_LARGE
    assert refusal.raw == "cannot fuse op0 with op1: fusion_prevent_too_many_reads_and_writes"
    assert refusal.sentence == (
        "One loop nest for total and less would take more tensors than the compiler allows."
    )


def test_ops_on_two_devices_are_apart_because_of_them() -> None:
    """No chain of the program's own has one, and a machine with one device cannot run it."""

    def node(name: str, device: str, *takes: str) -> ScheduledNode:
        return ScheduledNode(
            name=name,
            kind=NodeKind.COMPUTED,
            nodes=(name,),
            value=name,
            is_reduction=False,
            loops=("64",),
            reduced=(),
            device=device,
            buffers=(f"of_{name}",),
            reads=tuple(f"of_{taken}" for taken in takes),
            takes=takes,
            kernel=name,
        )

    nodes = (node("near", "cpu"), node("far", "cuda:0", "near"))
    graph = ScheduledGraph(
        nodes=nodes,
        ops_of={each.name: frozenset({each.name}) for each in nodes},
        value_of={each.name: each.name for each in nodes},
        steps={},
        lines=(),
        ops={},
    )
    why = graph.why_apart("near", "far")
    assert why is not None
    assert why.reason is RefusalReason.OTHER_SIZE
    assert why.sentence == "near runs on cpu, far on cuda:0."


def test_a_reason_that_is_not_known_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def can_fuse(_scheduler: Any, node1: Any, node2: Any, _score: int) -> bool:
        WhyNoFuse(node1, node2)("the moon is in its %s quarter", "last")
        return False

    monkeypatch.setattr(InductorChoices, "can_fuse", staticmethod(can_fuse))
    found = compiled(less_total, "total less", (64, 32)).between("total", "less")

    assert found.reason is RefusalReason.OTHER
    assert found.raw == "cannot fuse op0 with op1: the moon is in its last quarter"
    assert found.raw in found.sentence


def strangers(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows = x.sum(1)
    columns = y.sum(0)
    return rows, columns


def test_neighbours_that_share_no_data_have_nothing_to_gain() -> None:
    found = compiled(strangers, "rows columns", (64, 32), (64, 48)).between("rows", "columns")

    assert found.reason is RefusalReason.NOT_WORTH_IT


def test_a_plan_has_its_boundaries_for_a_reason_and_the_compiler_s_within_its_groups() -> None:
    prepared = prepare("attention", {"heads": 2, "seq_len": 48, "head_dim": 16}, CPU)

    for is_cached in (False, True):
        built = find_strategy("plan:scale+mask+softmax").build(prepared)
        assert all(group.from_cache for group in built.groups) is is_cached
        found = found_in(built, prepared, observation_of(built.groups))
        built.close()

        assert {(refusal.first, refusal.second): refusal.reason for refusal in found.refusals} == {
            ("qk", "scale"): RefusalReason.DRAWN,
            ("softmax", "softmax"): RefusalReason.OTHER_AXIS,
            ("softmax", "dropout"): RefusalReason.DRAWN,
            ("dropout", "pv"): RefusalReason.DRAWN,
        }
        assert found.refusals[0].sentence == "The plan has a boundary between qk and scale."


def masked_softmax(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    masked = x + mask
    return torch.softmax(masked, dim=-1)


def test_an_op_in_two_loop_nests_says_what_split_it() -> None:
    found = compiled(masked_softmax, "mask softmax", (2, 64, 64), (1, 64, 64))

    split = found.between("softmax", "softmax")
    assert split.reason is RefusalReason.OTHER_AXIS
    assert split.sentence.startswith("softmax became several loop nests: the loops of its exp (2 ×")
    assert found.share("mask", "softmax")


def scaled_softmax(x: torch.Tensor) -> torch.Tensor:
    scaled = x * 0.25
    return torch.softmax(scaled, dim=-1)


def test_an_op_that_the_compiler_rewrites_is_in_the_launch_all_the_same() -> None:
    """Inductor takes the maximum before the factor: nodes of its own, without a line."""
    found = compiled(scaled_softmax, "scale softmax", (64, 48))

    assert [launch.ops for launch in found.launches] == [("scale", "softmax")]
    assert found.refusals == ()


def scaled_gelu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    product = torch.bmm(x, y)
    scaled = product * 0.125
    return torch.nn.functional.gelu(scaled)


@pytest.mark.slow
def test_a_template_that_the_autotuner_picks_takes_its_epilogue_along() -> None:
    found = compiled(
        scaled_gelu,
        "matmul scale gelu",
        (4, 64, 32),
        (4, 32, 64),
        spec="compile:max-autotune-no-cudagraphs",
        max_autotune_gemm_backends="CPP",
    )

    [launch] = found.launches
    assert launch.ops == ("matmul", "scale", "gelu")
    assert launch.stays_on_chip == ("matmul_out", "scale_out")
    assert found.refusals == ()
