"""The launches of one call: what each reads and writes, which ops it carries out, when it ran.

Several passes, because none sees everything: one records each call's tensors, one labels the calls
for the profiler, some are traced for the times, one is counted. What does not agree between them is
not joined, and a sentence says so.
"""

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch

from explorer.engine.bound import BoundFunction
from explorer.engine.cupti.counters import RangeBytes
from explorer.engine.internals import InternalMovedError
from explorer.engine.measure.assemble import (
    Recorded,
    generated_sources,
    on_gpu,
    traced_alone,
    with_counts,
    with_times,
)
from explorer.engine.measure.calls import RecordedCall
from explorer.engine.measure.counting import Call, Counted, CounterSource, count_launches
from explorer.engine.measure.library_ops import with_library_ops
from explorer.engine.measure.naming import name_tensors
from explorer.engine.measure.observe_compile import CompileObservation
from explorer.engine.measure.provenance import find_origins, source_files
from explorer.engine.measure.recorder import (
    CallLabels,
    CallLog,
    CallTimer,
    TimedCall,
    calls_compiled_graph,
    observed,
    without_cuda_graphs,
)
from explorer.engine.measure.trace import (
    GpuEvent,
    common_axis,
    names,
    places_of,
    trace,
    trace_calls,
)
from explorer.engine.prepared import Prepared
from explorer.engine.strategies.base import BuiltGroup, LibraryOps
from explorer.model.device import DeviceKind
from explorer.model.run import Counters, Launch, StrategyInfo
from explorer.model.tensor import Tensor

_TRACED_CALLS = 5
_MODEL_ONLY = "Bytes are modelled: there are no counters of memory traffic on a CPU."
_NOT_RECORDED = "There are neither modelled nor counted bytes: the launches could not be recorded."
_NOT_ASKED = "Bytes are modelled: no counters were asked for."


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """Everything known of the launches of one call.

    Attributes:
        launches: In order; on CUDA everything the GPU did, helpers among them.
        tensors: That they touch in memory.
        code: Generated source by kernel name.
        counters: How the counted bytes were taken, or why there are none.
        trace_total_us: First launch's start to last launch's end.
        launch_total_us: Sum of the durations.
        groups: For each launch, the place of the plan's group that it carries out; None where
            there is no plan, or where it is not known.
        warnings: What could not be recorded, in sentences.
    """

    launches: tuple[Launch, ...]
    tensors: tuple[Tensor, ...]
    code: dict[str, str]
    counters: Counters
    trace_total_us: float | None
    launch_total_us: float | None
    warnings: tuple[str, ...]
    groups: tuple[int | None, ...] = ()


def record_launches(
    call: Call,
    *,
    prepared: Prepared,
    strategy: StrategyInfo,
    counters: CounterSource | None,
    observation: CompileObservation | None = None,
    groups: Sequence[BuiltGroup] = (),
    library: LibraryOps | None = None,
) -> LaunchRecord:
    """Find out what one call launches. It is called about ten times.

    The launches of a CUDA graph are recorded on its twin, the same kernels launched one by one:
    for ``cudagraph`` the chain as written, for compiled code the code that was captured.

    Args:
        call: Runs the chain once; warmed up, and compiled if it compiles.
        prepared: The chain that it runs.
        strategy: How it runs.
        counters: Count DRAM bytes; None for none.
        observation: What :func:`observing_compilation` saw while ``call`` was compiled; without
            it, compiled launches have no ops.
        groups: Of a fusion plan, in the order in which ``call`` runs them.
        library: Which ops the kernels of a library carry out; None where none runs.
    """
    recorder = _Recorder(
        call=call,
        prepared=prepared,
        strategy=strategy,
        observation=observation,
        groups=groups,
        library=library,
        warnings=[],
    )
    if prepared.kind is DeviceKind.CPU:
        return recorder.on_cpu()
    with torch.cuda.device(prepared.device):
        return recorder.on_cuda(counters)


@dataclass(slots=True)
class _Recorder:
    call: Call
    prepared: Prepared
    strategy: StrategyInfo
    observation: CompileObservation | None
    groups: Sequence[BuiltGroup]
    library: LibraryOps | None
    warnings: list[str]

    def on_cpu(self) -> LaunchRecord:
        """Record the calls, then time them in passes of their own."""
        try:
            is_compiled = calls_compiled_graph(self.call)
            recorded = self._record(self.call, is_compiled)
        except InternalMovedError as error:
            self.warnings.append(f"The launches are not known: {error}")
            return self._result((), None, Counters(sentence=_NOT_RECORDED))
        launches = recorded.launches()
        expected = tuple(call.name for call in recorded.calls)
        passes = [self._timed(is_compiled) for _ in range(_TRACED_CALLS)]
        same = [p for p in passes if tuple(call.name for call in p) == expected]
        if same:
            axis = [[(c.start_ns / 1e3, c.duration_ns / 1e3) for c in timed] for timed in same]
            launches = with_times(launches, common_axis(axis))
        else:
            self.warnings.append("No two calls launched the same: the launches have no times.")
        everyone = tuple(range(len(launches)))
        return self._result(launches, recorded, Counters(sentence=_MODEL_ONLY), everyone)

    def on_cuda(self, counters: CounterSource | None) -> LaunchRecord:
        """Trace the call, record its twin, and join the two by the names of the kernels."""
        passes = self._traced(self.call)
        events = passes[0]
        slots = common_axis([[(e.start_us, e.duration_us) for e in p] for p in passes])
        twin = self._twin()
        try:
            is_compiled = calls_compiled_graph(self.call)
            recorded, labelled = self._on_twin(twin, is_compiled)
        except InternalMovedError as error:
            self.warnings.append(f"Only names and times of the launches are known: {error}")
            return self._result(traced_alone(events, slots), None, Counters(sentence=_NOT_RECORDED))
        places = places_of(events, labelled)
        if recorded is None or places is None:
            if recorded is not None:
                self._say_what_differs(labelled, events)
            return self._result(traced_alone(events, slots), None, Counters(sentence=_NOT_RECORDED))
        made_by = dict(zip(places, (event.call for event in labelled), strict=True))
        calls = [made_by.get(place) for place in range(len(events))]
        launches = on_gpu(events, slots, calls, recorded.launches())
        bare = _launch_by_launch(twin) if is_compiled else twin
        if counters is None:
            return self._result(launches, recorded, Counters(sentence=_NOT_ASKED), calls)
        replay = self.call if any(event.in_graph for event in events) else None
        counted = count_launches(counters, bare, replay)
        kernels = [p for p, event in zip(places, labelled, strict=True) if event.is_kernel]
        if len(counted.ranges) == len(kernels):
            launches = with_counts(launches, dict(zip(kernels, counted.ranges, strict=True)))
        launches = with_counts(launches, _beside(events, counted))
        return self._result(launches, recorded, counted.counters, calls)

    def _observed(
        self, observer: CallLog | CallLabels | CallTimer, is_compiled: bool
    ) -> AbstractContextManager[None]:
        """See the calls; of somebody's own code also those between its compiled graphs."""
        is_own = isinstance(self.prepared.function, BoundFunction)
        return observed(observer, is_compiled=is_compiled, has_breaks=is_own and is_compiled)

    def _twin(self) -> Call:
        """What launches the same kernels one by one."""
        if self.strategy.name != "cudagraph":
            return self.call
        return self.prepared.caller(self.prepared.function)

    def _on_twin(
        self, twin: Call, is_compiled: bool
    ) -> tuple[Recorded | None, tuple[GpuEvent, ...]]:
        """The calls, and a trace that tells which of them launched what."""
        try:
            recorded = self._record(twin, is_compiled)
            labels = CallLabels()

            def labelled() -> None:
                with self._observed(labels, is_compiled):
                    twin()

            events = trace(labelled, with_labels=True)
        except torch.OutOfMemoryError:
            self.warnings.append(
                "There was no room to run the launches one by one beside the CUDA graph, so only "
                "their names and times are known; a smaller chain leaves room."
            )
            return None, ()
        if tuple(labels.names) != tuple(call.name for call in recorded.calls):
            self.warnings.append(
                "Two calls launched different things, so only names and times of the launches are "
                "known."
            )
            return None, ()
        return recorded, events

    def _record(self, call: Call, is_compiled: bool) -> Recorded:
        log = CallLog(
            device_type=self.prepared.device.type,
            source_files=source_files(self.prepared),
        )
        with self._observed(log, is_compiled):
            call()
        calls = self._by_group(log)
        origins = find_origins(calls, self.prepared, self.observation)
        if self.library is not None:
            told = with_library_ops(calls, origins.calls, self.prepared, self.library)
            origins = replace(origins, calls=told)
        named = name_tensors(calls, origins, self.prepared)
        if any(
            recorded.module is not None and origin.notes is None
            for recorded, origin in zip(calls, origins.calls, strict=True)
        ):
            self.warnings.append(
                "The compilation was not observed, so it is unknown which ops the compiled "
                "launches carry out."
            )
        return Recorded(calls=tuple(calls), origins=origins, named=named)

    def _by_group(self, log: CallLog) -> list[RecordedCall]:
        """The calls of a plan, each under the notes of its own group.

        Groups that are alike run the same module, so that the module does not tell them apart.
        """
        if not self.groups:
            return [replace(call, graph=None) for call in log.calls]
        if log.n_graphs != len(self.groups):
            self.warnings.append(
                f"{log.n_graphs} compiled graphs ran for the {len(self.groups)} groups of the "
                "plan, so that it is unknown which launches carry out which group."
            )
            return [replace(call, graph=None) for call in log.calls]
        calls = []
        for call in log.calls:
            notes = None if call.graph is None else self.groups[call.graph].notes
            calls.append(call if notes is None else replace(call, module_key=notes.key))
        return calls

    def _timed(self, is_compiled: bool) -> list[TimedCall]:
        timer = CallTimer()
        with self._observed(timer, is_compiled):
            self.call()
        return timer.calls

    def _traced(self, call: Call) -> list[tuple[GpuEvent, ...]]:
        """Several traces that list the same launches."""
        passes = trace_calls(call, _TRACED_CALLS)
        [(usual, count)] = Counter(names(events) for events in passes).most_common(1)
        if count < len(passes):
            self.warnings.append(
                f"{len(passes) - count} of {len(passes)} traced calls launched something else and "
                "were left out."
            )
        return [events for events in passes if names(events) == usual]

    def _say_what_differs(self, labelled: Sequence[GpuEvent], events: Sequence[GpuEvent]) -> None:
        missing = Counter(names(labelled)) - Counter(names(events))
        example = next(iter(missing), "the order")
        self.warnings.append(
            "The launches that were recorded one by one are not those of the traced call "
            f"({example} differs), so only names and times are known."
        )

    def _result(
        self,
        launches: tuple[Launch, ...],
        recorded: Recorded | None,
        counters: Counters,
        made_by: Sequence[int | None] = (),
    ) -> LaunchRecord:
        """Put it all together; ``made_by`` is the call behind each launch."""
        calls = () if recorded is None else recorded.calls
        code, _ = generated_sources(calls)
        timed = [
            (launch.start_us, launch.duration_us)
            for launch in launches
            if launch.start_us is not None and launch.duration_us is not None
        ]
        first = min((start for start, _ in timed), default=0.0)
        return LaunchRecord(
            launches=launches,
            tensors=() if recorded is None else recorded.named.tensors,
            code=code,
            counters=counters,
            trace_total_us=max(start + length for start, length in timed) - first
            if timed
            else None,
            launch_total_us=sum(length for _, length in timed) if timed else None,
            warnings=tuple(dict.fromkeys(self.warnings)),
            groups=tuple(None if call is None else calls[call].graph for call in made_by),
        )


def _beside(events: Sequence[GpuEvent], counted: Counted) -> dict[int, RangeBytes]:
    """The place of each kernel that was counted beside a graph: the first of the call."""
    outside = [i for i, event in enumerate(events) if event.is_kernel and not event.in_graph]
    beside = [name for name, _ in counted.beside]
    if [events[place].name for place in outside[: len(beside)]] != beside:
        return {}
    return {place: part for place, (_, part) in zip(outside, counted.beside, strict=False)}


def _launch_by_launch(call: Call) -> Call:
    def bare() -> object:
        with without_cuda_graphs():
            return call()

    return bare
