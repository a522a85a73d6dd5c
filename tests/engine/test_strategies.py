"""The table of strategies, and those that run on a CPU."""

import dataclasses
import importlib.util

import pytest
import torch

from explorer.chains import find_chain
from explorer.engine import toolchain
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import STRATEGIES, Case, find_strategy
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from tests.engine.returned import only

CPU = torch.device("cpu")
CHAIN = find_chain("attention")
CASE = Case(chain=CHAIN, parameters=CHAIN.resolve({}, DeviceKind.CPU), device=CPU)


def calm(prepared: Prepared) -> Prepared:
    parameters = {**prepared.parameters, "dropout": 0.0}
    function = CHAIN_CODE["attention"].make_function(parameters)
    return dataclasses.replace(prepared, parameters=parameters, function=function)


def test_every_spec_finds_its_own_entry() -> None:
    specs = [strategy.spec for strategy in STRATEGIES]
    assert specs == [
        "eager",
        "compile",
        "compile:reduce-overhead",
        "compile:max-autotune",
        "compile:max-autotune-no-cudagraphs",
        "cudagraph",
        "sdpa",
        "sdpa:flash",
        "sdpa:efficient",
        "sdpa:cudnn",
        "sdpa:math",
        "flex",
        "torch",
        "liger",
        "quack",
        "flashinfer",
    ]
    assert [find_strategy(spec).spec for spec in specs] == specs


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("fastest", "There is no strategy 'fastest'; known strategies: eager, compile,"),
        ("compile:fast", "compile has no option 'fast'; it takes none or one of reduce-overhead,"),
        ("eager:fast", "eager takes no option"),
        ("", "There is no strategy ''"),
    ],
)
def test_an_unknown_strategy_is_refused_with_those_there_are(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_strategy(spec)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("spec", ["cudagraph", "compile:reduce-overhead"])
def test_cuda_graphs_are_refused_on_a_cpu(spec: str) -> None:
    reason = find_strategy(spec).refusal(CASE)
    assert reason is not None
    assert "CPU" in reason


def test_sdpa_is_refused_for_a_chain_that_is_no_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    other = dataclasses.replace(CHAIN, id="rmsnorm")
    code = dataclasses.replace(CHAIN_CODE["attention"], chain_id="rmsnorm", sdpa=None)
    monkeypatch.setitem(CHAIN_CODE, "rmsnorm", code)
    reason = find_strategy("sdpa").refusal(dataclasses.replace(CASE, chain=other))
    assert reason == (
        "sdpa is torch's attention operator, and rmsnorm is no attention; it is for attention and "
        "decoder-block."
    )
    assert find_strategy("sdpa").refusal(CASE) is None


def test_compile_is_off_without_a_compiler_and_eager_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "cxx_compiler", lambda: None)
    reason = find_strategy("compile").refusal(CASE)
    assert reason is not None
    assert "needs a C++ compiler" in reason
    assert "apt install g++" in reason
    assert find_strategy("eager").refusal(CASE) is None


def test_compile_names_all_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "cxx_compiler", lambda: None)
    monkeypatch.setattr(toolchain, "python_headers", lambda: None)
    reason = toolchain.compile_refusal(CPU)
    assert reason is not None
    assert "a C++ compiler and Python's headers (Python.h)" in reason


def test_compile_on_a_gpu_needs_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(toolchain, "c_compiler", lambda: "/usr/bin/gcc")
    reason = toolchain.compile_refusal(torch.device("cuda:0"))
    assert reason is not None
    assert "Triton" in reason


def test_eager_is_the_chain_as_written(small: Prepared) -> None:
    built = find_strategy("eager").build(small)
    torch.manual_seed(5)
    got = only(built.call())
    torch.manual_seed(5)
    assert torch.equal(got, only(small.function(*small.inputs.values())))
    assert not got.requires_grad


@pytest.mark.parametrize("spec", ["compile", "sdpa"])
def test_the_result_is_eagers_to_rounding(small: Prepared, spec: str) -> None:
    prepared = calm(small)
    expected = prepared.function(*prepared.inputs.values())
    built = find_strategy(spec).build(prepared)
    torch.testing.assert_close(built.call(), expected, rtol=1e-5, atol=1e-6)
    built.close()


def test_sdpa_tells_what_really_ran(small: Prepared) -> None:
    # torch's fused attention on a CPU has no dropout, so with it nothing is fused.
    assert find_strategy("sdpa").build(small).backend == "math (not fused)"
    assert find_strategy("sdpa").build(calm(small)).backend == "torch's fused CPU attention"


@pytest.mark.parametrize(("mask", "skips"), [("causal", True), ("additive", False)])
def test_a_fused_kernel_that_skips_the_masked_half_says_so(mask: str, skips: bool) -> None:
    settings = {"heads": 2, "seq_len": 64, "head_dim": 16, "mask": mask}
    fused = find_strategy("sdpa").build(prepare("attention", {**settings, "dropout": 0}, CPU))
    assert any("skips what the causal mask hides" in note for note in fused.notes) is skips
    op_by_op = find_strategy("sdpa").build(prepare("attention", settings, CPU))
    assert op_by_op.notes == ()


def test_compile_generates_code_each_time(small: Prepared) -> None:
    from explorer.engine.measure.observe_compile import observing_compilation

    for _ in range(2):
        with observing_compilation() as observation:
            built = find_strategy("compile").build(small)
        built.close()
        assert len(observation.modules) == 1
    assert built.graph_breaks == ()


def test_a_graph_break_is_reported(small: Prepared) -> None:
    def broken(*inputs: torch.Tensor) -> torch.Tensor:
        doubled = inputs[0] * 2
        torch._dynamo.graph_break()
        return doubled + 1

    built = find_strategy("compile").build(dataclasses.replace(small, function=broken))
    built.close()
    assert len(built.graph_breaks) == 1
    assert built.graph_breaks[0].reason
