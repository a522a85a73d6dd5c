"""The ops of compiled backward nodes, of graphs written down here: no compiler runs."""

import pytest

from explorer.engine.measure.backward_origins import compiled_backward_ops
from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.prepare import capture_chain
from explorer.model.run import Direction
from tests.engine.graphs import CPU

CAPTURED = capture_chain(
    "qkv", {"rows": 16, "columns": 32}, CPU, Direction.FORWARD_BACKWARD
).captured
BACKWARD = [node for node in CAPTURED.nodes if node.is_backward]
FORWARD = {13: "project_q", 14: "project_k", 15: "project_v"}


def node(
    name: str,
    inputs: tuple[str, ...] = (),
    users: tuple[str, ...] = (),
    *,
    sequence: int | None = None,
    original: str | None = "aten.mm.default",
    adds: bool = False,
) -> GraphNode:
    return GraphNode(
        name=name,
        target=original or "aten.mm.default",
        original_aten=original,
        frames=(),
        source=None,
        inputs=inputs,
        users=users,
        is_view=False,
        is_backward=original is not None,
        sequence=sequence,
        adds_gradients=adds,
    )


OUTPUT = GraphNode(
    name="output", target="output", original_aten=None, frames=(), source=None, inputs=(),
    users=(), is_view=False,
)  # fmt: skip


def found(*nodes: GraphNode) -> dict[str, str]:
    named = {each.name: each for each in (*nodes, OUTPUT)}
    return compiled_backward_ops(named, BACKWARD, CAPTURED.graph, FORWARD)


def adding(name: str, inputs: tuple[str, ...], users: tuple[str, ...]) -> GraphNode:
    return node(name, inputs, users, original="aten.add.Tensor", adds=True)


def test_nodes_that_are_all_there_are_told_by_their_order() -> None:
    assert found(
        node("a", users=("output",), sequence=15),
        node("b", users=("c",), sequence=15),
        adding("c", ("b",), ("d",)),
        adding("d", ("c",), ("output",)),
    ) == {"a": "d_project_v", "b": "d_project_v2", "c": "d_x", "d": "d_x2"}


@pytest.mark.parametrize(
    ("users", "op"), [(("output",), "d_project_k"), (("c",), "d_project_k2")], ids=["out", "in"]
)
def test_where_one_is_missing_what_is_passed_on_tells(users: tuple[str, ...], op: str) -> None:
    nodes = (adding("c", ("b",), ("d",)), adding("d", ("c",), ("output",)))
    assert found(node("a", users=users, sequence=14), *nodes)["a"] == op


def test_a_node_without_any_origin_is_told_where_one_op_alone_fits() -> None:
    unknown = node("e", users=("d",), original=None)
    sums = (adding("c", ("b",), ("d",)), adding("d", ("c", "e"), ("output",)))
    given = node("b", users=("c",), sequence=15), node("k", users=("c",), sequence=14)
    assert found(*given, *sums, unknown)["e"] == "d_project_q2"


def test_a_name_is_not_guessed() -> None:
    assert "a" not in found(node("a", users=("x",), sequence=14))
    assert found(node("a", users=("output",), sequence=99)) == {}


def test_a_forward_graph_has_no_backward_nodes() -> None:
    assert found(node("a", original=None)) == {}
