"""The chain attention-scores: its ops, its reference, the checks of its dropout."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from explorer.chains import find_chain
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.prepare import capture_chain
from explorer.engine.prepared import ChainFunction
from explorer.model.device import DeviceKind
from explorer.model.run import Scalar
from tests.engine.returned import only

CPU = torch.device("cpu")
CODE = CHAIN_CODE["attention-scores"]


@dataclass(frozen=True)
class Made:
    """The chain with its inputs, not captured, which nothing here needs."""

    parameters: dict[str, Scalar]
    inputs: dict[str, torch.Tensor]
    function: ChainFunction


def small(**settings: object) -> Made:
    chosen = {"heads": 2, "seq_len": 96, **settings}
    parameters = find_chain("attention-scores").resolve(chosen, DeviceKind.CPU)
    return Made(parameters, CODE.make_inputs(parameters, CPU, 0), CODE.make_function(parameters))


def test_it_takes_the_parameters_of_attention_but_for_the_features() -> None:
    ours, attention = find_chain("attention-scores"), find_chain("attention")
    for kind in DeviceKind:
        expected = attention.resolve({}, kind)
        del expected["head_dim"]
        assert ours.resolve({}, kind) == expected


@pytest.mark.parametrize(
    ("settings", "ops"),
    [
        ({}, ["scale", "mask", "softmax", "dropout"]),
        ({"mask": "causal"}, ["scale", "mask", "softmax", "dropout"]),
        ({"mask": "none", "dropout": 0}, ["scale", "softmax"]),
    ],
)
def test_the_captured_graph_has_the_ops(settings: dict[str, object], ops: list[str]) -> None:
    chosen = capture_chain("attention-scores", {"heads": 2, "seq_len": 16, **settings}, CPU)
    assert [op.name for op in chosen.captured.graph.ops] == ops


@pytest.mark.parametrize("mask", ["additive", "causal", "none"])
@pytest.mark.parametrize("max_bytes", [1, 3 * 8 * 96 * 7, 1 << 30])
def test_the_reference_is_the_chain_in_fp64_however_it_is_sliced(mask: str, max_bytes: int) -> None:
    made = small(mask=mask, dropout=0)
    whole = torch.full(made.inputs["scores"].shape, torch.nan, dtype=torch.float64)
    for part in CODE.reference(made.parameters, made.inputs, max_bytes):
        whole[part.index] = part.values
        written = CODE.slice_as_written(made.parameters, made.inputs, part.index, part.output)
        torch.testing.assert_close(written.double(), part.values, rtol=1e-5, atol=1e-7)
    exact = made.function(*(tensor.double() for tensor in made.inputs.values()))
    torch.testing.assert_close(whole, only(exact), rtol=1e-12, atol=1e-14)


def call_of(made: Made) -> Callable[[], torch.Tensor]:
    return lambda: only(made.function(*made.inputs.values()))


@pytest.mark.parametrize("mask", ["additive", "causal", "none"])
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_eagers_dropout_passes_with_the_rate_asked_for(mask: str, dtype: str) -> None:
    torch.manual_seed(0)
    made = small(mask=mask, dtype=dtype)
    kept, values = CODE.distribution(made.parameters, made.inputs, call_of(made), 0.0)
    assert kept.passed
    assert kept.expected == kept.nominal == 0.9
    assert values.passed
    assert 0 < values.tolerance < 0.05


def dropped_by(made: Made, keep_of_256: int, scale: float) -> Callable[[], torch.Tensor]:
    """A kernel that compares 8 random bits with the rate, as fused attention does."""
    calm = CODE.make_function(CODE.without_randomness(made.parameters))

    def call() -> torch.Tensor:
        probs = only(calm(*made.inputs.values()))
        bits = torch.randint(0, 256, probs.shape, generator=torch.Generator().manual_seed(0))
        return (bits < keep_of_256) * probs * scale

    return call


@pytest.mark.parametrize("keep_of_256", [230, 231])
@pytest.mark.parametrize("realised_scale", [False, True])
def test_a_rate_of_256ths_passes_as_what_it_is(keep_of_256: int, realised_scale: bool) -> None:
    made = small(seq_len=512, dtype="bf16")
    scale = 256 / keep_of_256 if realised_scale else 1 / 0.9
    call = dropped_by(made, keep_of_256, scale)
    kept, values = CODE.distribution(made.parameters, made.inputs, call, 1 / 256)
    assert kept.passed
    assert (kept.expected, kept.nominal) == (keep_of_256 / 256, 0.9)
    assert values.passed


@pytest.mark.parametrize(("keep_of_256", "resolution"), [(229, 1 / 256), (232, 1 / 256), (230, 0)])
def test_another_rate_does_not_pass(keep_of_256: int, resolution: float) -> None:
    made = small(seq_len=1024)
    call = dropped_by(made, keep_of_256, 1 / 0.9)
    kept, values = CODE.distribution(made.parameters, made.inputs, call, resolution)
    assert not kept.passed
    assert values.passed


def test_finer_numbers_than_were_known_of_pass() -> None:
    torch.manual_seed(0)
    made = small(seq_len=1024)
    call = call_of(made)
    kept, _ = CODE.distribution(made.parameters, made.inputs, call, 1 / 256)
    assert kept.passed
    assert kept.expected == 0.9


def test_kept_values_that_are_not_scaled_up_are_found() -> None:
    made = small()
    call = dropped_by(made, 230, 1.0)
    _, values = CODE.distribution(made.parameters, made.inputs, call, 1 / 256)
    assert not values.passed


def test_a_kept_value_that_is_not_finite_is_counted() -> None:
    torch.manual_seed(0)
    made = small(dropout=0.5)

    def call() -> torch.Tensor:
        dropped = call_of(made)()
        dropped[0, 0, 3, 5:8] = torch.nan
        return dropped

    *_, not_finite = CODE.distribution(made.parameters, made.inputs, call, 0.0)
    assert (not_finite.observed, not_finite.passed) == (3.0, False)


def test_zeros_of_fp16_by_rounding_are_not_taken_for_dropped() -> None:
    """With scores this far apart most probabilities are below the smallest step of fp16."""
    torch.manual_seed(0)
    made = small(dtype="fp16", mask="none")
    made.inputs["scores"].mul_(10)
    kept, values = CODE.distribution(made.parameters, made.inputs, call_of(made), 0.0)
    share = float((call_of(made)() != 0).double().mean())
    assert share < 0.8
    assert kept.passed
    assert values.passed


def test_without_dropout_there_is_nothing_to_check() -> None:
    made = small(dropout=0)
    assert CODE.distribution(made.parameters, made.inputs, call_of(made), 0.0) == ()
