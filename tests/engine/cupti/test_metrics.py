"""The choice of metrics over made-up lists of a chip."""

from collections.abc import Sequence

import pytest

from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.cupti.metrics import choose_metrics

HOPPER = ("dram__bytes", "dram__bytes_read", "dram__bytes_write")
GEFORCE_50 = ("dram__bytes", "dram__bytes_op_read", "dram__bytes_op_write")
EXTRAS = ("lts__t_sectors_srcunit_tex", "gpu__time_duration")


def one_pass(names: Sequence[str]) -> int:
    return 1


def test_all_four_are_taken_where_they_share_a_pass() -> None:
    choice = choose_metrics([*HOPPER, *EXTRAS], one_pass, "GH100")
    assert choice.names == (
        "dram__bytes_read.sum",
        "dram__bytes_write.sum",
        "lts__t_sectors_srcunit_tex.sum",
        "gpu__time_duration.sum",
    )
    assert choice.passes == 1


def test_the_second_pair_is_taken_where_the_first_is_missing() -> None:
    choice = choose_metrics(GEFORCE_50, one_pass, "GB202")
    assert choice.names == ("dram__bytes_op_read.sum", "dram__bytes_op_write.sum")
    assert (choice.requested, choice.duration) == (None, None)


def test_half_a_pair_is_no_pair() -> None:
    with pytest.raises(CounterRefused, match="GX1"):
        choose_metrics(["dram__bytes_read", "dram__bytes_op_write"], one_pass, "GX1")


def test_a_chip_without_dram_counters_is_refused_by_name() -> None:
    with pytest.raises(CounterRefused, match=r"GB10B.*rely on the modelled bytes"):
        choose_metrics(["mcc__dram_throughput", *EXTRAS], one_pass, "GB10B")


@pytest.mark.parametrize(
    ("costly", "left"),
    [
        ("lts__t_sectors_srcunit_tex.sum", "gpu__time_duration.sum"),
        ("gpu__time_duration.sum", "lts__t_sectors_srcunit_tex.sum"),
    ],
)
def test_what_would_cost_a_pass_is_left_out(costly: str, left: str) -> None:
    choice = choose_metrics([*HOPPER, *EXTRAS], lambda names: 2 if costly in names else 1, "GX1")
    assert choice.names[2:] == (left,)
    assert choice.passes == 1


def test_both_are_left_out_where_each_costs_a_pass() -> None:
    choice = choose_metrics([*HOPPER, *EXTRAS], lambda names: len(names) - 1, "GX1")
    assert choice.names == ("dram__bytes_read.sum", "dram__bytes_write.sum")


def test_a_chip_that_needs_two_passes_for_the_bytes_alone_gets_them() -> None:
    choice = choose_metrics([*HOPPER, *EXTRAS], lambda names: 2, "GX1")
    assert choice.passes == 2
    assert len(choice.names) == 4
