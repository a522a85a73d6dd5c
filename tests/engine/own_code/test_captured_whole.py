"""Functions and modules that are captured whole: ops, inputs, results, and eager against fp64."""

import pytest
import torch

from explorer.engine.prepare import make_ready
from explorer.model.tensor import TensorRole
from tests.engine.own_code.helpers import FUNCTIONS, LAYERS, called, captured, eager_passes, ops


def test_a_function_is_named_by_its_operators_with_the_place_of_each_line() -> None:
    chosen = captured(f"{FUNCTIONS}:scores", "x=fp32[8,16] w=fp32[16,16] causal=True scale=0.25")
    graph = chosen.captured.graph
    assert ops(chosen) == ["mul", "mm", "tril", "softmax"]
    assert [op.source_line for op in graph.ops] == [
        "y = x * scale", "y = y @ w", "y = y.tril()", "return torch.softmax(y, -1)"
    ]  # fmt: skip
    places = [op.source_place or "" for op in graph.ops]
    assert all(place.startswith("functions.py:") for place in places)
    numbers = [int(place.rpartition(":")[2]) for place in places]
    assert numbers == sorted(numbers)
    assert graph.breaks == ()
    assert list(chosen.input_specs) == ["x", "w"]


def test_what_a_text_says_is_what_the_function_is_called_with() -> None:
    text = "x=fp32[8,16] w=fp32[16,16] causal=True scale=0.25"
    prepared = make_ready(captured(f"{FUNCTIONS}:scores", text), seed=3)
    x, w = prepared.inputs["x"], prepared.inputs["w"]
    expected = torch.softmax((x * 0.25 @ w).tril(), -1)
    torch.testing.assert_close(called(prepared)[0], expected, rtol=0, atol=0)


def test_symbols_are_parameters() -> None:
    name, text = f"{FUNCTIONS}:scores", "x=dtype[rows=8,16] w=dtype[16,16]"
    assert captured(name, text).input_specs["x"].shape == (8, 16)
    wide = captured(name, text, rows=32, dtype="bf16")
    assert wide.input_specs["x"].shape == (32, 16)
    assert wide.input_specs["w"].dtype is torch.bfloat16
    assert wide.dtype == "bf16"


def test_tensors_in_tuples_are_inputs_and_tuples_are_results() -> None:
    chosen = captured(f"{FUNCTIONS}:swapped", "pair=(fp32[4,8],fp32[2])")
    prepared = make_ready(chosen, seed=0)
    assert list(prepared.inputs) == ["pair[0]", "pair[1]"]
    second, first = called(prepared)
    torch.testing.assert_close(second, prepared.inputs["pair[1]"] + 1)
    torch.testing.assert_close(first, prepared.inputs["pair[0]"] * 2)


def test_a_dataclass_is_taken_apart() -> None:
    prepared = make_ready(captured(f"{FUNCTIONS}:moments", "x=fp32[4,8]"), seed=0)
    mean, spread = called(prepared)
    torch.testing.assert_close(mean, prepared.inputs["x"].mean(-1))
    torch.testing.assert_close(spread, prepared.inputs["x"].std(-1))


def test_a_dict_of_results_keeps_its_order_and_a_config_is_made_of_init() -> None:
    chosen = captured(f"{LAYERS}:Configured", "x=fp32[4,16] gate=fp32[4,16]", "hidden_size=16")
    prepared = make_ready(chosen, seed=0)
    assert prepared.inputs["linear.weight"].shape == (16, 16)
    plain, gated = called(prepared)
    torch.testing.assert_close(gated, plain * torch.sigmoid(prepared.inputs["gate"]))


def test_whole_numbers_stay_below_their_bound_and_one_without_is_said() -> None:
    chosen = captured(f"{FUNCTIONS}:counted", "ids=i64[64,8]<10 keep=bool[64,8]")
    inputs = make_ready(chosen, seed=0).inputs
    assert (int(inputs["ids"].min()), int(inputs["ids"].max())) == (0, 9)
    assert 0 < int(inputs["keep"].sum()) < 64 * 8
    assert chosen.notes == ()
    [note] = captured(f"{FUNCTIONS}:counted", "ids=i64[4] keep=bool[4]").notes
    assert note.startswith("ids holds whole numbers from 0 to below 100")


def test_the_file_gives_its_own_inputs() -> None:
    chosen = captured(f"{LAYERS}:Frozen")
    assert chosen.input_specs["x"].shape == (4, 8)


def test_a_python_loop_is_unrolled() -> None:
    chosen = captured(f"{FUNCTIONS}:looped", "x=fp32[4,8]")
    assert ops(chosen) == ["relu", "add", "relu2", "add2", "relu3", "add3"]


def test_parameters_come_from_the_seed_and_take_the_inputs_dtype() -> None:
    chosen = captured(f"{LAYERS}:Dropping", "x=bf16[4,8]", "width=8")
    first, again, other = (make_ready(chosen, seed).inputs["linear.weight"] for seed in (0, 0, 1))
    assert first.dtype is torch.bfloat16
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert chosen.notes == (
        "The module's parameters were cast to bfloat16, the dtype of its inputs.",
    )


def test_what_a_module_updates_is_restored() -> None:
    chosen = captured(f"{LAYERS}:Running", "x=fp32[4,8]", "width=8", training=True)
    assert set(chosen.captured.updated) == {
        "seen", "last", "norm.num_batches_tracked", "norm.running_mean", "norm.running_var"
    }  # fmt: skip
    prepared = make_ready(chosen, seed=0)
    before = {name: prepared.inputs[name].clone() for name in prepared.updated}
    called(prepared)
    x = prepared.inputs["x"]
    torch.testing.assert_close(prepared.inputs["seen"], x.mean(0))
    torch.testing.assert_close(prepared.inputs["last"][:2], x[:2])
    assert int(prepared.inputs["norm.num_batches_tracked"]) == 1
    prepared.restore_inputs()
    assert all(torch.equal(prepared.inputs[name], value) for name, value in before.items())


def test_a_buffer_that_is_replaced_is_put_back() -> None:
    prepared = make_ready(captured(f"{LAYERS}:Rebinding", "x=fp32[4,8]"), seed=0)
    first = called(prepared)[0]
    second = called(prepared)[0]
    assert not torch.equal(first, second)
    prepared.restore_inputs()
    assert torch.equal(called(prepared)[0], first)


def test_dropout_is_an_op_in_training_mode_alone() -> None:
    name, text, init = f"{LAYERS}:Dropping", "x=fp32[4,8]", "width=8"
    assert ops(captured(name, text, init)) == ["addmm"]
    assert ops(captured(name, text, init, training=True)) == ["addmm", "native_dropout"]


def test_the_backward_pass_makes_the_gradients_that_there_are() -> None:
    chosen = captured(f"{LAYERS}:Frozen", backward=True)
    assert chosen.captured.differentiated == ("used", "x")
    prepared = make_ready(chosen, seed=0)
    result, grad_used, grad_x = called(prepared)
    x, tangent = prepared.inputs["x"], prepared.inputs["grad_output"]
    torch.testing.assert_close(result, x * prepared.inputs["used"] + prepared.inputs["frozen"])
    torch.testing.assert_close(grad_used, (tangent * x).sum(0))
    torch.testing.assert_close(grad_x, tangent * prepared.inputs["used"])


def test_results_are_told_as_outputs() -> None:
    graph = captured(f"{FUNCTIONS}:moments", "x=fp32[4,8]").captured.graph
    outputs = [tensor.id for tensor in graph.tensors if tensor.role is TensorRole.OUTPUT]
    assert outputs == ["mean", "std"]


@pytest.mark.parametrize(
    ("name", "inputs", "init", "training"),
    [
        (f"{FUNCTIONS}:by_table", "x=fp32[4,8]", "", False),
        (f"{FUNCTIONS}:counted", "ids=i64[4,8]<10 keep=bool[4,8]", "", False),
        (f"{FUNCTIONS}:scaled_in_place", "x=fp32[4,8]", "", False),
        (f"{LAYERS}:T5LikeNorm", "x=bf16[4,8]", "width=8", False),
        (f"{LAYERS}:Running", "x=fp32[4,8]", "width=8", True),
        (f"{LAYERS}:Dropping", "x=fp32[4,8]", "width=8", True),
    ],
    ids=lambda value: value.rpartition(":")[2] if isinstance(value, str) and ":" in value else "",
)
def test_eager_is_as_close_to_fp64_as_its_dtype_allows(
    name: str, inputs: str, init: str, training: bool
) -> None:
    chosen = captured(name, inputs, init, training=training)
    assert chosen.captured.graph.breaks == ()
    assert eager_passes(chosen)


@pytest.mark.parametrize(
    ("name", "inputs", "init"),
    [
        (f"{LAYERS}:Dropping", "x=fp32[4,8]", "width=8"),
        (f"{LAYERS}:Running", "x=fp32[4,8]", "width=8"),
        pytest.param(
            f"{LAYERS}:MambaLike", "x=fp32[2,3,4]", "width=4 states=2", marks=pytest.mark.slow
        ),
    ],
    ids=["Dropping", "Running", "MambaLike"],
)
def test_so_are_its_gradients(name: str, inputs: str, init: str) -> None:
    assert eager_passes(captured(name, inputs, init, training=True, backward=True))
