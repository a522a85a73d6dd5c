"""The chains around matmuls against torch's own modules in fp64, and by dtype; their gradients."""

import functools
from collections.abc import Mapping

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains import find_chain
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.measure.accuracy import compute_reference, errors_of
from explorer.engine.measure.tolerance import allowed_error
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared
from explorer.model.errors import UsageError
from explorer.model.fusion import all_in_one, each_alone
from explorer.model.opgraph import OpKind
from explorer.model.planned import planned_bytes
from explorer.model.run import Direction

CPU = torch.device("cpu")
ROWS, COLUMNS, FEATURES = 6, 32, 48
SIZES: dict[str, object] = {"rows": ROWS, "columns": COLUMNS}
WIDE = {**SIZES, "features": FEATURES}
VARIANTS: dict[str, tuple[str, dict[str, object], str]] = {
    "feed-forward-two": ("feed-forward", {**WIDE, "projections": "two"},
                         "gate up silu multiply down"),
    "feed-forward-one": ("feed-forward", {**WIDE, "projections": "one"},
                         "gate_up silu multiply down"),
    "epilogue-gelu": ("matmul-epilogue", {**WIDE, "activation": "gelu"}, "matmul bias gelu"),
    "epilogue-tanh": ("matmul-epilogue", {**WIDE, "activation": "gelu-tanh"}, "matmul bias gelu"),
    "epilogue-silu": ("matmul-epilogue", {**WIDE, "activation": "silu"}, "matmul bias silu"),
    "qkv-three": ("qkv", {**SIZES, "projections": "three"}, "project_q project_k project_v"),
    "qkv-one": ("qkv", {**SIZES, "projections": "one"}, "project"),
    "matmul": ("matmul", WIDE, "matmul scale gelu"),
    "matmul-one-row": ("matmul", {**WIDE, "rows": 1}, "matmul scale gelu"),
}  # fmt: skip
NORM = "square mean eps rsqrt normalize weight"
FP8_VARIANTS: dict[str, tuple[dict[str, object], str]] = {
    "bf16": ({"dtype": "bf16"}, f"{NORM} matmul"),
    "bf16-fixed": ({"dtype": "bf16", "scale": "fixed"}, f"{NORM} matmul"),
    "fp8-row": ({"dtype": "fp8"}, f"{NORM} abs absmax widen scale divide quantize matmul"),
    "fp8-fixed": ({"dtype": "fp8", "scale": "fixed"}, f"{NORM} divide clamp quantize matmul"),
}
BOTH = pytest.mark.parametrize("name", VARIANTS)


@functools.cache
def chosen(name: str, dtype: str = "fp32", direction: Direction = Direction.FORWARD) -> ChosenChain:
    chain, settings, _ = VARIANTS[name]
    return capture_chain(chain, {**settings, "dtype": dtype}, CPU, direction)


def fp8(name: str) -> Prepared:
    settings, _ = FP8_VARIANTS[name]
    return make_ready(capture_chain("rmsnorm-fp8", {**WIDE, **settings}, CPU), seed=0)


def by_modules(name: str, i: Mapping[str, torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """What the chain is, by torch's own layers, which take a transposed weight."""
    if name == "feed-forward-two":
        gate, up = F.linear(i["x"], i["w_gate"].T), F.linear(i["x"], i["w_up"].T)
        return (F.linear(F.silu(gate) * up, i["w_down"].T),)
    if name == "feed-forward-one":
        gate, up = F.linear(i["x"], i["w_gate_up"].T).chunk(2, dim=-1)
        return (F.linear(F.silu(gate) * up, i["w_down"].T),)
    if name.startswith("epilogue"):
        y = F.linear(i["x"], i["w"].T, i["b"])
        if name == "epilogue-silu":
            return (F.silu(y),)
        return (F.gelu(y, approximate="tanh" if name == "epilogue-tanh" else "none"),)
    if name == "qkv-three":
        return tuple(F.linear(i["x"], i[w].T) for w in ("w_q", "w_k", "w_v"))
    if name == "qkv-one":
        return tuple(F.linear(i["x"], i["w"].T).chunk(3, dim=-1))
    return (F.gelu(F.linear(i["x"], i["w"].T) / 2, approximate="tanh"),)


def in_fp64(prepared: Prepared) -> dict[str, torch.Tensor]:
    return {name: tensor.double() for name, tensor in prepared.inputs.items()}


@BOTH
def test_capture_yields_exactly_the_ops(name: str) -> None:
    _, _, ops = VARIANTS[name]
    assert [op.name for op in chosen(name).captured.graph.ops] == ops.split()


@pytest.mark.parametrize("name", FP8_VARIANTS)
def test_capture_of_the_quantized_chain_yields_exactly_the_ops(name: str) -> None:
    prepared, (_, ops) = fp8(name), FP8_VARIANTS[name]
    assert [op.name for op in prepared.graph.ops] == ops.split()
    assert prepared.graph.ops[-1].kind is OpKind.MATMUL
    assert prepared.graph.ops[-1].flops == 2 * ROWS * COLUMNS * FEATURES


@BOTH
@pytest.mark.parametrize("max_bytes", [1, 1 << 30])
def test_the_reference_is_torchs_own_layers_in_fp64(name: str, max_bytes: int) -> None:
    prepared = make_ready(chosen(name), seed=0)
    truth = by_modules(name, in_fp64(prepared))
    whole = [torch.full_like(result, torch.nan) for result in truth]
    code = CHAIN_CODE[prepared.chain.id]
    for part in code.reference(prepared.parameters, prepared.inputs, max_bytes):
        assert whole[part.output][part.index].isnan().all(), "each part is computed once"
        whole[part.output][part.index] = part.values
    for got, expected in zip(whole, truth, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


@BOTH
@pytest.mark.parametrize("dtype", ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.slow)])
def test_eager_is_about_as_exact_as_torchs_own_layers(name: str, dtype: str) -> None:
    prepared = make_ready(chosen(name, dtype), seed=0)
    got = prepared.results(prepared.caller(prepared.function)())
    truth = by_modules(name, in_fp64(prepared))
    theirs = by_modules(name, prepared.inputs)
    for mine, other, exact in zip(got, theirs, truth, strict=True):
        assert mine.dtype == prepared.inputs["x"].dtype
        error = float((other.double() - exact).abs().max())
        allowed = allowed_error(error, float(exact.abs().max()), mine.dtype)
        assert float((mine.double() - exact).abs().max()) <= allowed


@BOTH
def test_a_part_as_written_is_that_part_of_the_whole(name: str) -> None:
    prepared = make_ready(chosen(name), seed=0)
    code, index = CHAIN_CODE[prepared.chain.id], (slice(0, 4),)
    results = prepared.results(prepared.function(*prepared.inputs.values()))
    for output, whole in enumerate(results):
        part = code.slice_as_written(prepared.parameters, prepared.inputs, index, output)
        torch.testing.assert_close(part, whole[index])


@BOTH
def test_gradients_are_those_of_torchs_own_layers(name: str) -> None:
    prepared = make_ready(chosen(name, direction=Direction.FORWARD_BACKWARD), seed=0)
    n_results = len(prepared.tangents)
    gradients = prepared.results(prepared.caller(prepared.function)())[n_results:]
    leaves = {
        name: prepared.inputs[name].double().requires_grad_() for name in prepared.differentiated
    }
    assert leaves.keys() == CHAIN_CODE[prepared.chain.id].input_specs(prepared.parameters).keys()
    tangents = [prepared.inputs[name].double() for name in prepared.tangents]
    expected = torch.autograd.grad(by_modules(name, leaves), list(leaves.values()), tangents)
    for got, exact in zip(gradients, expected, strict=True):
        torch.testing.assert_close(got.double(), exact, rtol=1e-4, atol=1e-5)


X = ROWS * COLUMNS * 4
"""Bytes of x in fp32; WEIGHT those of a matrix, INNER those of a result as wide as it."""
WEIGHT, INNER, BIAS = COLUMNS * FEATURES * 4, ROWS * FEATURES * 4, FEATURES * 4
SQUARE = COLUMNS * COLUMNS * 4
BYTES: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "feed-forward-two": (
        (2 * (X + WEIGHT) + INNER + 2 * INNER + INNER + WEIGHT, 4 * INNER + X),
        (X + 3 * WEIGHT, X),
    ),
    # silu reads a half of both, and multiply the other half.
    "feed-forward-one": (
        (X + 2 * WEIGHT + INNER + 2 * INNER + INNER + WEIGHT, 4 * INNER + X),
        (X + 3 * WEIGHT, X),
    ),
    "epilogue-gelu": ((X + WEIGHT + INNER + BIAS + INNER, 3 * INNER), (X + WEIGHT + BIAS, INNER)),
    "epilogue-silu": ((X + WEIGHT + INNER + BIAS + INNER, 3 * INNER), (X + WEIGHT + BIAS, INNER)),
    "qkv-three": ((3 * (X + SQUARE), 3 * X), (X + 3 * SQUARE, 3 * X)),
    "qkv-one": ((X + 3 * SQUARE, 3 * X), (X + 3 * SQUARE, 3 * X)),
    "matmul": ((X + WEIGHT + 2 * INNER, 3 * INNER), (X + WEIGHT, INNER)),
}


@pytest.mark.parametrize("name", BYTES)
def test_planned_bytes_equal_the_hand_count(name: str) -> None:
    graph = chosen(name).captured.graph
    ops = [op.name for op in graph.ops]
    apart, together = BYTES[name]
    assert planned_bytes(graph, each_alone(ops)) == apart
    assert planned_bytes(graph, all_in_one(ops)) == together


def test_planned_bytes_of_the_quantized_chain_equal_the_hand_count() -> None:
    graph = fp8("fp8-row").graph
    whole, column, row = ROWS * COLUMNS, ROWS, COLUMNS
    # bf16 has 2 bytes, fp8 one, fp32 four.
    scaled_mm = whole + COLUMNS * FEATURES + 4 * column + 4 * FEATURES
    read = [
        2 * whole, 2 * whole, 2 * column, 2 * column, 2 * whole + 2 * column,
        2 * whole + 2 * row, 2 * whole, 2 * whole, 2 * column, 4 * column,
        2 * whole + 4 * column, 4 * whole, scaled_mm,
    ]  # fmt: skip
    written = [
        2 * whole, 2 * column, 2 * column, 2 * column, 2 * whole, 2 * whole, 2 * whole,
        2 * column, 4 * column, 4 * column, 4 * whole, whole, 2 * ROWS * FEATURES,
    ]  # fmt: skip
    ops = [op.name for op in graph.ops]
    assert planned_bytes(graph, each_alone(ops)) == (sum(read), sum(written))
    assert planned_bytes(graph, all_in_one(ops)) == (
        2 * whole + 2 * row + COLUMNS * FEATURES + 4 * FEATURES,
        2 * ROWS * FEATURES,
    )


@pytest.mark.parametrize("name", FP8_VARIANTS)
def test_the_quantized_chain_is_near_torchs_own_layers(name: str) -> None:
    """fp8 rounds a factor by up to 1/16 of it, at random: sums are off by a few hundredths."""
    prepared = fp8(name)
    i = in_fp64(prepared)
    y = F.rms_norm(i["x"], (COLUMNS,), i["w_norm"], eps=1e-6)
    weight = i["w"] * i["w_scale"].reshape(-1, 1) if "w_scale" in i else i["w"]
    truth = F.linear(y, weight)
    code = CHAIN_CODE["rmsnorm-fp8"]
    reference = compute_reference(
        code.reference(prepared.parameters, prepared.inputs, 1 << 20),
        n_elements=truth.numel(), budget_s=60, max_bytes=1 << 30,
    )  # fmt: skip
    assert errors_of([truth], reference)[0].max_abs < 1e-12
    result = prepared.results(prepared.function(*prepared.inputs.values()))
    assert result[0].dtype == torch.bfloat16
    error = errors_of(result, reference)[0]
    relative = error.rms / float(truth.square().mean().sqrt())
    low, high = (0.0, 0.01) if name.startswith("bf16") else (0.01, 0.05)
    assert low < relative < high


def test_values_beyond_the_fixed_scale_are_cut_off_and_not_lost() -> None:
    prepared = fp8("fp8-fixed")
    prepared.inputs["w_norm"].mul_(100)
    [result] = prepared.results(prepared.function(*prepared.inputs.values()))
    assert result.isfinite().all()


def test_what_fp8_cannot_multiply_is_refused() -> None:
    with pytest.raises(UsageError, match=r"columns=40 is out of range: .* multiples of 16"):
        capture_chain("rmsnorm-fp8", {"columns": 40}, CPU)


@pytest.mark.parametrize(
    ("chain", "parameter", "values"),
    [
        ("feed-forward", "projections", ("two", "one")),
        ("qkv", "projections", ("three", "one")),
        ("matmul", "rows", (4096, 1)),
        ("rmsnorm-fp8", "dtype", ("bf16", "fp8")),
    ],
)
def test_what_is_compared_is_a_parameter_with_these_values(
    chain: str, parameter: str, values: tuple[object, ...]
) -> None:
    described = find_chain(chain)
    assert described.compared == parameter
    assert described.compared_values == values
    assert [described.parameter(parameter).parse(value) for value in values] == list(values)
