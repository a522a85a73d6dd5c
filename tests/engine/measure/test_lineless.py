"""Nodes without a line get their ops by the module that they are in, or none."""

from explorer.engine.measure.lineless import ops_by_module
from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.prepared import CapturedNode


def node(name: str, target: str, original: str, module: str, source: str) -> GraphNode:
    return GraphNode(
        name=name, target=f"aten.{target}.default", original_aten=f"aten.{original}.default",
        frames=(), source=source, inputs=(), users=(), is_view=False, module=module,
    )  # fmt: skip


def op(name: str, aten: str, module: str) -> CapturedNode:
    return CapturedNode(op=name, aten=f"aten.{aten}.default", source_line=None, module=module)


def test_the_same_operator_is_told_apart_by_its_module_and_one_taken_apart_stays_one() -> None:
    nodes = [
        node("mean", "mean", "native_layer_norm", "second", "y"),
        node("rsqrt", "rsqrt", "native_layer_norm", "second", "y"),
        node("mean_1", "mean", "native_layer_norm", "first", "x"),
    ]
    captured = [
        op("norm", "native_layer_norm", "first"),
        op("norm2", "native_layer_norm", "second"),
    ]
    assert ops_by_module(nodes, captured) == {"mean": "norm2", "rsqrt": "norm2", "mean_1": "norm"}


def test_several_in_one_module_are_told_by_their_order_where_there_are_as_many() -> None:
    nodes = [
        node("bmm", "bmm", "bmm", "attention", "x"),
        node("bmm_1", "bmm", "bmm", "attention", "x"),
    ]
    two = [op("bmm", "bmm", "attention"), op("bmm2", "bmm", "attention")]
    assert ops_by_module(nodes, two) == {"bmm": "bmm", "bmm_1": "bmm2"}
    assert ops_by_module(nodes, two[:1]) == {}
