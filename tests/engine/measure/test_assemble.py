"""Traced events and recorded calls become launches: nothing the GPU did is left out."""

from dataclasses import replace

import pytest

from explorer.engine.cupti.counters import RangeBytes
from explorer.engine.measure.assemble import helper_title, on_gpu, traced_alone, with_counts
from explorer.engine.measure.trace import GpuEvent, Slot
from explorer.model.run import Access, Bytes, Launch

GEMM = Launch(
    kernel="aten.bmm.default",
    title="qk",
    ops=("qk",),
    accesses=(Access(tensor="q", bytes_read=8),),
    bytes_read=Bytes(modelled=8),
    bytes_written=Bytes(modelled=16),
)
SCALE = Launch(kernel="aten.mul.Tensor", title="scale", ops=("scale",))


def event(name: str, *, is_kernel: bool = True) -> GpuEvent:
    return GpuEvent(
        name=name, is_kernel=is_kernel, start_us=0.0, duration_us=0.0, stream=7, registers=40,
        grid=(8, 1, 1), block=(128, 1, 1), shared_bytes=512,
    )  # fmt: skip


def slots(*durations_us: float) -> tuple[Slot, ...]:
    return tuple(
        Slot(start_us=100.0 * place, duration_us=duration)
        for place, duration in enumerate(durations_us)
    )


def test_a_launch_has_the_gpu_s_name_and_shape() -> None:
    [launch] = on_gpu([event("vectorized_mul")], slots(5.0), [0], [SCALE])
    assert (launch.kernel, launch.title, launch.ops) == ("vectorized_mul", "scale", ("scale",))
    assert (launch.duration_us, launch.stream, launch.registers) == (5.0, 7, 40)
    assert (launch.grid, launch.block, launch.shared_bytes) == ((8, 1, 1), (128, 1, 1), 512)


def test_of_two_kernels_the_longer_moves_the_bytes() -> None:
    events = [event("splitk"), event("reduce"), event("mul")]
    main, helper, scale = on_gpu(events, slots(50.0, 4.0, 9.0), [0, 0, 1], [GEMM, SCALE])
    assert (main.title, main.is_helper, main.accesses) == ("qk", False, GEMM.accesses)
    assert (helper.title, helper.is_helper, helper.ops) == ("qk: sum of the parts", True, ())
    assert helper.accesses == ()
    assert helper.bytes_read.best() is None
    assert scale.title == "scale"


def test_what_no_call_launched_is_a_helper() -> None:
    events = [event("Memcpy DtoD (Device -> Device)", is_kernel=False), event("mul")]
    copy, scale = on_gpu(events, slots(1.0, 9.0), [None, 0], [SCALE])
    assert (copy.title, copy.is_helper, copy.ops) == ("copy", True, ())
    assert scale.is_helper is False
    assert helper_title("at::native::FillFunctor<long>") == "fill"
    assert helper_title("mystery") == "helper"


def test_a_fill_of_an_operator_is_no_kernel_of_its() -> None:
    events = [event("Memset (Device)", is_kernel=False), event("nvjet")]
    fill, gemm = on_gpu(events, slots(1.0, 50.0), [0, 0], [GEMM])
    assert (fill.title, fill.is_helper) == ("qk: fill", True)
    assert (gemm.title, gemm.is_helper, gemm.accesses) == ("qk", False, GEMM.accesses)


@pytest.mark.parametrize(
    ("name", "read", "written"),
    [
        ("Memset (Device)", 0, 4096),
        ("Memcpy DtoD (Device -> Device)", 4096, 4096),
        ("Memcpy HtoD (Pageable -> Device)", 0, 4096),
        ("Memcpy DtoH (Device -> Pinned)", 4096, 0),
    ],
)
def test_what_the_driver_moves_is_known_from_the_trace(name: str, read: int, written: int) -> None:
    moved = replace(event(name, is_kernel=False), n_bytes=4096)
    [helper] = on_gpu([moved], slots(1.0), [None], [])
    assert helper.is_helper
    assert (helper.bytes_read, helper.bytes_written) == (
        Bytes(modelled=read),
        Bytes(modelled=written),
    )


def test_a_trace_alone_claims_nothing_but_times() -> None:
    [launch] = traced_alone([event("mystery")], slots(3.0))
    assert (launch.kernel, launch.duration_us, launch.is_helper) == ("mystery", 3.0, False)
    assert launch.bytes_read.best() is None


def test_counts_go_to_their_places() -> None:
    counted = RangeBytes(bytes_read=7, bytes_written=15, bytes_requested=30)
    first, second = with_counts([SCALE, GEMM], {1: counted})
    assert first == SCALE
    assert second.bytes_read == Bytes(modelled=8, counted=7)
    assert second.bytes_written == Bytes(modelled=16, counted=15)
    assert second.l2_bytes_requested == 30
