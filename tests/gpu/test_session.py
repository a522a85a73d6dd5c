"""Whole requests on a real GPU: every strategy, its memory, its errors, what is left behind."""

import gc
import time

import pytest
import torch

from explorer.engine.measure.ceilings import measure_ceilings
from explorer.engine.measure.memory import graph_pool_bytes, measure_peak
from explorer.engine.prepare import prepare
from explorer.engine.session import Session
from explorer.engine.strategies import find_strategy
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.run import Run, Scalar
from tests.gpu.promises import complaints

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda:0")
SMALL: dict[str, Scalar] = {"batch": 1, "heads": 4, "seq_len": 1024}
# Autotuning of the two max-autotune modes takes most of a minute.
SPECS = ("eager", "compile", "compile:reduce-overhead", "cudagraph", "sdpa")


def measure(engine: Session, specs: tuple[str, ...], **settings: Scalar) -> dict[str, Run]:
    replies: list[Reply] = []
    request = RunRequest(
        chain="attention",
        parameters={**SMALL, **settings},
        strategies=specs,
        device="cuda:0",
        timing_s=0.2,
        measure_ceilings=False,
    )
    engine.handle(request, replies.append)
    return {r.run.strategy.spec: r.run for r in replies if isinstance(r, RunFinished)}


@pytest.fixture(scope="module")
def runs(engine: Session) -> dict[str, Run]:
    return measure(engine, SPECS)


@pytest.mark.parametrize("spec", SPECS)
def test_every_strategy_runs_and_is_right(runs: dict[str, Run], spec: str) -> None:
    run = runs[spec]
    assert complaints(run) == []
    assert run.accuracy is not None
    assert [check.passed for check in run.accuracy.distribution] == [True, True, True]
    assert run.timing is not None
    assert run.timing.cold is not None
    assert run.timing.host is not None
    assert run.timing.cold.n >= 5, run.timing
    assert run.clocks_before is not None
    assert run.clocks_after is not None


def test_the_back_end_of_sdpa_is_named_by_what_ran(runs: dict[str, Run]) -> None:
    backend = runs["sdpa"].strategy.backend
    kernels = " ".join(launch.kernel for launch in runs["sdpa"].launches).lower()
    signs = {
        "cuDNN": "cudnn",
        "FlashAttention": "flash",
        "memory-efficient attention": "fmha",
    }
    assert backend in signs
    assert signs[str(backend)] in kernels


@pytest.mark.usefixtures("engine")
def test_eagers_peak_is_its_estimate() -> None:
    prepared = prepare("attention", {}, GPU)
    built = find_strategy("eager").build(prepared)
    peak = measure_peak(built.call, device=GPU)
    # Masked, probs and dropped, and a byte an element of what was kept.
    assert peak.peak_bytes == pytest.approx(3.5 * (1 << 30), rel=0.02)
    assert peak.graph_pool_bytes is None


def test_a_graph_has_a_pool_and_it_is_given_back(runs: dict[str, Run]) -> None:
    for spec in ("cudagraph", "compile:reduce-overhead"):
        memory = runs[spec].memory
        assert memory is not None
        assert memory.graph_pool_bytes
    gc.collect()
    torch.cuda.empty_cache()
    assert graph_pool_bytes(GPU) == 0


def test_nothing_is_left_allocated(engine: Session) -> None:
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(GPU)
    measure(engine, ("eager", "cudagraph"))
    gc.collect()
    torch.cuda.empty_cache()
    # Workspaces of the matmul library stay, the chain's tensors do not.
    assert torch.cuda.memory_allocated(GPU) - before < 128 << 20


@pytest.mark.parametrize(("mask", "dtype"), [("causal", "fp16"), ("none", "fp32")])
def test_other_forms_of_the_chain_are_right_too(engine: Session, mask: str, dtype: str) -> None:
    for run in measure(engine, ("eager", "compile", "sdpa"), mask=mask, dtype=dtype).values():
        assert complaints(run) == []


def test_what_does_not_fit_is_refused_with_what_does(engine: Session) -> None:
    [run] = measure(engine, ("eager",), seq_len=1_048_576).values()
    assert run.error is not None
    assert "the largest size that fits is seq_len=" in run.error


def test_ceilings_are_plausible_and_measured_within_ten_seconds(engine: Session) -> None:

    device = next(a.device for a in engine.abilities().devices if a.device.id == "cuda:0")
    started_s = time.perf_counter()
    found = measure_ceilings(device)
    assert time.perf_counter() - started_s < 10
    assert found.memory_bytes_per_s > 1e11
    # Reads and copies come close to each other on any memory.
    assert 0.5 < found.read_bytes_per_s / found.copy_bytes_per_s < 2
    assert found.flops_per_s["bf16"] >= found.flops_per_s["tf32"] > found.flops_per_s["fp32"]
