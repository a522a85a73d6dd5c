"""Fusion plans on a real GPU: each runs, its launches know their ops, its bytes are counted."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from torch import fx

from explorer.engine.grouping import inductor_grouping
from explorer.engine.internals import internal
from explorer.engine.measure.estimate import plan_peak_bytes
from explorer.engine.measure.memory import measure_peak
from explorer.engine.partition import PiecewiseCall, compute_nodes, split
from explorer.engine.pieces import PIECES
from explorer.engine.prepare import capture_chain, prepare, without_memory
from explorer.engine.session import Session
from explorer.engine.strategies import find_strategy
from explorer.model.legality import check
from explorer.model.run import Run
from explorer.model.strategies import plan_spec
from tests.gpu.plans import measure
from tests.gpu.scores import SCORES

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda:0")


def say(line: str) -> None:
    """A figure worth reading with ``pytest -s`` or ``-rP``."""
    sys.stdout.write(f"\n{line}")


@pytest.fixture(scope="module")
def swept(plans_of_scores: dict[str, Run]) -> dict[str, Run]:
    return plans_of_scores


def test_every_plan_runs_and_is_right(swept: dict[str, Run]) -> None:
    assert len(swept) == 8
    for plan, run in swept.items():
        assert run.error is None, (plan, run.error)
        assert run.strategy.plan == plan
        assert run.accuracy is not None
        assert run.accuracy.passed, plan
        assert run.timing is not None
        assert run.timing.cold is not None
        say(f"{plan:32} {run.timing.cold.median_us:9.1f} us, {len(run.launches)} launches")


def test_each_launch_knows_its_group_and_its_ops(swept: dict[str, Run]) -> None:
    for plan, run in swept.items():
        assert plan == "|".join("+".join(group.ops) for group in run.groups)
        for group in run.groups:
            carrying = [run.launches[i] for i in group.launches]
            computing = [launch for launch in carrying if not launch.is_helper]
            told = (plan, group.ops, [(launch.title, launch.kernel[:60]) for launch in carrying])
            assert computing, told
            assert {op for launch in computing for op in launch.ops} == set(group.ops), told
            # Each dropout has a seed, which a small kernel of its own draws.
            assert len(carrying) - len(computing) == ("dropout" in group.ops), told
        assert sum(len(group.launches) for group in run.groups) == len(run.launches)


def test_counted_bytes_are_those_of_the_kernels_made(swept: dict[str, Run]) -> None:
    for plan, run in swept.items():
        assert run.counters is not None
        assert run.counters.joined, run.counters.sentence
        for launch in run.launches:
            if launch.is_helper:
                continue
            modelled, counted = launch.bytes_written.modelled, launch.bytes_written.counted
            assert modelled is not None
            assert counted is not None
            say(f"{plan:32} {launch.title:24} wrote {counted / 1e6:8.1f} of {modelled / 1e6:8.1f}")
            assert counted == pytest.approx(modelled, rel=0.05), (plan, launch)
            read = launch.bytes_read
            assert read.modelled is not None
            assert read.counted is not None
            assert read.counted >= 0.95 * read.modelled, (plan, launch)


def test_no_plan_holds_more_than_was_estimated(swept: dict[str, Run]) -> None:
    for plan, run in swept.items():
        assert run.memory is not None
        assert run.memory.estimate_bytes is not None
        assert run.memory.peak_bytes <= run.memory.estimate_bytes, plan


def test_a_plan_that_ran_comes_back_without_a_compile(engine: Session) -> None:
    plan = "scale+mask+softmax|dropout"
    [first] = measure(engine, "attention-scores", [plan], **SCORES).values()
    started_s = time.perf_counter()
    prepared = prepare("attention-scores", SCORES, GPU)
    prepared_s = time.perf_counter() - started_s
    with closing(find_strategy(plan_spec(plan)).build(prepared)) as built:
        torch.cuda.synchronize()
        build_s = time.perf_counter() - started_s - prepared_s
        assert all(group.from_cache for group in built.groups)
    say(
        f"a plan that ran: {build_s:.3f} s; at first {first.compile and first.compile.first_call_s}"
    )
    assert build_s < 1.0
    [again] = measure(engine, "attention-scores", [plan], **SCORES).values()
    assert [launch.kernel for launch in again.launches] == [
        launch.kernel for launch in first.launches
    ]
    assert [launch.ops for launch in again.launches] == [launch.ops for launch in first.launches]


@pytest.mark.usefixtures("engine")
def test_how_inductor_would_group_takes_no_memory() -> None:
    prepared = without_memory(capture_chain("attention", {}, GPU))
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats(GPU)
    before = torch.cuda.memory_allocated(GPU)
    plan = inductor_grouping(prepared).plan
    assert plan.text == "qk|scale+mask+softmax+dropout|pv"
    assert check(prepared.graph, plan) is None
    assert torch.cuda.max_memory_allocated(GPU) - before < 1 << 20


@pytest.mark.parametrize(
    ("plan", "read", "written", "held"),
    [("each", 11, 7, 2), ("all", 4, 3, 0), ("decay+variance|root+correct+eps+update", 7, 3, 0)],
)
def test_adam_works_in_place(
    engine: Session, plan: str, read: int, written: int, held: int
) -> None:
    elements = 1 << 26
    tensor_bytes = elements * 4
    [run] = measure(engine, "adam", [plan], elements=elements, dtype="fp32").values()
    assert run.error is None
    assert run.accuracy is not None
    assert run.accuracy.passed
    assert len(run.launches) == len(run.groups)
    assert sum(launch.bytes_read.modelled or 0 for launch in run.launches) == read * tensor_bytes
    assert sum(launch.bytes_written.modelled or 0 for launch in run.launches) == (
        written * tensor_bytes
    )
    counted = sum(launch.bytes_written.counted or 0 for launch in run.launches)
    assert counted == pytest.approx(written * tensor_bytes, rel=0.05)
    assert run.memory is not None
    assert run.memory.peak_bytes == pytest.approx(held * tensor_bytes, abs=4 << 20)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("chain", ["residual-rmsnorm", "layernorm-gelu", "swiglu"])
def test_peaks_of_other_chains_are_below_their_estimates(chain: str) -> None:
    prepared = prepare(chain, {}, GPU)
    for preset in ("each", "all"):
        strategy = find_strategy(plan_spec(preset))
        assert strategy.plan_of is not None
        plan = strategy.plan_of(prepared.graph)
        assert plan is not None
        with closing(strategy.build(prepared)) as built:
            peak = measure_peak(built.call, device=GPU).peak_bytes
        assert peak <= plan_peak_bytes(prepared.graph, plan, on_cuda=True)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight


def layernorm_gelu(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, (x.shape[-1],), weight), approximate="tanh")


@pytest.mark.usefixtures("engine")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("function", [rms_norm, layernorm_gelu])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_forward_and_backward_run_in_pieces(
    function: Callable[..., torch.Tensor], size: int
) -> None:
    from torch._dynamo.backends.common import aot_autograd

    def compiler(module: fx.GraphModule, _inputs: Sequence[Any]) -> Any:
        nodes = compute_nodes(module)
        partition = split(module, [nodes[i : i + size] for i in range(0, len(nodes), size)])
        with internal("torch._guards:tracing")(None):
            calls = [PIECES.compiled(piece).call for piece in partition.pieces]
        run = PiecewiseCall(partition, calls)

        def boxed(values: list[Any]) -> Any:
            return run(*values)

        boxed._boxed_call = True  # type: ignore[attr-defined] # how torch asks for a list
        return boxed

    torch.manual_seed(0)
    x, weight = (
        torch.randn(shape, device=GPU, requires_grad=True) for shape in ((512, 1024), (1024,))
    )
    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=compiler, bw_compiler=compiler, decompositions={})
    compiled = torch.compile(function, backend=backend, dynamic=False)
    got, expected = compiled(x, weight), function(x, weight)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    upstream = torch.randn_like(expected)
    gradients = torch.autograd.grad(got, (x, weight), upstream)
    written = torch.autograd.grad(expected, (x, weight), upstream)
    torch.testing.assert_close(gradients, written, rtol=1e-3, atol=1e-3)
