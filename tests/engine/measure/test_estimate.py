"""Estimates against hand counts, and against what a CPU really holds."""

import pytest
import torch

from explorer.engine.measure.estimate import (
    SizedGraph,
    fused_groups,
    largest_size,
    longest_launch_s,
    peak_bytes,
)
from explorer.engine.measure.memory import measure_peak
from explorer.engine.prepare import plan_chain, prepare
from explorer.engine.strategies import PeakFamily, find_strategy
from explorer.model.device import Ceilings

CPU = torch.device("cpu")
GPU = torch.device("cuda:0")
MIB = 1 << 20


def test_the_default_chain_of_a_gpu_by_hand() -> None:
    graph = plan_chain("attention", {}, GPU).captured.graph
    # While dropout runs: masked (the variable s still holds it), probs, dropped, keep.
    assert peak_bytes(graph, PeakFamily.EAGER, on_cuda=True) == (3 * 1024 + 512) * MIB
    # Scores, the result, and an fp32 random number an element.
    assert peak_bytes(graph, PeakFamily.COMPILED, on_cuda=True) == (1024 + 1024 + 2048) * MIB
    assert peak_bytes(graph, PeakFamily.FUSED, on_cuda=True) == 16 * MIB


@pytest.mark.parametrize(
    "settings",
    [{}, {"dropout": 0}, {"mask": "none"}, {"mask": "causal", "batch": 2}, {"dtype": "bf16"}],
    ids=str,
)
def test_eagers_estimate_is_what_eager_holds(settings: dict[str, object]) -> None:
    prepared = prepare("attention", {"seq_len": 256, **settings}, CPU)
    estimated = peak_bytes(prepared.graph, PeakFamily.EAGER, on_cuda=False)
    built = find_strategy("eager").build(prepared)
    measured = measure_peak(built.call, device=CPU).peak_bytes
    # A library may take a little for itself while it multiplies.
    assert measured <= estimated * 1.25
    assert measured >= estimated * 0.95


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_compiles_estimate_is_what_compiled_code_holds(dtype: str) -> None:
    prepared = prepare("attention", {"seq_len": 256, "dtype": dtype}, CPU)
    estimated = peak_bytes(prepared.graph, PeakFamily.COMPILED, on_cuda=False)
    built = find_strategy("compile").build(prepared)
    measured = measure_peak(built.call, device=CPU).peak_bytes
    built.close()
    assert measured == pytest.approx(estimated, rel=0.1)


def test_matmuls_stand_alone_and_the_rest_between_them_is_one_group() -> None:
    graph = plan_chain("attention", {"seq_len": 16}, CPU).captured.graph
    groups = [" ".join(op.name for op in group) for group in fused_groups(graph)]
    assert groups == ["qk", "scale mask softmax dropout", "pv"]


def test_the_longest_launch_is_bound_by_bytes_or_by_flops() -> None:
    graph = plan_chain("attention", {"dropout": 0}, GPU).captured.graph

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
        return plan_chain("attention", {"seq_len": seq_len}, GPU).captured.graph

    small = plan_chain("attention", {"seq_len": 48}, GPU).captured.graph
    large = plan_chain("attention", {"seq_len": 96}, GPU).captured.graph
    sized = SizedGraph(first=large, first_size=96, second=small, second_size=48)
    assert sized.at(96) == large
    assert sized.at(48) == small
    assert sized.at(1000) == graph_at(1000)


def test_the_largest_size_is_found_to_the_step() -> None:
    assert largest_size(lambda size: size <= 1000, below=4096) == 960
    assert largest_size(lambda size: size <= 63, below=4096) == 63
    assert largest_size(lambda size: size <= 5, below=6) == 5
    assert largest_size(lambda _size: False, below=4096) is None
