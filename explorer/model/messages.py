"""What the window asks of a worker and what the worker answers: frozen records, nothing else."""

from dataclasses import dataclass, field
from enum import StrEnum

from explorer.model.device import Abilities, Ceilings, StrategyAbility
from explorer.model.opgraph import OpGraph
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, FusionRefusal, Run, Scalar


class Stage(StrEnum):
    """The steps of a run, in order."""

    STARTING = "starting"
    CAPTURE = "capture"
    REFERENCE = "reference"
    CEILINGS = "ceilings"
    COMPILE = "compile"
    TRACE = "trace"
    COUNTERS = "counters"
    TIMING = "timing"
    ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """Measure a chain under several strategies.

    Attributes:
        chain: Id of a built-in chain, or what names somebody's own code.
        parameters: Settings by name; those left out take the device's defaults.
        strategies: Specs such as ``compile:max-autotune``, in the order wanted.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        seed: Of the inputs and of dropout.
        direction: Forward, or forward and backward.
        timing_s: Seconds spent timing each strategy.
        measure_ceilings: Measure the ceilings first if they are not known.
        own: How somebody's own code is called; None for a built-in chain.
        swept: The parameter of which the request is a point of a sweep, None if it is none.
    """

    chain: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    strategies: tuple[str, ...] = ("eager", "compile")
    device: str = "auto"
    seed: int = 0
    direction: Direction = Direction.FORWARD
    timing_s: float = 1.0
    measure_ceilings: bool = True
    own: OwnCode | None = None
    swept: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRequest:
    """Capture a chain without running it, for the drawing of its op graph."""

    chain: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    device: str = "auto"
    direction: Direction = Direction.FORWARD
    own: OwnCode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingRequest:
    """Ask how Inductor would group a chain's ops: compiles it whole, runs nothing."""

    chain: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    device: str = "auto"
    direction: Direction = Direction.FORWARD
    own: OwnCode | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingsRequest:
    """Measure a device's ceilings, afresh if ``force`` is set."""

    device: str = "auto"
    force: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorRequest:
    """Ask what this machine can measure."""

    device: str = "auto"


Request = RunRequest | GraphRequest | GroupingRequest | CeilingsRequest | DoctorRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A row of the doctor's report.

    Attributes:
        name: The ability that was tried.
        ok: Whether this machine has it.
        sentence: What was found.
        lost: What there is not without it.
        remedy: What brings it back.
    """

    name: str
    ok: bool
    sentence: str
    lost: str | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The worker is up: first message, once."""

    abilities: Abilities


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where the work stands; ``fraction`` of the whole request, None if it cannot be known."""

    stage: Stage
    sentence: str
    fraction: float | None = None
    strategy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCaptured:
    """The op graph with the parameters it was captured for, defaults filled in.

    Attributes:
        graph: The ops and their tensors.
        parameters: All of them.
        estimate_bytes: Peak over the inputs, at most.
        device: Where the chain is to run.
        strategies: Those that are for the chain, each with why it cannot run it like this.
    """

    graph: OpGraph
    parameters: dict[str, Scalar]
    estimate_bytes: int
    device: str
    strategies: tuple[StrategyAbility, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupingFound:
    """Inductor's own grouping of a chain.

    Attributes:
        chain: Id of the chain.
        parameters: It was compiled for, defaults filled in.
        device: Where.
        plan: Every group written out.
        refusals: Why neighbours in different groups were not fused.
    """

    chain: str
    parameters: dict[str, Scalar]
    device: str
    plan: str
    refusals: tuple[FusionRefusal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished:
    """One strategy is done (or failed: then ``run.error`` says so)."""

    run: Run


@dataclass(frozen=True, slots=True, kw_only=True)
class CeilingsMeasured:
    """The ceilings of a device."""

    device: str
    ceilings: Ceilings


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Everything the doctor looked at."""

    abilities: Abilities
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFailed:
    """The request could not be carried out; ``usage`` if the user asked for what is not there."""

    sentence: str
    usage: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestDone:
    """The request is over; always the last message of a request, also after a failure."""


Reply = (
    Ready
    | Progress
    | GraphCaptured
    | GroupingFound
    | RunFinished
    | CeilingsMeasured
    | DoctorReport
    | RequestFailed
    | RequestDone
)
