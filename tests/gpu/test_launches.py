"""Launches on a real GPU: complete, named, counted, and as long as the clock says."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from explorer.engine.cupti.counters import DramCounters
from explorer.engine.fitting import estimate
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.memory import measure_peak
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.measure.stopwatch import time_call
from explorer.engine.measure.trace import names, trace
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import find_strategy
from explorer.engine.strategies.base import Built
from explorer.model.run import Launch

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]

OPS = ("qk", "scale", "mask", "softmax", "dropout", "pv")
BATCH, HEADS, SEQ, DIM = 2, 16, 4096, 64
# bf16: 2 bytes an element.
QKV = BATCH * HEADS * SEQ * DIM * 2
SCORES = BATCH * HEADS * SEQ * SEQ * 2
MASK = SEQ * SEQ * 2
KEEP = BATCH * HEADS * SEQ * SEQ


@dataclass(frozen=True)
class Case:
    spec: str
    built: Built
    record: LaunchRecord
    peak_bytes: int
    estimate_bytes: int


@pytest.fixture(scope="module")
def chosen() -> ChosenChain:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    settings = {"batch": BATCH, "heads": HEADS, "seq_len": SEQ, "head_dim": DIM, "dtype": "bf16"}
    return capture_chain("attention", settings, torch.device("cuda", 0))


@pytest.fixture(scope="module")
def prepared(chosen: ChosenChain) -> Prepared:
    return make_ready(chosen, seed=0)


@pytest.fixture(
    scope="module",
    params=["eager", "cudagraph", "sdpa", "compile", "compile:reduce-overhead"],
)
def case(request: pytest.FixtureRequest, chosen: ChosenChain, prepared: Prepared) -> Iterator[Case]:
    strategy = find_strategy(request.param)
    with observing_compilation() as observation:
        built = strategy.build(prepared)
    with DramCounters() as counters:
        record = record_launches(
            built.call,
            prepared=prepared,
            strategy=strategy.info(built.backend),
            counters=counters,
            observation=observation,
        )
    say(request.param, record)
    peak = measure_peak(built.call, device=prepared.device, uses_graph=built.uses_graph)
    yield Case(
        spec=request.param,
        built=built,
        record=record,
        peak_bytes=peak.peak_bytes,
        estimate_bytes=estimate(chosen.captured.graph, strategy, chosen),
    )
    built.close()
    torch.cuda.empty_cache()


def say(spec: str, record: LaunchRecord) -> None:
    """The launches as a table, worth reading with ``pytest -s``."""
    lines = [f"\n{spec}: {record.counters} {record.warnings}"]
    for launch in record.launches:
        read, written = launch.bytes_read, launch.bytes_written
        lines.append(
            f"  {launch.title:34} {launch.start_us or 0:8.1f} {launch.duration_us or 0:8.1f} us "
            f"read {read.modelled} {read.counted} written {written.modelled} {written.counted} "
            f"{launch.ops} {launch.stays_on_chip} {launch.kernel[:60]} regs {launch.registers} "
            f"spills {launch.spills} {'helper' if launch.is_helper else ''} "
            f"{[(a.tensor, a.bytes_read, a.bytes_written) for a in launch.accesses]}"
        )
    sys.stdout.write("\n".join(lines) + "\n")


def event_time_us(built: Built) -> float:
    """Median time of a call by CUDA events, the host far ahead of the device."""
    timing = time_call(
        built.call,
        device=torch.device("cuda", 0),
        budget_s=0.3,
        cache_bytes=torch.cuda.get_device_properties(0).L2_cache_size,
        read_clocks=lambda: None,
    )
    assert timing.cold is not None
    return timing.cold.median_us


def with_ops(record: LaunchRecord) -> list[Launch]:
    return [launch for launch in record.launches if launch.ops and not launch.is_helper]


def test_every_kernel_that_ran_is_a_launch(case: Case) -> None:
    assert tuple(launch.kernel for launch in case.record.launches) == names(trace(case.built.call))
    assert case.record.warnings == ()


def test_the_ops_are_carried_out_once_each_and_in_order(case: Case) -> None:
    assert tuple(op for launch in with_ops(case.record) for op in launch.ops) == OPS


def test_the_peak_is_within_its_estimate_and_at_least_half_of_it(case: Case) -> None:
    assert case.peak_bytes <= case.estimate_bytes <= 2 * case.peak_bytes


def test_durations_agree_with_the_events(case: Case) -> None:
    """Within 5 %, or the gaps between launches, of which the events see up to 120 µs a call."""
    launches, whole = case.record.launch_total_us, case.record.trace_total_us
    assert launches is not None
    assert whole is not None
    by_events = event_time_us(case.built)
    assert launches <= 1.03 * by_events
    assert by_events <= max(1.05 * launches, launches + 120.0)
    assert whole >= launches


def test_counted_bytes_join(case: Case) -> None:
    assert case.record.counters.joined, case.record.counters.sentence
    for launch in with_ops(case.record):
        assert launch.bytes_read.counted is not None
        assert launch.bytes_written.counted is not None


def test_counted_bytes_add_up_to_what_a_graph_moves(case: Case) -> None:
    counters = case.record.counters
    if not case.built.uses_graph:
        assert counters.total_bytes_read is None
        return
    read = sum(launch.bytes_read.counted or 0 for launch in case.record.launches)
    written = sum(launch.bytes_written.counted or 0 for launch in case.record.launches)
    assert counters.total_bytes_read == pytest.approx(read, rel=0.01)
    assert counters.total_bytes_written == pytest.approx(written, rel=0.01)


def test_copies_into_a_graph_are_counted(case: Case) -> None:
    if case.spec != "compile:reduce-overhead":
        pytest.skip("only Inductor's CUDA graphs copy their inputs")
    copies = [launch for launch in case.record.launches if launch.title == "copy"]
    copied = 3 * QKV + MASK
    read = sum(c.bytes_read.counted or 0 for c in copies)
    assert read == pytest.approx(copied, rel=0.05), case.record.counters.sentence
    # The last of what they write may still be in L2.
    written = sum(c.bytes_written.counted or 0 for c in copies)
    assert 0.3 * copied < written < 1.7 * copied


def test_a_fill_by_the_driver_has_the_bytes_of_the_trace(case: Case) -> None:
    fills = [launch for launch in case.record.launches if launch.kernel.startswith("Memset")]
    for fill in fills:
        assert fill.bytes_read.modelled == 0
        assert fill.bytes_written.modelled


def test_eager_bytes_equal_the_hand_counts(case: Case) -> None:
    if case.spec not in ("eager", "cudagraph"):
        pytest.skip("compiled and fused code launches other kernels")
    qk, scale, mask, softmax, dropout, pv = with_ops(case.record)
    modelled = [
        (launch.bytes_read.modelled, launch.bytes_written.modelled)
        for launch in (qk, scale, mask, softmax, dropout, pv)
    ]
    assert modelled == [
        (2 * QKV, SCORES),
        (SCORES, SCORES),
        (SCORES + MASK, SCORES),
        (SCORES, SCORES),
        (SCORES, SCORES + KEEP),
        (SCORES + QKV, QKV),
    ]
    assert [a.tensor for a in dropout.accesses] == ["probs", "dropped", "keep"]


def test_the_fused_kernel_writes_its_random_numbers(case: Case) -> None:
    """The model sees that buffer because it is an argument, and the counters agree."""
    if case.spec not in ("compile", "compile:reduce-overhead"):
        pytest.skip("only compiled code fuses these ops")
    fused = next(launch for launch in case.record.launches if "softmax" in launch.ops)
    assert fused.ops == ("scale", "mask", "softmax", "dropout")
    assert fused.stays_on_chip == ("scaled", "masked", "probs")
    written = {a.tensor: a.bytes_written for a in fused.accesses}
    assert written["random numbers"] == 2 * SCORES
    assert written["dropped"] == SCORES
    assert fused.bytes_written.modelled == pytest.approx(fused.bytes_written.counted, rel=0.05)
    assert fused.code is not None
    assert "tl.store" in case.record.code[fused.code]
    assert fused.spills is not None
