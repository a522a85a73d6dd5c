"""Anybody's own code on a real GPU: captured, run under several strategies, and compared."""

from pathlib import Path

import pytest
import torch

import explorer
from explorer.engine.session import Session
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("new_garbage_only")]

MODULES = Path(__file__).parents[1] / "engine" / "own_code" / "modules"
LAYERS, FUNCTIONS = MODULES / "layers.py", MODULES / "functions.py"


def measure(
    engine: Session,
    chain: str,
    own: OwnCode,
    *strategies: str,
    direction: Direction = Direction.FORWARD,
) -> list[Run]:
    replies: list[Reply] = []
    request = RunRequest(
        chain=chain,
        own=own,
        strategies=strategies,
        device="cuda:0",
        timing_s=0.1,
        measure_ceilings=False,
        direction=direction,
    )
    engine.handle(request, replies.append)
    runs = [reply.run for reply in replies if isinstance(reply, RunFinished)]
    assert [run.error for run in runs] == [None] * len(strategies)
    wrong = [run.accuracy for run in runs if run.accuracy is None or not run.accuracy.passed]
    assert wrong == [], [run.warnings for run in runs]
    return runs


@pytest.mark.parametrize(
    ("chain", "inputs", "init", "training"),
    [
        (f"{FUNCTIONS}:scores", "x=bf16[4096,1024] w=bf16[1024,1024] causal=True", "", False),
        (f"{LAYERS}:T5LikeNorm", "x=bf16[4096,1024]", "width=1024", False),
        (f"{LAYERS}:Running", "x=fp32[4096,1024]", "width=1024", True),
        (f"{LAYERS}:Dropping", "x=bf16[4096,1024]", "width=1024", True),
        (f"{LAYERS}:ConvNeXtLike", "x=fp32[2,64,32,32]", "channels=64", False),
        (f"{LAYERS}:ViTLike", "x=bf16[4,256,512]", "width=512 heads=8", False),
    ],
    ids=["scores", "T5LikeNorm", "Running", "Dropping", "ConvNeXtLike", "ViTLike"],
)
def test_own_code_runs_like_a_built_in_chain(
    engine: Session, chain: str, inputs: str, init: str, training: bool
) -> None:
    own = OwnCode(inputs=inputs, init=init, training=training)
    runs = measure(engine, chain, own, "eager", "compile", "cudagraph")
    eager, compiled, graph = runs
    assert eager.launches
    assert {op for launch in eager.launches for op in launch.ops} <= {
        op.name for op in eager.graph.ops
    }
    assert any(launch.ops for launch in compiled.launches), compiled.launches
    assert graph.memory is not None
    assert graph.memory.graph_pool_bytes


def test_own_code_runs_under_a_plan(engine: Session) -> None:
    own = OwnCode(inputs="x=bf16[4096,1024]", init="width=1024")
    [planned] = measure(engine, f"{LAYERS}:T5LikeNorm", own, "plan:all")
    assert {op for launch in planned.launches for op in launch.ops} == {
        op.name for op in planned.graph.ops
    }, planned.launches


def test_own_code_trains(engine: Session) -> None:
    own = OwnCode(inputs="x=bf16[4,256,512]", init="width=512 heads=8", training=True)
    runs = measure(
        engine, f"{LAYERS}:ViTLike", own, "eager", "compile", direction=Direction.FORWARD_BACKWARD
    )
    for run in runs:
        backward = {op.name for op in run.graph.ops if op.is_backward}
        assert backward & {op for launch in run.launches for op in launch.ops}


def test_broken_code_runs_in_pieces(engine: Session) -> None:
    own = OwnCode(inputs="x=fp32[1024,8]")
    eager, compiled = measure(engine, f"{LAYERS}:Deciding", own, "eager", "compile")
    assert len(eager.graph.breaks) == 2
    assert compiled.compile is not None
    assert compiled.compile.graph_breaks == eager.graph.breaks


def test_a_module_is_measured_where_it_is(engine: Session) -> None:
    module = torch.nn.Linear(512, 512, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(1024, 512, device="cuda", dtype=torch.bfloat16)
    runs = explorer.measure(module, x, ("eager", "compile"), timing_s=0.1)
    assert [run.error for run in runs] == [None, None]
    assert [run.device.id for run in runs] == ["cuda:0", "cuda:0"]
    assert all(run.accuracy is not None and run.accuracy.passed for run in runs)
