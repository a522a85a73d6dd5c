"""Sums of bytes against sums made by hand."""

from dataclasses import replace

import pytest

from explorer.model.run import Access, Bytes, Counters, Launch, Memory, Pedigree
from explorer.model.traffic import (
    Traffic,
    achieved_bytes_per_s,
    added,
    launch_traffic,
    model_difference,
    peak_bytes,
    round_trips,
    run_traffic,
)
from tests.fixtures_runs import MB, compiled_attention, cpu_attention, eager_attention, failed_run


def launch(read: Bytes, written: Bytes, *, is_helper: bool = False) -> Launch:
    return Launch(
        kernel="k", title="k", bytes_read=read, bytes_written=written, is_helper=is_helper
    )


def test_the_six_kernels_of_attention_add_up_by_pedigree() -> None:
    traffic = run_traffic(eager_attention())
    # S = 2·16·4096·4096 bf16, q, k, v and out 2·16·4096·64 bf16, the mask 4096·4096 bf16.
    s, row, mask = 1_073_741_824, 16_777_216, 33_554_432
    # qk reads q and k; scale, softmax and dropout S; mask S and the mask; pv S and v.
    assert traffic.bytes_read.modelled == 2 * row + s + (s + mask) + s + s + (s + row)
    # One S each for five, dropout's one-byte keep mask, and the output.
    assert traffic.bytes_written.modelled == 5 * s + s // 2 + row
    assert traffic.bytes_read.counted == 6_495_100_000
    assert traffic.bytes_written.counted == 5_915_200_000
    assert traffic.bytes_read.sampled is None
    assert traffic.pedigree is Pedigree.COUNTED
    assert traffic.best == (6_495_100_000, 5_915_200_000, Pedigree.COUNTED)
    assert traffic.both.counted == 12_410_300_000


def test_a_cpu_run_is_modelled() -> None:
    traffic = run_traffic(cpu_attention())
    assert traffic.pedigree is Pedigree.MODELLED
    assert traffic.bytes_read.counted is None
    assert traffic.of(Pedigree.COUNTED) is None


def test_one_kernel_without_a_count_leaves_no_counted_total() -> None:
    run = eager_attention()
    first = replace(run.launches[0], bytes_read=Bytes(modelled=5))
    traffic = run_traffic(replace(run, launches=(first, *run.launches[1:])))
    assert traffic.bytes_read.counted is None
    assert traffic.bytes_written.counted is not None
    # Both directions are told in one pedigree or not at all.
    assert traffic.pedigree is Pedigree.MODELLED


def test_a_helper_that_no_counter_sees_is_left_out_and_told() -> None:
    counted = launch(Bytes(counted=10, modelled=9), Bytes(counted=20, modelled=19))
    copy = launch(Bytes(modelled=1), Bytes(modelled=1), is_helper=True)
    run = replace(eager_attention(), launches=(counted, copy))
    traffic = run_traffic(run)
    assert traffic.best == (10, 20, Pedigree.COUNTED)
    assert traffic.launches_left_out == 1
    assert traffic.of(Pedigree.MODELLED) == (10, 20)


def test_a_helper_that_hardly_moves_anything_is_not_worth_a_word() -> None:
    counted = launch(Bytes(counted=10 * MB, modelled=9), Bytes(counted=20 * MB, modelled=19))
    fill = launch(Bytes(modelled=0), Bytes(modelled=64), is_helper=True)
    unknown = launch(Bytes(), Bytes(), is_helper=True)
    run = replace(eager_attention(), launches=(counted, fill))
    assert run_traffic(run).launches_left_out == 0
    assert run_traffic(replace(run, launches=(counted, fill, unknown))).launches_left_out == 1


def test_a_graphs_total_stands_in_where_its_launches_have_none() -> None:
    only_modelled = launch(Bytes(modelled=5), Bytes(modelled=6))
    counters = Counters(total_bytes_read=50, total_bytes_written=60)
    run = replace(eager_attention(), launches=(only_modelled,), counters=counters)
    assert run_traffic(run).best == (50, 60, Pedigree.COUNTED)
    # Where the launches have counts, those are the total.
    counted = launch(Bytes(counted=1), Bytes(counted=2))
    assert run_traffic(replace(run, launches=(counted,))).best == (1, 2, Pedigree.COUNTED)


def test_a_failed_run_has_no_traffic() -> None:
    traffic = run_traffic(failed_run())
    assert traffic.best is None
    assert traffic.both == Bytes()
    assert peak_bytes(failed_run()) is None


def test_a_sum_lacks_what_a_part_lacks() -> None:
    assert added(Bytes(modelled=1, counted=2), Bytes(modelled=10)) == Bytes(modelled=11)
    assert Traffic(bytes_read=Bytes(modelled=0), bytes_written=Bytes(modelled=3)).best == (
        0, 3, Pedigree.MODELLED,
    )  # fmt: skip


def test_a_rate_is_traffic_over_duration() -> None:
    scale = eager_attention().launches[1]
    # 1,074.1 MB read and 1,076.0 MB written in 500 µs.
    rate, pedigree = achieved_bytes_per_s(scale) or (0.0, None)
    assert rate == pytest.approx(4.3002e12)
    assert pedigree is Pedigree.COUNTED
    assert achieved_bytes_per_s(replace(scale, duration_us=None)) is None
    assert achieved_bytes_per_s(replace(scale, duration_us=0.0)) is None
    assert achieved_bytes_per_s(replace(scale, bytes_read=Bytes())) is None
    assert launch_traffic(scale).both.counted == round(2150.1 * MB)


def test_the_difference_is_a_share_of_the_model() -> None:
    assert model_difference(Bytes(modelled=100, counted=125)) == pytest.approx(0.25)
    assert model_difference(Bytes(modelled=100, counted=75)) == pytest.approx(-0.25)
    assert model_difference(Bytes(modelled=100)) is None
    assert model_difference(Bytes(modelled=0, counted=5)) is None


def test_the_peak_includes_a_graphs_pool() -> None:
    run = eager_attention()
    assert peak_bytes(run) == 3_238 * MB
    pool = Memory(peak_bytes=1, inputs_bytes=1, graph_pool_bytes=7)
    assert peak_bytes(replace(run, memory=pool)) == 7


def test_a_round_trip_is_a_write_that_a_later_kernel_reads() -> None:
    assert round_trips(eager_attention().launches) == (
        "scores",
        "scaled",
        "masked",
        "probs",
        "dropped",
    )
    assert round_trips(compiled_attention().launches) == ("seeds", "scores", "dropped")


def test_reading_what_the_same_kernel_writes_is_no_round_trip() -> None:
    in_place = Launch(
        kernel="k", title="k", accesses=(Access(tensor="x", bytes_read=1, bytes_written=1),)
    )
    assert round_trips((in_place,)) == ()
    assert round_trips((in_place, in_place)) == ("x",)
