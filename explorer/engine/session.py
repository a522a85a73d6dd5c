"""Carries requests out, one at a time: what the worker's loop calls."""

import dataclasses
import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from explorer.chains.own import chain_of
from explorer.engine.comparison import Comparison
from explorer.engine.cupti.counters import CounterAbility, DramCounters, counter_ability
from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.devices import describe, list_devices, resolve_device, versions
from explorer.engine.doctor import examine
from explorer.engine.dtypes import dtype_abilities, precision_of, settings_refusal
from explorer.engine.faults import (
    NoReferenceError,
    NoRoomError,
    first_line,
    is_device_lost,
    is_out_of_memory,
    sentence_for,
)
from explorer.engine.fitting import Room, capture_that_fits, estimate, refuse
from explorer.engine.grouping import inductor_grouping
from explorer.engine.measure.ceilings import CeilingsStore, measure_ceilings
from explorer.engine.measuring import Measuring, give_memory_back
from explorer.engine.own_code import raising_hard_exits
from explorer.engine.prepare import ChosenChain, Subject, make_ready, without_memory
from explorer.engine.prepared import Prepared
from explorer.engine.progress import ProgressReporter
from explorer.engine.run_maker import RunMaker
from explorer.engine.strategies import STRATEGIES, Case, Strategy, find_strategy
from explorer.engine.toolchain import compile_refusal
from explorer.engine.torch_settings import keeping_torchs_settings
from explorer.model.device import (
    Abilities,
    Ceilings,
    Device,
    DeviceAbility,
    DeviceKind,
    StrategyAbility,
    Versions,
)
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.messages import (
    CeilingsMeasured,
    CeilingsRequest,
    DoctorReport,
    GraphCaptured,
    GraphRequest,
    GroupingFound,
    GroupingRequest,
    Reply,
    Request,
    RunFinished,
    RunRequest,
    Stage,
)

_logger = logging.getLogger(__name__)

MOST_SEED = 1 << 63
Emit = Callable[[Reply], None]

_CPU_COUNTERS = (
    "A CPU's DRAM traffic is not counted; its bytes are modelled from the code that runs."
)


class Session:
    """The engine as the worker sees it.

    Attributes:
        needs_restart: The device was lost, so this process is of no more use.
    """

    def __init__(self, store: CeilingsStore | None = None) -> None:
        """Open nothing yet.

        Args:
            store: Where ceilings are kept; the user's cache if left out.
        """
        self.needs_restart = False
        self._store = store or CeilingsStore()
        self._counter_abilities: dict[str, CounterAbility] = {}

    def abilities(self) -> Abilities:
        """What this worker can do, device by device."""
        devices = tuple(self._ability(self._known(device)) for device in list_devices())
        return Abilities(
            versions=self._versions(),
            devices=devices,
            default_device=str(resolve_device("auto")),
        )

    def handle(self, request: Request, emit: Emit) -> None:
        """Carry one request out; the caller says when it is over.

        Raises:
            UsageError: What was asked for is not there.
            ExplorerError: It failed for a reason that one sentence tells.
        """
        with keeping_torchs_settings(), raising_hard_exits():
            self._carry_out(request, emit)

    def _carry_out(self, request: Request, emit: Emit) -> None:
        if isinstance(request, RunRequest):
            self._run(request, emit)
        elif isinstance(request, GraphRequest):
            self._graph(request, emit)
        elif isinstance(request, GroupingRequest):
            self._grouping(request, emit)
        elif isinstance(request, CeilingsRequest):
            device = self._known(describe(resolve_device(request.device)))
            ceilings = None if request.force else device.ceilings
            self._emit_ceilings(device, ceilings or self._measure_ceilings(device), emit)
        else:
            abilities = self.abilities()
            checks = examine(abilities, resolve_device(request.device))
            emit(DoctorReport(abilities=abilities, checks=checks))

    def _graph(self, request: GraphRequest, emit: Emit) -> None:
        room = Room.of(self._known(describe(resolve_device(request.device))))
        eager = find_strategy("eager")
        chosen, _ = capture_that_fits(Subject.of(request), [eager], room)
        emit(_captured(chosen, [eager]))

    def _grouping(self, request: GroupingRequest, emit: Emit) -> None:
        where = resolve_device(request.device)
        reason = compile_refusal(where)
        if reason is not None:
            raise UsageError(reason)
        room = Room.of(self._known(describe(where)))
        compiled = find_strategy("compile")
        chosen, _ = capture_that_fits(Subject.of(request), [compiled], room)
        with precision_of(chosen.parameters):
            found = inductor_grouping(without_memory(chosen))
        emit(
            GroupingFound(
                chain=chosen.chain.id,
                parameters=chosen.parameters,
                device=str(chosen.device),
                plan=found.plan.text,
                refusals=found.refusals,
            )
        )

    def _run(self, request: RunRequest, emit: Emit) -> None:
        _check_request(request)
        where = resolve_device(request.device)
        strategies = [find_strategy(spec) for spec in request.strategies]
        if where.type == "cuda":
            torch.cuda.set_device(where)
        device = self._known(describe(where))
        wants_ceilings = request.measure_ceilings and device.ceilings is None
        progress = ProgressReporter(emit, strategies, with_ceilings=wants_ceilings)
        progress.begin(Stage.CAPTURE, f"Capturing {request.chain}")
        _check_case(request, strategies, where)
        warnings: tuple[str, ...] = ()
        if wants_ceilings and device.drives_display:
            # They decide there how large a chain may be.
            device, warnings = self._with_ceilings(device, progress, emit)
            wants_ceilings = False
        room = Room.of(device)
        chosen, lowered = capture_that_fits(Subject.of(request), strategies, room)
        for strategy in strategies:
            strategy.check_ops(chosen.chain, chosen.parameters, chosen.captured.graph)
        emit(_captured(chosen, strategies))
        if wants_ceilings:
            device, warnings = self._with_ceilings(device, progress, emit)
        maker = RunMaker(
            chosen=chosen,
            device=device,
            versions=self._versions(),
            seed=request.seed,
            warnings=(*lowered, *warnings),
            swept=request.swept,
        )
        with precision_of(chosen.parameters):
            self._run_prepared(request, strategies, maker, room, progress, emit)

    def _run_prepared(
        self,
        request: RunRequest,
        strategies: Sequence[Strategy],
        maker: RunMaker,
        room: Room,
        progress: ProgressReporter,
        emit: Emit,
    ) -> None:
        chosen, device = maker.chosen, maker.device
        refusals = [refuse(chosen, s, room) for s in strategies]
        prepared, refusals = _make_ready(chosen, request.seed, strategies, refusals)
        if prepared is None:
            for strategy, refusal in zip(strategies, refusals, strict=True):
                emit(RunFinished(run=maker.failed(strategy, str(refusal))))
            return
        with self._counters(device) as (counters, no_counters):
            measuring = Measuring(
                maker=maker,
                prepared=prepared,
                counters=counters,
                no_counters=no_counters,
                timing_s=request.timing_s,
                progress=progress,
            )
            eager_fits = refuse(chosen, find_strategy("eager"), room) is None
            self._compare_with_truth(measuring, eager_fits=eager_fits)
            self._measure(measuring, strategies, refusals, emit)

    def _measure(
        self,
        measuring: Measuring,
        strategies: Sequence[Strategy],
        refusals: Sequence[str | None],
        emit: Emit,
    ) -> None:
        for strategy, refusal in zip(strategies, refusals, strict=True):
            if refusal is None:
                emit(RunFinished(run=measuring.measure(strategy)))
            else:
                emit(RunFinished(run=measuring.maker.failed(strategy, refusal)))
        gc.unfreeze()
        self.needs_restart = self.needs_restart or measuring.lost

    def _compare_with_truth(self, measuring: Measuring, *, eager_fits: bool) -> None:
        """Compute the reference; where it does not fit, a run still has everything else."""
        measuring.progress.begin(Stage.REFERENCE, "Computing the fp64 reference")
        try:
            chosen = measuring.maker.chosen
            measuring.comparison = Comparison(measuring.prepared, chosen.code, chosen.capture_calm)
            measuring.comparison.measure_eager(whole=eager_fits)
        except NoReferenceError as error:
            measuring.comparison = None
            measuring.maker = measuring.maker.warning(str(error))
        except Exception as error:
            _logger.exception("the reference is incomplete")
            what = "Eager's own error" if measuring.comparison else "The error"
            if is_out_of_memory(error):
                why = "there was too little memory to compute it"
            elif (
                measuring.maker.chosen.own is None
                or isinstance(error, ExplorerError)
                or is_device_lost(error)
            ):
                raise
            else:
                # What own code raises is told by the run itself, which calls it again.
                why = f"the code raised {type(error).__name__}: {first_line(error)}"
            measuring.maker = measuring.maker.warning(f"{what} is not known: {why}.")
        give_memory_back(measuring.prepared.device)

    def _with_ceilings(
        self, device: Device, progress: ProgressReporter, emit: Emit
    ) -> tuple[Device, tuple[str, ...]]:
        """The device with its ceilings, or as it is and why; a run goes on without them."""
        progress.begin(Stage.CEILINGS, f"Measuring what {device.name} reaches at best")
        try:
            ceilings = self._measure_ceilings(device)
        except NoRoomError as error:
            return device, (str(error),)
        self._emit_ceilings(device, ceilings, emit)
        return dataclasses.replace(device, ceilings=ceilings), ()

    def _measure_ceilings(self, device: Device) -> Ceilings:
        """Measure and keep them.

        Raises:
            NoRoomError: There was too little memory.
        """
        try:
            ceilings = measure_ceilings(device)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            raise NoRoomError(
                f"The ceilings of {device.name} are not known: too little memory is free to "
                "measure them; close what else uses it, then measure them again."
            ) from error
        finally:
            give_memory_back(torch.device(device.id))
        self._store.save(device, ceilings)
        return ceilings

    def _emit_ceilings(self, device: Device, ceilings: Ceilings, emit: Emit) -> None:
        emit(CeilingsMeasured(device=device.id, ceilings=ceilings))

    @contextmanager
    def _counters(self, device: Device) -> Iterator[tuple[DramCounters | None, str]]:
        """The device's counters, opened for a request; or None and why."""
        if device.kind is not DeviceKind.CUDA:
            yield None, _CPU_COUNTERS
            return
        try:
            counters = DramCounters(torch.device(device.id).index)
        except CounterRefused as refused:
            yield None, refused.sentence
            return
        with counters:
            yield counters, ""

    def _known(self, device: Device) -> Device:
        return dataclasses.replace(device, ceilings=self._store.load(device))

    def _versions(self) -> Versions:
        releases = (ability.cupti_release for ability in self._counter_abilities.values())
        return versions(cupti=next((release for release in releases if release), None))

    def _ability(self, device: Device) -> DeviceAbility:
        where = torch.device(device.id)
        if device.kind is DeviceKind.CUDA:
            if device.id not in self._counter_abilities:
                self._counter_abilities[device.id] = counter_ability(where.index)
            ability = self._counter_abilities[device.id]
            counters, sentence = ability.available, ability.sentence
        else:
            counters, sentence = False, _CPU_COUNTERS
        return DeviceAbility(
            device=device,
            counters=counters,
            counters_sentence=sentence,
            strategies=tuple(
                _strategy_ability(s, s.device_refusal(where))
                for s in STRATEGIES
                if s.missing() is None
            ),
            dtypes=dtype_abilities(where),
        )


def _strategy_ability(strategy: Strategy, reason: str | None) -> StrategyAbility:
    return StrategyAbility(
        spec=strategy.spec, title=strategy.title, available=reason is None, reason=reason
    )


def _on_case(case: Case) -> tuple[StrategyAbility, ...]:
    """The strategies that are for a chain, each with what it refuses of the case."""
    return tuple(
        _strategy_ability(s, s.refusal(case))
        for s in STRATEGIES
        if s.missing() is None and s.chain_refusal(case.chain) is None
    )


def _make_ready(
    chosen: ChosenChain, seed: int, strategies: Sequence[Strategy], refusals: list[str | None]
) -> tuple[Prepared | None, list[str | None]]:
    """The inputs, if any strategy is to run; without room for them each has a refusal."""
    if None not in refusals:
        return None, refusals
    try:
        return make_ready(chosen, seed), refusals
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        smaller = chosen.code.size_parameter
        given = zip(strategies, refusals, strict=True)
        return None, [already or sentence_for(error, s.spec, smaller) for s, already in given]


def _check_request(request: RunRequest) -> None:
    """Refuse what makes no sense, whatever the chain and the device.

    Raises:
        UsageError: Alike.
    """
    if not request.strategies:
        raise UsageError("No strategy was named; eager and compile are the usual ones.")
    if not request.timing_s > 0:
        raise UsageError(f"timing_s={request.timing_s} is no time; it must be above 0.")
    if not 0 <= request.seed < MOST_SEED:
        raise UsageError(f"seed={request.seed} is out of range: it takes 0 to {MOST_SEED - 1}.")


def _check_case(request: RunRequest, strategies: Sequence[Strategy], where: torch.device) -> None:
    """Refuse the request if the device lacks its dtype, or a strategy does not apply to it.

    Raises:
        UsageError: Alike.
    """
    chain = chain_of(request.chain, request.own)
    kind = DeviceKind.CUDA if where.type == "cuda" else DeviceKind.CPU
    parameters = chain.resolve(request.parameters, kind)
    case = Case(chain=chain, parameters=parameters, device=where, direction=request.direction)
    for reason in (
        settings_refusal(chain, parameters, where),
        *(strategy.refusal(case) for strategy in strategies),
    ):
        if reason is not None:
            raise UsageError(reason)


def _captured(chosen: ChosenChain, strategies: Sequence[Strategy]) -> GraphCaptured:
    graph = chosen.captured.graph
    return GraphCaptured(
        graph=graph,
        parameters=chosen.parameters,
        estimate_bytes=max(estimate(graph, strategy, chosen) for strategy in strategies),
        device=str(chosen.device),
        strategies=_on_case(
            Case(
                chain=chosen.chain,
                parameters=chosen.parameters,
                device=chosen.device,
                direction=chosen.subject.direction,
            )
        ),
    )
