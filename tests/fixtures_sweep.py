"""Hand-made sweeps for tests: every plan of attention-scores, as a device might measure them.

Times and counted bytes a kernel are those of a first proof on an NVIDIA H200, rounded; all else
(quartiles, peaks, launch shapes) is made up. Test data only: nothing here is shown to a user.
"""

from collections.abc import Sequence
from dataclasses import replace

from explorer.model.fusion import FusionPlan, plan_of, sweep_plans
from explorer.model.opgraph import Op, OpGraph, OpKind
from explorer.model.planned import planned_kernels
from explorer.model.run import (
    Accuracy,
    Bytes,
    ChainInfo,
    Clock,
    Counters,
    FusionGroup,
    Launch,
    Memory,
    Run,
    Samples,
    StrategyInfo,
    Timing,
)
from explorer.model.tensor import Tensor, TensorRole
from tests.fixtures_runs import GPU_VERSIONS, H200, MB

SQUARE = (2, 16, 4096, 4096)
SQUARE_BYTES = 2 * 16 * 4096 * 4096 * 2
OPS = ("scale", "mask", "softmax", "dropout")

_ROWS = (
    ("scale", "aten.mul.Tensor", OpKind.ELEMENTWISE, ("scores",), ("scaled",)),
    ("mask", "aten.add.Tensor", OpKind.ELEMENTWISE, ("scaled", "bias"), ("masked",)),
    ("softmax", "aten._softmax.default", OpKind.REDUCTION, ("masked",), ("probs",)),
    ("dropout", "aten.native_dropout.default", OpKind.RANDOM, ("probs",), ("out",)),
)

MEASURED: dict[str, tuple[tuple[float, float, float], ...]] = {
    # Plan: microseconds, megabytes read and megabytes written of each of its kernels.
    "scale|mask|softmax|dropout": (
        (497, 1074, 1077), (735, 2147, 1079), (907, 1074, 1070), (1658, 1074, 1075),
    ),
    "scale+mask|softmax|dropout": ((731, 2147, 1084), (907, 1074, 1070), (1658, 1074, 1075)),
    "scale|mask+softmax|dropout": ((497, 1074, 1078), (1001, 2147, 1083), (1658, 1074, 1069)),
    "scale|mask|softmax+dropout": ((499, 1074, 1077), (732, 2147, 1079), (2596, 1074, 3211)),
    "scale+mask+softmax|dropout": ((1001, 2147, 1087), (1660, 1074, 1069)),
    "scale+mask|softmax+dropout": ((733, 2147, 1084), (2599, 1074, 3210)),
    "scale|mask+softmax+dropout": ((500, 1074, 1077), (2820, 2147, 3218)),
    "scale+mask+softmax+dropout": ((2820, 2147, 3222),),
}  # fmt: skip
EAGER = ((500.0, 1074, 1076), (1410.0, 2147, 1086), (1940.0, 1074, 1067), (870.0, 1074, 1606))


def scores_graph() -> OpGraph:
    """The op graph of attention-scores: four ops in one order, three links."""
    roles = {"scores": TensorRole.INPUT, "out": TensorRole.OUTPUT}
    tensors = [
        Tensor(
            id=n, name=n, shape=SQUARE, dtype="bf16", n_bytes=SQUARE_BYTES,
            role=roles.get(n, TensorRole.INTERMEDIATE),
        )
        for n in ("scores", "scaled", "masked", "probs", "out")
    ]  # fmt: skip
    bias = Tensor(
        id="bias", name="bias", shape=(4096, 4096), dtype="bf16", n_bytes=4096 * 4096 * 2,
        role=TensorRole.INPUT,
    )  # fmt: skip
    ops = tuple(
        Op(name=name, aten=aten, kind=kind, reads=reads, writes=writes, flops=SQUARE_BYTES // 2)
        for name, aten, kind, reads, writes in _ROWS
    )
    return OpGraph(ops=ops, tensors=(*tensors, bias))


def plan_run(text: str, *, counted: bool = True) -> Run:
    """A plan of attention-scores by its whole text, one of :data:`MEASURED`."""
    graph = scores_graph()
    plan = plan_of(OPS, [group.split("+") for group in text.split("|")])
    strategy = StrategyInfo(name="plan", option=text, title=text, plan=text)
    return _run(f"plan-{text}", graph, strategy, plan, MEASURED[text], counted=counted)


def eager_scores() -> Run:
    """The chain as written."""
    plan = plan_of(OPS, ())
    strategy = StrategyInfo(name="eager", title="eager")
    return replace(_run("eager", scores_graph(), strategy, plan, EAGER), groups=())


def compiled_scores() -> Run:
    """What Inductor makes of the whole: one kernel."""
    plan = plan_of(OPS, (OPS,))
    strategy = StrategyInfo(name="compile", title="torch.compile")
    figures = ((2812.0, 2147.0, 3222.0),)
    return replace(_run("compile", scores_graph(), strategy, plan, figures), groups=())


def scores_sweep(*, counted: bool = True) -> tuple[Run, ...]:
    """Eager, `torch.compile` and all eight plans, in the order in which a sweep runs them."""
    plans = sweep_plans(scores_graph(), "attention-scores")
    runs = [plan_run(plan.text, counted=counted) for plan in plans]
    return (eager_scores(), compiled_scores(), *runs)


def broken(run: Run, sentence: str = "The worker ended with signal 11.") -> Run:
    """The record of a run that did not come about."""
    return replace(
        run, tensors=(), launches=(), groups=(), timing=None, memory=None, accuracy=None,
        counters=None, error=sentence, strategy=replace(run.strategy, plan=None),
    )  # fmt: skip


def wrong(run: Run) -> Run:
    """The run with a check of values that failed."""
    assert run.accuracy is not None
    accuracy = replace(run.accuracy, passed=False, max_abs_error=0.4)
    return replace(run, accuracy=accuracy)


def timed(run: Run, median_us: float, spread: float = 0.004) -> Run:
    """The run with another time; ``spread`` is the half width of its quartiles as a share."""
    return replace(run, timing=Timing(cold=_samples(median_us, spread)))


def many_plans(n_links: int = 8) -> tuple[Run, ...]:
    """A sweep of a long elementwise chain with invented figures, for load only."""
    graph = long_graph(n_links + 1)
    runs = []
    for i, plan in enumerate(sweep_plans(graph, "elementwise")):
        n_kernels = len(plan.groups)
        n_bytes = 2 * SQUARE_BYTES / MB
        figures = [
            (270 + 31 * ((i * 7919 + k * 104_729) % 17), n_bytes / 2, n_bytes / 2)
            for k in range(n_kernels)
        ]
        strategy = StrategyInfo(name="plan", option=plan.text, title=plan.text, plan=plan.text)
        runs.append(_run(f"many-{i}", graph, strategy, plan, figures))
    return tuple(runs)


def long_graph(n_ops: int) -> OpGraph:
    """A long elementwise chain."""
    names = ["x", *(f"h{i + 1}" for i in range(n_ops - 1)), "y"]
    roles = {"x": TensorRole.INPUT, "y": TensorRole.OUTPUT}
    tensors = tuple(
        Tensor(
            id=n, name=n, shape=SQUARE, dtype="bf16", n_bytes=SQUARE_BYTES,
            role=roles.get(n, TensorRole.INTERMEDIATE),
        )
        for n in names
    )  # fmt: skip
    ops = tuple(
        Op(
            name=f"op{i + 1}", aten="aten.mul.Tensor", kind=OpKind.ELEMENTWISE,
            reads=(names[i],), writes=(names[i + 1],), flops=SQUARE_BYTES // 2,
        )
        for i in range(n_ops)
    )  # fmt: skip
    return OpGraph(ops=ops, tensors=tensors)


def _run(
    run_id: str,
    graph: OpGraph,
    strategy: StrategyInfo,
    plan: FusionPlan,
    figures: Sequence[tuple[float, float, float]],
    *,
    counted: bool = True,
) -> Run:
    kernels = planned_kernels(graph, plan)
    launches: list[Launch] = []
    start_us = 0.0
    for kernel, (us, read, written) in zip(kernels, figures, strict=True):
        launches.append(
            Launch(
                kernel="triton_fused_" + "_".join(kernel.ops), title="+".join(kernel.ops),
                ops=kernel.ops, accesses=kernel.accesses, stays_on_chip=kernel.stays_on_chip,
                start_us=start_us, duration_us=us, stream=7,
                bytes_read=Bytes(
                    planned=kernel.bytes_read, modelled=kernel.bytes_read,
                    counted=round(read * MB) if counted else None,
                ),
                bytes_written=Bytes(
                    planned=kernel.bytes_written, modelled=kernel.bytes_written,
                    counted=round(written * MB) if counted else None,
                ),
            )
        )  # fmt: skip
        start_us += us + 1.5
    total_us = sum(us for us, _, _ in figures) + 4.0 * len(figures)
    touched = {access.tensor for launch in launches for access in launch.accesses}
    return Run(
        id=run_id,
        chain=ChainInfo(
            name="attention-scores" if graph.ops[0].name == "scale" else "elementwise",
            title="Attention scores" if graph.ops[0].name == "scale" else "Elementwise",
            parameters={"batch": 2, "heads": 16, "seq_len": 4096, "dtype": "bf16", "dropout": 0.1},
            dtype="bf16",
        ),
        strategy=strategy,
        device=H200,
        versions=GPU_VERSIONS,
        seed=0,
        created_at="2026-01-01T12:00:00+00:00",
        graph=graph,
        tensors=tuple(t for t in graph.tensors if t.id in touched),
        launches=tuple(launches),
        groups=tuple(
            FusionGroup(
                ops=kernel.ops, bytes_read=kernel.bytes_read, bytes_written=kernel.bytes_written,
                launches=(i,),
            )
            for i, kernel in enumerate(kernels)
        ),
        timing=Timing(cold=_samples(total_us, 0.004)),
        memory=Memory(
            peak_bytes=SQUARE_BYTES * min(len(figures), 2), inputs_bytes=SQUARE_BYTES + 34 * MB
        ),
        accuracy=Accuracy(
            max_abs_error=0.0039, rms_error=0.0004, reference_max=1.0, eager_max_abs_error=0.0039,
            coverage=0.25, passed=True,
        ),
        counters=Counters(source="CUPTI range profiler", joined=True) if counted else None,
    )  # fmt: skip


def _samples(median_us: float, spread: float) -> Samples:
    values = tuple(median_us * (1 + spread * k) for k in (-2, -1, 0, 1, 2))
    return Samples(
        samples_us=values, median_us=median_us, q1_us=values[1], q3_us=values[3], n=5,
        clock=Clock.EVENTS,
    )  # fmt: skip
