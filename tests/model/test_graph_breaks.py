"""Plans of a graph in pieces: no group goes across a graph break, and nothing cures one."""

import pytest

from explorer.model.fusion import all_in_one, each_alone, fusable_links, parse_plan, sweep_plans
from explorer.model.legality import IllegalReason, break_between, check, cured, parted
from tests.model.graphs import CROSSED, RMS_NORM, in_pieces

NAMES = [op.name for op in RMS_NORM.ops]
GRAPH = in_pieces(RMS_NORM, 2, 5)
"""residual square | mean rsqrt normalize | weight"""


def test_a_group_across_a_break_is_refused_with_place_and_reason() -> None:
    illegal = check(GRAPH, parse_plan("square+mean", NAMES, "chain"))
    assert illegal is not None
    assert illegal.reason is IllegalReason.GRAPH_BREAK
    assert illegal.cure == ()
    assert illegal.sentence == (
        "A graph break at net.py:2 lies between square and mean: print(2). Python runs there, so "
        "that no kernel holds both."
    )


def test_what_lies_in_one_piece_may_be_fused() -> None:
    for text in ("residual+square|mean+rsqrt+normalize", "each"):
        assert check(GRAPH, parse_plan(text, NAMES, "chain")) is None


def test_all_in_one_is_all_in_one_a_piece() -> None:
    whole = parted(GRAPH, all_in_one(NAMES))
    assert whole.text == "residual+square|mean+rsqrt+normalize|weight"
    assert check(GRAPH, whole) is None
    assert parted(RMS_NORM, all_in_one(NAMES)) == all_in_one(NAMES)


@pytest.mark.parametrize("ops", [("residual", "weight"), ("square", "normalize"), tuple(NAMES)])
def test_a_cure_ends_and_is_legal(ops: tuple[str, ...]) -> None:
    assert check(GRAPH, cured(GRAPH, each_alone(NAMES), ops)) is None


def test_within_a_piece_a_cure_is_what_it_always_was() -> None:
    ops = [op.name for op in CROSSED.ops]
    graph = in_pieces(CROSSED, len(ops))
    plan = parse_plan("sin+tan+sum|cos+exp+add", ops, "chain")
    assert cured(graph, plan, ()) == cured(CROSSED, plan, ())


def test_a_sweep_leaves_breaks_alone() -> None:
    links = fusable_links(GRAPH)
    assert ("square", "mean") not in links
    assert ("residual", "square") in links
    assert len(sweep_plans(GRAPH, "chain")) == 2 ** len(links)
    assert all(check(GRAPH, plan) is None for plan in sweep_plans(GRAPH, "chain"))


def test_the_first_break_between_two_ops_counts() -> None:
    first, last = GRAPH.ops[0], GRAPH.ops[-1]
    assert break_between(GRAPH, first, last) == GRAPH.breaks[0]
    assert break_between(GRAPH, GRAPH.ops[2], last) == GRAPH.breaks[1]
    assert break_between(GRAPH, first, GRAPH.ops[1]) is None
