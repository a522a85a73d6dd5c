"""Counted bytes and traced times, against ncu, against known bytes, and beside other users."""

import csv
import io
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from explorer.engine.cupti.counters import DramCounters, RangeBytes, counter_ability
from explorer.engine.cupti.errors import HARDWARE_BUSY, CounterRefused
from explorer.engine.measure.known_bytes import check_known_bytes
from explorer.engine.measure.trace import trace_calls
from tests.gpu.eager_attention import attention

pytestmark = pytest.mark.gpu

Work = Callable[[], object]

OPS = ("qk", "scale", "mask", "softmax", "dropout", "pv")
CALLS = 20
NCU_METRICS = ("dram__bytes_read.sum", "dram__bytes_write.sum", "gpu__time_duration.sum")
HOLDER = """
import sys
from explorer.engine.cupti.counters import DramCounters

def hold():
    print("held", flush=True)
    sys.stdin.readline()

with DramCounters() as counters:
    counters.measure_total(hold)
"""


@pytest.fixture(scope="module")
def work() -> Work:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return attention()


@pytest.fixture
def counters(work: Work) -> Iterator[DramCounters]:
    with DramCounters() as opened:
        yield opened


def say(line: str) -> None:
    """A figure worth reading with ``pytest -s`` or ``-rP``."""
    sys.stdout.write(f"\n{line}")


@pytest.fixture(scope="module")
def ncu_calls(work: Work) -> list[list[RangeBytes]]:
    """The launches of each of several calls as ncu counts them, caches and clocks left alone."""
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("ncu is not installed")
    command = [ncu, "--profile-from-start", "off", "--clock-control", "none"]
    command += ["--cache-control", "none", "--csv", "--print-units", "base", "--page", "raw"]
    command += ["--metrics", ",".join(NCU_METRICS), sys.executable, "-m"]
    command += ["tests.gpu.eager_attention", str(CALLS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    table = done.stdout[done.stdout.find('"ID"') :]
    rows = [row for row in csv.DictReader(io.StringIO(table)) if row["ID"]]
    assert len(rows) == CALLS * len(OPS), f"{done.stdout[-800:]} {done.stderr[-800:]}"
    launches = [
        RangeBytes(
            bytes_read=round(float(row[NCU_METRICS[0]].replace(",", ""))),
            bytes_written=round(float(row[NCU_METRICS[1]].replace(",", ""))),
            duration_us=float(row[NCU_METRICS[2]].replace(",", "")) / 1000,
        )
        for row in rows
    ]
    return [launches[place : place + len(OPS)] for place in range(0, len(launches), len(OPS))]


def table_line(name: str, own: RangeBytes, other: RangeBytes) -> str:
    return (
        f"{name:8} read {own.bytes_read / 1e6:8.1f} {other.bytes_read / 1e6:8.1f} MB   "
        f"written {own.bytes_written / 1e6:8.1f} {other.bytes_written / 1e6:8.1f} MB   "
        f"{own.duration_us or 0:7.1f} {other.duration_us or 0:7.1f} us   "
        f"requested {(own.bytes_requested or 0) / 1e6:8.1f} MB"
    )


def test_each_launch_counts_what_ncu_counts(
    counters: DramCounters, work: Work, ncu_calls: list[list[RangeBytes]]
) -> None:
    theirs = ncu_calls[0]
    reading = counters.measure(work)
    assert len(reading.ranges) == len(OPS)
    say(f"set-up {reading.set_up_s:.3f} s, run {reading.run_s:.3f} s, {reading.passes} pass")
    for op, own, other in zip(OPS, reading.ranges, theirs, strict=True):
        say(table_line(op, own, other))
    for place, (own, other) in enumerate(zip(reading.ranges, theirs, strict=True)):
        traffic = other.bytes_read + other.bytes_written
        assert abs(own.bytes_read - other.bytes_read) <= 0.01 * traffic, (OPS[place], own, other)
        if place > 0:  # the first writes back what lay dirty in the L2 before it
            off = abs(own.bytes_written - other.bytes_written)
            assert off <= 0.01 * traffic, (OPS[place], own, other)


def spread(samples: list[float]) -> float:
    """Distance of the quartiles from each other, as a share of the median."""
    quartiles = statistics.quantiles(samples, n=4)
    return (quartiles[2] - quartiles[0]) / quartiles[1]


def test_durations_of_the_trace_are_those_of_ncu(
    work: Work, ncu_calls: list[list[RangeBytes]]
) -> None:
    """Within 3 % of the median, or the run-to-run spread where that is larger."""
    calls = [[e for e in call if e.is_kernel] for call in trace_calls(work, CALLS)]
    assert [len(call) for call in calls] == [len(OPS)] * CALLS
    wrong = []
    for place, op in enumerate(OPS):
        own = [call[place].duration_us for call in calls]
        theirs = [call[place].duration_us or 0.0 for call in ncu_calls]
        ours, other = statistics.median(own), statistics.median(theirs)
        allowed = max(0.03, spread(own), spread(theirs))
        line = f"{op:8} {ours:8.1f} us, ncu {other:8.1f} us, {ours / other - 1:+.2%}"
        say(f"{line}, allowed {allowed:.1%}")
        if abs(ours / other - 1) > allowed:
            wrong.append(line)
    assert wrong == []


def test_replayed_kernels_count_as_those_run_once(counters: DramCounters, work: Work) -> None:
    once = counters.measure(work)
    with DramCounters(replay_kernels=True) as replaying:
        replayed = replaying.measure(work)
    for op, first, second in zip(OPS, once.ranges, replayed.ranges, strict=True):
        say(table_line(op, first, second))
    for first, second in zip(once.ranges, replayed.ranges, strict=True):
        traffic = second.bytes_read + second.bytes_written
        assert abs(first.bytes_read - second.bytes_read) <= 0.01 * traffic
        assert abs(first.bytes_written - second.bytes_written) <= 0.03 * traffic


def test_hundreds_of_launches_are_told_apart(counters: DramCounters, work: Work) -> None:
    sizes_mib = [1 << (place % 5) for place in range(300)]
    sources = {size: torch.rand(size << 18, device="cuda") for size in set(sizes_mib)}
    targets = {size: torch.empty_like(source) for size, source in sources.items()}

    def many() -> None:
        for size in sizes_mib:
            torch.neg(sources[size], out=targets[size])

    many()
    reading = counters.measure(many, expected_launches=len(sizes_mib))
    say(f"{len(sizes_mib)} launches: set-up {reading.set_up_s:.3f} s, run {reading.run_s:.3f} s")
    requested = [(item.bytes_requested or 0) / 2**20 for item in reading.ranges]
    assert requested == pytest.approx([2 * size for size in sizes_mib], rel=0.02)


def test_the_chain_is_counted_within_the_time_that_is_promised(work: Work) -> None:
    with DramCounters() as counters:
        reading = counters.measure(work)
    assert reading.passes == 1
    assert reading.run_calls == 1
    assert reading.set_up_s + reading.run_s < 1.5


def test_known_bytes_agree_within_one_percent(counters: DramCounters) -> None:
    checks = check_known_bytes(counters=counters)
    for check in checks:
        say(f"{check}, relative error {check.relative_error:.4f}")
    assert [check.name for check in checks] == ["copy", "fill", "read"]
    assert all(check.agrees for check in checks)


def test_a_graph_replay_counts_as_the_eager_chain_does(counters: DramCounters, work: Work) -> None:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    graph.replay()
    eager = counters.measure_total(work)
    replayed = counters.measure_total(graph.replay)
    assert len(replayed.ranges) == 1
    assert replayed.bytes_read == pytest.approx(eager.bytes_read, rel=0.01)
    assert replayed.bytes_written == pytest.approx(eager.bytes_written, rel=0.01)


def test_more_launches_than_there_was_room_for_are_all_counted(
    counters: DramCounters, work: Work
) -> None:
    reading = counters.measure(work, expected_launches=2)
    assert len(reading.ranges) == len(OPS)
    assert reading.run_calls == 2


def test_work_that_fails_leaves_the_counters_free(counters: DramCounters, work: Work) -> None:
    def fail() -> None:
        work()
        raise ZeroDivisionError

    for measure in (counters.measure, counters.measure_total):
        with pytest.raises(ZeroDivisionError):
            measure(fail)
        assert len(counters.measure(work).ranges) == len(OPS)


def test_the_trace_and_the_counters_take_turns(counters: DramCounters, work: Work) -> None:
    for _ in range(2):
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as trace:
            work()
            torch.cuda.synchronize()
        events = trace.events() or ()
        kernels = [event for event in events if "CUDA" in str(event.device_type)]
        kernels = [event for event in kernels if not event.name.startswith(("Memset", "Memcpy"))]
        assert len(kernels) == len(OPS)
        assert len(counters.measure(work).ranges) == len(OPS)


def test_counters_held_by_another_process_are_refused_as_busy(
    counters: DramCounters, work: Work
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(CounterRefused) as refused:
            counters.measure(work)
        holder.communicate("\n", timeout=60)
    assert refused.value.code == HARDWARE_BUSY
    assert len(counters.measure(work).ranges) == len(OPS)


def test_the_ability_says_how_bytes_are_counted(work: Work) -> None:
    ability = counter_ability()
    say(str(ability))
    assert ability.available, ability.sentence
    assert ability.chip
    assert ability.chip in ability.sentence


def test_a_device_that_is_not_there_is_refused(work: Work) -> None:
    ability = counter_ability(torch.cuda.device_count())
    assert not ability.available
    assert "CUDA_ERROR_INVALID_DEVICE" in ability.sentence
