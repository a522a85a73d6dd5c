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
    assert [node.updates for node in found.nodes] == ["m", "v", "v", None, None, None, "p"]
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
    assert [node.updates for node in found.nodes] == [None, "x"]
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
