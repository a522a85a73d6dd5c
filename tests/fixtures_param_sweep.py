"""Hand-made parameter sweeps for tests: shaped like real ones, but measured by nobody.

A kernel takes the time of its bytes at :data:`BYTES_PER_US` or of one launch, whichever is longer,
so that small sizes are launch-bound, as on a real GPU. Test data only: nothing here is shown to a
user.
"""

from collections.abc import Sequence
from dataclasses import replace

from explorer.model.fusion import plan_of
from explorer.model.opgraph import OpGraph
from explorer.model.planned import PlannedKernel, planned_kernels
from explorer.model.run import (
    Accuracy,
    Bytes,
    ChainInfo,
    Clock,
    Launch,
    Memory,
    Run,
    Samples,
    Scalar,
    StrategyInfo,
    Timing,
)
from explorer.model.tensor import TensorRole
from tests.fixtures_runs import GPU_VERSIONS, H200
from tests.fixtures_sweep import long_graph, scores_graph

BYTES_PER_US = 4_000_000
"""4 TB/s."""
LAUNCH_US = 4.0
"""Least time from one launch to the next."""
GUARDS_US = 20.0
"""What torch.compile's guards cost the host once a call."""

EAGER = StrategyInfo(name="eager", title="eager")
COMPILE = StrategyInfo(name="compile", title="torch.compile")
NO_ROOM = "eager needs about 190 GB for this size and 149 GB are free on cuda:0."


def k_sweep(values: Sequence[int] = (1, 2, 4, 8, 16, 32), elements: int = 1 << 26) -> list[Run]:
    """Elementwise ops in a row: eager's traffic grows with k, torch.compile's does not."""
    runs = []
    for k in values:
        graph = sized(long_graph(k), 2 * elements)
        parameters: dict[str, Scalar] = {"elements": elements, "dtype": "bf16", "k": k}
        runs += _pair("elementwise", "Elementwise ops in a row", graph, parameters, "k")
    return runs


def seq_len_sweep(values: Sequence[int] = (256, 512, 1024, 2048, 4096, 8192)) -> list[Run]:
    """Attention scores: launch-bound below, and eager out of memory at the largest of several."""
    runs = []
    for seq_len in values:
        graph = sized(scores_graph(), 4 * seq_len * seq_len * 2)
        parameters: dict[str, Scalar] = {
            "batch": 1, "heads": 4, "seq_len": seq_len, "dtype": "bf16", "dropout": 0.1,
        }  # fmt: skip
        runs += _pair("attention-scores", "Attention scores", graph, parameters, "seq_len")
    if len(values) > 1:
        runs[-2] = failed(runs[-2], NO_ROOM)
    return runs


def variant_sweep() -> list[Run]:
    """Two variants of one chain side by side, the second with half the traffic."""
    runs = []
    for variant, size in (("three", 1 << 28), ("one", 1 << 27)):
        parameters: dict[str, Scalar] = {"rows": 16384, "dtype": "bf16", "variant": variant}
        graph = sized(long_graph(4), size)
        runs += _pair("elementwise", "Elementwise", graph, parameters, "variant")
    return runs


def failed(run: Run, sentence: str) -> Run:
    """The record of a point that did not come about."""
    return replace(
        run, tensors=(), launches=(), timing=None, memory=None, accuracy=None, error=sentence
    )


def wrong(run: Run) -> Run:
    """The run with a check of values that failed."""
    assert run.accuracy is not None
    return replace(run, accuracy=replace(run.accuracy, passed=False, max_abs_error=0.4))


def timed(run: Run, median_us: float, spread: float = 0.004) -> Run:
    """The run with another time; ``spread`` is the half width of its quartiles as a share."""
    assert run.timing is not None
    return replace(run, timing=replace(run.timing, cold=samples(median_us, spread)))


def sized(graph: OpGraph, n_bytes: int) -> OpGraph:
    """The graph with that many bytes in every tensor."""
    return OpGraph(
        ops=graph.ops, tensors=tuple(replace(tensor, n_bytes=n_bytes) for tensor in graph.tensors)
    )


def samples(median_us: float, spread: float = 0.004, clock: Clock = Clock.EVENTS) -> Samples:
    """Five times around a median."""
    values = tuple(median_us * (1 + spread * k) for k in (-2, -1, 0, 1, 2))
    return Samples(
        samples_us=values, median_us=median_us, q1_us=values[1], q3_us=values[3], n=5, clock=clock
    )


def _pair(
    chain: str, title: str, graph: OpGraph, parameters: dict[str, Scalar], swept: str
) -> list[Run]:
    """Eager with a kernel an op, and torch.compile with one kernel for all."""
    ops = tuple(op.name for op in graph.ops)
    info = ChainInfo(name=chain, title=title, parameters=parameters, dtype="bf16")
    each = planned_kernels(graph, plan_of(ops, ()))
    whole = planned_kernels(graph, plan_of(ops, (ops,)))
    return [
        _run(info, EAGER, graph, each, swept, guards_us=0.0),
        _run(info, COMPILE, graph, whole, swept, guards_us=GUARDS_US),
    ]


def _run(
    info: ChainInfo,
    strategy: StrategyInfo,
    graph: OpGraph,
    kernels: Sequence[PlannedKernel],
    swept: str,
    guards_us: float,
) -> Run:
    launches: list[Launch] = []
    start_us = 0.0
    for kernel in kernels:
        duration_us = max(2.0, (kernel.bytes_read + kernel.bytes_written) / BYTES_PER_US)
        launches.append(
            Launch(
                kernel="fused_" + "_".join(kernel.ops), title="+".join(kernel.ops),
                ops=kernel.ops, accesses=kernel.accesses, stays_on_chip=kernel.stays_on_chip,
                start_us=start_us, duration_us=duration_us, stream=7,
                bytes_read=Bytes(modelled=kernel.bytes_read, counted=kernel.bytes_read),
                bytes_written=Bytes(modelled=kernel.bytes_written, counted=kernel.bytes_written),
            )
        )  # fmt: skip
        start_us += duration_us + 1.0
    kernels_us = sum(launch.duration_us or 0.0 for launch in launches)
    host_us = LAUNCH_US * len(launches) + guards_us
    touched = {access.tensor for launch in launches for access in launch.accesses}
    held = sum(t.n_bytes for t in graph.tensors if t.role is TensorRole.INPUT)
    return Run(
        id=f"{info.name}-{strategy.spec}-{swept}-{info.parameters[swept]}",
        chain=info,
        strategy=strategy,
        device=H200,
        versions=GPU_VERSIONS,
        seed=0,
        created_at="2026-01-01T12:00:00+00:00",
        graph=graph,
        tensors=tuple(tensor for tensor in graph.tensors if tensor.id in touched),
        launches=tuple(launches),
        timing=Timing(
            cold=samples(max(kernels_us, host_us)),
            host=samples(host_us, clock=Clock.HOST),
            launch_total_us=kernels_us,
            trace_total_us=start_us - 1.0,
        ),
        memory=Memory(
            peak_bytes=graph.tensors[0].n_bytes * min(len(launches), 2), inputs_bytes=held
        ),
        accuracy=Accuracy(
            max_abs_error=0.0039, rms_error=0.0004, reference_max=1.0, eager_max_abs_error=0.0039,
            coverage=0.25, passed=True,
        ),
        swept=swept,
    )  # fmt: skip
