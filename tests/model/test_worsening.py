"""A run against itself measured again: what counts as worse, and what cannot be told."""

from dataclasses import replace

import pytest

from explorer.model.run import Bytes, Clock, Run, Samples, Timing
from explorer.model.worsening import Limits, compare
from tests.fixtures_runs import CPU, cpu_attention
from tests.fixtures_sweep import broken, plan_run, timed, wrong

LIMITS = Limits(n_bytes=0.01, time=0.03)
BEFORE = plan_run("scale+mask+softmax|dropout")
"""Counted: 3,221 MB read and 2,156 MB written, 5,377 MB together; 2,669 µs ± 0.4 %."""


def moved(run: Run, more: int) -> Run:
    """The run whose first launch reads so many counted bytes more."""
    first = run.launches[0]
    counted = (first.bytes_read.counted or 0) + more
    first = replace(first, bytes_read=replace(first.bytes_read, counted=counted))
    return replace(run, launches=(first, *run.launches[1:]))


def uncounted(run: Run) -> Run:
    launches = tuple(
        replace(
            launch,
            bytes_read=Bytes(modelled=launch.bytes_read.modelled),
            bytes_written=Bytes(modelled=launch.bytes_written.modelled),
        )
        for launch in run.launches
    )
    return replace(run, launches=launches)


def test_the_same_again_is_no_worse() -> None:
    found = compare(BEFORE, BEFORE, LIMITS)
    assert (found.faults, found.notes) == ((), ())
    assert found.n_bytes is not None
    assert (found.n_bytes.pedigree.value, found.n_bytes.before) == ("counted", 5_377_000_000)
    assert found.time is not None
    assert found.time.share == 0


def test_bytes_may_grow_to_the_limit_and_no_further() -> None:
    assert compare(BEFORE, moved(BEFORE, 53_700_000), LIMITS).faults == ()
    (fault,) = compare(BEFORE, moved(BEFORE, 107_540_000), LIMITS).faults
    assert fault == (
        "It reads and writes 2% more: 5.48 GB instead of 5.38 GB (counted); at most 1% more is "
        "allowed."
    )
    assert compare(moved(BEFORE, 107_540_000), BEFORE, LIMITS).faults == ()


def test_bytes_of_one_pedigree_are_compared() -> None:
    found = compare(BEFORE, uncounted(moved(BEFORE, 10**9)), LIMITS)
    assert found.faults == ()
    assert found.n_bytes is not None
    assert found.n_bytes.pedigree.value == "modelled"
    without = replace(BEFORE, launches=())
    (note,) = compare(without, BEFORE, LIMITS).notes
    assert note == "Bytes are not comparable: the two runs have none of one pedigree."


def test_another_gpu_has_modelled_bytes_and_no_times_in_common() -> None:
    other = replace(BEFORE, device=replace(BEFORE.device, name="NVIDIA B200"))
    found = compare(BEFORE, timed(moved(other, 10**9), 9000.0), LIMITS)
    assert found.faults == ()
    assert found.n_bytes is not None
    assert found.n_bytes.pedigree.value == "modelled"
    assert found.notes == (
        "Times are not comparable: recorded on NVIDIA H200, now on NVIDIA B200.",
    )


def test_a_processors_kernels_are_others() -> None:
    found = compare(BEFORE, replace(BEFORE, device=CPU), LIMITS)
    assert found.n_bytes is None
    assert found.notes[0].startswith("Bytes are not comparable: recorded on NVIDIA H200, now on ")


@pytest.mark.parametrize(
    ("median_us", "spread", "fault"),
    [
        (2669.0 * 1.029, 0.004, False),
        (2669.0 * 1.05, 0.004, True),
        # Slower by more than is allowed, and within noise.
        (2669.0 * 1.05, 0.06, False),
        (2669.0 * 0.5, 0.004, False),
    ],
)
def test_time_is_a_fault_only_beyond_limit_and_noise(
    median_us: float, spread: float, fault: bool
) -> None:
    found = compare(timed(BEFORE, 2669.0), timed(BEFORE, median_us, spread), LIMITS)
    assert bool(found.faults) is fault
    if fault:
        assert found.faults == (
            "It takes 5% longer: 2.80 ms instead of 2.67 ms (cold L2); at most 3% longer is "
            "allowed.",
        )


@pytest.mark.parametrize(("times", "words"), [(10.994, "999%"), (126, "12,500%")])
def test_a_run_many_times_slower_is_told_without_powers_of_ten(times: float, words: str) -> None:
    [fault] = compare(timed(BEFORE, 100.0), timed(BEFORE, 100.0 * times), LIMITS).faults
    assert fault.startswith(f"It takes {words} longer: ")


def test_times_of_another_condition_or_clock_are_not_compared() -> None:
    assert BEFORE.timing is not None
    assert BEFORE.timing.cold is not None
    warm = replace(BEFORE, timing=Timing(warm=BEFORE.timing.cold))
    host = replace(BEFORE.timing.cold, clock=Clock.HOST)
    for other in (warm, replace(BEFORE, timing=Timing(cold=host)), replace(BEFORE, timing=None)):
        found = compare(BEFORE, other, LIMITS)
        assert (found.time, found.faults) == (None, ())
        assert found.notes == (
            "Times are not comparable: the two runs were not timed in one condition.",
        )


def test_a_failed_run_and_a_wrong_result_are_worse() -> None:
    (fault,) = compare(BEFORE, broken(BEFORE), LIMITS).faults
    assert fault == "It could not be measured again: The worker ended with signal 11."
    (fault,) = compare(BEFORE, wrong(BEFORE), LIMITS).faults
    assert fault.startswith("Its result is wrong: it is off by up to 4.0e-01")
    unchecked = compare(BEFORE, replace(BEFORE, accuracy=None), LIMITS)
    assert (unchecked.faults, unchecked.notes) == (
        (), ("Its values could not be compared with the reference.",),
    )  # fmt: skip


def test_something_out_of_nothing_is_more() -> None:
    nothing = replace(cpu_attention(), launches=())
    samples = Samples(samples_us=(1.0,), median_us=1.0, q1_us=1.0, q3_us=1.0, n=1, clock=Clock.HOST)
    before = replace(
        nothing,
        launches=(
            replace(cpu_attention().launches[0], bytes_read=Bytes(modelled=0),
                    bytes_written=Bytes(modelled=0)),
        ),
        timing=Timing(warm=samples),
    )  # fmt: skip
    found = compare(before, cpu_attention(), LIMITS)
    assert found.faults[0].startswith("It reads and writes something where it was nothing: ")
