"""Which op a call carries out, from hand-made recordings of eager and compiled code."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from explorer.chains.descriptor import Chain
from explorer.engine.measure.calls import CallKind, RecordedCall, TensorUse, Touch
from explorer.engine.measure.naming import name_tensors
from explorer.engine.measure.observe_compile import (
    CompileObservation,
    GraphNode,
    Helper,
    ModuleNotes,
)
from explorer.engine.measure.provenance import find_origins
from explorer.engine.prepared import CapturedNode, Prepared
from explorer.model.opgraph import Op, OpGraph, OpKind
from explorer.model.tensor import Tensor, TensorRole

N_BYTES = 64
WRAPPER = """\
def call(args):
    # [Provenance debug handles] triton_tem_fused_mm_0:1
    triton_tem_fused_mm_0.run(buf1, arg1_1, buf2, stream=stream0)
"""


def chain(x: torch.Tensor) -> torch.Tensor:
    """Stands for the chain's code; its lines are those of the captured nodes below."""
    return x


def tensor(name: str, role: TensorRole) -> Tensor:
    return Tensor(id=name, name=name, shape=(4, 4), dtype="fp32", n_bytes=N_BYTES, role=role)


def op(name: str, aten: str, reads: tuple[str, ...], kind: OpKind = OpKind.ELEMENTWISE) -> Op:
    return Op(name=name, aten=aten, kind=kind, reads=reads, writes=(f"{name}ed",), flops=0)


def prepared(*nodes: CapturedNode, ops: tuple[Op, ...]) -> Prepared:
    tensors = [tensor("x", TensorRole.INPUT)]
    tensors += [tensor(name, TensorRole.INTERMEDIATE) for o in ops for name in o.writes]
    return Prepared(
        chain=Chain(id="own", title="", look_at="", formula="", parameters=(), all_ops=()),
        parameters={},
        device=torch.device("cpu"),
        seed=0,
        inputs={},
        function=chain,
        graph=OpGraph(ops=ops, tensors=tuple(tensors)),
        graph_module=torch.fx.GraphModule({}, torch.fx.Graph()),
        nodes=nodes,
    )


def two_muls() -> Prepared:
    """``(x * x) * x`` on line 7, then a softmax on line 8."""
    ops = (
        op("mul", "aten.mul.Tensor", ("x",)),
        op("mul2", "aten.mul.Tensor", ("x", "muled")),
        op("softmax", "aten._softmax.default", ("mul2ed",), OpKind.REDUCTION),
    )
    lines = (7, 7, 8)
    return prepared(
        *(
            CapturedNode(op=o.name, aten=o.aten, source_line=n, source_file=__file__)
            for o, n in zip(ops, lines, strict=True)
        ),
        ops=ops,
    )


def use(storage: int) -> TensorUse:
    return TensorUse(storage=storage, address=storage, shape=(4, 4), dtype="fp32", n_bytes=N_BYTES)


def aten(name: str, line: int | None, *, read: int = 1, written: int = 2) -> RecordedCall:
    return RecordedCall(
        kind=CallKind.ATEN,
        name=name,
        touches=(
            Touch(use=use(read), is_write=False),
            Touch(use=use(written), is_write=True, is_fresh=True),
        ),
        source_file=None if line is None else __file__,
        source_line=line,
    )


def eager_ops(*calls: RecordedCall) -> list[tuple[str, ...]]:
    return [origin.ops for origin in find_origins(calls, two_muls(), None).calls]


def test_a_line_with_one_op_decides_whatever_it_is_made_of() -> None:
    assert eager_ops(aten("aten.amax.default", 8), aten("aten.exp.default", 8)) == [
        ("softmax",),
        ("softmax",),
    ]


def test_ops_alike_on_one_line_go_by_their_order() -> None:
    muls = (aten("aten.mul.Tensor", 7), aten("aten.mul.Tensor", 7))
    assert eager_ops(*muls) == [("mul",), ("mul2",)]


def test_code_of_another_place_goes_by_the_operator() -> None:
    calls = (aten("aten.mul.Scalar", 700), aten("aten._safe_softmax.default", 700))
    assert eager_ops(*calls) == [("mul",), ("softmax",)]


def test_code_of_another_place_stands_for_lines_that_do_not_run() -> None:
    """Line 7 runs as it is written, so that a factor elsewhere is neither of its products."""
    calls = (
        aten("aten.mul.Tensor", 7),
        aten("aten.mul.Tensor", 7),
        aten("aten.mul.Scalar", 700),
        aten("aten._softmax.default", 700),
    )
    assert eager_ops(*calls) == [("mul",), ("mul2",), (), ("softmax",)]


def test_what_cannot_be_told_stays_empty() -> None:
    assert eager_ops(aten("aten.clone.default", None)) == [()]


def test_attention_as_a_whole_carries_out_all_that_is_left() -> None:
    calls = (aten("aten._scaled_dot_product_cudnn_attention.default", None),)
    assert eager_ops(*calls) == [("mul", "mul2", "softmax")]


def test_memory_used_again_holds_another_tensor() -> None:
    """The third call writes where the first one did."""
    calls = (
        aten("aten.mul.Tensor", 7, read=1, written=2),
        aten("aten.mul.Tensor", 7, read=2, written=3),
        aten("aten._softmax.default", 8, read=3, written=2),
    )
    chain_of_three = two_muls()
    named = name_tensors(calls, find_origins(calls, chain_of_three, None), chain_of_three)
    written = [
        access.tensor for call in named.calls for access in call.accesses if access.bytes_written
    ]
    assert written == ["muled", "mul2ed", "softmaxed"]
    read = [
        access.tensor for call in named.calls[1:] for access in call.accesses if access.bytes_read
    ]
    assert read == ["muled", "mul2ed"]


def node(
    name: str, target: str, line: int, inputs: tuple[str, ...], users: tuple[str, ...]
) -> GraphNode:
    return GraphNode(
        name=name,
        target=target,
        original_aten=target,
        frames=((__file__, line),),
        source=name,
        inputs=inputs,
        users=users,
        is_view=False,
    )


@pytest.fixture
def template(tmp_path: Path) -> tuple[RecordedCall, CompileObservation]:
    """A matmul's template that Inductor names after the softmax that made its input, too."""
    path = tmp_path / "wrapper.py"
    path.write_text(WRAPPER, encoding="utf-8")
    nodes = (
        node("softmax", "aten._softmax.default", 8, ("arg0",), ("mm",)),
        node("mm", "aten.mul.Tensor", 7, ("softmax", "arg1"), ("output",)),
    )
    notes = ModuleNotes(
        key="wrapper",
        nodes={n.name: n for n in nodes},
        kernels={"triton_tem_fused_mm_0:1": ("softmax", "mm")},
        buffers={"buf1": "softmax", "buf2": "mm"},
        functions={},
    )
    call = RecordedCall(
        kind=CallKind.TRITON,
        name="triton_tem_fused_mm_0",
        touches=(
            Touch(use=use(1), is_write=False, argument="arg_A", variable="buf1"),
            Touch(use=use(2), is_write=False, argument="arg_B", variable="arg1_1"),
            Touch(use=use(3), is_write=True, is_fresh=True, argument="out_ptr0", variable="buf2"),
        ),
        module=str(path),
        module_key="wrapper",
        module_line=3,
    )
    return call, CompileObservation(modules={"wrapper": notes})


def test_a_kernel_carries_out_only_what_lies_between_its_inputs_and_outputs(
    template: tuple[RecordedCall, CompileObservation],
) -> None:
    call, observation = template
    [origin] = find_origins([call], two_muls(), observation).calls
    assert origin.nodes == ("mm",)
    assert origin.ops == ("mul",)


def test_another_kernel_s_handle_says_nothing(
    template: tuple[RecordedCall, CompileObservation],
) -> None:
    call, observation = template
    other = RecordedCall(
        kind=call.kind, name="triton_poi_0", touches=call.touches, module=call.module,
        module_key=call.module_key, module_line=call.module_line,
    )  # fmt: skip
    [origin] = find_origins([other], two_muls(), observation).calls
    assert origin.nodes == ()
    # Two such kernels could each be either op; a single one has what is left.
    assert [o.ops for o in find_origins([other, other], two_muls(), observation).calls] == [(), ()]


def test_a_kernel_that_is_not_marked_has_the_nodes_that_it_was_defined_for(
    template: tuple[RecordedCall, CompileObservation],
) -> None:
    call, observation = template
    [notes] = observation.modules.values()
    defined = replace(notes, defined={"triton_for_0": ("mm",)})
    other = replace(call, name="triton_for_0")
    [origin, _] = find_origins(
        [other, replace(call, name="triton_for_1")],
        two_muls(),
        CompileObservation(modules={"wrapper": defined}),
    ).calls
    assert origin.nodes == ("mm",)
    assert origin.ops == ("mul",)


def test_a_kernel_that_writes_to_an_input_carries_out_all_that_it_is_named_after(
    template: tuple[RecordedCall, CompileObservation],
) -> None:
    """No buffer tells the node of what is written in place, which nothing else may lead to."""
    call, observation = template
    in_place = Touch(use=use(2), is_write=True, argument="out_ptr1", variable="arg1_1")
    both = replace(call, touches=(*call.touches, in_place))
    [origin] = find_origins([both], two_muls(), observation).calls
    assert origin.ops == ("mul", "softmax")


def test_nodes_of_a_piece_are_known_by_their_mark(
    template: tuple[RecordedCall, CompileObservation],
) -> None:
    """The second of two ops alike on one line, alone in its piece, is not taken for the first."""
    call, observation = template
    notes = observation.modules["wrapper"]
    marked = replace(
        notes,
        nodes={**notes.nodes, "mm": replace(notes.nodes["mm"], mark=0)},
        marked=("second",),
    )
    chain_of_three = two_muls()
    names = ("first", "second", "third")
    nodes = tuple(
        replace(captured, node=name)
        for captured, name in zip(chain_of_three.nodes, names, strict=True)
    )
    prepared_piece = replace(chain_of_three, nodes=nodes)
    [origin] = find_origins(
        [call], prepared_piece, CompileObservation(modules={"wrapper": marked})
    ).calls
    assert origin.ops == ("mul2",)


def test_what_a_reduction_leaves_half_way_is_named_after_its_op(
    template: tuple[RecordedCall, CompileObservation],
) -> None:
    """It is no result of an op, though it may have the size of one."""
    call, observation = template
    notes = observation.modules["wrapper"]
    helped = replace(
        notes, buffers={"buf1": "softmax"}, helpers={"buf2": Helper(nodes=("mm",), how="sum")}
    )
    chain_of_three = two_muls()
    origins = find_origins([call], chain_of_three, CompileObservation(modules={"wrapper": helped}))
    named = name_tensors([call], origins, chain_of_three)
    assert named.calls[0].accesses[-1].tensor == "mul: sum"
