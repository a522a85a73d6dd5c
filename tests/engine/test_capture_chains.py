"""Capture of chains with several results, with results beside the result, and in place."""

import pytest
import torch

from explorer.chains.descriptor import OpName
from explorer.engine.capture import Captured, capture
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.graph_builder import CaptureError
from explorer.engine.prepare import capture_chain
from explorer.engine.prepared import ChainFunction
from explorer.model.opgraph import OpKind
from explorer.model.tensor import TensorRole

CPU = torch.device("cpu")
GPU = torch.device("cuda:0")
SPEC = InputSpec(shape=(4, 4), dtype=torch.float32)


def captured(chain: str, device: torch.device = CPU, **settings: object) -> Captured:
    return capture_chain(chain, settings, device).captured


def flow(found: Captured) -> list[tuple[str, str, str]]:
    """Each op with what it reads and writes."""
    return [(op.name, " ".join(op.reads), " ".join(op.writes)) for op in found.graph.ops]


def roles(found: Captured, role: TensorRole) -> list[str]:
    return [tensor.id for tensor in found.graph.tensors if tensor.role is role]


def test_rmsnorm() -> None:
    found = captured("rmsnorm")
    assert flow(found) == [
        ("square", "x", "squares"),
        ("mean", "squares", "mean_square"),
        ("eps", "mean_square", "above_zero"),
        ("rsqrt", "above_zero", "inverse_rms"),
        ("normalize", "x inverse_rms", "normalized"),
        ("weight", "normalized w", "y"),
    ]
    reductions = [op.name for op in found.graph.ops if op.kind is OpKind.REDUCTION]
    assert reductions == ["mean"]
    others = {op.kind for op in found.graph.ops if op.name != "mean"}
    assert others == {OpKind.ELEMENTWISE}


def test_layernorm_centers_a_row_once_and_reads_it_twice() -> None:
    found = captured("layernorm")
    assert flow(found) == [
        ("mean", "x", "row_mean"),
        ("subtract", "x row_mean", "centered"),
        ("square", "centered", "squares"),
        ("variance", "squares", "row_variance"),
        ("eps", "row_variance", "above_zero"),
        ("rsqrt", "above_zero", "inverse_deviation"),
        ("normalize", "centered inverse_deviation", "normalized"),
        ("weight", "normalized w", "weighted"),
        ("bias", "weighted b", "y"),
    ]
    assert [op.name for op in found.graph.ops if op.kind is OpKind.REDUCTION] == [
        "mean", "variance",
    ]  # fmt: skip
    longer = captured("residual-layernorm")
    assert flow(longer)[:2] == [("residual", "x res", "h"), ("mean", "h", "row_mean")]
    assert roles(longer, TensorRole.OUTPUT) == ["h", "y"]


def test_rotary_reads_each_half_of_x_for_itself() -> None:
    found = captured("rotary", batch=1, heads=2, seq_len=3, head_dim=8)
    assert flow(found) == [
        ("cosine", "x cos", "by_cosine"),
        ("negate", "x", "negated"),
        ("rotate", "negated x", "rotated"),
        ("sine", "rotated sin", "by_sine"),
        ("add", "by_cosine by_sine", "y"),
    ]
    cosine, negate, rotate, sine, add = found.graph.ops
    assert cosine.parts == sine.parts == add.parts == ()
    [second], [first] = negate.parts, rotate.parts
    half = 2 * 3 * 4 * 4
    assert (second.tensor, second.n_bytes) == (first.tensor, first.n_bytes) == ("x", half)
    assert second.part != first.part
    assert {op.kind for op in found.graph.ops} == {OpKind.ELEMENTWISE}


def test_cross_entropy_picks_one_logit_a_row() -> None:
    found = captured("cross-entropy", rows=3, vocabulary=8, dtype="bf16")
    assert flow(found) == [
        ("max", "logits", "largest"),
        ("subtract", "logits largest", "shifted"),
        ("exp", "shifted", "exponentials"),
        ("sum", "exponentials", "total"),
        ("log", "total", "log_total"),
        ("pick", "shifted targets", "picked"),
        ("loss", "log_total picked", "losses"),
        ("mean", "losses", "mean_loss"),
    ]
    [part] = found.graph.ops[5].parts
    assert (part.tensor, part.n_bytes) == ("shifted", 3 * 2)
    assert found.graph.tensor("mean_loss").shape == ()
    assert found.graph.tensor("targets").dtype == "i64"
    assert [op.name for op in found.graph.ops if op.kind is OpKind.REDUCTION] == [
        "max", "sum", "mean",
    ]  # fmt: skip


def test_a_chain_with_two_results_marks_both() -> None:
    found = captured("residual-rmsnorm")
    assert flow(found)[:2] == [("residual", "x res", "h"), ("square", "h", "squares")]
    assert ("normalize", "h inverse_rms", "normalized") in flow(found)
    assert roles(found, TensorRole.OUTPUT) == ["h", "y"]
    assert found.updated == ()


@pytest.mark.parametrize(("device", "dtype"), [(CPU, "bf16"), (GPU, "fp32")], ids=str)
def test_layernorm_writes_its_rows_statistics_too(device: torch.device, dtype: str) -> None:
    found = captured("layernorm-gelu", device, rows=6, columns=8, dtype="bf16")
    assert flow(found) == [
        ("layernorm", "x w b", "normalized mean rstd"),
        ("gelu", "normalized", "y"),
    ]
    assert roles(found, TensorRole.WORKSPACE) == ["mean", "rstd"]
    for name in ("mean", "rstd"):
        tensor = found.graph.tensor(name)
        assert (tensor.shape, tensor.dtype) == ((6, 1), dtype)
    assert [op.kind for op in found.graph.ops] == [OpKind.REDUCTION, OpKind.ELEMENTWISE]


def test_what_adam_updates_stays_the_input_that_it_is() -> None:
    found = captured("adam")
    assert flow(found) == [
        ("momentum", "m g", "m"),
        ("decay", "v", "v"),
        ("variance", "v g", "v"),
        ("root", "v", "root_v"),
        ("correct", "root_v", "corrected"),
        ("eps", "corrected", "denominator"),
        ("update", "p m denominator", "p"),
    ]
    assert [" ".join(node.updates) for node in found.nodes] == ["m", "v", "v", "", "", "", "p"]
    assert found.updated == ("m", "v", "p")
    assert roles(found, TensorRole.INPUT) == ["p", "g", "m", "v"]
    assert roles(found, TensorRole.OUTPUT) == []
    assert {op.kind for op in found.graph.ops} == {OpKind.ELEMENTWISE}


def test_the_graph_behind_is_functional_and_keeps_no_marks() -> None:
    found = captured("adam")
    nodes = {node.name: node for node in found.graph_module.graph.nodes}
    for node in found.nodes:
        assert str(nodes[node.node].target) == node.aten
        assert "updates" not in nodes[node.node].meta.get("custom", {})
        assert not nodes[node.node].target._schema.is_mutable


@pytest.mark.parametrize("k", [1, 8, 32])
def test_a_chain_is_as_long_as_its_parameter_says(k: int) -> None:
    found = captured("elementwise", k=k)
    assert len(found.graph.ops) == k
    assert flow(found)[0] == ("mul1", "x", "x1")
    assert flow(found)[-1] == (found.graph.ops[-1].name, f"x{k - 1}" if k > 1 else "x", f"x{k}")
    assert roles(found, TensorRole.OUTPUT) == [f"x{k}"]
    assert len({node.node for node in found.nodes}) == k


def test_flops_against_hand_counts() -> None:
    def flops(chain: str, **settings: object) -> dict[str, int]:
        return {op.name: op.flops for op in captured(chain, CPU, **settings).graph.ops}

    rows, columns = 3, 8
    whole = rows * columns
    assert flops("residual-rmsnorm", rows=rows, columns=columns) == {
        "residual": whole, "square": whole, "mean": whole, "eps": rows, "rsqrt": rows,
        "normalize": whole, "weight": whole,
    }  # fmt: skip
    assert flops("layernorm-gelu", rows=rows, columns=columns) == {
        "layernorm": 8 * whole,
        "gelu": 9 * whole,
    }
    assert flops("swiglu", rows=rows, columns=columns) == {"silu": 4 * whole, "multiply": whole}
    assert flops("layernorm", rows=rows, columns=columns) == {
        "mean": whole, "subtract": whole, "square": whole, "variance": whole, "eps": rows,
        "rsqrt": rows, "normalize": whole, "weight": whole, "bias": whole,
    }  # fmt: skip
    assert flops("bias-gelu", rows=rows, columns=columns) == {"bias": whole, "gelu": 9 * whole}
    assert flops("geglu", rows=rows, columns=columns, gelu="exact") == {
        "gelu": 5 * whole,
        "multiply": whole,
    }
    assert flops("bias-dropout-residual", rows=rows, columns=columns) == {
        "bias": whole, "dropout": 2 * whole, "residual": whole,
    }  # fmt: skip
    turned = 2 * 3 * 5 * 8
    assert flops("rotary", batch=2, heads=3, seq_len=5, head_dim=8) == {
        "cosine": turned, "negate": turned // 2, "rotate": 0, "sine": turned, "add": turned,
    }  # fmt: skip
    assert flops("cross-entropy", rows=rows, vocabulary=columns) == {
        "max": whole, "subtract": whole, "exp": whole, "sum": whole, "log": rows, "pick": 0,
        "loss": rows, "mean": rows,
    }  # fmt: skip
    assert flops("adam", elements=10) == {
        "momentum": 30, "decay": 10, "variance": 30, "root": 10, "correct": 10, "eps": 10,
        "update": 30,
    }  # fmt: skip


def test_gelu_by_erf_is_another_count() -> None:
    names = [OpName(name="gelu", detail="", output="y")]
    found = capture(torch.nn.functional.gelu, {"x": SPEC}, names, source_file=__file__, device=CPU)
    assert found.graph.ops[0].flops == 5 * 16


def own(function: ChainFunction, *names: OpName) -> Captured:
    return capture(function, {"x": SPEC, "y": SPEC}, names, source_file=__file__, device=CPU)


def new(name: str) -> OpName:
    return OpName(name=name, detail="", output=f"{name}_made")


def in_place(name: str, updated: str) -> OpName:
    return OpName(name=name, detail="", output=updated, in_place=True)


def test_in_place_on_an_intermediate_is_a_new_value() -> None:
    found = own(lambda x, y: (x * 2).add_(y), new("double"), new("add"))
    assert flow(found) == [("double", "x", "double_made"), ("add", "double_made y", "add_made")]
    assert found.updated == ()
    assert roles(found, TensorRole.OUTPUT) == ["add_made"]


def test_an_input_updated_through_a_view_is_that_input() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.view(-1).mul_(2)
        return x + y

    found = own(function, in_place("double", "x"), new("add"))
    assert flow(found) == [("double", "x", "x"), ("add", "x y", "add_made")]
    assert found.updated == ("x",)


def test_the_same_op_in_place_and_not_on_one_line_is_told_apart() -> None:
    found = own(lambda x, y: (x.mul(y), x.mul_(y))[0], new("product"), in_place("overwrite", "x"))
    assert [node.updates for node in found.nodes] == [(), ("x",)]
    assert roles(found, TensorRole.OUTPUT) == ["product_made"]


@pytest.mark.parametrize(
    ("function", "name", "words"),
    [
        (lambda x, y: x.mul_(y), new("mul"), "mul makes mul_made .* but the code updates x"),
        (lambda x, y: x.mul(y), in_place("mul", "x"), "mul updates x .* but the code does not"),
        (lambda x, y: y.mul_(x), in_place("mul", "x"), "mul updates x .* but the code updates y"),
    ],
    ids=["not told", "not done", "another"],
)
def test_a_descriptor_that_is_wrong_about_updates_is_refused(
    function: ChainFunction, name: OpName, words: str
) -> None:
    with pytest.raises(CaptureError, match=words):
        own(function, name)


def test_an_update_of_a_part_of_an_input_is_refused() -> None:
    with pytest.raises(CaptureError):
        own(lambda x, y: x[0].mul_(y[0]), in_place("mul", "x"))
