"""Capture on the CPU: the ops, their tensors and lines, against what the chain's code says."""

import pytest
import torch

from explorer.chains.descriptor import OpName
from explorer.engine.capture import capture
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.graph_builder import CaptureError
from explorer.engine.prepare import ChosenChain, capture_chain
from explorer.model.opgraph import OpKind
from explorer.model.tensor import TensorRole

CPU = torch.device("cpu")
GPU = torch.device("cuda:0")
MIB = 1 << 20


def test_the_ops_are_those_of_the_descriptor_with_their_source_lines(
    small_chosen: ChosenChain,
) -> None:
    ops = small_chosen.captured.graph.ops
    assert [(op.name, op.aten, op.kind, op.source_line) for op in ops] == [
        ("qk", "aten.bmm.default", OpKind.MATMUL, "s = q @ k.transpose(-2, -1)"),
        ("scale", "aten.mul.Tensor", OpKind.ELEMENTWISE, "s = s * scale"),
        ("mask", "aten.add.Tensor", OpKind.ELEMENTWISE, "s = s + mask"),
        ("softmax", "aten._softmax.default", OpKind.REDUCTION, "p = torch.softmax(s, dim=-1)"),
        (
            "dropout",
            "aten.native_dropout.default",
            OpKind.RANDOM,
            "p = torch.dropout(p, p_drop, True)",
        ),
        ("pv", "aten.bmm.default", OpKind.MATMUL, "return p @ v"),
    ]


def test_views_are_seen_through(small_chosen: ChosenChain) -> None:
    ops = small_chosen.captured.graph.ops
    assert [(op.reads, op.writes) for op in ops] == [
        (("q", "k"), ("scores",)),
        (("scores",), ("scaled",)),
        (("scaled", "mask"), ("masked",)),
        (("masked",), ("probs",)),
        (("probs",), ("dropped",)),
        (("dropped", "v"), ("out",)),
    ]


def test_nodes_know_their_line_in_the_file(small_chosen: ChosenChain) -> None:
    nodes = small_chosen.captured.nodes
    with open(small_chosen.code.source_file, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for node, op in zip(nodes, small_chosen.captured.graph.ops, strict=True):
        assert node.op == op.name
        assert node.source_line is not None
        assert lines[node.source_line - 1].strip() == op.source_line


def test_flops_against_a_hand_count() -> None:
    graph = capture_chain(
        "attention", {"batch": 2, "heads": 3, "seq_len": 8, "head_dim": 4}, CPU
    ).captured.graph
    scores = 2 * 3 * 8 * 8
    assert {op.name: op.flops for op in graph.ops} == {
        "qk": scores * 2 * 4,
        "scale": scores,
        "mask": scores,
        "softmax": scores * 5,
        "dropout": scores * 2,
        "pv": 2 * 3 * 8 * 4 * 2 * 8,
    }


def test_a_chain_far_too_large_for_any_memory_is_captured_for_a_gpu_that_is_not_there() -> None:
    graph = capture_chain("attention", {"seq_len": 131_072}, GPU).captured.graph
    assert graph.tensor("scores").n_bytes == 2 * 16 * 131_072**2 * 2
    assert graph.tensor("mask").shape == (131_072, 131_072)


def test_the_default_chain_of_a_gpu_tensor_by_tensor() -> None:
    graph = capture_chain("attention", {}, GPU).captured.graph
    assert {t.id: (t.n_bytes, t.dtype, t.role) for t in graph.tensors} == {
        "q": (16 * MIB, "bf16", TensorRole.INPUT),
        "k": (16 * MIB, "bf16", TensorRole.INPUT),
        "v": (16 * MIB, "bf16", TensorRole.INPUT),
        "mask": (32 * MIB, "bf16", TensorRole.INPUT),
        "scores": (1024 * MIB, "bf16", TensorRole.INTERMEDIATE),
        "scaled": (1024 * MIB, "bf16", TensorRole.INTERMEDIATE),
        "masked": (1024 * MIB, "bf16", TensorRole.INTERMEDIATE),
        "probs": (1024 * MIB, "bf16", TensorRole.INTERMEDIATE),
        "dropped": (1024 * MIB, "bf16", TensorRole.INTERMEDIATE),
        "keep": (512 * MIB, "bool", TensorRole.WORKSPACE),
        "out": (16 * MIB, "bf16", TensorRole.OUTPUT),
    }
    assert graph.tensor("scores").shape == graph.tensor("scaled").shape == (2, 16, 4096, 4096)
    assert graph.tensor("out").shape == (2, 16, 4096, 64)


def test_dropout_writes_what_it_kept_on_a_gpu_only(small_chosen: ChosenChain) -> None:
    on_gpu = capture_chain("attention", {"seq_len": 64}, GPU).captured.graph
    writes = {op.name: op.writes for op in on_gpu.ops}
    assert writes["dropout"] == ("dropped", "keep")
    assert all(tensor.id != "keep" for tensor in small_chosen.captured.graph.tensors)


@pytest.mark.parametrize(
    ("settings", "ops"),
    [
        ({"mask": "none"}, "qk scale softmax dropout pv"),
        ({"dropout": 0}, "qk scale mask softmax pv"),
        ({"mask": "none", "dropout": 0}, "qk scale softmax pv"),
        ({"mask": "causal"}, "qk scale mask softmax dropout pv"),
        ({"dtype": "fp16", "batch": 3}, "qk scale mask softmax dropout pv"),
        ({"seq_len": 1, "head_dim": 1, "heads": 1}, "qk scale mask softmax dropout pv"),
    ],
    ids=str,
)
def test_every_form_of_the_chain_is_captured_as_its_descriptor_says(
    settings: dict[str, object], ops: str
) -> None:
    chosen = capture_chain("attention", {"seq_len": 32, **settings}, CPU)
    assert " ".join(op.name for op in chosen.captured.graph.ops) == ops
    assert [name.name for name in chosen.chain.ops(chosen.parameters)] == ops.split()


def test_a_chain_that_is_not_what_its_descriptor_says_is_refused() -> None:
    spec = InputSpec(shape=(4, 4), dtype=torch.float32)
    names = [OpName(name="double", detail="", output="doubled")]
    with pytest.raises(CaptureError, match=r"as 2 ops .* names 1 \(double\)"):
        capture(lambda x: (x * 2).relu(), {"x": spec}, names, source_file=__file__, device=CPU)


def test_a_broadcast_axis_counts_once() -> None:
    spec = InputSpec(shape=(4, 1), dtype=torch.float32)
    names = [OpName(name="add", detail="", output="sum")]
    captured = capture(
        lambda x: x.expand(4, 8) + 1.0, {"x": spec}, names, source_file=__file__, device=CPU
    )
    assert captured.graph.ops[0].reads == ("x",)
    assert captured.graph.tensor("x").n_bytes == 16
    assert captured.graph.tensor("sum").n_bytes == 128
    assert captured.graph.tensor("sum").role is TensorRole.OUTPUT
