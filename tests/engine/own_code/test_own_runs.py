"""Runs of own code through the session, and of objects through ``explorer.measure``."""

from pathlib import Path

import pytest
import torch

import explorer
from explorer.engine.bound import BoundFunction
from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.prepare import make_ready
from explorer.engine.session import Session
from explorer.model.errors import UsageError
from explorer.model.messages import GraphCaptured, Reply, RunFinished, RunRequest
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run
from tests.engine.own_code.helpers import FUNCTIONS, LAYERS, captured


def runs_of(
    tmp_path: Path,
    chain: str,
    own: OwnCode,
    *strategies: str,
    direction: Direction = Direction.FORWARD,
) -> list[Run]:
    replies: list[Reply] = []
    Session(CeilingsStore(tmp_path / "ceilings.json")).handle(
        RunRequest(
            chain=chain, own=own, strategies=strategies, device="cpu", timing_s=0.01,
            measure_ceilings=False, direction=direction,
        ),
        replies.append,
    )  # fmt: skip
    assert any(isinstance(reply, GraphCaptured) for reply in replies)
    runs = [reply.run for reply in replies if isinstance(reply, RunFinished)]
    assert [run.error for run in runs] == [None] * len(strategies)
    return runs


def passed(run: Run) -> bool:
    return run.accuracy is not None and run.accuracy.passed


def test_an_eager_run_has_the_launches_of_its_ops_and_the_code(tmp_path: Path) -> None:
    chain, own = f"{FUNCTIONS}:scores", OwnCode(inputs="x=fp32[64,16] w=fp32[16,16]")
    [run] = runs_of(tmp_path, chain, own, "eager")
    assert (run.chain.name, run.chain.title, run.chain.dtype) == (chain, "scores", "fp32")
    assert run.chain.own == own
    assert (run.chain.source or "").startswith("def scores(")
    assert [launch.ops for launch in run.launches] == [("mul",), ("mm",), ("softmax",)]
    first = run.launches[0]
    assert (first.bytes_read.modelled, first.bytes_written.modelled) == (4096, 4096)
    assert passed(run)


def test_what_numpy_does_has_no_launch_and_the_run_says_so(tmp_path: Path) -> None:
    chain, own = f"{FUNCTIONS}:by_numpy", OwnCode(inputs="x=fp32[8]")
    [eager, compiled] = runs_of(tmp_path, chain, own, "eager", "compile")
    assert [launch.ops for launch in eager.launches] == [("mul",), ("add",)]
    [sentence] = [each for each in eager.warnings if "No launch was seen" in each]
    assert sentence.startswith("No launch was seen of tanh: the code does that outside of torch")
    assert not any("No launch was seen" in each for each in compiled.warnings)


def test_torchs_own_modules_have_no_lines_and_their_launches_have_ops(tmp_path: Path) -> None:
    cell = OwnCode(inputs="input=fp32[8,16]", init="input_size=16 hidden_size=16")
    [run] = runs_of(tmp_path, "torch.nn:LSTMCell", cell, "eager")
    matmuls = [each.ops for each in run.launches if each.kernel == "aten.addmm.default"]
    assert matmuls == [("linear",), ("linear2",)]
    init = "d_model=16 nhead=2 dim_feedforward=32 batch_first=True dropout=0.1"
    layer = OwnCode(inputs="src=fp32[2,8,16]", init=init, training=True)
    for direction in Direction:
        [run] = runs_of(
            tmp_path, "torch.nn:TransformerEncoderLayer", layer, "eager", direction=direction
        )
        assert all(launch.ops for launch in run.launches)
        drawn = [each.ops for each in run.launches if "bernoulli" in each.kernel]
        # The first is within attention.
        assert drawn[1:] == [("native_dropout",), ("native_dropout2",), ("native_dropout3",)]


def test_a_weight_that_was_laid_elsewhere_is_found_there() -> None:
    """As an RNN on a GPU does with its weights when it is first called."""
    prepared = make_ready(captured(f"{LAYERS}:T5LikeNorm", "x=fp32[4,8]", "width=8"), 0)
    assert isinstance(prepared.function, BoundFunction)
    weight = prepared.function.held["weight"]
    weight.data = weight.data.clone()
    places = {name: t.data_ptr() for name, t in prepared.inputs_in_place().items()}
    assert list(places) == list(prepared.inputs)
    assert places["weight"] == weight.data_ptr() != prepared.inputs["weight"].data_ptr()


def test_lines_of_several_files_are_told_apart(tmp_path: Path) -> None:
    """Both files multiply and add on their third line."""
    (tmp_path / "inner.py").write_text("\n\ndef f(x): return x * 2 + 1\n")
    (tmp_path / "outer.py").write_text("import inner\n\ndef g(x): return inner.f(x * 3 + 5)\n")
    [run] = runs_of(tmp_path, f"{tmp_path}/outer.py:g", OwnCode(inputs="x=fp32[8]"), "eager")
    assert [op.source_place for op in run.graph.ops] == [
        "outer.py:3", "outer.py:3", "inner.py:3", "inner.py:3"
    ]  # fmt: skip
    assert [launch.ops for launch in run.launches] == [("mul",), ("add",), ("mul2",), ("add2",)]


def test_a_function_is_measured_where_it_is() -> None:
    x = torch.ones(4, 8)

    def doubled(x: torch.Tensor, plus: float = 1.0) -> torch.Tensor:
        return x * 2 + plus

    [run] = explorer.measure(doubled, (x,), ("eager",), timing_s=0.01)
    assert run.error is None
    assert [op.name for op in run.graph.ops] == ["mul", "add"]
    assert [launch.ops for launch in run.launches] == [("mul",), ("add",)]
    assert run.chain.title == "doubled"
    assert passed(run)


def test_a_measured_module_stays_as_it_was() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    x = torch.randn(4, 8, requires_grad=True)
    [run] = explorer.measure(module, {"input": x}, ("eager",), backward=True, timing_s=0.01)
    assert run.error is None
    assert run.chain.direction is Direction.FORWARD_BACKWARD
    assert passed(run)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert x.grad is None
    assert all(parameter.grad is None for parameter in module.parameters())


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot be called"):
        explorer.measure(3, (torch.ones(2),))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no strategy 'fast'"):
        explorer.measure(torch.relu, (torch.ones(2),), ("fast",))
    with pytest.raises(UsageError, match="strategies='eager' is no list of names"):
        explorer.measure(torch.relu, (torch.ones(2),), "eager")
    with pytest.raises(UsageError, match="Linear is a class; make one of it"):
        explorer.measure(torch.nn.Linear, (torch.ones(2),))
    with pytest.raises(UsageError, match="torch knows no device 'tpu'"):
        explorer.measure(torch.relu, (torch.ones(2),), device="tpu")
    with pytest.raises(UsageError, match=r"gives other arguments than forward .*takes input"):
        explorer.measure(torch.nn.ReLU().forward, ())
    with pytest.raises(UsageError, match="on the device meta, where tensors have no values"):
        explorer.measure(torch.nn.Linear(2, 2, device="meta"), torch.ones(2), device="cpu")
    with pytest.raises(UsageError, match="gives input as a sparse, quantized or nested tensor"):
        explorer.measure(torch.nn.Linear(2, 2), torch.ones(2, 2).to_sparse())


def test_a_program_keeps_its_random_numbers() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    explorer.measure(torch.relu, (torch.ones(2),), ("eager",), timing_s=0.01)
    assert torch.equal(torch.rand(1), expected)


REWRITTEN = {"copy", "slice_scatter", "stack"}
"""Ops in the place of which Inductor puts others, that do not say where they come from."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "inputs", "init", "training"),
    [
        (f"{FUNCTIONS}:scores", "x=fp32[64,16] w=fp32[16,16]", "", False),
        (f"{FUNCTIONS}:moments", "x=fp32[4,8]", "", False),
        (f"{LAYERS}:T5LikeNorm", "x=bf16[64,32]", "width=32", False),
        (f"{LAYERS}:Running", "x=fp32[4,8]", "width=8", True),
        (f"{LAYERS}:Dropping", "x=fp32[4,8]", "width=8", True),
        (f"{LAYERS}:ConvNeXtLike", "x=fp32[1,4,8,8]", "channels=4", False),
        (f"{LAYERS}:ViTLike", "x=fp32[2,4,8]", "width=8 heads=2", False),
        (f"{LAYERS}:MambaLike", "x=fp32[2,3,4]", "width=4 states=2", False),
    ],
    ids=["scores", "moments", "T5LikeNorm", "Running", "Dropping", "ConvNeXtLike", "ViTLike",
         "MambaLike"],
)  # fmt: skip
def test_compiled_and_planned_it_is_as_exact(
    name: str, inputs: str, init: str, training: bool, tmp_path: Path
) -> None:
    own = OwnCode(inputs=inputs, init=init, training=training)
    runs = runs_of(tmp_path, name, own, "eager", "compile", "plan:all")
    assert [passed(run) for run in runs] == [True] * 3
    ops = {op.name for op in runs[0].graph.ops}
    for run in runs[1:]:
        launched = {op for launch in run.launches for op in launch.ops}
        assert ops - REWRITTEN <= launched <= ops


@pytest.mark.slow
def test_forward_and_backward_compile_as_exactly(tmp_path: Path) -> None:
    own = OwnCode(inputs="x=fp32[2,4,8]", init="width=8 heads=2", training=True)
    runs = runs_of(
        tmp_path, f"{LAYERS}:ViTLike", own, "eager", "compile", direction=Direction.FORWARD_BACKWARD
    )
    assert [passed(run) for run in runs] == [True, True]


@pytest.mark.slow
def test_broken_code_compiles_in_pieces_and_says_where(tmp_path: Path) -> None:
    own = OwnCode(inputs="x=fp32[4,8]")
    eager, compiled = runs_of(tmp_path, f"{LAYERS}:Deciding", own, "eager", "compile")
    assert passed(eager)
    assert passed(compiled)
    assert compiled.compile is not None
    assert compiled.compile.graph_breaks == eager.graph.breaks


@pytest.mark.slow
def test_what_runs_between_compiled_graphs_is_a_launch_too(tmp_path: Path) -> None:
    chain, own = f"{FUNCTIONS}:uncompiled_between", OwnCode(inputs="x=fp32[4,8]")
    [run] = runs_of(tmp_path, chain, own, "compile")
    assert [launch.ops for launch in run.launches] == [("mul",), ("add",), ("mul2",)]
    assert passed(run)


@pytest.mark.slow
def test_launches_of_torchs_own_modules_have_their_ops(tmp_path: Path) -> None:
    chain = "torch.nn.modules.transformer:TransformerEncoderLayer"
    own = OwnCode(
        inputs="src=fp32[2,4,8]", init="d_model=8 nhead=2 dim_feedforward=16 batch_first=True",
        training=True,
    )  # fmt: skip
    [run] = runs_of(tmp_path, chain, own, "compile")
    told = {op for launch in run.launches for op in launch.ops}
    assert {"native_layer_norm", "native_layer_norm2", "addmm", "addmm2", "addmm3", "add3"} <= told
    [last] = [launch.ops for launch in run.launches if "native_layer_norm2" in launch.ops]
    assert last == ("native_dropout3", "add3", "native_layer_norm2")
