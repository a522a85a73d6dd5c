"""Names of ops by their ATen operators: one rule, no name twice."""

import pytest

from explorer.model.aten_names import (
    aten_names,
    check_aten_plan,
    in_aten_names,
    operator_name,
    parse_aten_plan,
)
from explorer.model.errors import UsageError
from explorer.model.fusion import FusionPlan


def test_an_operator_is_called_what_torch_calls_it_without_overload_and_underscores() -> None:
    for overload, name in (
        ("aten.mul.Tensor", "mul"),
        ("aten._softmax.default", "softmax"),
        ("aten.__and__.Tensor", "and__"),
        ("prims.fma.default", "fma"),
        ("aten._", "_"),
    ):
        assert operator_name(overload) == name


def test_repeats_are_numbered_from_2_and_no_name_is_given_twice() -> None:
    # log2 is an operator of its own, so the second log cannot be called so.
    overloads = ["log", "mul", "log", "log2", "mul", "log2", "log"]
    names = aten_names([f"aten.{name}.default" for name in overloads])
    assert names == ("log", "mul", "log3", "log2", "mul2", "log22", "log4")
    assert aten_names(["aten._softmax.default", "aten.softmax.int"]) == ("softmax", "softmax2")


def test_underscores_may_be_written_or_left_out() -> None:
    names = ("mul", "add", "softmax")
    for text in ("mul+add|softmax", " mul + add |_softmax", "mul+_add"):
        assert parse_aten_plan(text, names, "It").text == "mul+add|softmax"
    assert parse_aten_plan("all", names, "It").text == "mul+add+softmax"
    assert parse_aten_plan("each", names, "It").text == "mul|add|softmax"


@pytest.mark.parametrize("text", ["mul+", "+", "", "mul|mul", "softmax+_softmax", "_|mul"])
def test_what_no_graph_could_have_is_found_without_one(text: str) -> None:
    with pytest.raises(UsageError):
        check_aten_plan(text)


def test_a_chains_plan_is_renamed_group_by_group() -> None:
    overloads = ["aten.mul.Tensor", "aten.add.Tensor", "aten.mul.Tensor"]
    plan = FusionPlan((("scale", "shift"), ("weight",)))
    renamed = in_aten_names(plan, ["scale", "shift", "weight"], overloads)
    assert renamed.text == "mul+add|mul2"
    with pytest.raises(UsageError, match="names 'weight', which is not among scale, shift"):
        in_aten_names(plan, ["scale", "shift"], overloads[:2])
