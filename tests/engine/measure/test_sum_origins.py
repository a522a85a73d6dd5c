"""Sums that a compiler merged with a matmul: told by what they add to, of graphs written here."""

from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.measure.sum_origins import sums_with_matmuls
from explorer.engine.prepare import capture_chain
from explorer.model.run import Direction
from tests.engine.graphs import CPU

GRAPH = capture_chain(
    "qkv", {"rows": 16, "columns": 32}, CPU, Direction.FORWARD_BACKWARD
).captured.graph
"""Backward, two sums add up the gradients of x that three matmuls make."""
SUMS = ("d_x", "d_x2")
MERGED = ("d_project_k2", "d_project_q2")
CARRIED = {op.name for op in GRAPH.ops} - {*SUMS, *MERGED}


def node(name: str, target: str, *inputs: str, is_view: bool = False) -> GraphNode:
    """As torch 2.11 leaves it: of a merged one nothing but the operator is known."""
    return GraphNode(
        name=name, target=target, original_aten=target, frames=(), source=None, inputs=inputs,
        users=(), is_view=is_view,
    )  # fmt: skip


def found(*nodes: GraphNode, carried: set[str] = CARRIED, **told: str) -> dict[str, str]:
    return sums_with_matmuls({each.name: each for each in nodes}, told, carried, GRAPH)


def test_a_sum_is_told_by_what_it_adds_to_and_the_next_by_that_sum() -> None:
    first = node("first", "aten.addmm.default", "mm", "tangent", "weight")
    second = node("second", "aten.addmm.default", "first", "tangent", "weight")
    mm = node("mm", "aten.mm.default", "tangent", "weight")

    assert found(mm, first, second, mm="d_project_v2") == {"first": "d_x", "second": "d_x2"}


def test_a_view_of_what_it_adds_to_is_seen_through() -> None:
    mm = node("mm", "aten.mm.default", "tangent", "weight")
    view = node("view", "aten.view.default", "mm", is_view=True)
    merged = node("merged", "aten.addmm.default", "view", "tangent", "weight")

    assert found(mm, view, merged, mm="d_project_v2") == {"merged": "d_x"}


def test_without_an_addend_that_is_known_it_is_none_of_several_sums() -> None:
    assert found(node("merged", "aten.addmm.default", "argument", "tangent", "weight")) == {}


def test_the_one_sum_that_is_left_needs_no_addend() -> None:
    merged = node("merged", "aten.addmm.default", "argument", "tangent", "weight")

    assert found(merged, carried=CARRIED | {"d_x", "d_project_k2"}) == {"merged": "d_x2"}


def test_a_sum_whose_matmuls_all_ran_is_merged_with_none() -> None:
    merged = node("merged", "aten.addmm.default", "mm", "tangent", "weight")
    mm = node("mm", "aten.mm.default", "tangent", "weight")

    assert found(mm, merged, carried=CARRIED | {*MERGED}, mm="d_project_v2") == {}


def test_what_is_told_already_stays() -> None:
    assert found(node("merged", "aten.addmm.default", "argument"), merged="d_x") == {}
