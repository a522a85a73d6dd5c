"""The one kernel of unknown ops carries out what no other launch does; two of them stay unknown."""

from explorer.engine.measure.calls import CallKind, RecordedCall
from explorer.engine.measure.left_over import left_over_ops
from explorer.engine.measure.observe_compile import GraphNode, ModuleNotes
from explorer.engine.prepared import CapturedNode

MAX, EXP, SUM, LOG = (
    CapturedNode(op=name, aten=f"aten.{name}.default", source_line=line, node=name)
    for line, name in enumerate(("max", "exp", "sum", "log"), start=1)
)
BACK = CapturedNode(op="d_exp", aten="aten.mul.Tensor", source_line=2, node="mul", is_backward=True)


def kernel(name: str, kind: CallKind = CallKind.TRITON) -> RecordedCall:
    return RecordedCall(kind=kind, name=name, touches=())


def module(key: str, *, marked: tuple[str, ...] = (), is_backward: bool = False) -> ModuleNotes:
    node = GraphNode(
        name="node", target="prims.online.default", original_aten=None, frames=(), source=None,
        inputs=(), users=(), is_view=False, is_backward=is_backward,
    )  # fmt: skip
    return ModuleNotes(
        key=key, nodes={"node": node}, kernels={}, buffers={}, functions={}, marked=marked
    )


def test_the_only_kernel_without_ops_has_those_that_are_left() -> None:
    whole = module("whole")
    found = left_over_ops(
        [kernel("online"), kernel("log")], [whole, whole], [(), ("log",)], [MAX, EXP, SUM, LOG]
    )
    assert found == {0: ("max", "exp", "sum")}


def test_two_kernels_without_ops_are_not_told_apart() -> None:
    whole = module("whole")
    calls = [kernel("first"), kernel("second")]
    assert left_over_ops(calls, [whole, whole], [(), ()], [MAX, EXP]) == {}


def test_each_pass_is_by_itself() -> None:
    notes = [module("forward"), module("backward", is_backward=True)]
    calls = [kernel("first"), kernel("second")]
    assert left_over_ops(calls, notes, [("max",), ()], [MAX, BACK]) == {1: ("d_exp",)}
    assert left_over_ops(calls, notes, [(), ("d_exp",)], [MAX, BACK]) == {0: ("max",)}


def test_every_kernel_of_a_piece_of_one_op_is_of_that_op() -> None:
    piece = module("piece", marked=("exp",))
    calls = [kernel("first"), kernel("second")]
    assert left_over_ops(calls, [piece, piece], [("exp",), ()], [MAX, EXP]) == {1: ("exp",)}


def test_operators_and_eager_code_are_left_alone() -> None:
    whole = module("whole")
    calls = [kernel("aten.sum.default", CallKind.ATEN), kernel("eager")]
    assert left_over_ops(calls, [whole, None], [(), ()], [MAX]) == {}
