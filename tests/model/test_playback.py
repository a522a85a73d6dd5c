import random
from dataclasses import replace
from itertools import pairwise

import pytest

from explorer.model.playback import Phase, Schedule, dot_size, play, schedule
from explorer.model.run import Access, Bytes, Launch, Pedigree, Run
from explorer.model.streams import Way
from explorer.model.tensor import Tensor, TensorRole
from tests.fixtures_runs import (
    all_runs,
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    long_run,
    sdpa_attention,
)


def three_launches(
    starts: tuple[float | None, ...] = (0.0, 12.0, 30.0),
    durations: tuple[float | None, ...] = (10.0, 15.0, 20.0),
) -> Run:
    """x -> a -> b -> y of 100 bytes each, without an unprofiled time."""
    names = ("x", "a", "b", "y")
    roles = (
        TensorRole.INPUT, TensorRole.INTERMEDIATE, TensorRole.INTERMEDIATE, TensorRole.OUTPUT,
    )  # fmt: skip
    launches = tuple(
        Launch(
            kernel=f"k{i}", title=f"k{i}", start_us=starts[i], duration_us=durations[i],
            accesses=(
                Access(tensor=names[i], bytes_read=100),
                Access(tensor=names[i + 1], bytes_written=100),
            ),
            bytes_read=Bytes(modelled=100), bytes_written=Bytes(modelled=100),
        )
        for i in range(3)
    )  # fmt: skip
    tensors = tuple(
        Tensor(id=n, name=n, shape=(100,), dtype="u8", n_bytes=100, role=role)
        for n, role in zip(names, roles, strict=True)
    )
    return replace(
        eager_attention(), tensors=tensors, launches=launches, timing=None, counters=None
    )


def states(lane: Schedule, t_us: float) -> dict[str, Phase]:
    return lane.at(t_us).lives


def test_launches_lie_where_the_trace_has_them() -> None:
    lane = schedule(three_launches())
    assert [(slot.start_us, slot.end_us) for slot in lane.slots] == [(0, 10), (12, 27), (30, 50)]
    assert lane.total_us == 50
    assert lane.gaps == ((10, 12), (27, 30))
    assert lane.idle_us == 5
    assert lane.is_timed


def test_the_clock_is_the_unprofiled_time() -> None:
    for run in (eager_attention(), compiled_attention(), long_run(), cpu_attention()):
        lane = schedule(run)
        assert run.timing is not None
        assert run.timing.cold is not None
        assert lane.total_us == run.timing.cold.median_us
        assert lane.trace_total_us == pytest.approx(run.timing.trace_total_us)
        for slot in lane.slots:
            assert slot.launch.duration_us is not None
            assert slot.end_us - slot.start_us == pytest.approx(slot.launch.duration_us)


def test_half_way_through_a_launch_half_its_bytes_have_moved() -> None:
    lane = schedule(three_launches())
    moment = lane.at(12 + 7.5)
    assert moment.active == (1,)
    assert moment.phases == (Phase.AFTER, Phase.DURING, Phase.BEFORE)
    assert (moment.read_bytes, moment.written_bytes) == (150, 150)
    assert moment.levels == {"x": 1.0, "a": 1.0, "b": 0.5, "y": 0.0}


def test_tensors_hold_memory_from_first_write_to_last_use() -> None:
    lane = schedule(three_launches())
    before, there, freed = Phase.BEFORE, Phase.DURING, Phase.AFTER
    assert states(lane, 0.0) == {"x": there, "a": there, "b": before, "y": before}
    assert states(lane, 11.0) == {"x": there, "a": there, "b": before, "y": before}
    assert states(lane, 20.0) == {"x": there, "a": there, "b": there, "y": before}
    assert states(lane, 28.0) == {"x": there, "a": freed, "b": there, "y": before}
    assert states(lane, 50.0) == {"x": there, "a": freed, "b": freed, "y": there}
    assert lane.at(20.0).in_use_bytes == 300
    assert lane.peak_in_use_bytes == 300


def test_between_launches_it_is_idle_and_nothing_moves() -> None:
    lane = schedule(three_launches())
    moment = lane.at(11.0)
    assert moment.is_idle
    assert moment.gap == (10, 12)
    assert moment.active == ()
    assert lane.at(10.0).read_bytes == lane.at(11.9).read_bytes == 100
    assert not lane.at(12.0).is_idle
    assert not lane.at(50.0).is_idle


def test_at_the_end_everything_has_moved_to_the_byte() -> None:
    for run in all_runs():
        lane = schedule(run)
        end = lane.at(lane.total_us)
        assert end.read_bytes == lane.read_bytes
        assert end.written_bytes == lane.written_bytes
        assert all(phase is Phase.AFTER for phase in end.phases)
        assert all(level == 1.0 for level in end.levels.values())
        start = lane.at(0.0)
        assert start.read_bytes == start.written_bytes == 0


def test_moments_outside_the_run_are_its_ends() -> None:
    lane = schedule(eager_attention())
    assert lane.at(-5.0) == lane.at(0.0)
    assert lane.at(1e12) == lane.at(lane.total_us)


def test_any_order_of_moments_gives_the_same() -> None:
    lane = schedule(eager_attention())
    times = [lane.total_us * k / 97 for k in range(98)]
    forward = [lane.at(t) for t in times]
    shuffled = list(range(98))
    random.Random(3).shuffle(shuffled)
    assert all(lane.at(times[k]) == forward[k] for k in shuffled)


def test_bytes_only_grow() -> None:
    lane = schedule(compiled_attention())
    done = [lane.at(lane.total_us * k / 200) for k in range(201)]
    for earlier, later in pairwise(done):
        assert later.read_bytes >= earlier.read_bytes
        assert later.written_bytes >= earlier.written_bytes


def test_peak_of_eager_attention_by_hand() -> None:
    square, row, mask = 1_073_741_824, 16_777_216, 33_554_432
    lane = schedule(eager_attention())
    # While dropout runs: q, k, v, the mask, probs, dropped and the one-byte keep.
    assert lane.peak_in_use_bytes == 3 * row + mask + 2 * square + square // 2


def test_peak_of_compiled_attention_has_the_random_numbers() -> None:
    square, row, mask = 1_073_741_824, 16_777_216, 33_554_432
    lane = schedule(compiled_attention())
    assert lane.peak_in_use_bytes == 3 * row + mask + 2 * square + 2 * square + 8


def test_a_run_without_launches_gives_its_sentence() -> None:
    lane = schedule(failed_run())
    assert lane.sentence == failed_run().error
    assert lane.slots == ()
    assert lane.at(3.0).in_use_bytes == 0
    untold = schedule(replace(failed_run(), error=None))
    assert untold.sentence == "This run holds no launches."


def test_without_a_trace_lengths_follow_bytes_and_it_is_said() -> None:
    run = three_launches(starts=(None,) * 3, durations=(None,) * 3)
    lane = schedule(run)
    assert not lane.is_timed
    lengths = [slot.end_us - slot.start_us for slot in lane.slots]
    assert lengths == pytest.approx([lane.total_us / 3] * 3)
    timed = schedule(replace(run, timing=eager_attention().timing))
    assert timed.total_us == 5350.0
    assert not timed.is_timed


def test_a_launch_without_a_duration_takes_no_time() -> None:
    lane = schedule(three_launches(durations=(10.0, None, 20.0)))
    assert (lane.slots[1].start_us, lane.slots[1].end_us) == (10, 10)
    assert lane.at(10.0).read_bytes == 200
    assert lane.at(9.99).read_bytes == 99


def test_overlapping_launches_are_both_under_way() -> None:
    lane = schedule(three_launches(starts=(0.0, 5.0, 40.0)))
    assert lane.at(7.0).active == (0, 1)
    assert lane.gaps == ((20.0, 40.0),)


def test_launches_without_a_gap_never_run_both_at_the_moment_between_them() -> None:
    rng = random.Random(3)
    run = eager_attention()
    launches, start_us = [], 0.0
    for launch in run.launches * 4:
        duration_us = rng.uniform(0.5, 900)
        launches.append(replace(launch, start_us=start_us, duration_us=duration_us))
        start_us += duration_us + 1.1
    assert run.timing is not None
    assert run.timing.cold is not None
    # Less time than the durations alone take: no gap is left, and sums of shares round.
    cold = replace(run.timing.cold, median_us=0.7 * start_us)
    made = schedule(replace(run, launches=tuple(launches), timing=replace(run.timing, cold=cold)))
    assert made.duration_scale < 1
    for slot in made.slots:
        assert made.at(slot.start_us).active == (slot.index,)
    assert len(made.change_times()) == len(launches) + 1


def test_dots_are_round_numbers_and_few_enough() -> None:
    assert play([eager_attention()]).dot_bytes == 10_000_000
    assert play([sdpa_attention()]).dot_bytes == 1_000_000
    for run in all_runs():
        lane = schedule(run)
        size = dot_size([lane])
        assert str(size).rstrip("0") in ("1", "2", "5")
        assert lane.read_bytes + lane.written_bytes <= 1_500 * size


def test_two_runs_share_one_clock_and_one_dot() -> None:
    both = play([sdpa_attention(), eager_attention()])
    assert both.total_us == 5350.0
    assert both.dot_bytes == play([eager_attention()]).dot_bytes


def test_pedigrees_strongest_first() -> None:
    assert schedule(eager_attention()).pedigrees == (Pedigree.COUNTED,)
    assert schedule(cpu_attention()).pedigrees == (Pedigree.MODELLED,)
    run = eager_attention()
    mixed = replace(run.launches[0], bytes_read=Bytes(modelled=1), bytes_written=Bytes(modelled=1))
    lane = schedule(replace(run, launches=(mixed, *run.launches[1:])))
    assert lane.pedigrees == (Pedigree.COUNTED, Pedigree.MODELLED)


def test_change_times_are_the_starts_and_ends() -> None:
    assert schedule(three_launches()).change_times() == (0, 10, 12, 27, 30, 50)


def test_written_streams_flow_at_the_launch_pace() -> None:
    lane = schedule(eager_attention())
    slot = lane.slots[3]
    middle = (slot.start_us + slot.end_us) / 2
    written = sum(s.n_bytes for s in slot.traffic.streams if s.way is Way.WRITE)
    before = sum(one.traffic.written.n_bytes for one in lane.slots[:3])
    assert lane.at(middle).written_bytes - before == pytest.approx(written / 2, abs=2)
