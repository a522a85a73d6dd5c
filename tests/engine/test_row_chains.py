"""The chains that torch has an operator for, against that operator in fp64, and their gradients."""

import math
from collections.abc import Callable, Mapping

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains import find_chain
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.measure.tolerance import allowed_error
from explorer.model.device import DeviceKind
from explorer.model.run import Scalar

Inputs = Mapping[str, torch.Tensor]
Formula = Callable[[Inputs], tuple[torch.Tensor, ...]]
CPU = torch.device("cpu")


def layernorm(h: torch.Tensor, i: Inputs) -> torch.Tensor:
    return F.layer_norm(h, h.shape[-1:], i["w"], i["b"], eps=1e-5)


def by_tanh(x: torch.Tensor) -> torch.Tensor:
    """From the paper, and not by torch's GELU, which the chain calls."""
    return x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))


def by_erf(x: torch.Tensor) -> torch.Tensor:
    """By the complement, of which the chain's reference knows nothing."""
    return x / 2 * torch.erfc(-x / math.sqrt(2))


def turned(i: Inputs) -> torch.Tensor:
    """Each pair of features as a complex number, times one of the angle."""
    half = i["x"].shape[-1] // 2
    pairs = torch.complex(i["x"][..., :half], i["x"][..., half:])
    by = pairs * torch.complex(i["cos"][..., :half], i["sin"][..., :half])
    return torch.cat((by.real, by.imag), dim=-1)


FORMULAS: dict[str, tuple[str, dict[str, object], Formula]] = {
    "layernorm": ("layernorm", {}, lambda i: (layernorm(i["x"], i),)),
    "residual-layernorm": (
        "residual-layernorm",
        {},
        lambda i: (layernorm(i["x"] + i["res"], i), i["x"] + i["res"]),
    ),
    "bias-gelu": ("bias-gelu", {}, lambda i: (by_tanh(i["x"] + i["b"]),)),
    "bias-gelu exact": (
        "bias-gelu", {"gelu": "exact"}, lambda i: (by_erf(i["x"] + i["b"]),)
    ),
    "bias-dropout-residual": (
        "bias-dropout-residual", {"dropout": 0}, lambda i: (i["res"] + (i["b"] + i["x"]),)
    ),
    "geglu": ("geglu", {}, lambda i: (i["up"] * by_tanh(i["gate"]),)),
    "geglu exact": ("geglu", {"gelu": "exact"}, lambda i: (i["up"] * by_erf(i["gate"]),)),
    "rotary": ("rotary", {}, lambda i: (turned(i),)),
    "cross-entropy": (
        "cross-entropy", {}, lambda i: (F.cross_entropy(i["logits"], i["targets"]),)
    ),
}  # fmt: skip
EVERY_FORMULA = pytest.mark.parametrize("name", FORMULAS)
SIZES: dict[str, list[dict[str, object]]] = {
    "rotary": [
        {"batch": 1, "heads": 1, "seq_len": 1, "head_dim": 2},
        {"batch": 2, "heads": 3, "seq_len": 13, "head_dim": 22},
        {"batch": 1, "heads": 2, "seq_len": 64, "head_dim": 128},
    ],
    "cross-entropy": [
        {"rows": 1, "vocabulary": 97},
        {"rows": 7, "vocabulary": 1},
        {"rows": 31, "vocabulary": 5003},
    ],
}
_ROWS: list[dict[str, object]] = [
    {"rows": 1, "columns": 37},
    {"rows": 13, "columns": 1},
    {"rows": 7, "columns": 1031},
]


def parameters_of(chain: str, size: int, settings: Mapping[str, object]) -> dict[str, Scalar]:
    chosen = {**SIZES.get(chain, _ROWS)[size], **settings}
    return find_chain(chain).resolve(chosen, DeviceKind.CPU)


def all_of(returned: object) -> tuple[torch.Tensor, ...]:
    results = returned if isinstance(returned, tuple) else (returned,)
    assert all(isinstance(result, torch.Tensor) for result in results)
    return results


def in_fp64(inputs: Inputs) -> dict[str, torch.Tensor]:
    return {n: t.double() if t.is_floating_point() else t for n, t in inputs.items()}


@EVERY_FORMULA
@pytest.mark.parametrize("size", [0, 1, 2])
def test_the_reference_is_the_formula(name: str, size: int) -> None:
    chain, settings, formula = FORMULAS[name]
    parameters = parameters_of(chain, size, settings)
    code = CHAIN_CODE[chain]
    inputs = code.make_inputs(parameters, CPU, 0)
    wanted = formula(in_fp64(inputs))
    got = [torch.full_like(result, torch.nan) for result in wanted]
    for part in code.reference(parameters, inputs, 3000):
        got[part.output][part.index] = part.values
    torch.testing.assert_close(got, list(wanted), rtol=1e-11, atol=1e-12)


@EVERY_FORMULA
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("size", [0, 1, 2])
def test_eager_lies_within_some_roundings_of_the_formula(name: str, dtype: str, size: int) -> None:
    """Each op rounds once, a sum in fp32 inside: four roundings of the largest value bound that."""
    chain, settings, formula = FORMULAS[name]
    parameters = parameters_of(chain, size, {**settings, "dtype": dtype})
    code = CHAIN_CODE[chain]
    inputs = code.make_inputs(parameters, CPU, 0)
    wanted = formula(in_fp64(inputs))
    results = all_of(code.make_function(parameters)(*inputs.values()))
    for got, truth in zip(results, wanted, strict=True):
        assert got.shape == truth.shape
        largest = max(1.0, float(truth.abs().max()))
        allowed = 4 * allowed_error(None, largest, got.dtype)
        assert float((got.double() - truth).abs().max()) <= allowed


@EVERY_FORMULA
@pytest.mark.parametrize("size", [0, 1, 2])
def test_the_gradients_are_those_of_the_formula(name: str, size: int) -> None:
    chain, settings, formula = FORMULAS[name]
    parameters = parameters_of(chain, size, settings)
    code = CHAIN_CODE[chain]
    trained = code.differentiated(parameters)
    assert trained
    inputs = in_fp64(code.make_inputs(parameters, CPU, 0))
    for input_name in trained:
        inputs[input_name].requires_grad_()

    def gradients(results: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        generator = torch.Generator().manual_seed(1)
        weights = [torch.randn(r.shape, generator=generator).double() for r in results]
        return torch.autograd.grad(results, [inputs[n] for n in trained], weights)

    ours = gradients(all_of(code.make_function(parameters)(*inputs.values())))
    torch.testing.assert_close(ours, gradients(formula(inputs)), rtol=1e-9, atol=1e-10)


def test_targets_are_tokens_of_the_vocabulary_and_reach_its_ends() -> None:
    parameters = parameters_of("cross-entropy", 0, {"rows": 500, "vocabulary": 7})
    targets = CHAIN_CODE["cross-entropy"].make_inputs(parameters, CPU, 0)["targets"]
    assert targets.dtype == torch.int64
    assert set(targets.tolist()) == set(range(7))


def test_the_loss_stands_logits_that_overflow_exp() -> None:
    parameters = parameters_of("cross-entropy", 2, {"dtype": "fp16"})
    code = CHAIN_CODE["cross-entropy"]
    inputs = code.make_inputs(parameters, CPU, 0)
    inputs["logits"].add_(1000)
    [loss] = all_of(code.make_function(parameters)(*inputs.values()))
    assert loss.isfinite()


def test_the_loss_of_a_part_at_a_time_is_that_of_the_whole() -> None:
    code = CHAIN_CODE["cross-entropy"]
    parameters = parameters_of("cross-entropy", 2, {"dtype": "bf16"})
    inputs = code.make_inputs(parameters, CPU, 0)
    [whole] = all_of(code.make_function(parameters)(*inputs.values()))
    assert torch.equal(code.slice_as_written(parameters, inputs, (), 0), whole)


def test_the_tables_turn_the_first_pair_by_one_radian_a_token() -> None:
    parameters = parameters_of("rotary", 2, {})
    inputs = CHAIN_CODE["rotary"].make_inputs(parameters, CPU, 0)
    places = torch.arange(64, dtype=torch.float64)
    for table, by in (("cos", torch.cos), ("sin", torch.sin)):
        torch.testing.assert_close(inputs[table][:, 0].double(), by(places), rtol=0, atol=1e-5)
        assert torch.equal(inputs[table][:, :64], inputs[table][:, 64:])
    # The last of 64 pairs has the wavelength 10,000^(63/64) as long.
    slowest = 10_000 ** -(63 / 64)
    torch.testing.assert_close(inputs["sin"][1, 63].item(), math.sin(slowest), rtol=1e-5, atol=0)


def test_turning_keeps_the_length_of_each_pair() -> None:
    parameters = parameters_of("rotary", 1, {})
    code = CHAIN_CODE["rotary"]
    inputs = in_fp64(code.make_inputs(parameters, CPU, 0))
    [y] = all_of(code.make_function(parameters)(*inputs.values()))

    def lengths(x: torch.Tensor) -> torch.Tensor:
        return x[..., :11] ** 2 + x[..., 11:] ** 2

    torch.testing.assert_close(lengths(y), lengths(inputs["x"]), rtol=1e-6, atol=1e-6)
