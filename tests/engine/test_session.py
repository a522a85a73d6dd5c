"""Whole requests on the CPU, small ones, with whatever may go wrong on the way."""

import dataclasses
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from explorer.engine import measuring, session
from explorer.engine.comparison import Comparison
from explorer.engine.faults import NoRoomError
from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.prepared import Prepared
from explorer.engine.session import Session
from explorer.engine.strategies import Built, Strategy, find_strategy
from explorer.engine.strategies.base import PeakFamily, always
from explorer.model.comparison import distrust
from explorer.model.device import Ceilings, Device
from explorer.model.errors import UsageError
from explorer.model.messages import (
    CeilingsMeasured,
    CeilingsRequest,
    GraphCaptured,
    GraphRequest,
    Progress,
    Reply,
    Request,
    RunFinished,
    RunRequest,
    Stage,
)
from explorer.model.run import Clock, Direction, Run, Scalar
from explorer.worker.protocol import decode_reply, encode
from tests.engine.returned import only

SMALL: dict[str, Scalar] = {"heads": 2, "seq_len": 64, "head_dim": 16}
FOUND = Ceilings(
    copy_bytes_per_s=2e10,
    read_bytes_per_s=2e10,
    write_bytes_per_s=1e10,
    flops_per_s={"fp32": 1e11},
    measured_at="2026-01-01T00:00:00+00:00",
)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session whose cache is empty and whose ceilings take no time."""
    monkeypatch.setattr(session, "measure_ceilings", lambda _device: FOUND)
    return Session(CeilingsStore(tmp_path / "ceilings.json"))


def replies(engine: Session, request: Request) -> list[Reply]:
    """What a request is answered; each reply has to survive the pipe."""
    got: list[Reply] = []
    engine.handle(request, got.append)
    assert [decode_reply(encode(reply)) for reply in got] == got
    return got


def runs(engine: Session, *specs: str, **changes: object) -> list[Run]:
    request = RunRequest(chain="attention", parameters=SMALL, strategies=specs, timing_s=0.02)
    got = replies(engine, dataclasses.replace(request, **changes))  # type: ignore[arg-type] # kwargs
    return [reply.run for reply in got if isinstance(reply, RunFinished)]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> list[Reply]:
    """One request with everything in it, for several tests to look at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "measure_ceilings", lambda _device: FOUND)
        engine = Session(CeilingsStore(tmp_path_factory.mktemp("cache") / "ceilings.json"))
        return replies(
            engine,
            RunRequest(
                chain="attention",
                parameters=SMALL,
                strategies=("sdpa", "eager", "compile"),
                timing_s=0.05,
            ),
        )


def measured_runs(measured: list[Reply]) -> list[Run]:
    return [reply.run for reply in measured if isinstance(reply, RunFinished)]


def test_the_graph_comes_first_then_one_run_a_strategy_in_order(measured: list[Reply]) -> None:
    without_progress = [reply for reply in measured if not isinstance(reply, Progress)]
    assert [type(reply) for reply in without_progress] == [
        GraphCaptured,
        CeilingsMeasured,
        RunFinished,
        RunFinished,
        RunFinished,
    ]
    assert [run.strategy.spec for run in measured_runs(measured)] == ["sdpa", "eager", "compile"]
    assert [run.error for run in measured_runs(measured)] == [None, None, None]


def test_progress_never_goes_back_and_names_each_step(measured: list[Reply]) -> None:
    steps = [reply for reply in measured if isinstance(reply, Progress)]
    fractions = [step.fraction for step in steps if step.fraction is not None]
    assert len(fractions) == len(steps)
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < fractions[-1] < 1
    of_compile = [step.stage for step in steps if step.strategy == "compile"]
    assert of_compile == [Stage.COMPILE, Stage.TRACE, Stage.TIMING, Stage.ACCURACY]


def test_a_run_holds_everything_that_a_cpu_can_tell(measured: list[Reply]) -> None:
    _, eager, compiled = measured_runs(measured)
    assert eager.device.ceilings == FOUND
    assert [op.name for op in eager.graph.ops] == [
        "qk",
        "scale",
        "mask",
        "softmax",
        "dropout",
        "pv",
    ]
    assert eager.timing is not None
    assert eager.timing.cold is not None
    assert eager.timing.cold.clock is Clock.HOST
    assert eager.timing.launch_total_us is not None
    assert eager.launches
    assert all(launch.bytes_read.modelled is not None for launch in eager.launches)
    assert eager.memory is not None
    # While dropout runs: masked, probs, the random numbers and the result.
    assert eager.memory.peak_bytes == pytest.approx(4 * 2 * 64 * 64 * 4, rel=0.2)
    # Three of them are named tensors, each in a block that may be a MiB larger.
    assert eager.memory.estimate_bytes == 4 * 2 * 64 * 64 * 4 + 3 * (1 << 20)
    assert eager.memory.inputs_bytes == (3 * 2 * 64 * 16 + 64 * 64) * 4
    assert eager.memory.intermediates >= 5
    assert eager.compile is None
    assert compiled.compile is not None
    assert compiled.compile.first_call_s > 0
    assert compiled.code
    assert len(compiled.launches) < len(eager.launches)
    assert compiled.memory is not None
    assert compiled.memory.peak_bytes < eager.memory.peak_bytes


def test_errors_are_against_fp64_and_dropout_is_checked(measured: list[Reply]) -> None:
    for run in measured_runs(measured):
        assert run.accuracy is not None
        assert run.accuracy.passed
        assert run.accuracy.coverage == 1.0
        assert 0 < run.accuracy.max_abs_error < 1e-5
        assert [check.passed for check in run.accuracy.distribution] == [True, True, True]


def test_what_really_ran_is_named(measured: list[Reply]) -> None:
    sdpa, eager, _ = measured_runs(measured)
    assert sdpa.strategy.backend == "math (not fused)"
    assert eager.strategy.backend is None


def test_ceilings_are_measured_once(engine: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    times: list[Device] = []

    def measure(device: Device) -> Ceilings:
        times.append(device)
        return FOUND

    monkeypatch.setattr(session, "measure_ceilings", measure)
    for force in (False, False, True):
        got = replies(engine, CeilingsRequest(force=force))
        assert got == [CeilingsMeasured(device="cpu", ceilings=FOUND)]
    assert len(times) == 2
    [run] = runs(engine, "eager")
    assert len(times) == 2
    assert run.device.ceilings == FOUND


def test_without_ceilings_a_run_goes_on(engine: Session) -> None:
    [run] = runs(engine, "eager", measure_ceilings=False)
    assert run.error is None
    assert run.device.ceilings is None


def test_a_graph_is_captured_without_running(engine: Session) -> None:
    [reply] = replies(engine, GraphRequest(chain="attention", parameters={"seq_len": 1_048_576}))
    assert isinstance(reply, GraphCaptured)
    assert reply.parameters["seq_len"] == 1_048_576
    assert reply.estimate_bytes == 4 * 4 * 1_048_576**2 * 4 + 3 * (1 << 20)
    assert reply.device == "cpu"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"chain": "attentoin"}, "There is no chain 'attentoin'"),
        ({"parameters": {"seqlen": 4}}, "attention has no parameter 'seqlen'"),
        ({"parameters": {"dropout": 1.0}}, "dropout=1.0 is out of range"),
        ({"strategies": ("eager", "fast")}, "There is no strategy 'fast'"),
        ({"strategies": ("eager", "cudagraph")}, "cudagraph needs an NVIDIA GPU"),
        ({"strategies": ()}, "No strategy was named"),
        ({"device": "cuda:7"}, "There is no device 'cuda:7' here"),
        (
            {"chain": "adam", "parameters": {}, "direction": Direction.FORWARD_BACKWARD},
            "adam has no backward pass",
        ),
        ({"timing_s": 0.0}, "timing_s=0.0 is no time"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"seed": 1 << 64}, "seed=18446744073709551616 is out of range"),
    ],
    ids=str,
)
def test_what_is_not_there_is_refused_before_anything_runs(
    engine: Session, changes: dict[str, object], sentence: str
) -> None:
    got: list[Reply] = []
    request = RunRequest(chain="attention", parameters=SMALL)
    with pytest.raises(UsageError) as caught:
        engine.handle(dataclasses.replace(request, **changes), got.append)  # type: ignore[arg-type] # kwargs
    assert str(caught.value).startswith(sentence)
    assert all(isinstance(reply, Progress) for reply in got)


def test_what_cannot_fit_is_a_failed_run_and_allocates_nothing(engine: Session) -> None:
    huge: dict[str, Scalar] = {**SMALL, "seq_len": 1_048_576, "dropout": 0.0, "mask": "none"}
    [run] = runs(engine, "eager", parameters=huge)
    assert run.error is not None
    assert "the largest size that fits is seq_len=" in run.error
    assert run.launches == ()
    assert run.timing is None


def test_where_eager_does_not_fit_its_error_is_taken_by_slices(
    engine: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_chosen: object, strategy: Strategy, _room: object) -> str | None:
        return "eager does not fit." if strategy.name == "eager" else None

    [before] = runs(engine, "sdpa")
    monkeypatch.setattr(session, "refuse", refuse)
    eager, sdpa = runs(engine, "eager", "sdpa")
    assert eager.error == "eager does not fit."
    assert sdpa.accuracy is not None
    assert before.accuracy is not None
    assert sdpa.accuracy.passed
    assert sdpa.accuracy.eager_max_abs_error == pytest.approx(
        before.accuracy.eager_max_abs_error, rel=1.0
    )


def strategy_that(build: Callable[[Prepared], Built]) -> Strategy:
    return Strategy(
        name="broken",
        title="Broken",
        build=build,
        peak=always(PeakFamily.EAGER),
    )


@pytest.fixture
def break_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Prepared], Built]], None]:
    """Puts a strategy ``broken`` into the table."""

    def put(build: Callable[[Prepared], Built]) -> None:
        broken = strategy_that(build)

        def find(spec: str) -> Strategy:
            return broken if spec == "broken" else find_strategy(spec)

        monkeypatch.setattr(session, "find_strategy", find)

    return put


def raising(error: Exception) -> Callable[[Prepared], Built]:
    def build(_prepared: Prepared) -> Built:
        raise error

    return build


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "broken ran out of memory"),
        (ValueError("no such thing"), "broken was stopped by ValueError: no such thing."),
    ],
    ids=str,
)
def test_a_strategy_that_fails_is_a_run_with_a_sentence_and_the_rest_goes_on(
    engine: Session,
    break_with: Callable[[Callable[[Prepared], Built]], None],
    error: Exception,
    sentence: str,
) -> None:
    break_with(raising(error))
    broken, eager = runs(engine, "broken", "eager")
    assert broken.error is not None
    assert broken.error.startswith(sentence)
    assert broken.launches == ()
    assert eager.error is None
    assert not engine.needs_restart


def test_after_a_fault_on_the_device_nothing_more_runs_and_the_worker_must_restart(
    engine: Session, break_with: Callable[[Callable[[Prepared], Built]], None]
) -> None:
    break_with(raising(RuntimeError("CUDA error: device-side assert triggered")))
    broken, eager = runs(engine, "broken", "eager")
    assert broken.error is not None
    assert "faulted on the device" in broken.error
    assert eager.error is not None
    assert eager.error.startswith("eager was not run")
    assert engine.needs_restart


def test_a_result_that_is_not_finite_does_not_pass(
    engine: Session, break_with: Callable[[Callable[[Prepared], Built]], None]
) -> None:
    def build(prepared: Prepared) -> Built:
        def call() -> torch.Tensor:
            with torch.no_grad():
                return only(prepared.function(*prepared.inputs.values())) / 0.0

        return Built(call=call)

    break_with(build)
    [run] = runs(engine, "broken", parameters={**SMALL, "dropout": 0.0})
    assert run.error is None
    assert run.accuracy is not None
    assert not run.accuracy.passed
    assert run.accuracy.not_finite == 2 * 64 * 16
    assert distrust(run) == "Its result is wrong: 2,048 values of it are no finite numbers."


def test_a_wrong_result_does_not_pass(
    engine: Session, break_with: Callable[[Callable[[Prepared], Built]], None]
) -> None:
    def build(prepared: Prepared) -> Built:
        def call() -> torch.Tensor:
            with torch.no_grad():
                return only(prepared.function(*prepared.inputs.values())) * 1.001

        return Built(call=call)

    break_with(build)
    broken, eager = runs(engine, "broken", "eager")
    assert broken.accuracy is not None
    assert eager.accuracy is not None
    assert not broken.accuracy.passed
    assert eager.accuracy.passed


def test_without_room_for_the_reference_a_run_has_the_rest(
    engine: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_arguments: object) -> None:
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(session, "Comparison", no_room)
    [run] = runs(engine, "eager")
    assert run.error is None
    assert run.launches
    assert run.accuracy is None
    assert "The error is not known: there was too little memory to compute it." in run.warnings


def without_memory(*_arguments: object, **_named: object) -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def once_without_memory(
    patch: pytest.MonkeyPatch, owner: object, name: str
) -> list[weakref.ref[torch.Tensor]]:
    """Let a function fail the first time, with a large tensor in its hands."""
    original = getattr(owner, name)
    failed: list[weakref.ref[torch.Tensor]] = []

    def fails_once(*arguments: object, **named: object) -> object:
        if failed:
            assert failed[0]() is None, "the memory of the strategy that failed is still held"
            return original(*arguments, **named)
        held = torch.ones(1 << 20)
        failed.append(weakref.ref(held))
        without_memory(held)
        return held

    patch.setattr(owner, name, fails_once)
    return failed


@pytest.mark.parametrize("stage", ["measure_peak", "record_launches", "time_call"])
def test_without_memory_in_a_stage_the_run_fails_and_the_next_has_it_back(
    engine: Session, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    failed = once_without_memory(monkeypatch, measuring, stage)
    sdpa, eager = runs(engine, "sdpa", "eager")
    assert failed
    assert sdpa.error == "sdpa ran out of memory; choose a smaller seq_len or batch."
    assert sdpa.launches == ()
    assert eager.error is None
    assert not engine.needs_restart


@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        ("distribution", "There was too little memory to check the randomness of sdpa."),
        ("errors", "There was too little memory to find the error of sdpa."),
    ],
)
def test_without_memory_for_the_accuracy_the_rest_of_the_run_stands(
    engine: Session, monkeypatch: pytest.MonkeyPatch, step: str, sentence: str
) -> None:
    # Eager's own error comes first, by the same way.
    monkeypatch.setattr(Comparison, "measure_eager", lambda _self, *, whole: None)
    failed = once_without_memory(monkeypatch, Comparison, step)
    sdpa, eager = runs(engine, "sdpa", "eager")
    assert failed
    assert sdpa.error is None
    assert sdpa.launches
    assert sdpa.timing is not None
    assert sentence in sdpa.warnings
    assert (sdpa.accuracy is None) is (step == "errors")
    assert not any("too little memory" in warning for warning in eager.warnings)
    assert eager.accuracy is not None


def test_wrong_randomness_is_told_even_where_there_is_no_room_for_the_error(
    engine: Session,
    monkeypatch: pytest.MonkeyPatch,
    break_with: Callable[[Callable[[Prepared], Built]], None],
) -> None:
    def build(prepared: Prepared) -> Built:
        def call() -> torch.Tensor:
            with torch.no_grad():
                return only(prepared.function(*prepared.inputs.values())) * 0.5

        return Built(call=call)

    break_with(build)
    monkeypatch.setattr(Comparison, "measure_eager", lambda _self, *, whole: None)
    once_without_memory(monkeypatch, Comparison, "errors")
    [run] = runs(engine, "broken")
    assert run.accuracy is None
    assert "There was too little memory to find the error of broken." in run.warnings
    assert any(
        warning.startswith("The randomness of broken is wrong: mean after dropout")
        for warning in run.warnings
    )


def test_without_memory_for_the_inputs_each_strategy_says_so(
    engine: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "make_ready", without_memory)
    eager, sdpa = runs(engine, "eager", "sdpa")
    assert eager.error == "eager ran out of memory; choose a smaller seq_len or batch."
    assert sdpa.error == "sdpa ran out of memory; choose a smaller seq_len or batch."


def test_without_memory_for_the_ceilings_a_run_goes_on(
    engine: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "measure_ceilings", without_memory)
    [run] = runs(engine, "eager")
    assert run.error is None
    assert run.device.ceilings is None
    assert run.launches
    assert run.warnings[0].startswith(f"The ceilings of {run.device.name} are not known")
    with pytest.raises(NoRoomError, match="close what else uses it"):
        engine.handle(CeilingsRequest(), lambda _reply: None)
