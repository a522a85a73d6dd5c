"""Records to plain data and back: exact for what we write, strict with what others wrote."""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pytest

from explorer.model.codec import DecodeError, from_plain, to_plain
from explorer.model.run import Run, Scalar
from tests.fixtures_runs import all_runs


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    number: int


@dataclass(frozen=True)
class Record:
    text: str
    share: float
    flag: bool
    color: Color
    inner: Inner
    pair: tuple[int, str]
    many: tuple[Inner, ...]
    table: dict[str, Inner]
    maybe: Inner | None
    scalar: Scalar
    extra: int = 5
    made: dict[str, float] = field(default_factory=dict)


RECORD = Record(
    text="µ", share=0.5, flag=True, color=Color.BLUE, inner=Inner(1), pair=(2, "two"),
    many=(Inner(3), Inner(4)), table={"a": Inner(6)}, maybe=None, scalar=7,
)  # fmt: skip


def plain(**changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(to_plain(RECORD)))
    return {**data, **changes}


def test_a_record_comes_back_equal_through_json() -> None:
    assert from_plain(Record, plain()) == RECORD


@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.id)
def test_a_run_comes_back_equal_through_json(run: Run) -> None:
    assert from_plain(Run, json.loads(json.dumps(to_plain(run)))) == run


@pytest.mark.parametrize("value", [True, 1, 1.0, 1.5, "1", None])
def test_a_scalar_keeps_its_type(value: Scalar) -> None:
    back = from_plain(Record, plain(scalar=value)).scalar
    assert back == value
    assert type(back) is type(value)


def test_a_whole_number_fits_where_a_fraction_may_stand() -> None:
    share = from_plain(Record, plain(share=2)).share
    assert share == 2.0
    assert type(share) is float


def test_defaults_stand_in_for_fields_left_out() -> None:
    data = plain()
    del data["extra"], data["made"]
    assert from_plain(Record, data) == RECORD


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none_becomes_nothing(value: float) -> None:
    assert to_plain(value) is None


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"text": 1}, "text should be str, not a number"),
        ({"text": None}, "text should be str, not nothing"),
        ({"share": "0.5"}, "share should be float, not text"),
        ({"share": True}, "share should be float, not true or false"),
        ({"share": float("nan")}, "share is a number out of any range"),
        ({"share": 10**400}, "share is a number out of any range"),
        ({"extra": -(2**63)}, "extra is a number out of any range"),
        ({"scalar": float("inf")}, "scalar is a number out of any range"),
        ({"flag": 1}, "flag should be bool, not a number"),
        ({"color": "green"}, "color is 'green'; known are red, blue"),
        ({"color": ["red"]}, "color is ['red']; known are red, blue"),
        ({"inner": {"number": 1.5}}, "inner.number should be int, not a number"),
        ({"inner": {"number": True}}, "inner.number should be int, not true or false"),
        ({"inner": {}}, "inner.number is missing"),
        ({"inner": []}, "inner should be an object, not a list"),
        ({"pair": [1]}, "pair should hold 2 values, not 1"),
        ({"pair": [1, 2]}, "pair[1] should be str, not a number"),
        ({"pair": "1,two"}, "pair should be a list, not text"),
        ({"many": [{"number": 1}, {}]}, "many[1].number is missing"),
        ({"table": {"a": 1}}, "table.a should be an object, not a number"),
        ({"table": []}, "table should be an object, not a list"),
        ({"maybe": 3}, "maybe should be an object, not a number"),
        ({"scalar": [1]}, "scalar should be one of bool, int, float, str, not [1]"),
        (
            {"scalar": ["x" * 999]},
            f"scalar should be one of bool, int, float, str, not ['{'x' * 58}…",
        ),
        ({"color": "x" * 999}, f"color is '{'x' * 59}…; known are red, blue"),
        ({"table": {"x" * 999: 1}}, f"table.{'x' * 60}… should be an object, not a number"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DecodeError) as caught:
        from_plain(Record, plain(**changes))
    assert str(caught.value) == sentence


def test_a_field_that_is_missing_is_named() -> None:
    data = plain()
    del data["text"]
    with pytest.raises(DecodeError, match=r"^text is missing$"):
        from_plain(Record, data)
    with pytest.raises(DecodeError, match=r"^Record should be an object, not a list$"):
        from_plain(Record, [])


def test_a_field_of_a_later_release_is_passed_over() -> None:
    assert from_plain(Record, plain(later={"any": "thing"})) == RECORD


@pytest.mark.parametrize("thing", [object(), {1, 2}, b"bytes", Record])
def test_what_has_no_place_in_a_record_is_not_saved(thing: object) -> None:
    with pytest.raises(TypeError, match="cannot be saved"):
        to_plain(thing)
