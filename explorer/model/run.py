"""The `Run`: one chain under one strategy on one device, with everything measured about it.

It is the only thing views look at and recordings hold. Every field that a step may leave out is
optional, so that a file of today stays readable tomorrow. Units are in the names.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from explorer.model.device import Clocks, Device, Versions
from explorer.model.opgraph import GraphBreak, OpGraph
from explorer.model.own_code import OwnCode
from explorer.model.tensor import Tensor

Scalar = bool | int | float | str | None


class Pedigree(StrEnum):
    """Where a number of bytes comes from, weakest first."""

    PLANNED = "planned"
    MODELLED = "modelled"
    SAMPLED = "sampled"
    COUNTED = "counted"


class Clock(StrEnum):
    """Where a time comes from."""

    EVENTS = "events"
    GRAPH = "graph"
    TRACE = "trace"
    HOST = "host"


class Direction(StrEnum):
    """Forward only, or forward and backward."""

    FORWARD = "forward"
    FORWARD_BACKWARD = "forward+backward"

    @property
    def words(self) -> str:
        """``forward``, or ``forward + backward``."""
        return " + ".join(self.value.split("+"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """One quantity of bytes by pedigree; None where that pedigree was not taken.

    ``settled`` is the counter's value with the write-back that a trailing read flush forces.
    """

    planned: int | None = None
    modelled: int | None = None
    counted: int | None = None
    sampled: int | None = None
    settled: int | None = None

    def best(self) -> tuple[int, Pedigree] | None:
        """The value with the strongest pedigree, or None if there is no value at all."""
        for pedigree in (Pedigree.COUNTED, Pedigree.SAMPLED, Pedigree.MODELLED, Pedigree.PLANNED):
            value: int | None = getattr(self, pedigree.value)
            if value is not None:
                return value, pedigree
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainInfo:
    """Which chain ran, with which parameters.

    Attributes:
        name: Id of a built-in chain, or what names somebody's own code: ``file.py:function``.
        title: As in the window.
        parameters: All of them, defaults filled in.
        dtype: Of the chain's tensors, empty where they have none in common.
        direction: What of it ran.
        source: The code as it was, where it is not built in.
        own: How it was called, where it is not built in.
    """

    name: str
    title: str
    parameters: dict[str, Scalar]
    dtype: str
    direction: Direction = Direction.FORWARD
    source: str | None = None
    own: OwnCode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyInfo:
    """How it ran: ``name`` is the part before the colon, ``option`` the rest."""

    name: str
    option: str | None = None
    title: str = ""
    plan: str | None = None
    """Of a fusion plan: every group written out, whatever the option left unsaid."""
    backend: str | None = None
    """What really ran where the name leaves it open (SDPA's backend), else None."""

    @property
    def spec(self) -> str:
        """As it is written on the command line: ``compile:max-autotune``."""
        return self.name if self.option is None else f"{self.name}:{self.option}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What one launch does to one tensor, by the model: bytes it must read and write at least."""

    tensor: str
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """One loop nest of a generated C++ function: bytes, and no time of its own."""

    name: str
    ops: tuple[str, ...]
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One execution of one kernel (on a CPU: of one ATen operator or one generated function).

    Attributes:
        kernel: The name as launched.
        title: A short name that a person can read.
        ops: Names of the graph's ops that it carries out, in order; empty for helpers.
        accesses: The tensors it reads and writes, with modelled bytes.
        bytes_read: From device memory, by pedigree.
        bytes_written: To device memory, by pedigree.
        l2_bytes_requested: Read and written through L2 together, where counted.
        start_us: Since the start of the first launch of the traced call.
        duration_us: From the trace.
        stays_on_chip: Ids of graph tensors between its ops that never reach device memory.
        stream: CUDA stream number.
        grid: Blocks in x, y, z.
        block: Threads a block in x, y, z.
        registers: Registers a thread.
        shared_bytes: Shared memory a block.
        spills: Register spills a thread, as Triton reports them.
        is_helper: A copy, fill or seed that the chain as written does not ask for.
        code: Key into ``Run.code``.
        loop_nests: The parts of a generated C++ function.
    """

    kernel: str
    title: str
    ops: tuple[str, ...] = ()
    accesses: tuple[Access, ...] = ()
    bytes_read: Bytes = Bytes()
    bytes_written: Bytes = Bytes()
    l2_bytes_requested: int | None = None
    start_us: float | None = None
    duration_us: float | None = None
    stays_on_chip: tuple[str, ...] = ()
    stream: int | None = None
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    spills: int | None = None
    is_helper: bool = False
    code: str | None = None
    loop_nests: tuple[LoopNest, ...] = ()

    @property
    def is_fused(self) -> bool:
        """Whether ops of the chain share it."""
        return len(self.ops) > 1 and not self.is_helper


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Times of repeated calls, with the three quartiles and the clock they were read from."""

    samples_us: tuple[float, ...]
    median_us: float
    q1_us: float
    q3_us: float
    n: int
    clock: Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The times of a run.

    Attributes:
        cold: L2 flushed before each call, outside the timed span. The headline.
        warm: Calls back to back.
        graph: Replays of a CUDA graph, several in a row; a sample is their mean.
        host: Host time of one call, without waiting for the device.
        trace_total_us: First launch's start to last launch's end in the traced call.
        launch_total_us: Sum of the launches' durations in the traced call.
        clocks: NVML readings, one a batch of samples, while the device worked on it.
    """

    cold: Samples | None = None
    warm: Samples | None = None
    graph: Samples | None = None
    host: Samples | None = None
    trace_total_us: float | None = None
    launch_total_us: float | None = None
    clocks: tuple[Clocks, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory in one call.

    Attributes:
        peak_bytes: Highest allocation over what the inputs hold.
        inputs_bytes: The inputs themselves.
        estimate_bytes: The peak over the inputs, as estimated from the graph before the run.
        intermediates: How many tensors were written and then read again.
        intermediate_bytes: Their bytes.
        graph_pool_bytes: Held by a CUDA graph's private pool.
    """

    peak_bytes: int
    inputs_bytes: int
    estimate_bytes: int | None = None
    intermediates: int = 0
    intermediate_bytes: int = 0
    graph_pool_bytes: int | None = None


class RefusalReason(StrEnum):
    """Why two ops do not share a kernel, in kinds that a learner can tell apart."""

    DRAWN = "drawn"
    """The plan has a boundary there."""
    OTHER_AXIS = "other axis"
    """A reduction over another axis or of another size: the loops do not fit together."""
    GRID_SYNC = "grid-wide synchronisation"
    """The second needs a result to which every block of the first contributes."""
    OTHER_ALGORITHM = "another algorithm"
    """Only another way to compute it, such as online softmax, would allow it."""
    MATMUL = "matmul"
    """A matmul is a kernel of its own."""
    TOO_LARGE = "too large"
    """Too many inputs or ops for one kernel."""
    OTHER_SIZE = "other size"
    """The ops work on different numbers of elements, or on different devices."""
    OPAQUE = "opaque"
    """An operator that the compiler calls as it is."""
    NOT_WORTH_IT = "not worth it"
    """The compiler's score saw nothing to gain."""
    OTHER = "other"
    """None of these; the raw text says what the compiler said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionRefusal:
    """Why two ops do not share a kernel.

    Attributes:
        first: Name of the earlier op.
        second: Name of the later op.
        sentence: For a learner.
        raw: What the compiler said, word by word; empty where it was not asked.
        reason: The kind.
    """

    first: str
    second: str
    sentence: str
    raw: str = ""
    reason: RefusalReason = RefusalReason.OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionGroup:
    """A group of a fusion plan, and what became of it.

    Attributes:
        ops: Names of its ops.
        bytes_read: If the group were exactly one kernel, by the plan.
        bytes_written: Alike.
        launches: Indices of the launches that carry it out, helpers of its own among them.
        compile_s: Seconds to compile it for this run.
        from_cache: Its kernels were there from an earlier run, so that nothing was compiled.
    """

    ops: tuple[str, ...]
    bytes_read: int
    bytes_written: int
    launches: tuple[int, ...] = ()
    compile_s: float | None = None
    from_cache: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileCost:
    """What compiling cost.

    Attributes:
        first_call_s: Until the strategy is ready, caches as they were: compiling, the first call,
            and recording where there is a CUDA graph.
        cold_s: Seconds by stage with empty caches, where measured.
        cached_s: Seconds by stage with warm caches, where measured.
        graph_breaks: Places and reasons.
        recompiles: The guards that failed.
        refusals: Why neighbours were not fused.
        calls_to_pay_back: Calls after which compiling was worth it, None if never or unknown.
    """

    first_call_s: float
    cold_s: dict[str, float] = field(default_factory=dict)
    cached_s: dict[str, float] = field(default_factory=dict)
    graph_breaks: tuple[GraphBreak, ...] = ()
    recompiles: tuple[str, ...] = ()
    refusals: tuple[FusionRefusal, ...] = ()
    calls_to_pay_back: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionCheck:
    """A check of a random op that has no exact reference.

    Attributes:
        name: What was looked at, in words.
        expected: What the implementation should come to, with the random numbers that it has.
        observed: What it came to.
        tolerance: How far the two may lie apart.
        passed: Whether they lie no further apart.
        nominal: What the chain asks for, where an implementation may come to something else.
        resolution: Step of the implementation's random numbers, 0 if they are finer than matters:
            with 1/256 a share is a number of 256ths.
    """

    name: str
    expected: float
    observed: float
    tolerance: float
    passed: bool
    nominal: float | None = None
    resolution: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Error against an fp64 reference, with the random ops switched off.

    Of a chain with several results every one is judged by its own largest value, and the numbers
    are those of the worst: of the one whose error is the largest share of what it may be.

    Attributes:
        max_abs_error: Largest absolute difference over the slices looked at.
        rms_error: Root mean square difference.
        reference_max: Largest absolute value of the reference.
        eager_max_abs_error: Eager's own error on the same slices.
        coverage: Share of all results' elements that were compared, 0 to 1.
        passed: Every result lies within twice eager's error, plus eps times its largest value.
        distribution: Checks of the random ops with the randomness on.
        not_finite: Values that are no finite number, where the reference is one; the errors are
            those of the others.
    """

    max_abs_error: float
    rms_error: float
    reference_max: float
    eager_max_abs_error: float | None
    coverage: float
    passed: bool
    distribution: tuple[DistributionCheck, ...] = ()
    not_finite: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Traffic over time, one entry a slice."""

    interval_us: float
    time_us: tuple[float, ...]
    bytes_read: tuple[int, ...]
    bytes_written: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """How the counted bytes were taken, or why there are none.

    Attributes:
        source: ``CUPTI range profiler``, ``ncu`` or None.
        cache_policy: State of L2 before each launch, in words.
        joined: Whether the counted ranges were matched to the launches.
        sentence: What a person should know: the refusal with its remedy, or how it was done.
        passes: Passes a kernel.
        seconds: Set-up and run together.
        total_bytes_read: Of the whole call where only a total can be had (CUDA graphs).
        total_bytes_written: Alike.
    """

    source: str | None = None
    cache_policy: str = ""
    joined: bool = False
    sentence: str = ""
    passes: int | None = None
    seconds: float | None = None
    total_bytes_read: int | None = None
    total_bytes_written: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One chain under one strategy on one device; a failed run has ``error`` and no launches."""

    id: str
    chain: ChainInfo
    strategy: StrategyInfo
    device: Device
    versions: Versions
    seed: int
    created_at: str
    graph: OpGraph
    tensors: tuple[Tensor, ...] = ()
    launches: tuple[Launch, ...] = ()
    groups: tuple[FusionGroup, ...] = ()
    """Of a fusion plan, in the order in which they run; empty for every other strategy."""
    timing: Timing | None = None
    memory: Memory | None = None
    compile: CompileCost | None = None
    accuracy: Accuracy | None = None
    counters: Counters | None = None
    heartbeat: Heartbeat | None = None
    clocks_before: Clocks | None = None
    clocks_after: Clocks | None = None
    code: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    error: str | None = None
    label: str | None = None
    """A name given by the user."""
    swept: str | None = None
    """The parameter that was swept, of a run that is a point of a sweep."""

    def tensor(self, tensor_id: str) -> Tensor:
        """Return the tensor in device memory with that id.

        Raises:
            KeyError: There is none.
        """
        for tensor in self.tensors:
            if tensor.id == tensor_id:
                return tensor
        raise KeyError(tensor_id)
