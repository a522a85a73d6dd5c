import numpy as np
import pytest

from explorer.model.dots import dots_at
from explorer.model.playback import Playback, Slot, play
from explorer.model.run import Run
from explorer.model.streams import Stream
from tests.fixtures_runs import all_runs, compiled_attention, eager_attention


def every_stream(playback: Playback) -> list[tuple[Slot, Stream]]:
    return [(s, stream) for s in playback.lanes[0].slots for stream in s.traffic.streams]


@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.id)
def test_dots_add_up_to_the_printed_number(run: Run) -> None:
    playback = play([run])
    for slot in playback.lanes[0].slots:
        carried = 0.0
        for stream in slot.traffic.streams:
            # Just before the first arrival no dot is missing: all are under way or to come.
            dots = dots_at(slot, stream, playback, slot.end_us)
            assert dots.arrived == dots.total
            rest = stream.n_bytes - (dots.total - 1) * playback.dot_bytes
            assert 0 < rest <= playback.dot_bytes
            if stream.is_memory_traffic:
                carried += (dots.total - 1) * playback.dot_bytes + rest
        assert carried == slot.traffic.read.n_bytes + slot.traffic.written.n_bytes


def test_arrived_dots_are_what_the_counter_has() -> None:
    playback = play([eager_attention()])
    for slot, stream in every_stream(playback):
        for share in (0.13, 0.5, 0.87):
            t_us = slot.start_us + share * (slot.end_us - slot.start_us)
            dots = dots_at(slot, stream, playback, t_us)
            done = stream.n_bytes * share
            assert dots.arrived == int(done * (1 + 1e-12) // playback.dot_bytes)


def test_the_last_dot_is_smaller_by_what_it_lacks() -> None:
    playback = play([eager_attention()])
    slot = playback.lanes[0].slots[0]
    q = next(stream for stream in slot.traffic.streams if stream.tensor == "q")
    late = slot.end_us - 1e-6
    dots = dots_at(slot, q, playback, late)
    assert dots.total == 2
    assert dots.fill.tolist() == [pytest.approx(0.6777216)]
    assert dots.place[0] == pytest.approx(1.0, abs=1e-6)


def test_none_is_under_way_outside_its_launch() -> None:
    playback = play([compiled_attention()])
    for slot, stream in every_stream(playback):
        for t_us in (slot.start_us, slot.end_us, slot.start_us - 1, slot.end_us + 1):
            assert len(dots_at(slot, stream, playback, t_us).place) == 0


def test_places_run_from_source_to_goal_in_order() -> None:
    playback = play([compiled_attention()])
    slot = playback.lanes[0].slots[2]
    for stream in slot.traffic.streams:
        dots = dots_at(slot, stream, playback, (slot.start_us + slot.end_us) / 2)
        assert np.all((dots.place > 0) & (dots.place < 1))
        assert np.all(np.diff(dots.place) < 0)


def test_a_dot_moves_forward_as_time_goes() -> None:
    playback = play([eager_attention()])
    slot = playback.lanes[0].slots[3]
    stream = slot.traffic.streams[0]
    t_us = slot.start_us + 600
    first, second = (dots_at(slot, stream, playback, t) for t in (t_us, t_us + 1))
    shared = second.arrived - first.arrived
    assert second.place[0] > first.place[shared]


def test_a_denser_stream_carries_more_bytes_a_second() -> None:
    playback = play([eager_attention()])
    scale, softmax = playback.lanes[0].slots[1], playback.lanes[0].slots[3]
    on_the_way = [
        len(
            dots_at(
                slot, slot.traffic.streams[0], playback, (slot.start_us + slot.end_us) / 2
            ).place
        )
        for slot in (scale, softmax)
    ]
    # The same bytes in 500 µs and in 1,940 µs; the shorter launch caps the time under way.
    assert on_the_way[0] > 2 * on_the_way[1]
