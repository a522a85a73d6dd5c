"""Measures one strategy after another on a prepared chain; each becomes a ``Run``."""

import dataclasses
import gc
import logging
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import torch

from explorer.engine.comparison import Comparison
from explorer.engine.faults import is_device_lost, is_out_of_memory, sentence_for
from explorer.engine.fitting import estimate
from explorer.engine.internals import InternalMovedError
from explorer.engine.measure.accuracy import Errors
from explorer.engine.measure.clocks import clock_reader, full_sm_mhz
from explorer.engine.measure.counting import CounterSource
from explorer.engine.measure.doubts import timing_doubts, unseen_ops
from explorer.engine.measure.groups import fusion_groups, observation_of, with_planned
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.memory import Peak, measure_peak
from explorer.engine.measure.observe_compile import CompileObservation, observing_compilation
from explorer.engine.measure.recompiles import recompile_doubts, watching_recompiles
from explorer.engine.measure.refusals import find_refusals
from explorer.engine.measure.setbacks import setback_doubts, watching_setbacks
from explorer.engine.measure.stopwatch import time_call
from explorer.engine.own_code import exit_sentence, line_at_fault
from explorer.engine.prepared import Prepared
from explorer.engine.progress import ProgressReporter
from explorer.engine.run_maker import RunMaker
from explorer.engine.strategies import Built, Strategy
from explorer.model.comparison import check_words
from explorer.model.device import Clocks
from explorer.model.messages import Stage
from explorer.model.run import (
    Accuracy,
    CompileCost,
    Counters,
    DistributionCheck,
    Memory,
    Run,
    Timing,
)
from explorer.model.traffic import round_trips

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What came of comparing a strategy with the reference.

    Attributes:
        errors: None if there was no room to find them.
        checks: Of its randomness.
        complaints: What could not be compared, in words: the rest of the run stands.
    """

    errors: Errors | None = None
    checks: tuple[DistributionCheck, ...] = ()
    complaints: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Measuring:
    """What all strategies of a request share.

    Attributes:
        maker: Makes the runs.
        prepared: The chain with its inputs.
        counters: Opened DRAM counters, None if there are none.
        no_counters: Why there are none, one sentence.
        timing_s: Seconds of timing a strategy.
        progress: Told of each step.
        comparison: The truth, where there was room for it.
        lost: Whether the device was lost on the way.
    """

    maker: RunMaker
    prepared: Prepared
    counters: CounterSource | None
    no_counters: str
    timing_s: float
    progress: ProgressReporter
    comparison: Comparison | None = None
    lost: bool = False

    def measure(self, strategy: Strategy) -> Run:
        """Measure one strategy; whatever goes wrong is in the run's ``error``."""
        spec = strategy.spec
        if self.lost:
            return self.maker.failed(
                strategy, f"{spec} was not run: an earlier strategy's kernel faulted on the device."
            )
        try:
            with watching_setbacks(compiles=strategy.compiles) as setbacks:
                run = self._measure(strategy)
            doubts = setback_doubts(setbacks, spec)
            return dataclasses.replace(run, warnings=(*run.warnings, *doubts))
        except (Exception, SystemExit) as error:
            # Whatever a compiler or a kernel raises, the other strategies have to go on.
            _logger.exception("%s failed", spec)
            # Whoever keeps the log record keeps the traceback, but not the tensors in its frames.
            traceback.clear_frames(error.__traceback__)
            self.lost = is_device_lost(error)
            chosen = self.maker.chosen
            place = None if chosen.own is None else line_at_fault(error, chosen.own.is_own)
            told = (
                exit_sentence(place or f"What was run as {spec}", error)
                if isinstance(error, SystemExit)
                else sentence_for(error, spec, chosen.code.size_parameter, place)
            )
            return self.maker.failed(strategy, told)
        finally:
            if not self.lost:
                # A plan leaves little behind, and a sweep is many plans.
                give_memory_back(self.prepared.device, thoroughly=strategy.plan_of is None)

    def _measure(self, strategy: Strategy) -> Run:
        spec, device = strategy.spec, self.prepared.device
        read_clocks = clock_reader(device)
        clocks_before = read_clocks()
        built, observation, first_call_s = self._build(strategy)
        with closing(built), watching_recompiles() as recompiles:
            peak, no_peak = self._peak(built)
            record = self._record(strategy, built, observation)
            timing = self._time(spec, built, read_clocks, record)
            clocks_after = read_clocks()
            compared = self._compare_as_built(strategy, built)
        if self.comparison is not None and self.comparison.is_random:
            compared = self._compare_calm(strategy, built.plan, compared)
        blank = self.maker.blank(strategy, built.backend, built.plan)
        groups = fusion_groups(self.prepared.graph, built.groups, record.groups)
        cost = CompileCost(
            first_call_s=first_call_s,
            graph_breaks=built.graph_breaks,
            recompiles=tuple(dict.fromkeys(recompiles)),
            refusals=find_refusals(
                self.prepared,
                observation,
                record.launches,
                plan=blank.strategy.plan,
                breaks=built.graph_breaks,
            ),
        )
        return dataclasses.replace(
            blank,
            tensors=record.tensors,
            launches=with_planned(record.launches, groups),
            groups=groups,
            timing=timing,
            memory=None if peak is None else self._memory(strategy, peak, record),
            compile=cost if strategy.compiles else None,
            accuracy=self._accuracy(compared, built.rounding),
            counters=self._counters(record),
            clocks_before=clocks_before,
            clocks_after=clocks_after,
            code=record.code,
            warnings=(
                *blank.warnings,
                *built.notes,
                *no_peak,
                *record.warnings,
                *timing_doubts(timing, full_sm_mhz(device)),
                *recompile_doubts(recompiles),
                *self._unseen(strategy, record),
                *compared.complaints,
            ),
        )

    def _build(self, strategy: Strategy) -> tuple[Built, CompileObservation, float]:
        spec = strategy.spec
        verb = "Compiling" if strategy.compiles else "Building"
        self.progress.begin(Stage.COMPILE, f"{verb} {spec}", spec)
        torch.manual_seed(self.prepared.seed)
        started_s = time.perf_counter()
        with observing_compilation() as observation:
            built = strategy.build(self.prepared)
        synchronize(self.prepared.device)
        if built.groups:
            # Pieces that were compiled before are not compiled now.
            observation = observation_of(built.groups)
        return built, observation, time.perf_counter() - started_s

    def _peak(self, built: Built) -> tuple[Peak | None, tuple[str, ...]]:
        """The peak of a call, or why it is not known."""
        device = self.prepared.device
        try:
            return measure_peak(built.call, device=device, uses_graph=built.uses_graph), ()
        except InternalMovedError as error:
            return None, (f"The peak memory is not known: {error}",)

    def _record(
        self, strategy: Strategy, built: Built, observation: CompileObservation
    ) -> LaunchRecord:
        spec = strategy.spec
        doing = "Tracing" if self.counters is None else "Tracing and counting DRAM bytes of"
        self.progress.begin(Stage.TRACE, f"{doing} {spec}", spec)
        torch.manual_seed(self.prepared.seed)
        return record_launches(
            built.call,
            prepared=self.prepared,
            strategy=strategy.info(built.backend),
            counters=self.counters,
            observation=observation if strategy.compiles else None,
            groups=built.groups,
            library=built.library,
        )

    def _time(
        self,
        spec: str,
        built: Built,
        read_clocks: Callable[[], Clocks | None],
        record: LaunchRecord,
    ) -> Timing:
        self.progress.begin(Stage.TIMING, f"Timing {spec}", spec)
        timing = time_call(
            built.call,
            device=self.prepared.device,
            budget_s=self.timing_s,
            cache_bytes=self.maker.device.l2_bytes,
            read_clocks=read_clocks,
            replays=built.uses_graph,
        )
        return dataclasses.replace(
            timing,
            trace_total_us=record.trace_total_us,
            launch_total_us=record.launch_total_us,
        )

    def _memory(self, strategy: Strategy, peak: Peak, record: LaunchRecord) -> Memory:
        chosen = self.maker.chosen
        reread = set(round_trips(record.launches))
        return Memory(
            peak_bytes=peak.peak_bytes,
            inputs_bytes=chosen.inputs_bytes,
            estimate_bytes=estimate(chosen.captured.graph, strategy, chosen),
            intermediates=len(reread),
            intermediate_bytes=sum(t.n_bytes for t in record.tensors if t.id in reread),
            graph_pool_bytes=peak.graph_pool_bytes,
        )

    def _counters(self, record: LaunchRecord) -> Counters:
        if self.counters is None and self.no_counters:
            return dataclasses.replace(record.counters, sentence=self.no_counters)
        return record.counters

    def _unseen(self, strategy: Strategy, record: LaunchRecord) -> tuple[str, ...]:
        """What own code does that torch sees nothing of; the built-in chains have no such ops."""
        if strategy.spec != "eager" or self.maker.chosen.own is None:
            return ()
        return unseen_ops(self.prepared.graph, record.launches)

    def _compare_as_built(self, strategy: Strategy, built: Built) -> _Compared:
        """Check what was measured: the randomness of a random chain, else the results."""
        spec = strategy.spec
        self.progress.begin(Stage.ACCURACY, f"Comparing {spec} with the fp64 reference", spec)
        if self.comparison is None:
            return _Compared()
        try:
            if self.comparison.is_random:
                return _Compared(checks=self.comparison.distribution(built))
            return _Compared(errors=self.comparison.errors_as_built(built))
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            what = (
                f"check the randomness of {spec}"
                if self.comparison.is_random
                else f"find the error of {spec}"
            )
            return _Compared(complaints=(f"There was too little memory to {what}.",))

    def _compare_calm(self, strategy: Strategy, plan: str | None, compared: _Compared) -> _Compared:
        """Add the errors of the chain without its randomness, or why there are none."""
        if self.comparison is None:
            return compared
        try:
            return dataclasses.replace(compared, errors=self.comparison.errors(strategy, plan))
        except (RuntimeError, MemoryError) as failure:
            if not is_out_of_memory(failure):
                raise
            complaint = f"There was too little memory to find the error of {strategy.spec}."
            # Without an error there is no accuracy in the run to hold them.
            wrong = (check for check in compared.checks if not check.passed)
            found = (
                f"The randomness of {strategy.spec} is wrong: {check_words(c)}." for c in wrong
            )
            complaints = (*compared.complaints, complaint, *found)
            return dataclasses.replace(compared, complaints=complaints)

    def _accuracy(self, compared: _Compared, rounding: float) -> Accuracy | None:
        if self.comparison is None or compared.errors is None:
            return None
        return self.comparison.judge(compared.errors, compared.checks, rounding)


def synchronize(device: torch.device) -> None:
    """Wait for the device; a CPU is never behind."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def give_memory_back(device: torch.device, *, thoroughly: bool = True) -> None:
    """Free what the last strategy left, so that the next finds the device as it was.

    Args:
        device: Where it ran.
        thoroughly: Look at everything that this process holds, which takes half a second once a
            compiler is loaded; else only at what is new since that was last done.
    """
    if thoroughly:
        gc.unfreeze()
    gc.collect()
    if thoroughly:
        gc.freeze()
    if device.type == "cuda":
        torch.cuda.empty_cache()
