"""Which plans are legal, and what a refusal says."""

import random

import pytest

from explorer.model.fusion import FusionPlan, each_alone, parse_plan, plan_of
from explorer.model.legality import (
    IllegalReason,
    check,
    cured,
    dependencies,
    run_order,
)
from explorer.model.opgraph import OpGraph
from tests.model.graphs import ADAM, CROSSED, RMS_NORM, SOFTMAX_CHAIN, graph_of


def plan(graph: OpGraph, text: str) -> FusionPlan:
    return parse_plan(text, [op.name for op in graph.ops], "chain")


def test_a_group_with_an_op_missing_in_between_is_refused_by_the_ops_name() -> None:
    illegal = check(RMS_NORM, plan(RMS_NORM, "residual+normalize"))
    assert illegal is not None
    assert illegal.reason is IllegalReason.BETWEEN
    assert illegal.between == ("square", "mean", "rsqrt")
    assert illegal.cure == ("residual", "square", "mean", "rsqrt", "normalize")
    assert illegal.sentence == (
        "residual and normalize cannot share a kernel without square, mean and rsqrt in between: "
        "square works on what residual makes, and normalize on what rsqrt makes, and a kernel "
        "runs as a whole; residual, square, mean, rsqrt and normalize together can."
    )


def test_two_groups_that_wait_for_each_other_are_refused() -> None:
    illegal = check(CROSSED, plan(CROSSED, "sin+tan+sum|cos+exp+add"))
    assert illegal is not None
    assert illegal.reason is IllegalReason.CIRCLE
    assert "sin+tan+sum and cos+exp+add would wait for each other" in illegal.sentence
    assert set(illegal.cure) == {"sin", "cos", "exp", "add", "tan", "sum"}


def test_an_update_in_place_has_to_wait_for_who_reads_the_old_values() -> None:
    graph = graph_of([("copy", "v", "old"), ("decay", "v", "v"), ("use", "old v", "y")])
    assert [(d.before, d.after) for d in dependencies(graph) if d.overwrites] == [("copy", "decay")]
    illegal = check(graph, plan(graph, "copy+use"))
    assert illegal is not None
    assert illegal.reason is IllegalReason.OVERWRITTEN
    assert "decay overwrites v, which copy has to be done with first" in illegal.sentence
    assert illegal.cure == ("copy", "decay", "use")


def test_ops_that_have_nothing_to_do_with_each_other_may_share_a_kernel() -> None:
    assert check(ADAM, plan(ADAM, "momentum+decay")) is None
    assert check(CROSSED, plan(CROSSED, "sin+cos")) is None


def test_groups_run_when_what_they_need_is_there() -> None:
    legal = plan(CROSSED, "cos+exp|sin+tan|add|sum")
    order = run_order(CROSSED, legal)
    assert order.index(("sin", "tan")) < order.index(("sum",))
    with pytest.raises(ValueError, match="cannot share a kernel"):
        run_order(RMS_NORM, plan(RMS_NORM, "residual+normalize"))


def test_the_cure_is_the_least_group_that_leaves_no_op_between_outside() -> None:
    for graph, ops, cure in (
        (RMS_NORM, ("mean", "normalize"), "mean+rsqrt+normalize"),
        (SOFTMAX_CHAIN, ("scale", "dropout"), "scale+mask+softmax+dropout"),
    ):
        alone = each_alone([op.name for op in graph.ops])
        assert cured(graph, alone, ops) == plan(graph, cure)


@pytest.mark.parametrize("graph", [RMS_NORM, ADAM, CROSSED, SOFTMAX_CHAIN])
def test_random_plans_are_legal_exactly_if_the_groups_can_be_put_in_order(graph: OpGraph) -> None:
    """An independent definition: take groups away whose needs are met until none is left."""
    ops = [op.name for op in graph.ops]
    needs = {(d.before, d.after) for d in dependencies(graph)}
    chance = random.Random(1)
    seen = {True: 0, False: 0}
    for _ in range(300):
        labels = {op: chance.randrange(1, len(ops)) for op in ops}
        groups = [[op for op in ops if labels[op] == label] for label in set(labels.values())]
        drawn = plan_of(ops, groups)
        waiting = {group: set(group) for group in drawn.groups}
        done: set[str] = set()
        while ready := [g for g in waiting if all(b in done or b in g for b, a in needs if a in g)]:
            for group in ready:
                done |= waiting.pop(group)
        illegal = check(graph, drawn)
        assert (illegal is None) == (not waiting), drawn.text
        seen[illegal is None] += 1
        if illegal is not None:
            assert any(op in illegal.sentence for op in illegal.between)
            assert set(illegal.ops) <= set(illegal.cure)
            assert check(graph, cured(graph, drawn, illegal.ops)) is None
    assert seen[True]
    assert seen[False] or graph is SOFTMAX_CHAIN


def test_every_tensor_of_a_dependency_is_read_or_overwritten() -> None:
    for graph in (RMS_NORM, ADAM, CROSSED):
        by_name = {op.name: op for op in graph.ops}
        for found in dependencies(graph):
            after = by_name[found.after]
            assert found.tensor in (after.writes if found.overwrites else after.reads)
