"""Real modules that a GPU runs by operators of its own, with whatever transformers it has.

All the others, and what capturing makes of any of them, are seen by the tests on a CPU.
"""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.engine.own_code.errors import OwnCodeError
from explorer.engine.session import Session
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.run import Direction, Run
from tests.engine.own_code.real_modules import REAL_MODULES, RealModule

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("new_garbage_only")]

CHECKOUT = Path(__file__).parents[2]
FORWARD = {
    "LoopedLayers", "RunningMean", "Clipped", "SoftGate", "TransformerEncoderLayer",
    "MultiheadAttention", "LSTMCell", "GRU", "BatchNorm2d, training", "llama:LlamaRMSNorm",
    "llama:LlamaAttention", "gpt2:GPT2Attention", "convnext:ConvNextLayer",
    "whisper:WhisperAttention", "mamba:MambaMixer", "mixtral:MixtralSparseMoeBlock",
}  # fmt: skip
"""Recurrent cells, convolutions, norms over a batch, scans, attention of several makes, a choice of
experts, updates in place, graph breaks."""
RUN = [pytest.param(m, id=m.label) for m in REAL_MODULES if m.label in FORWARD]
REFUSED = [pytest.param(m, id=m.label) for m in REAL_MODULES if m.refused is not None]
TRAINED = [pytest.param(m, id=m.label) for m in REAL_MODULES if m.backward]


@pytest.fixture(autouse=True)
def _here_and_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named from the checkout's folder; nothing is asked of Hugging Face's hub."""
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def skip_if_absent(module: RealModule) -> None:
    """Skip a module that the installed release lacks, with that as the reason."""
    if not module.package:
        return
    where, _, name = module.chain.partition(":")
    package = pytest.importorskip(module.package)
    try:
        there = hasattr(importlib.import_module(where), name)
    except ModuleNotFoundError:
        there = False
    if not there:
        pytest.skip(f"{module.package} {package.__version__} has no {module.chain}")


def measure(
    engine: Session, module: RealModule, direction: Direction, *strategies: str
) -> list[Run]:
    """Runs in bf16, or in what the module's text names."""
    skip_if_absent(module)
    replies: list[Reply] = []
    request = RunRequest(
        chain=module.chain,
        own=module.own,
        direction=direction,
        strategies=strategies,
        device="cuda:0",
        timing_s=0.05,
        measure_ceilings=False,
    )
    engine.handle(request, replies.append)
    return [reply.run for reply in replies if isinstance(reply, RunFinished)]


def check(runs: list[Run]) -> None:
    for run in runs:
        spec = run.strategy.spec
        assert run.error is None, (spec, run.error)
        told = [(launch.title, launch.kernel[:60], launch.ops) for launch in run.launches]
        assert any(launch.ops for launch in run.launches), (spec, told, run.warnings)
        assert run.accuracy is not None, "\n".join((spec, *run.warnings))
        assert run.accuracy.passed, (spec, run.accuracy)


@pytest.mark.parametrize("module", RUN)
def test_it_runs_and_is_right(engine: Session, module: RealModule) -> None:
    runs = measure(engine, module, Direction.FORWARD, "eager", *module.also)
    check(runs)
    assert len(runs) == 1 + len(module.also)


def test_every_name_is_a_module_s() -> None:
    assert {module.label for module in REAL_MODULES} >= FORWARD


def test_weights_that_lie_in_one_buffer_are_told_apart(engine: Session) -> None:
    """cuDNN is given them one by one, and the buffer that torch laid them in at the first call."""
    gru = next(module for module in REAL_MODULES if module.label == "GRU")
    in_fp32 = replace(gru, inputs=gru.inputs.replace("dtype", "fp32"))
    [run] = measure(engine, in_fp32, Direction.FORWARD, "eager")
    check([run])
    read = {a.tensor: a.bytes_read for launch in run.launches for a in launch.accesses}
    weights = [t.id for t in run.graph.tensors if t.id.startswith(("weight", "bias"))]
    assert len(weights) == 4
    assert [name for name in weights if not read.get(name)] == [], read


@pytest.mark.parametrize("module", TRAINED)
def test_forward_and_backward_run_and_are_right(engine: Session, module: RealModule) -> None:
    [run] = measure(engine, module, Direction.FORWARD_BACKWARD, "eager")
    check([run])
    assert any(op.is_backward for op in run.graph.ops)


@pytest.mark.parametrize("module", REFUSED)
def test_its_own_line_is_told(engine: Session, module: RealModule) -> None:
    with pytest.raises(OwnCodeError) as raised:
        measure(engine, module, Direction.FORWARD, "eager")
    assert module.refused is not None
    assert module.refused in str(raised.value)
