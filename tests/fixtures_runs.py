"""Hand-made runs for tests: shaped like real ones, but measured by nobody.

Sizes follow from the shapes; the times and counted bytes of the H200-like runs mimic the order
of magnitude of a real device, so that a picture drawn from them looks as one will. They are test
data only: nothing here is shown to a user.
"""

from dataclasses import replace
from typing import TypedDict

from explorer.model.device import Ceilings, Clocks, Device, DeviceKind, Versions
from explorer.model.opgraph import Op, OpGraph, OpKind
from explorer.model.run import (
    Access,
    Accuracy,
    Bytes,
    ChainInfo,
    Clock,
    Counters,
    DistributionCheck,
    Launch,
    LoopNest,
    Memory,
    Run,
    Samples,
    StrategyInfo,
    Timing,
)
from explorer.model.tensor import Tensor, TensorRole

MB = 1_000_000

H200 = Device(
    id="cuda:0",
    name="NVIDIA H200",
    kind=DeviceKind.CUDA,
    memory_bytes=150_000 * MB,
    free_bytes=149_000 * MB,
    l2_bytes=62_914_560,
    sm_count=132,
    driver="580.0",
    ceilings=Ceilings(
        copy_bytes_per_s=4.276e12,
        read_bytes_per_s=4.192e12,
        write_bytes_per_s=3.388e12,
        flops_per_s={"bf16": 684e12},
        measured_at="2026-01-01T00:00:00+00:00",
    ),
)

CPU = Device(
    id="cpu",
    name="Two-core test processor",
    kind=DeviceKind.CPU,
    memory_bytes=8_000 * MB,
    free_bytes=6_000 * MB,
    l2_bytes=32 * 1024 * 1024,
    sm_count=2,
)

GPU_VERSIONS = Versions(
    explorer="0.1.0", python="3.12.3", torch="2.11.0", triton="3.6.0", cuda="13.0", cupti="13.0"
)
CPU_VERSIONS = Versions(explorer="0.1.0", python="3.11.7", torch="2.13.0")

_OP_ROWS = (
    ("qk", "aten.bmm.default", OpKind.MATMUL, ("q", "k"), ("scores",), "q · kᵀ"),
    ("scale", "aten.mul.Tensor", OpKind.ELEMENTWISE, ("scores",), ("scaled",), "× 1/√d"),
    ("mask", "aten.add.Tensor", OpKind.ELEMENTWISE, ("scaled", "mask"), ("masked",), "+ mask"),
    ("softmax", "aten._softmax.default", OpKind.REDUCTION, ("masked",), ("probs",), "over keys"),
    ("dropout", "aten.native_dropout.default", OpKind.RANDOM, ("probs",), ("dropped", "keep"), "p"),
    ("pv", "aten.bmm.default", OpKind.MATMUL, ("dropped", "v"), ("out",), "p · v"),
)


def attention_graph(batch: int, heads: int, seq_len: int, head_dim: int, dtype: str) -> OpGraph:
    """The op graph of the attention chain with an additive mask and dropout."""
    size = {"bf16": 2, "fp32": 4}[dtype]
    rows = (batch * heads, seq_len, head_dim)
    square = (batch * heads, seq_len, seq_len)
    row_bytes = batch * heads * seq_len * head_dim * size
    square_bytes = batch * heads * seq_len * seq_len * size
    inputs = [
        Tensor(id=n, name=n, shape=rows, dtype=dtype, n_bytes=row_bytes, role=TensorRole.INPUT)
        for n in ("q", "k", "v")
    ]
    mask = Tensor(
        id="mask", name="mask", shape=(seq_len, seq_len), dtype=dtype,
        n_bytes=seq_len * seq_len * size, role=TensorRole.INPUT,
    )  # fmt: skip
    middle = [
        Tensor(
            id=n, name=n, shape=square, dtype=dtype, n_bytes=square_bytes,
            role=TensorRole.INTERMEDIATE,
        )
        for n in ("scores", "scaled", "masked", "probs", "dropped")
    ]  # fmt: skip
    keep = Tensor(
        id="keep", name="keep", shape=square, dtype="bool", n_bytes=square_bytes // size,
        role=TensorRole.INTERMEDIATE,
    )  # fmt: skip
    out = replace(inputs[0], id="out", name="out", role=TensorRole.OUTPUT)
    square_flops = square_bytes // size
    ops = tuple(
        Op(
            name=name, aten=aten, kind=kind, reads=reads, writes=writes, detail=detail,
            flops=2 * square_flops * head_dim if kind is OpKind.MATMUL else square_flops,
        )
        for name, aten, kind, reads, writes, detail in _OP_ROWS
    )  # fmt: skip
    return OpGraph(ops=ops, tensors=(*inputs, mask, *middle, keep, out))


GPU_GRAPH = attention_graph(2, 16, 4096, 64, "bf16")
CPU_GRAPH = attention_graph(1, 4, 1024, 64, "fp32")


def _accesses(graph: OpGraph, reads: tuple[str, ...], writes: tuple[str, ...]) -> list[Access]:
    return [Access(tensor=t, bytes_read=graph.tensor(t).n_bytes) for t in reads] + [
        Access(tensor=t, bytes_written=graph.tensor(t).n_bytes) for t in writes
    ]


class _Traffic(TypedDict):
    bytes_read: Bytes
    bytes_written: Bytes


def _traffic(accesses: list[Access], counted_mb: tuple[float, float] | None) -> _Traffic:
    read = sum(access.bytes_read for access in accesses)
    written = sum(access.bytes_written for access in accesses)
    counted = (None, None) if counted_mb is None else [round(x * MB) for x in counted_mb]
    return {
        "bytes_read": Bytes(planned=read, modelled=read, counted=counted[0]),
        "bytes_written": Bytes(planned=written, modelled=written, counted=counted[1]),
    }


def _samples(median_us: float, clock: Clock = Clock.EVENTS) -> Samples:
    spread = median_us * 0.004
    values = tuple(median_us + spread * k for k in (-2, -1, 0, 1, 2))
    return Samples(
        samples_us=values, median_us=median_us, q1_us=values[1], q3_us=values[3], n=5, clock=clock
    )


def _timing(launches: tuple[Launch, ...], event_us: float) -> Timing:
    last = launches[-1]
    return Timing(
        cold=_samples(event_us),
        warm=_samples(event_us * 0.99),
        host=_samples(60.0, Clock.HOST),
        trace_total_us=(last.start_us or 0) + (last.duration_us or 0),
        launch_total_us=sum(launch.duration_us or 0 for launch in launches),
        clocks=(Clocks(sm_mhz=1980, memory_mhz=3201, temperature_c=41, power_w=420.0),),
    )


def _placed(launches: list[Launch], gap_us: float) -> tuple[Launch, ...]:
    """Give each launch its start: one after the other with the same gap between."""
    start_us = 0.0
    placed = []
    for launch in launches:
        placed.append(replace(launch, start_us=start_us))
        start_us += (launch.duration_us or 0) + gap_us
    return tuple(placed)


def _gpu_run(
    run_id: str,
    strategy: StrategyInfo,
    launches: tuple[Launch, ...],
    event_us: float,
    extra: tuple[Tensor, ...] = (),
) -> Run:
    graph = GPU_GRAPH
    touched = {access.tensor for launch in launches for access in launch.accesses}
    return Run(
        id=run_id,
        chain=ChainInfo(
            name="attention",
            title="Attention, as in the textbook",
            parameters={
                "batch": 2, "heads": 16, "seq_len": 4096, "head_dim": 64, "dtype": "bf16",
                "dropout": 0.1, "mask": "additive",
            },
            dtype="bf16",
        ),
        strategy=strategy,
        device=H200,
        versions=GPU_VERSIONS,
        seed=0,
        created_at="2026-01-01T12:00:00+00:00",
        graph=graph,
        tensors=tuple(t for t in (*graph.tensors, *extra) if t.id in touched),
        launches=launches,
        timing=_timing(launches, event_us),
        memory=Memory(
            peak_bytes=3_238 * MB, inputs_bytes=84 * MB, intermediates=5,
            intermediate_bytes=5_906 * MB,
        ),
        accuracy=Accuracy(
            max_abs_error=0.0039, rms_error=0.0004, reference_max=1.2, eager_max_abs_error=0.0039,
            coverage=0.25, passed=True,
        ),
        counters=Counters(
            source="CUPTI range profiler", cache_policy="as the launch before left it",
            joined=True, sentence="Counted per launch in 0.9 s.", passes=1, seconds=0.9,
        ),
    )  # fmt: skip


def eager_attention(run_id: str = "eager") -> Run:
    """Six kernels on an H200-like device; the broadcast mask is read again for every head."""
    #        kernel, title, us, counted read and written in MB, requested of L2 beyond that in MB
    rows = (
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopB_TNT", "matmul", 319.0, 34.4, 1047.2, 1074.0),
        ("vectorized_elementwise_kernel<4, MulScalar>", "mul", 500.0, 1074.1, 1076.0, 0.0),
        ("elementwise_kernel<128, 4, CUDAFunctor_add>", "add", 1410.0, 2147.4, 1086.0, 0.0),
        ("cunn_SoftMaxForwardGmem<8, BFloat16>", "softmax", 1940.0, 1074.0, 1067.0, 1074.0),
        ("fused_dropout_kernel_vec<BFloat16, 4>", "dropout", 870.0, 1074.2, 1606.0, 0.0),
        ("nvjet_tst_64x64_64x16_4x1_v_bz_TNT", "matmul", 290.0, 1091.0, 33.0, 268.0),
    )
    launches = []
    for op, (kernel, title, us, read, written, served) in zip(GPU_GRAPH.ops, rows, strict=True):
        accesses = _accesses(GPU_GRAPH, op.reads, op.writes)
        launches.append(
            Launch(
                kernel=kernel, title=title, ops=(op.name,), accesses=tuple(accesses),
                duration_us=us, stream=7,
                l2_bytes_requested=round((read + served + written) * MB), grid=(65536, 1, 1),
                block=(256, 1, 1), registers=32, shared_bytes=0,
                **_traffic(accesses, (read, written)),
            )
        )  # fmt: skip
    placed = _placed(launches, 1.6)
    return _gpu_run(run_id, StrategyInfo(name="eager", title="Eager"), placed, 5350.0)


def compiled_attention(run_id: str = "compile") -> Run:
    """One fused kernel between the two matmuls, with the random numbers it keeps in memory."""
    square = GPU_GRAPH.tensor("scores")
    seeds = Tensor(
        id="seeds", name="seeds", shape=(1,), dtype="i64", n_bytes=8, role=TensorRole.WORKSPACE
    )
    random = Tensor(
        id="rand", name="rand", shape=square.shape, dtype="fp32", n_bytes=2 * square.n_bytes,
        role=TensorRole.WORKSPACE,
    )  # fmt: skip
    extended = replace(GPU_GRAPH, tensors=(*GPU_GRAPH.tensors, seeds, random))
    fused = "triton_red_fused__softmax_add_mul_native_dropout_0"
    rows: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
        ("distribution_elementwise_grid_stride", "seed", (), (), ("seeds",)),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopB_TNT", "matmul", ("qk",), ("q", "k"), ("scores",)),
        (fused, "scale+mask+softmax+dropout", ("scale", "mask", "softmax", "dropout"),
         ("scores", "mask", "seeds"), ("rand", "dropped")),
        ("nvjet_tst_64x64_64x16_4x1_v_bz_TNT", "matmul", ("pv",), ("dropped", "v"), ("out",)),
    )  # fmt: skip
    figures = (
        (2.1, 0.004, 0.0, 0.1),
        (319.0, 34.4, 1052.0, 1074.0),
        (3190.0, 2147.9, 3221.0, 5200.0),
        (290.0, 1091.0, 33.0, 268.0),
    )
    launches = []
    for (kernel, title, ops, reads, writes), (us, read, written, served) in zip(
        rows, figures, strict=True
    ):
        accesses = _accesses(extended, reads, writes)
        launches.append(
            Launch(
                kernel=kernel, title=title, ops=ops, accesses=tuple(accesses), duration_us=us,
                stays_on_chip=("scaled", "masked", "probs") if len(ops) > 1 else (),
                l2_bytes_requested=round((read + served + written) * MB),
                is_helper=not ops, stream=7, grid=(131072, 1, 1), block=(256, 1, 1),
                registers=40, shared_bytes=0, code="fused_0" if len(ops) > 1 else None,
                **_traffic(accesses, (read, written)),
            )
        )  # fmt: skip
    placed = _placed(launches, 1.4)
    strategy = StrategyInfo(name="compile", title="torch.compile")
    run = _gpu_run(run_id, strategy, placed, 3812.0, (seeds, random))
    return replace(run, code={"fused_0": "# generated by Inductor\n"})


def sdpa_attention(run_id: str = "sdpa") -> Run:
    """The whole chain in one kernel: hardly any traffic to memory, much served by L2."""
    accesses = _accesses(GPU_GRAPH, ("q", "k", "v", "mask"), ("out",))
    launch = Launch(
        kernel="cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16",
        title="sdpa (cuDNN)",
        ops=("qk", "scale", "mask", "softmax", "dropout", "pv"),
        accesses=tuple(accesses),
        start_us=0.0,
        duration_us=1128.0,
        stays_on_chip=("scores", "scaled", "masked", "probs", "dropped", "keep"),
        l2_bytes_requested=2_327 * MB,
        grid=(32, 32, 1),
        block=(384, 1, 1),
        registers=168,
        shared_bytes=229_376,
        **_traffic(accesses, (101.4, 16.9)),
    )
    strategy = StrategyInfo(name="sdpa", title="SDPA", backend="cuDNN")
    return _gpu_run(run_id, strategy, (launch,), 1140.0)


def cpu_attention(run_id: str = "cpu-compile") -> Run:
    """Compiled for a CPU: one generated function with three loop nests between two matmuls."""
    graph = CPU_GRAPH
    square = graph.tensor("scores").n_bytes
    row_max = Tensor(
        id="row_max", name="row_max", shape=(4, 1024), dtype="fp32", n_bytes=4 * 1024 * 4,
        role=TensorRole.WORKSPACE,
    )  # fmt: skip
    nests = (
        LoopNest(
            name="loop 1", ops=("scale", "mask", "softmax"), bytes_read=2 * square,
            bytes_written=4 * 1024 * 4,
        ),
        LoopNest(
            name="loop 2", ops=("softmax",), bytes_read=2 * square, bytes_written=4 * 1024 * 4
        ),
        LoopNest(
            name="loop 3", ops=("softmax", "dropout"), bytes_read=2 * square, bytes_written=square
        ),
    )  # fmt: skip
    first = _accesses(graph, ("q", "k"), ("scores",))
    fused = [
        *_accesses(graph, ("scores", "mask"), ("dropped",)),
        Access(tensor="row_max", bytes_read=row_max.n_bytes, bytes_written=row_max.n_bytes),
    ]
    last = _accesses(graph, ("dropped", "v"), ("out",))
    launches = _placed(
        [
            Launch(
                kernel="aten::bmm", title="bmm", ops=("qk",), accesses=tuple(first),
                duration_us=9_800.0, **_traffic(first, None),
            ),
            Launch(
                kernel="cpp_fused__softmax_add_mul_native_dropout_0",
                title="scale+mask+softmax+dropout", ops=("scale", "mask", "softmax", "dropout"),
                accesses=tuple(fused), duration_us=21_400.0, loop_nests=nests, code="cpp_0",
                stays_on_chip=("scaled", "masked", "probs"), **_traffic(fused, None),
            ),
            Launch(
                kernel="aten::bmm", title="bmm", ops=("pv",), accesses=tuple(last),
                duration_us=9_100.0, **_traffic(last, None),
            ),
        ],
        14.0,
    )  # fmt: skip
    touched = {access.tensor for launch in launches for access in launch.accesses}
    return Run(
        id=run_id,
        chain=ChainInfo(
            name="attention",
            title="Attention, as in the textbook",
            parameters={
                "batch": 1, "heads": 4, "seq_len": 1024, "head_dim": 64, "dtype": "fp32",
                "dropout": 0.1, "mask": "additive",
            },
            dtype="fp32",
        ),
        strategy=StrategyInfo(name="compile", title="torch.compile"),
        device=CPU,
        versions=CPU_VERSIONS,
        seed=0,
        created_at="2026-01-01T12:00:00+00:00",
        graph=graph,
        tensors=tuple(t for t in (*graph.tensors, row_max) if t.id in touched),
        launches=launches,
        timing=_timing(launches, 40_700.0),
        memory=Memory(peak_bytes=33_600_000, inputs_bytes=7_340_032),
        counters=Counters(sentence="Bytes are modelled: a CPU has no counter that we read."),
    )  # fmt: skip


def failed_run(run_id: str = "failed") -> Run:
    """A run that did not come about: one sentence and no launches."""
    return replace(
        eager_attention(run_id),
        tensors=(),
        launches=(),
        timing=None,
        memory=None,
        accuracy=None,
        counters=None,
        error="CUDA ran out of memory at 180 GB; the largest size that fits is seq_len=16384.",
    )


def wrong_result(run: Run) -> Run:
    """A run whose result is off by far more than rounding explains."""
    assert run.accuracy is not None
    return replace(run, accuracy=replace(run.accuracy, max_abs_error=0.21, passed=False))


def wrong_randomness(run: Run) -> Run:
    """A run that keeps 205 of 256 probabilities where the chain asks for nine tenths."""
    assert run.accuracy is not None
    check = DistributionCheck(
        name="share of probabilities kept, 1 − p", expected=230 / 256, observed=0.8008,
        tolerance=5e-4, passed=False, nominal=0.9, resolution=1 / 256,
    )  # fmt: skip
    return replace(run, accuracy=replace(run.accuracy, distribution=(check,)))


def long_run(n_launches: int = 50, run_id: str = "long") -> Run:
    """A launch-bound chain: short elementwise kernels, the device idle most of the time."""
    n_bytes = 64 * 4096 * 2
    names = ["x", *(f"h{i + 1}" for i in range(n_launches - 1)), "y"]
    roles = [TensorRole.INPUT, *[TensorRole.INTERMEDIATE] * (n_launches - 1), TensorRole.OUTPUT]
    tensors = tuple(
        Tensor(id=n, name=n, shape=(64, 4096), dtype="bf16", n_bytes=n_bytes, role=role)
        for n, role in zip(names, roles, strict=True)
    )
    ops = tuple(
        Op(
            name="mul" if i == 0 else f"mul{i + 1}", aten="aten.mul.Tensor",
            kind=OpKind.ELEMENTWISE, reads=(names[i],), writes=(names[i + 1],), flops=64 * 4096,
        )
        for i in range(n_launches)
    )  # fmt: skip
    launches = []
    for i, op in enumerate(ops):
        accesses = [
            Access(tensor=names[i], bytes_read=n_bytes),
            Access(tensor=names[i + 1], bytes_written=n_bytes),
        ]
        launches.append(
            Launch(
                kernel="vectorized_elementwise_kernel<4, MulFunctor>", title="mul",
                ops=(op.name,), accesses=tuple(accesses), duration_us=1.9,
                **_traffic(accesses, None),
            )
        )  # fmt: skip
    placed = _placed(launches, 5.1)
    return Run(
        id=run_id,
        chain=ChainInfo(
            name="elementwise", title="A long elementwise chain",
            parameters={"rows": 64, "columns": 4096, "dtype": "bf16"}, dtype="bf16",
        ),
        strategy=StrategyInfo(name="eager", title="Eager"),
        device=H200,
        versions=GPU_VERSIONS,
        seed=0,
        created_at="2026-01-01T12:00:00+00:00",
        graph=OpGraph(ops=ops, tensors=tensors),
        tensors=tensors,
        launches=placed,
        timing=_timing(placed, 520.0),
        memory=Memory(peak_bytes=2 * n_bytes, inputs_bytes=n_bytes),
        counters=Counters(
            sentence="DRAM bytes are not counted: the driver allows it to administrators only."
        ),
    )  # fmt: skip


def all_runs() -> tuple[Run, ...]:
    """Every fixture once, as a session's list of runs might hold them."""
    return (
        eager_attention(),
        compiled_attention(),
        sdpa_attention(),
        cpu_attention(),
        failed_run(),
        long_run(),
    )
