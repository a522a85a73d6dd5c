"""What a strategy is: one entry that turns a prepared chain into a callable."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import torch

from explorer.chains.descriptor import Chain
from explorer.engine.measure.observe_compile import ModuleNotes
from explorer.engine.prepared import Prepared, Returned
from explorer.model.fusion import FusionPlan
from explorer.model.opgraph import GraphBreak, OpGraph
from explorer.model.run import Direction, Scalar, StrategyInfo


class PeakFamily(Enum):
    """Which tensors a strategy is expected to hold at once; see ``measure.estimate``."""

    EAGER = auto()
    """Every op's result, for as long as the code holds it."""
    EAGER_GRAPH = auto()
    """The same in the private pool of a CUDA graph."""
    COMPILED = auto()
    """Results of matmuls and of what lies fused between them."""
    COMPILED_GRAPH = auto()
    """The same in Inductor's pool of a CUDA graph, with copies of the inputs."""
    UPCAST = auto()
    """Every op's result in fp32 at least."""
    FUSED = auto()
    """Inputs and outputs only."""


def _nothing() -> None:
    """There is nothing to give back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltGroup:
    """A group of a fusion plan, ready to run.

    Attributes:
        ops: Names of its ops.
        notes: What was seen of its compilation, None where nothing could be.
        compile_s: Seconds to have it, for this build.
        from_cache: It was compiled before.
    """

    ops: tuple[str, ...]
    notes: ModuleNotes | None
    compile_s: float
    from_cache: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOps:
    """Which ops the kernels of a library carry out, which are not told by the chain's own code.

    Attributes:
        by_kernel: Ops of the forward pass by a part of a kernel's or an operator's name; no ops
            stand for all that no other kernel carries out. Nothing at all where the kernels need
            not be told apart: each then carries out every op of its pass that no other does.
    """

    by_kernel: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A chain ready to be called under a strategy.

    Attributes:
        call: Runs the chain once on the prepared inputs. Does not wait for the device, and what
            it returns may be overwritten by the next call.
        backend: What really runs where the strategy's name leaves it open.
        notes: What a person should know of it.
        give_back: Gives back what it holds.
        graph_breaks: Places where the compiler gave up a graph.
        uses_graph: Whether a call replays a CUDA graph.
        rounding: How far off its kernels take the chain's constants, as a share: its error is
            judged with that allowed, and a note says why.
        random_resolution: Step of the random numbers that its kernels compare with the dropout
            rate, 0 if they are finer than can be seen.
        plan: Of a fusion plan: every group written out.
        groups: Of a fusion plan, in the order in which they run; each call runs one compiled
            graph a group.
        library: Which ops the kernels of a library carry out, None where none runs.
    """

    call: Callable[[], Returned]
    backend: str | None = None
    notes: tuple[str, ...] = ()
    give_back: Callable[[], None] = _nothing
    graph_breaks: tuple[GraphBreak, ...] = ()
    uses_graph: bool = False
    rounding: float = 0.0
    random_resolution: float = 0.0
    plan: str | None = None
    groups: tuple[BuiltGroup, ...] = ()
    library: LibraryOps | None = None

    def close(self) -> None:
        """Give back what it holds; the callable is dead afterwards."""
        self.give_back()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a strategy is asked to run.

    Attributes:
        chain: The descriptor.
        parameters: All of them, defaults filled in.
        device: Where.
        direction: What a call runs.
    """

    chain: Chain
    parameters: Mapping[str, Scalar]
    device: torch.device
    direction: Direction = Direction.FORWARD

    @property
    def trains(self) -> bool:
        """Whether a backward pass is asked for as well."""
        return self.direction is not Direction.FORWARD


ChainRefusal = Callable[[Chain], str | None]
DeviceRefusal = Callable[[torch.device], str | None]
CaseRefusal = Callable[[Case], str | None]
PeakRule = Callable[[Mapping[str, Scalar], torch.device], PeakFamily]
OpsCheck = Callable[[Chain, Mapping[str, Scalar], OpGraph], None]


def _nothing_missing() -> str | None:
    """Everything is there."""
    return None


def _takes_any_chain(_chain: Chain) -> str | None:
    """There is nothing to refuse."""
    return None


def _runs_anywhere(_device: torch.device) -> str | None:
    """There is nothing to refuse."""
    return None


def _takes_any_case(_case: Case) -> str | None:
    """There is nothing to refuse."""
    return None


def _takes_any_ops(_chain: Chain, _parameters: Mapping[str, Scalar], _graph: OpGraph) -> None:
    """There is nothing to refuse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """An entry of the table.

    Attributes:
        name: The part before the colon.
        option: The part after it.
        title: As in the window.
        build: Makes the callable. Compiling, where there is any, happens in here, so that it can
            be watched and timed; the chain has run at least once afterwards.
        peak: For the estimate of memory: how it holds tensors with these parameters on a device.
        compiles: Whether ``build`` compiles.
        plan_of: Of a fusion plan: the plan on a graph; None where only building can tell.
        check_ops: Raises a ``UsageError`` where it cannot run a captured chain.
        missing: What has to be installed for it, with the command: one sentence, or None.
        chain_refusal: Why it is not for a chain, whatever the device and the settings: one
            sentence, or None, as in the next two.
        device_refusal: Why it runs nothing on a device.
        case_refusal: Why it cannot run a chain that it is for with these settings there.
    """

    name: str
    title: str
    build: Callable[[Prepared], Built]
    peak: PeakRule
    option: str | None = None
    compiles: bool = False
    plan_of: Callable[[OpGraph], FusionPlan | None] | None = None
    check_ops: OpsCheck = _takes_any_ops
    missing: Callable[[], str | None] = _nothing_missing
    chain_refusal: ChainRefusal = _takes_any_chain
    device_refusal: DeviceRefusal = _runs_anywhere
    case_refusal: CaseRefusal = _takes_any_case

    def refusal(self, case: Case) -> str | None:
        """Why it cannot run a case: the first reason there is, or None."""
        return (
            self.chain_refusal(case.chain)
            or self.missing()
            or self.device_refusal(case.device)
            or self.case_refusal(case)
        )

    @property
    def spec(self) -> str:
        """As on the command line."""
        return self.info().spec

    def info(self, backend: str | None = None, plan: str | None = None) -> StrategyInfo:
        """The record that a run carries."""
        return StrategyInfo(
            name=self.name, option=self.option, title=self.title, backend=backend, plan=plan
        )


def always(family: PeakFamily) -> PeakRule:
    """The rule of a strategy that holds tensors in one way whatever it runs."""
    return lambda _parameters, _device: family


def plain_call(prepared: Prepared) -> Callable[[], Returned]:
    """The chain as written, on the prepared inputs."""
    return prepared.caller(prepared.function)
