"""The byte model of one call: reads and writes by schema, strides and argument names."""

import pytest
import torch

from explorer.engine.measure.calls import (
    aten_touches,
    computes,
    cpp_touches,
    reachable_bytes,
    triton_touches,
    use_of,
)
from explorer.engine.measure.generated import Pointer

ATEN = torch.ops.aten


def moved(operator: torch._ops.OpOverload, *arguments: object, **keywords: object) -> list[int]:
    """Signed bytes of each touch: reads positive, writes negative."""
    result = operator(*arguments, **keywords)
    touches = aten_touches(operator, arguments, keywords, result, "cpu")
    return [-t.bytes_moved if t.is_write else t.bytes_moved for t in touches]


def test_a_broadcast_axis_counts_once() -> None:
    column = torch.zeros(8, 1)
    assert reachable_bytes(column.expand(8, 100)) == 8 * 4
    assert reachable_bytes(torch.zeros(4, 6).t()) == 24 * 4
    assert reachable_bytes(torch.zeros(4, 6)[:, ::2]) == 12 * 4
    assert reachable_bytes(torch.zeros(0, 6)) == 0


def test_overlapping_windows_count_what_they_span() -> None:
    windows = torch.zeros(10).as_strided((6, 5), (1, 1))
    assert reachable_bytes(windows) == 10 * 4


def test_every_input_is_read_once_and_every_result_written() -> None:
    x, mask = torch.zeros(2, 3, 4), torch.zeros(3, 4)
    assert moved(ATEN.add.Tensor, x, mask) == [96, 48, -96]
    assert moved(ATEN.mul.Tensor, x, x) == [96, -96]


def test_a_buffer_given_with_all_its_parts_is_read_once() -> None:
    whole = torch.zeros(12)
    first, second, third = whole[:4], whole[4:6], whole[6:]
    assert moved(ATEN.cat.default, [whole, third, first, second]) == [24, 16, 8, -96]
    assert moved(ATEN.cat.default, [whole, third, first]) == [48, 24, 16, -88]
    assert moved(ATEN.cat.default, [whole, whole[1:]]) == [48, 44, -92]


def test_an_update_in_place_reads_what_it_changes() -> None:
    x = torch.ones(4)
    touches = aten_touches(ATEN.div_.Scalar, (x, 2.0), {}, ATEN.div_.Scalar(x, 2.0), "cpu")
    assert [(t.is_write, t.is_fresh) for t in touches] == [(False, False), (True, False)]


def test_what_is_overwritten_is_not_read() -> None:
    x, y = torch.ones(4), torch.ones(4)
    assert moved(ATEN.zero_.default, x) == [-16]
    assert moved(ATEN.copy_.default, x, y) == [16, -16]
    assert moved(ATEN.bernoulli_.float, x, 0.5) == [-16]


def test_an_out_argument_is_written_only() -> None:
    a, b, out = torch.ones(2, 3), torch.ones(3, 5), torch.empty(2, 5)
    assert moved(ATEN.mm.out, a, b, out=out) == [24, 60, -40]
    touches = aten_touches(ATEN.mm.out, (a, b), {"out": out}, out, "cpu")
    assert touches[-1].is_fresh


def test_every_result_is_written_with_its_name() -> None:
    x = torch.ones(4, 8)
    result = ATEN.native_dropout.default(x, 0.5, True)
    touches = aten_touches(ATEN.native_dropout.default, (x, 0.5, True), {}, result, "cpu")
    assert [t.bytes_moved for t in touches if t.is_write] == [128, 32]
    values = ATEN.topk.default(x, 2)
    named = aten_touches(ATEN.topk.default, (x, 2), {}, values, "cpu")
    assert [t.argument for t in named if t.is_write] == ["values", "indices"]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (ATEN.mul.Tensor, True),
        (ATEN.bernoulli_.float, True),
        (ATEN.clone.default, True),
        (ATEN.view.default, False),
        (ATEN.transpose.int, False),
        (ATEN.empty_like.default, False),
        (ATEN._unsafe_view.default, False),
    ],
)
def test_only_operators_that_move_data_compute(
    operator: torch._ops.OpOverload, expected: bool
) -> None:
    assert computes(operator) is expected


def test_triton_arguments_tell_by_their_names() -> None:
    a, b, c = torch.zeros(4), torch.zeros(8), torch.zeros(16)
    touches = triton_touches(
        ["in_out_ptr0", "in_ptr0", "out_ptr0", "xnumel"], [a, b, c, 16], ["in_out_ptr0"]
    )
    assert [(t.argument, t.is_write, t.bytes_moved) for t in touches] == [
        ("in_out_ptr0", False, 16),
        ("in_ptr0", False, 32),
        ("in_out_ptr0", True, 16),
        ("out_ptr0", True, 64),
    ]


def test_an_input_that_triton_changes_is_written() -> None:
    touches = triton_touches(["in_ptr0"], [torch.zeros(4)], ["in_ptr0"])
    assert [(t.is_write, t.is_fresh) for t in touches] == [(False, False), (True, False)]


def test_cpp_arguments_tell_by_their_types() -> None:
    declared = (
        Pointer(name="in_out_ptr0", is_const=False),
        Pointer(name="in_ptr0", is_const=True),
        Pointer(name="out_ptr0", is_const=False),
        None,
    )
    a, b, c = torch.zeros(4), torch.zeros(8), torch.zeros(16)
    touches = cpp_touches(declared, [a, b, c, 3])
    assert [(t.argument, t.is_write) for t in touches] == [
        ("in_out_ptr0", False),
        ("in_ptr0", False),
        ("in_out_ptr0", True),
        ("out_ptr0", True),
    ]


def test_a_use_knows_its_memory_by_address() -> None:
    x = torch.zeros(4, 6, dtype=torch.bfloat16)
    assert use_of(x.t()).storage == use_of(x).storage
    assert use_of(x).dtype == "bf16"
    assert use_of(x).n_bytes == 48


def test_a_kernel_that_has_an_updated_tensor_twice_writes_it_once() -> None:
    """Inductor passes an input that is updated in place as what is read and as what is written."""
    state, other = torch.zeros(4), torch.zeros(4)
    touches = triton_touches(
        ["in_ptr0", "in_ptr1", "out_ptr0"], [state, other, state], ["in_ptr0", "out_ptr0"]
    )
    assert [t.argument for t in touches if t.is_write] == ["in_ptr0"]
    assert sum(t.bytes_moved for t in touches if t.is_write) == 16
    assert sum(t.bytes_moved for t in touches if not t.is_write) == 32
