"""The decoder block against Llama's in torch's own modules, its gradients, its bytes."""

import functools
import math
from collections.abc import Mapping

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.measure.tolerance import allowed_error
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.model.errors import UsageError
from explorer.model.fusion import all_in_one, each_alone
from explorer.model.opgraph import OpKind
from explorer.model.planned import planned_bytes
from explorer.model.run import Direction

CPU = torch.device("cpu")
BATCH, SEQ, HIDDEN, HEADS, FEATURES = 2, 10, 24, 3, 36
HEAD_DIM = HIDDEN // HEADS
SMALL: dict[str, object] = {
    "batch": BATCH, "seq_len": SEQ, "hidden": HIDDEN, "heads": HEADS, "features": FEATURES,
}  # fmt: skip
CODE = CHAIN_CODE["decoder-block"]
Inputs = Mapping[str, torch.Tensor]


@functools.cache
def chosen(dtype: str = "fp32", direction: Direction = Direction.FORWARD) -> ChosenChain:
    return capture_chain("decoder-block", {**SMALL, "dtype": dtype}, CPU, direction)


def llama(i: Inputs) -> torch.Tensor:
    """The block by torch's own norm, linear layers and attention operator."""

    def heads(weight: torch.Tensor) -> torch.Tensor:
        return F.linear(y, weight.T).reshape(-1, SEQ, HEADS, HEAD_DIM).transpose(1, 2)

    def turned(x: torch.Tensor) -> torch.Tensor:
        half = HEAD_DIM // 2
        return x * i["cos"] + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * i["sin"]

    y = F.rms_norm(i["x"], (HIDDEN,), i["w_norm1"], eps=1e-6)
    q, k, v = (heads(i[name]) for name in ("w_q", "w_k", "w_v"))
    attended = F.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True)
    h = i["x"] + F.linear(attended.transpose(1, 2).reshape(-1, SEQ, HIDDEN), i["w_o"].T)
    y = F.rms_norm(h, (HIDDEN,), i["w_norm2"], eps=1e-6)
    inner = F.silu(F.linear(y, i["w_gate"].T)) * F.linear(y, i["w_up"].T)
    return h + F.linear(inner, i["w_down"].T)


def in_fp64(inputs: Inputs) -> dict[str, torch.Tensor]:
    return {name: tensor.double() for name, tensor in inputs.items()}


def test_it_is_captured_with_its_matmuls_and_everything_between_them() -> None:
    graph = chosen().captured.graph
    kinds = [op.kind for op in graph.ops]
    assert len(kinds) == 42
    assert [op.name for op in graph.ops if op.kind is OpKind.MATMUL] == [
        "project_q", "project_k", "project_v", "qk", "pv", "project", "gate", "up", "down",
    ]  # fmt: skip
    assert [op.name for op in graph.ops if op.kind is OpKind.REDUCTION] == [
        "mean_attn", "softmax", "mean_ff",
    ]  # fmt: skip
    assert OpKind.OPAQUE not in kinds
    tokens = BATCH * SEQ
    matmuls = sum(op.flops for op in graph.ops if op.kind is OpKind.MATMUL)
    assert matmuls == 2 * tokens * (4 * HIDDEN**2 + 3 * HIDDEN * FEATURES + 2 * SEQ * HIDDEN)


@pytest.mark.parametrize("sizes", [(1, 2, 2), (3, 5, 4)], ids=str)
def test_the_ops_do_not_depend_on_the_sizes(sizes: tuple[int, ...]) -> None:
    named = dict(zip(("batch", "seq_len", "heads"), sizes, strict=True))
    chosen = capture_chain("decoder-block", {**SMALL, **named}, CPU)
    assert len(chosen.captured.graph.ops) == 42


def test_the_tables_turn_each_pair_by_its_angle_and_the_mask_is_causal() -> None:
    inputs = make_ready(chosen(), seed=0).inputs
    cos, sin = inputs["cos"].double(), inputs["sin"].double()
    torch.testing.assert_close(cos.square() + sin.square(), torch.ones_like(cos))
    assert float(cos[3, 0]) == pytest.approx(math.cos(3), abs=1e-6)
    slowest = 3 * 10_000 ** (-2 * (HEAD_DIM // 2 - 1) / HEAD_DIM)
    assert float(sin[3, -1]) == pytest.approx(math.sin(slowest), rel=1e-5)
    above = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
    assert (inputs["mask"][above] == -torch.inf).all()
    assert (inputs["mask"][~above] == 0).all()


@pytest.mark.parametrize("max_bytes", [1, 20_000, 1 << 30])
def test_the_reference_is_llamas_block_in_fp64_however_it_is_sliced(max_bytes: int) -> None:
    prepared = make_ready(chosen(), seed=0)
    whole = torch.full((BATCH, SEQ, HIDDEN), torch.nan, dtype=torch.float64)
    for part in CODE.reference(prepared.parameters, prepared.inputs, max_bytes):
        assert whole[part.index].isnan().all()
        whole[part.index] = part.values
    torch.testing.assert_close(whole, llama(in_fp64(prepared.inputs)), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", pytest.param("fp16", marks=pytest.mark.slow)])
def test_eager_is_about_as_exact_as_llamas_block(dtype: str) -> None:
    prepared = make_ready(chosen(dtype), seed=0)
    [got] = prepared.results(prepared.caller(prepared.function)())
    truth = llama(in_fp64(prepared.inputs))
    theirs = float((llama(prepared.inputs).double() - truth).abs().max())
    allowed = allowed_error(theirs, float(truth.abs().max()), got.dtype)
    assert float((got.double() - truth).abs().max()) <= allowed


def test_a_part_as_written_is_that_part_of_the_whole() -> None:
    prepared = make_ready(chosen(), seed=0)
    [whole] = prepared.results(prepared.function(*prepared.inputs.values()))
    index = (1, slice(3, 7))
    part = CODE.slice_as_written(prepared.parameters, prepared.inputs, index, 0)
    torch.testing.assert_close(part, whole[index])


def test_attention_by_torchs_operator_is_the_same_block() -> None:
    prepared = make_ready(chosen(), seed=0)
    assert CODE.sdpa is not None
    got = CODE.sdpa(prepared.parameters)(*prepared.inputs.values())
    assert isinstance(got, torch.Tensor)
    torch.testing.assert_close(got.double(), llama(in_fp64(prepared.inputs)), rtol=1e-5, atol=1e-5)


def test_gradients_are_those_of_llamas_block() -> None:
    prepared = make_ready(chosen(direction=Direction.FORWARD_BACKWARD), seed=0)
    gradients = prepared.results(prepared.caller(prepared.function)())[1:]
    constants = {name: prepared.inputs[name].double() for name in ("cos", "sin", "mask")}
    leaves = {
        name: prepared.inputs[name].double().requires_grad_() for name in prepared.differentiated
    }
    [tangent] = (prepared.inputs[name].double() for name in prepared.tangents)
    expected = torch.autograd.grad(llama({**leaves, **constants}), list(leaves.values()), tangent)
    for name, got, exact in zip(leaves, gradients, expected, strict=True):
        torch.testing.assert_close(
            got.double(), exact, rtol=1e-3, atol=1e-4 * float(exact.abs().max()), msg=name
        )


def test_each_gradient_is_called_after_its_input() -> None:
    graph = chosen(direction=Direction.FORWARD_BACKWARD).captured.graph
    specs = CODE.input_specs(chosen().parameters)
    gradients = [tensor for tensor in graph.tensors if tensor.id.startswith("grad_w")]
    assert len(gradients) == 9
    for tensor in gradients:
        assert tensor.shape == specs[tensor.id.removeprefix("grad_")].shape, tensor.id


def test_planned_bytes_equal_the_hand_count() -> None:
    graph = chosen().captured.graph
    ops = [op.name for op in graph.ops]
    tokens = BATCH * SEQ
    x, column, row, table = tokens * HIDDEN, tokens, HIDDEN, SEQ * HEAD_DIM
    scores, square, wide = BATCH * HEADS * SEQ * SEQ, SEQ * SEQ, tokens * FEATURES
    matrix, up = HIDDEN * HIDDEN, HIDDEN * FEATURES
    norm = (x + x + column + column + (x + column) + (x + row), 3 * x + 3 * column)
    # Of each of q and k: by cosine, a half negated, both halves put together, by sine, added.
    rotary = ((x + table) + x // 2 + x + (x + table) + 2 * x, x + x // 2 + 3 * x)
    read = (
        2 * norm[0] + 2 * rotary[0] + 3 * (x + matrix) + 3 * x
        + 2 * x + scores + (scores + square) + scores + (scores + x)
        + x + (x + matrix) + 2 * x
        + 2 * (x + up) + wide + 2 * wide + (wide + up) + 2 * x
    )  # fmt: skip
    written = (
        2 * norm[1] + 2 * rotary[1] + 3 * x + 3 * x
        + 4 * scores + x + x + x + x
        + 4 * wide + x + x
    )  # fmt: skip
    assert planned_bytes(graph, each_alone(ops)) == (4 * read, 4 * written)
    whole = x + 2 * row + 4 * matrix + 3 * up + 2 * table + square
    assert planned_bytes(graph, all_in_one(ops)) == (4 * whole, 4 * x)


@pytest.mark.parametrize(("hidden", "heads"), [(24, 5), (24, 8)])
def test_features_that_the_heads_cannot_share_are_refused(hidden: int, heads: int) -> None:
    with pytest.raises(UsageError, match=f"set hidden to a multiple of {2 * heads}"):
        capture_chain("decoder-block", {**SMALL, "hidden": hidden, "heads": heads}, CPU)
