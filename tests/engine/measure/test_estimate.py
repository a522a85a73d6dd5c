"""Estimates against hand counts, and against what a CPU really holds."""

import os

import pytest
import torch

from explorer.engine.measure.estimate import (
    SizedGraph,
    fused_groups,
    largest_size,
    longest_launch_s,
    peak_bytes,
    plan_peak_bytes,
)
from explorer.engine.measure.memory import measure_peak
from explorer.engine.prepare import capture_chain, prepare
from explorer.engine.strategies import PeakFamily, find_strategy
from explorer.model.device import Ceilings
from explorer.model.fusion import parse_plan

CPU = torch.device("cpu")
GPU = torch.device("cuda:0")
MIB = 1 << 20
SMALL = 1
"""MiB of seeds and scratch."""
BLOCK = 1
"""MiB that a tensor's block may be larger than it is."""


def test_the_default_chain_of_a_gpu_by_hand() -> None:
    graph = capture_chain("attention", {}, GPU).captured.graph

    def peak(family: PeakFamily) -> int:
        return peak_bytes(graph, family, on_cuda=True)

    # While dropout runs: masked (the variable s still holds it), probs, dropped, keep.
    eager = (3 * 1024 + 512 + 4 * BLOCK) * MIB
    assert peak(PeakFamily.EAGER) == eager
    # Scores, the result, and an fp32 random number an element.
    compiled = (1024 + 1024 + 2048 + 2 * BLOCK + SMALL) * MIB
    assert peak(PeakFamily.COMPILED) == compiled
    # The eleven tensors of the graph, each in a block of its own, and one block begun.
    rounding = (20 + 2 * 11) * MIB
    assert peak(PeakFamily.EAGER_GRAPH) == eager + rounding
    # The random numbers twice, copies of q, k, v and mask.
    assert peak(PeakFamily.COMPILED_GRAPH) == compiled + (2048 + 3 * 16 + 32) * MIB + rounding
    assert peak(PeakFamily.UPCAST) == 2 * eager + (3 * 32 + 64 + SMALL) * MIB
    statistics = 4 * 2 * 16 * 4096
    assert peak(PeakFamily.FUSED) == (16 + SMALL) * MIB + statistics


def test_short_rows_need_no_random_numbers_in_memory() -> None:
    graph = capture_chain("attention", {"seq_len": 1024}, GPU).captured.graph
    scores = 2 * 16 * 1024 * 1024 * 2
    own = (2 * BLOCK + SMALL) * MIB
    assert peak_bytes(graph, PeakFamily.COMPILED, on_cuda=True) == 2 * scores + own


E, G, C, R, F = (
    PeakFamily.EAGER, PeakFamily.EAGER_GRAPH, PeakFamily.COMPILED, PeakFamily.COMPILED_GRAPH,
    PeakFamily.FUSED,
)  # fmt: skip
MEASURED: list[tuple[dict[str, object], dict[PeakFamily, float]]] = [
    ({}, {E: 3758.1, G: 3758.1, C: 3221.2, R: 5467.3, F: 16.8}),
    (
        {"seq_len": 1536, "dtype": "fp32", "mask": "none"},
        {E: 981.5, G: 981.5, C: 604.0, R: 702.5, F: 12.6},
    ),
    (
        {"seq_len": 1001, "dtype": "fp16", "head_dim": 40, "batch": 4},
        # While Inductor compiles, it holds more than in a call.
        {E: 449.8, G: 455.1, C: 585.1, R: 488.6, F: 5.1},
    ),
    (
        {"seq_len": 1024, "mask": "causal", "batch": 8},
        {E: 939.5, G: 939.5, C: 285.2, R: 589.3, F: 16.8},
    ),
]


@pytest.mark.parametrize(("settings", "peaks_mb"), MEASURED, ids=str)
def test_what_was_measured_on_an_h200_lies_under_the_estimates(
    settings: dict[str, object], peaks_mb: dict[PeakFamily, float]
) -> None:
    graph = capture_chain("attention", settings, GPU).captured.graph
    for family, peak_mb in peaks_mb.items():
        estimated_mb = peak_bytes(graph, family, on_cuda=True) / 1e6
        # Twice what is held; of a small chain the least sizes of blocks are more.
        most_mb = 2.2 * peak_mb if settings.get("seq_len") != 1001 else 2.7 * peak_mb
        assert peak_mb <= estimated_mb <= most_mb, family


CASES: list[dict[str, object]] = [
    {"dropout": 0},
    {"mask": "none", "dtype": "fp16"},
    {"mask": "causal", "batch": 2},
    {"mask": "causal", "dtype": "bf16", "dropout": 0},
    {"seq_len": 257, "head_dim": 30},
]


@pytest.mark.parametrize("settings", CASES, ids=str)
@pytest.mark.parametrize("spec", ["eager", "sdpa"])
def test_no_more_is_held_than_estimated(spec: str, settings: dict[str, object]) -> None:
    assert_held(spec, "attention", {"seq_len": 512, **settings})


@pytest.mark.parametrize("settings", CASES[-2:], ids=str)
def test_no_more_is_held_by_compiled_code(settings: dict[str, object]) -> None:
    assert_held("compile", "attention", {"seq_len": 512, **settings})


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "chain",
    [
        "rmsnorm", "residual-rmsnorm", "layernorm", "residual-layernorm", "layernorm-gelu",
        "bias-gelu", "bias-dropout-residual", "swiglu", "geglu", "rotary", "cross-entropy",
        "adam", "elementwise",
    ],
)  # fmt: skip
def test_no_more_is_held_by_other_chains(chain: str, dtype: str) -> None:
    assert_held("eager", chain, {"dtype": dtype})


@pytest.mark.parametrize(
    "chain",
    [
        "residual-rmsnorm", "rotary", "adam",
        pytest.param("cross-entropy", marks=pytest.mark.slow),
        pytest.param("layernorm", marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_no_more_is_held_by_other_chains_compiled(chain: str) -> None:
    assert_held("compile", chain, {})


def test_adam_holds_what_it_makes_and_not_what_it_updates() -> None:
    graph = capture_chain("adam", {"elements": 4 * MIB}, GPU).captured.graph
    # The root, the corrected root and the denominator, each bound to a name.
    eager = 3 * (16 + BLOCK) * MIB
    assert peak_bytes(graph, PeakFamily.EAGER, on_cuda=True) == eager
    assert peak_bytes(graph, PeakFamily.COMPILED, on_cuda=True) == SMALL * MIB


def test_a_plan_holds_what_crosses_its_boundaries() -> None:
    graph = capture_chain("attention", {"seq_len": 1024}, GPU).captured.graph
    scores = 2 * 16 * 1024 * 1024 * 2

    def peak(text: str) -> int:
        plan = parse_plan(text, [op.name for op in graph.ops], "attention")
        return plan_peak_bytes(graph, plan, on_cuda=True)

    # Matmuls are kernels of their own, whatever the plan says.
    compiled = peak_bytes(graph, PeakFamily.COMPILED, on_cuda=True)
    assert peak("all") == peak("scale+mask+softmax+dropout") == compiled
    # A kernel's result and what it reads, of each a whole tensor of scores.
    assert peak("each") == compiled == 2 * scores + (2 * BLOCK + SMALL) * MIB
    swiglu = capture_chain("swiglu", {"rows": 1024, "columns": 1024}, GPU).captured.graph
    each, fused = (
        plan_peak_bytes(swiglu, parse_plan(text, ["silu", "multiply"], "swiglu"), on_cuda=True)
        for text in ("each", "all")
    )
    assert (each, fused) == ((2 * 2 + 2 * BLOCK + SMALL) * MIB, (2 + BLOCK + SMALL) * MIB)


@pytest.mark.parametrize("spec", ["plan:square+mean+eps+rsqrt|normalize|weight", "plan:all"])
def test_no_more_is_held_under_a_plan(spec: str) -> None:
    assert_held(spec, "rmsnorm", {})


def assert_held(spec: str, chain: str, settings: dict[str, object]) -> None:
    """The estimate bounds what is held, and not by much more than it is."""
    prepared = prepare(chain, settings, CPU)
    strategy = find_strategy(spec)
    built = strategy.build(prepared)
    measured = measure_peak(built.call, device=CPU).peak_bytes
    built.close()
    plan = None if strategy.plan_of is None else strategy.plan_of(prepared.graph)
    if plan is None:
        family = strategy.peak(prepared.parameters, CPU)
        estimated = peak_bytes(prepared.graph, family, on_cuda=False)
    else:
        estimated = plan_peak_bytes(prepared.graph, plan, on_cuda=False)
    # A thread's scratch is counted for each processor, whether torch uses it or not.
    scratch = (2 * (os.cpu_count() or 1) + 2) * MIB
    assert measured <= estimated <= 2.5 * measured + scratch


def test_matmuls_stand_alone_and_the_rest_between_them_is_one_group() -> None:
    graph = capture_chain("attention", {"seq_len": 16}, CPU).captured.graph
    groups = [" ".join(op.name for op in group) for group in fused_groups(graph)]
    assert groups == ["qk", "scale mask softmax dropout", "pv"]


def test_the_longest_launch_is_bound_by_bytes_or_by_flops() -> None:
    graph = capture_chain("attention", {"dropout": 0}, GPU).captured.graph

    def ceilings(flops_per_s: float) -> Ceilings:
        return Ceilings(
            copy_bytes_per_s=1e12,
            read_bytes_per_s=0.5e12,
            write_bytes_per_s=0.5e12,
            flops_per_s={"bf16": flops_per_s},
            measured_at="",
        )

    by_bytes = (1024 + 32 + 1024) * MIB / 1e12
    assert longest_launch_s(graph, ceilings(1e18), "bf16") == pytest.approx(by_bytes)
    by_flops = 2 * 32 * 4096 * 4096 * 64 / 1e12
    assert longest_launch_s(graph, ceilings(1e12), "bf16") == pytest.approx(by_flops)


def test_two_captures_tell_the_graph_of_any_size() -> None:
    def graph_at(seq_len: int) -> object:
        return capture_chain("attention", {"seq_len": seq_len}, GPU).captured.graph

    small = capture_chain("attention", {"seq_len": 48}, GPU).captured.graph
    large = capture_chain("attention", {"seq_len": 96}, GPU).captured.graph
    sized = SizedGraph(first=large, first_size=96, second=small, second_size=48)
    assert sized.at(96) == large
    assert sized.at(48) == small
    assert sized.at(1000) == graph_at(1000)


def test_the_largest_size_is_found_to_the_step() -> None:
    assert largest_size(lambda size: size <= 1000, below=4096) == 960
    assert largest_size(lambda size: size <= 63, below=4096) == 63
    assert largest_size(lambda size: size <= 5, below=6) == 5
    assert largest_size(lambda _size: False, below=4096) is None
