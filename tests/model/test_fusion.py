"""Fusion plans as text and as groups."""

import itertools
from dataclasses import replace

import pytest

from explorer.model.errors import UsageError
from explorer.model.fusion import (
    FusionPlan,
    all_in_one,
    cut,
    each_alone,
    fusable_links,
    joined,
    parse_plan,
    plan_of,
    plan_of_launches,
    sweep_plans,
)
from explorer.model.legality import check
from explorer.model.opgraph import OpKind
from explorer.model.run import Launch
from tests.model.graphs import ADAM, CROSSED, RMS_NORM, SOFTMAX_CHAIN, graph_of

OPS = ("scale", "mask", "softmax", "dropout")


def parse(text: str) -> FusionPlan:
    return parse_plan(text, OPS, "attention-scores")


def test_a_text_names_groups_and_the_rest_stays_alone() -> None:
    assert parse("scale+mask|softmax+dropout").groups == (("scale", "mask"), ("softmax", "dropout"))
    assert parse("mask+softmax").text == "scale|mask+softmax|dropout"
    assert parse(" softmax + mask | scale ").text == "scale|mask+softmax|dropout"
    assert parse("each") == each_alone(OPS)
    assert parse("all").text == "scale+mask+softmax+dropout"


@pytest.mark.parametrize("cuts", list(itertools.product((False, True), repeat=3)))
def test_every_plan_of_neighbours_round_trips(cuts: tuple[bool, ...]) -> None:
    groups: list[list[str]] = [[OPS[0]]]
    for op, is_cut in zip(OPS[1:], cuts, strict=True):
        if is_cut:
            groups.append([op])
        else:
            groups[-1].append(op)
    plan = plan_of(OPS, groups)
    assert parse(plan.text) == plan


@pytest.mark.parametrize(
    ("text", "at_fault"),
    [
        ("", "The plan is empty"),
        ("scale+mask|soft", "no op 'soft'; its ops are scale, mask, softmax, dropout"),
        ("scale+scale", "names 'scale' twice"),
        ("scale+mask|mask+softmax", "names 'mask' twice"),
        ("scale+", "lacks the name of an op after 'scale'"),
        ("scale||mask", "lacks the name of an op after 'scale'"),
        ("|mask", "lacks the name of an op at its beginning"),
        ("scale,mask", "no op 'scale,mask'"),
    ],
)
def test_a_wrong_text_is_refused_with_what_is_at_fault(text: str, at_fault: str) -> None:
    with pytest.raises(UsageError, match=at_fault.replace("+", r"\+")):
        parse(text)


def test_joining_and_cutting() -> None:
    plan = joined(each_alone(OPS), OPS, ("mask", "softmax"))
    assert plan.text == "scale|mask+softmax|dropout"
    assert joined(plan, OPS, ("softmax", "dropout")).text == "scale|mask+softmax+dropout"
    assert cut(all_in_one(OPS), OPS, "mask", "softmax").text == "scale+mask|softmax+dropout"
    assert cut(plan, OPS, "scale", "mask") == plan
    split = plan_of(OPS, [("scale", "softmax", "dropout")])
    assert cut(split, OPS, "scale", "softmax").text == "scale|mask|softmax+dropout"


def test_the_grouping_of_a_run_is_read_off_its_launches() -> None:
    launches = [
        Launch(kernel="seed", title="seed", ops=("dropout",), is_helper=True),
        Launch(kernel="k1", title="", ops=("scale", "mask")),
        Launch(kernel="k2", title="", ops=("mask", "softmax")),
        Launch(kernel="k3", title="", ops=("dropout",)),
    ]
    assert plan_of_launches(SOFTMAX_CHAIN, launches).text == "scale+mask+softmax|dropout"
    assert plan_of_launches(SOFTMAX_CHAIN, []) == each_alone(OPS)


def test_what_backward_computes_anew_joins_no_kernels() -> None:
    backward = [replace(op, is_backward=op.name == "dropout") for op in SOFTMAX_CHAIN.ops]
    graph = replace(SOFTMAX_CHAIN, ops=tuple(backward))
    launches = [
        Launch(kernel="a", title="a", ops=("scale", "mask", "softmax")),
        Launch(kernel="b", title="b", ops=("softmax", "dropout")),
    ]
    assert plan_of_launches(graph, launches).text == "scale+mask+softmax|dropout"
    assert plan_of_launches(SOFTMAX_CHAIN, launches).text == "scale+mask+softmax+dropout"


@pytest.mark.parametrize("graph", [SOFTMAX_CHAIN, RMS_NORM, ADAM, CROSSED])
def test_a_sweep_holds_every_boundary_setting_once_and_each_is_legal(graph: object) -> None:
    plans = sweep_plans(graph, "it")  # type: ignore[arg-type]
    ops = [op.name for op in graph.ops]  # type: ignore[attr-defined]
    assert len(set(plans)) == len(plans) == 2 ** (len(ops) - 1)
    assert plans[0] == each_alone(ops)
    assert plans[-1] == all_in_one(ops)
    assert all(check(graph, plan) is None for plan in plans)  # type: ignore[arg-type]


def test_a_sweep_leaves_matmuls_alone_and_has_a_limit() -> None:
    long = graph_of([(f"op{i}", f"t{i}", f"t{i + 1}") for i in range(10)], outputs="t10")
    with pytest.raises(UsageError, match="9 links that can be fused, and a sweep takes up to 8"):
        sweep_plans(long, "long")
    attention = graph_of(
        [("qk", "q k", "s"), ("scale", "s", "t"), ("softmax", "t", "p"), ("pv", "p v", "o")],
        outputs="o",
        kinds={"qk": OpKind.MATMUL, "pv": OpKind.MATMUL},
    )
    assert fusable_links(attention) == (("scale", "softmax"),)
    assert [p.text for p in sweep_plans(attention, "a")] == [
        "qk|scale|softmax|pv",
        "qk|scale+softmax|pv",
    ]
    lone = graph_of([("qk", "q k", "s")], kinds={"qk": OpKind.MATMUL})
    with pytest.raises(UsageError, match="nothing to sweep"):
        sweep_plans(lone, "lone")
