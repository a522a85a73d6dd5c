"""The ops of a line that runs several times, where the compiler takes each of its calls apart."""

from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.measure.repeated_lines import ops_of_repeats
from explorer.engine.prepared import CapturedNode


def node(name: str, target: str, source: str | None, *inputs: str) -> GraphNode:
    return GraphNode(
        name=name,
        target=target,
        original_aten=target,
        frames=(("code.py", 7),),
        source=source,
        inputs=inputs,
        users=(),
        is_view=False,
    )


def captured(*ops: str, aten: str = "aten.addcmul.default") -> list[CapturedNode]:
    return [CapturedNode(op=op, aten=aten, source_line=7) for op in ops]


def product_and_sum(number: int) -> list[GraphNode]:
    """What is left of the n-th call of ``v.addcmul_(g, g, value=0.1)``."""
    product, total = f"mul_{number}", f"fma_{number}"
    return [
        node(product, "aten.mul.Tensor", product, "g"),
        node(total, "prims.fma.default", f"copy_{number}", product, "v"),
    ]


def copied(number: int) -> GraphNode:
    return node(f"back_{number}", "aten.copy_.default", None, "v", f"fma_{number}")


TWICE = [*product_and_sum(1), *product_and_sum(2)]


def test_each_run_of_the_line_is_one_op() -> None:
    assert ops_of_repeats(TWICE, captured("variance_0", "variance_1")) == {
        "mul_1": "variance_0",
        "fma_1": "variance_0",
        "mul_2": "variance_1",
        "fma_2": "variance_1",
    }


def test_a_copy_behind_them_is_of_the_op_whose_value_it_takes() -> None:
    found = ops_of_repeats([*TWICE, copied(2), copied(1)], captured("first", "second"))
    assert (found["back_1"], found["back_2"]) == ("first", "second")


def test_runs_that_left_other_operators_are_not_told() -> None:
    assert ops_of_repeats(TWICE[:3], captured("first", "second")) == {}
    assert ops_of_repeats([*TWICE[:2], *reversed(TWICE[2:])], captured("first", "second")) == {}
    assert ops_of_repeats(TWICE, captured("first", "second", "third")) == {}


def test_ops_of_several_operators_are_not_told() -> None:
    mixed = [*captured("first"), *captured("second", aten="aten.addcdiv.default")]
    assert ops_of_repeats(TWICE, mixed) == {}
