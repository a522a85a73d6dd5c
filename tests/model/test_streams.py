from dataclasses import replace

import pytest

from explorer.model.run import Access, Bytes, Launch, Run
from explorer.model.streams import (
    StreamKind,
    Way,
    printed_amount,
    share_out,
    split_traffic,
)
from tests.fixtures_runs import MB, all_runs, eager_attention

L2 = 60 * MB
SIZES = {"big": 1000 * MB, "other": 1000 * MB, "mask": 10 * MB}


def launch(read: Bytes, written: Bytes, accesses: tuple[Access, ...], **more: int) -> Launch:
    return Launch(
        kernel="k", title="k", accesses=accesses, bytes_read=read, bytes_written=written,
        l2_bytes_requested=more.get("asked"), spills=more.get("spills"),
    )  # fmt: skip


def split(*launches: Launch) -> list[list[tuple[Way, StreamKind, str | None, int]]]:
    return [
        [(s.way, s.kind, s.tensor, s.n_bytes) for s in traffic.streams]
        for traffic in split_traffic(launches, SIZES, L2)
    ]


@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.id)
def test_streams_of_every_launch_add_up_to_the_printed_number(run: Run) -> None:
    sizes = {tensor.id: tensor.n_bytes for tensor in run.tensors}
    for one, traffic in zip(
        run.launches, split_traffic(run.launches, sizes, run.device.l2_bytes), strict=True
    ):
        for way, quantity in ((Way.READ, one.bytes_read), (Way.WRITE, one.bytes_written)):
            best = quantity.best()
            assert best is not None
            moved = sum(s.n_bytes for s in traffic.streams if s.way is way and s.is_memory_traffic)
            assert moved == best[0]


def test_eager_attention_by_hand() -> None:
    run = eager_attention()
    sizes = {tensor.id: tensor.n_bytes for tensor in run.tensors}
    mask = split_traffic(run.launches, sizes, run.device.l2_bytes)[2]
    scores = 2 * 16 * 4096 * 4096 * 2
    broadcast = 4096 * 4096 * 2
    read = {s.tensor or s.kind.value: s.n_bytes for s in mask.streams if s.way is Way.READ}
    assert read == {
        "scaled": scores,
        "mask": broadcast,
        "re-read": 2_147_400_000 - scores - broadcast,
    }
    written = {s.tensor or s.kind.value: s.n_bytes for s in mask.streams if s.way is Way.WRITE}
    assert written == {"masked": scores, "write-back": 1_086_000_000 - scores}


def test_modelled_bytes_are_the_streams_where_nothing_was_counted() -> None:
    accesses = (Access(tensor="big", bytes_read=7), Access(tensor="other", bytes_written=5))
    [streams] = split(launch(Bytes(modelled=7), Bytes(modelled=5), accesses))
    assert streams == [
        (Way.READ, StreamKind.TENSOR, "big", 7),
        (Way.WRITE, StreamKind.TENSOR, "other", 5),
    ]


def test_streams_shrink_together_where_less_was_counted_than_modelled() -> None:
    accesses = (Access(tensor="big", bytes_read=300), Access(tensor="mask", bytes_read=100))
    [streams] = split(launch(Bytes(modelled=400, counted=201), Bytes(counted=0), accesses))
    assert [(tensor, n) for _, _, tensor, n in streams] == [("big", 151), ("mask", 50)]


def test_what_l2_served_comes_on_top() -> None:
    accesses = (Access(tensor="big", bytes_read=400),)
    [streams] = split(
        launch(Bytes(modelled=400, counted=100), Bytes(counted=20), accesses, asked=420)
    )
    assert streams[-1] == (Way.READ, StreamKind.L2, None, 300)


def test_l2_is_silent_where_memory_was_not_counted() -> None:
    accesses = (Access(tensor="big", bytes_read=400),)
    [streams] = split(launch(Bytes(modelled=400), Bytes(modelled=0), accesses, asked=900))
    assert all(kind is not StreamKind.L2 for _, kind, _, _ in streams)


def test_a_small_tensor_beside_a_large_one_can_account_for_rereading() -> None:
    accesses = (
        Access(tensor="big", bytes_read=1000 * MB),
        Access(tensor="mask", bytes_read=10 * MB),
    )
    more = Bytes(modelled=1010 * MB, counted=1900 * MB)
    far_more = Bytes(modelled=1010 * MB, counted=2100 * MB)
    assert split(launch(more, Bytes(counted=0), accesses))[0][2][1] is StreamKind.REREAD
    assert split(launch(far_more, Bytes(counted=0), accesses))[0][2][1] is StreamKind.UNEXPLAINED


def test_spills_take_the_blame_where_the_kernel_has_them() -> None:
    accesses = (Access(tensor="big", bytes_read=100), Access(tensor="other", bytes_written=100))
    [streams] = split(launch(Bytes(counted=150), Bytes(counted=170), accesses, spills=8))
    assert (Way.READ, StreamKind.SPILLED, None, 50) in streams
    assert (Way.WRITE, StreamKind.SPILLED, None, 70) in streams


def test_write_back_is_what_earlier_launches_left_in_l2() -> None:
    first = launch(
        Bytes(counted=0), Bytes(counted=70 * MB), (Access(tensor="big", bytes_written=100 * MB),)
    )
    second = launch(
        Bytes(counted=0), Bytes(counted=145 * MB), (Access(tensor="other", bytes_written=100 * MB),)
    )
    assert split(first, second)[1] == [
        (Way.WRITE, StreamKind.TENSOR, "other", 100 * MB),
        (Way.WRITE, StreamKind.WRITE_BACK, None, 30 * MB),
        (Way.WRITE, StreamKind.UNEXPLAINED, None, 15 * MB),
    ]
    # Nothing waits any more, so the same excess a second time has no such excuse.
    assert split(first, second, second)[2][1] == (
        Way.WRITE, StreamKind.UNEXPLAINED, None, 45 * MB,
    )  # fmt: skip


def test_one_tensor_read_twice_is_one_stream() -> None:
    accesses = (Access(tensor="big", bytes_read=30), Access(tensor="big", bytes_read=12))
    [streams] = split(launch(Bytes(modelled=42), Bytes(modelled=0), accesses))
    assert streams == [(Way.READ, StreamKind.TENSOR, "big", 42)]


def test_settled_bytes_are_printed_only_for_small_launches() -> None:
    small = Bytes(modelled=9, counted=10 * MB, settled=12 * MB)
    assert printed_amount(small, L2).n_bytes == 12 * MB
    assert printed_amount(small, L2).settled
    large = replace(small, counted=8 * L2)
    assert printed_amount(large, L2).n_bytes == 8 * L2
    assert not printed_amount(large, L2).settled


def test_unknown_bytes_are_no_streams() -> None:
    [traffic] = split_traffic(
        [launch(Bytes(), Bytes(), (Access(tensor="big", bytes_read=10),))], SIZES, L2
    )
    assert traffic.streams == ()
    assert traffic.read.pedigree is None


@pytest.mark.parametrize(
    ("total", "weights", "parts"),
    [
        (10, [1, 1, 1], [4, 3, 3]),
        (0, [5, 5], [0, 0]),
        (7, [0, 3], [0, 7]),
        (5, [], []),
        (100, [1, 2, 997], [0, 0, 100]),
        (3, [2, 2], [2, 1]),
    ],
)
def test_share_out_adds_up(total: int, weights: list[int], parts: list[int]) -> None:
    assert share_out(total, weights) == parts


def test_what_a_helper_copies_is_its_own() -> None:
    copy = replace(launch(Bytes(counted=84 * MB), Bytes(counted=80 * MB), ()), is_helper=True)
    filled = launch(Bytes(counted=0), Bytes(counted=50 * MB), (
        Access(tensor="big", bytes_written=100 * MB),
    ))  # fmt: skip
    # What the launch before left in L2 may drain now, but nobody knows how much of it.
    assert split(filled, copy)[1] == [
        (Way.READ, StreamKind.HELPER, None, 84 * MB),
        (Way.WRITE, StreamKind.HELPER, None, 80 * MB),
    ]
