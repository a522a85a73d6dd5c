"""Attention by torch's operator with one back end, and by FlexAttention."""

import dataclasses
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend

from explorer.chains import find_chain
from explorer.engine.prepare import prepare
from explorer.engine.strategies import Case, find_strategy, sdpa
from explorer.model.device import DeviceKind
from explorer.model.run import Direction
from tests.engine.returned import only

CPU = torch.device("cpu")
ATTENTION = find_chain("attention")
SMALL = {"heads": 2, "seq_len": 40, "head_dim": 16, "dropout": 0}
MASKS = ("none", "additive", "causal")
CHOSEN = ("flash", "efficient", "cudnn", "math")


def flash_is_allowed() -> bool:
    allowed: Any = torch.backends.cuda.flash_sdp_enabled
    return bool(allowed())


def case(**settings: object) -> Case:
    parameters = ATTENTION.resolve(settings, DeviceKind.CPU)
    return Case(chain=ATTENTION, parameters=parameters, device=CPU)


def test_torch_says_why_it_refuses_a_case() -> None:
    with_dropout = find_strategy("sdpa:flash").refusal(case(dropout=0.1))
    assert with_dropout == (
        "torch refuses sdpa:flash here (Both fused kernels do not support non-zero dropout); "
        "sdpa picks a backend that can."
    )
    assert find_strategy("sdpa:flash").refusal(case(dropout=0)) is None
    assert find_strategy("sdpa:math").refusal(case(dropout=0.1)) is None


@pytest.mark.parametrize("mask", MASKS)
def test_what_is_asked_of_torch_is_the_case_and_not_its_size(mask: str) -> None:
    long = case(dropout=0, seq_len=1_048_576, head_dim=256, mask=mask)
    assert find_strategy("sdpa:flash").refusal(long) is None


@pytest.mark.parametrize("option", ["efficient", "cudnn"])
def test_what_a_cpu_has_no_kernel_for_is_refused_there(option: str) -> None:
    reason = find_strategy(f"sdpa:{option}").refusal(case(dropout=0))
    assert reason is not None
    assert reason.startswith(f"sdpa:{option} needs an NVIDIA GPU")
    assert reason.endswith("there are sdpa:flash and sdpa:math.")


@pytest.mark.parametrize("spec", [f"sdpa:{option}" for option in CHOSEN] + ["flex"])
def test_only_attention_is_taken(spec: str) -> None:
    rmsnorm = find_chain("rmsnorm")
    other = dataclasses.replace(
        case(), chain=rmsnorm, parameters=rmsnorm.resolve({}, DeviceKind.CPU)
    )
    reason = find_strategy(spec).refusal(other)
    assert reason is not None
    assert "rmsnorm is no attention; it is for attention" in reason


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    ("option", "backend"), [("flash", "torch's fused CPU attention"), ("math", "math (not fused)")]
)
def test_the_back_end_that_was_named_runs(
    option: str, backend: str, mask: str, direction: Direction
) -> None:
    prepared = prepare("attention", {**SMALL, "mask": mask}, CPU, direction=direction)
    expected = prepared.results(prepared.caller(prepared.function)())
    built = find_strategy(f"sdpa:{option}").build(prepared)
    assert built.backend == backend
    assert not any("was asked for" in note for note in built.notes)
    for got, wanted in zip(prepared.results(built.call()), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    built.close()


def test_a_built_back_end_is_chosen_until_it_is_closed() -> None:
    built = find_strategy("sdpa:math").build(prepare("attention", SMALL, CPU))
    assert not flash_is_allowed()
    built.close()
    assert flash_is_allowed()


def test_what_cannot_be_built_leaves_the_choice_to_torch() -> None:
    with_dropout = prepare("attention", {**SMALL, "dropout": 0.1}, CPU)
    with (
        pytest.warns(UserWarning, match="kernel not used because|non-zero dropout"),
        pytest.raises(RuntimeError, match="No available kernel"),
    ):
        find_strategy("sdpa:flash").build(with_dropout)
    assert flash_is_allowed()
    assert find_strategy("sdpa").build(with_dropout).backend == "math (not fused)"


def test_another_kernel_than_was_named_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = "_scaled_dot_product_flash_attention_for_cpu"
    monkeypatch.setitem(sdpa._BACKENDS, seen, "a kernel of tomorrow")
    built = find_strategy("sdpa:flash").build(prepare("attention", SMALL, CPU))
    built.close()
    assert built.backend == "a kernel of tomorrow"
    assert built.notes == (
        "sdpa:flash was asked for, and a kernel of tomorrow is what really ran.",
    )


def test_every_back_end_that_torch_lets_one_choose_can_be_named() -> None:
    named = {choice.backend for choice in sdpa._CHOICES}
    assert named == set(SDPBackend.__members__.values()) - {
        SDPBackend.ERROR,
        SDPBackend.OVERRIDEABLE,
    }


def test_flex_says_what_it_has_not() -> None:
    flex = find_strategy("flex")
    with_dropout = flex.refusal(case(dropout=0.1))
    assert with_dropout is not None
    assert with_dropout.endswith("set dropout=0.")
    training = dataclasses.replace(case(dropout=0), direction=Direction.FORWARD_BACKWARD)
    assert "no backward pass on a CPU" in str(flex.refusal(training))
    assert flex.refusal(case(dropout=0)) is None


@pytest.mark.slow
@pytest.mark.parametrize("mask", MASKS)
def test_flex_computes_attention(mask: str) -> None:
    prepared = prepare("attention", {**SMALL, "mask": mask}, CPU)
    expected = only(prepared.function(*prepared.inputs.values()))
    built = find_strategy("flex").build(prepared)
    torch.testing.assert_close(only(built.call()), expected, rtol=1e-5, atol=1e-5)
    assert built.backend == "FlexAttention"
    assert built.graph_breaks == ()
    built.close()
