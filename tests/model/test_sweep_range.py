"""The values of a sweep from its text, and the requests of its points."""

from __future__ import annotations

import pytest

from explorer.chains.descriptor import Parameter
from explorer.model.errors import UsageError
from explorer.model.messages import RunRequest
from explorer.model.sweep_range import SweepRange, parse_sweep, pinned, points

LENGTH = Parameter(
    name="seq_len", kind="int", cuda_default=4096, cpu_default=512, minimum=1, maximum=1_000_000,
    sentence="",
)  # fmt: skip
RATE = Parameter(
    name="dropout", kind="float", cuda_default=0.1, cpu_default=0.1, minimum=0, maximum=1,
    below_maximum=True, sentence="",
)  # fmt: skip
DTYPE = Parameter(
    name="dtype", kind="choice", cuda_default="bf16", cpu_default="fp32",
    choices=("fp32", "bf16"), sentence="",
)  # fmt: skip


def test_what_follows_the_option_is_a_name_and_a_range() -> None:
    assert parse_sweep(" seq_len = 1:4:x2 ") == SweepRange(name="seq_len", text="1:4:x2")


@pytest.mark.parametrize("text", ["seq_len", "=1:2:x2", "seq_len=", ""])
def test_a_sweep_without_name_or_values_says_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no sweep; write NAME=RANGE"):
        parse_sweep(text)


@pytest.mark.parametrize(
    ("parameter", "text", "values"),
    [
        (LENGTH, "512:8192:x2", (512, 1024, 2048, 4096, 8192)),
        (LENGTH, "3:20:×2", (3, 6, 12)),
        (LENGTH, "4:9:x1.5", (4, 6, 9)),
        (LENGTH, "1000:5000:+2000", (1000, 3000, 5000)),
        (LENGTH, "7:7:+1", (7,)),
        (LENGTH, "4096,512", (4096, 512)),
        (LENGTH, "1:9:x1e99", (1,)),
        # In binary a tenth three times over is more than three tenths.
        (RATE, "0:0.3:+0.1", (0.0, 0.1, 0.2, 0.3)),
        (DTYPE, "fp32, bf16", ("fp32", "bf16")),
    ],
)
def test_ranges_and_lists_are_written_out(
    parameter: Parameter, text: str, values: tuple[object, ...]
) -> None:
    assert SweepRange(name=parameter.name, text=text).values(parameter) == values


@pytest.mark.parametrize(
    ("parameter", "text", "sentence"),
    [
        (LENGTH, "9:2:x2", "ends below its start"),
        (LENGTH, "1:9:x1", "does not grow; take a factor above 1"),
        (LENGTH, "1:9:+0", "adds nothing; take a step above 0"),
        (LENGTH, "2:9:x1.75", "comes to 3.5 and takes whole numbers"),
        (LENGTH, "0:9:x2", "seq_len=0 is out of range: it takes 1 to 1,000,000"),
        (LENGTH, "1:9", "is no range; write it as lo:hi:x2"),
        (LENGTH, "1:9:2", "is no range"),
        (LENGTH, "1,2,1", "names 1 twice"),
        (LENGTH, "1,,2", "lacks a value between its commas"),
        (LENGTH, "1:65:+1", "has more than 64 points"),
        (LENGTH, "1:100:+1e-99", "has more than 64 points"),
        (RATE, "0:0.9:x2", "cannot grow by a factor; start above 0"),
        (RATE, "0:1:+0.1", "dropout=1 is out of range"),
        (DTYPE, "fp32:bf16:x2", "dtype is no number; list some of fp32, bf16"),
        (DTYPE, "fp32,fp8", "dtype=fp8 is not one of fp32, bf16"),
    ],
)
def test_a_range_that_cannot_be_is_refused_with_the_remedy(
    parameter: Parameter, text: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as refused:
        SweepRange(name=parameter.name, text=text).values(parameter)
    assert sentence in str(refused.value)


def test_a_list_has_at_most_as_many_points_as_a_range() -> None:
    text = ",".join(str(value) for value in range(1, 66))

    with pytest.raises(UsageError, match="has 65 points and a sweep takes at most 64"):
        SweepRange(name="seq_len", text=text).values(LENGTH)


def test_points_differ_in_the_swept_parameter_alone() -> None:
    request = RunRequest(chain="attention", parameters={"heads": 2}, seed=3)

    first, second = points(request, "seq_len", (512, 1024))

    assert first.parameters == {"heads": 2, "seq_len": 512}
    assert second.parameters == {"heads": 2, "seq_len": 1024}
    assert (first.swept, first.timing_s, first.seed) == ("seq_len", 0.3, 3)


def test_a_later_point_keeps_its_own_value_and_the_earlier_ones_defaults() -> None:
    (point,) = points(RunRequest(chain="attention"), "seq_len", (1024,))

    later = pinned(point, {"seq_len": 512, "batch": 1, "heads": 4})

    assert later.parameters == {"seq_len": 1024, "batch": 1, "heads": 4}
