"""Roofs, points, the floor and shares of the ceiling against hand counts."""

from dataclasses import replace

import pytest

from explorer.model.device import Ceilings
from explorer.model.opgraph import OpGraph, OpKind
from explorer.model.roofline import (
    Bound,
    floor,
    roofline_point,
    roofs,
    share_of_ceiling,
    why_no_point,
)
from explorer.model.run import Bytes, Launch, Pedigree, Run
from explorer.model.tensor import Tensor, TensorRole
from tests.fixtures_runs import (
    GPU_GRAPH,
    cpu_attention,
    eager_attention,
    failed_run,
    sdpa_attention,
)

CEILINGS = Ceilings(
    copy_bytes_per_s=4e12,
    read_bytes_per_s=4.2e12,
    write_bytes_per_s=3e12,
    flops_per_s={"bf16": 840e12, "fp32": 42e12},
    measured_at="2026-01-01T00:00:00+00:00",
)


def measured(run: Run, ceilings: Ceilings | None = CEILINGS) -> Run:
    return replace(run, device=replace(run.device, ceilings=ceilings))


def test_roofs_of_the_chains_type_and_of_fp32_highest_first() -> None:
    made = roofs(CEILINGS, "bf16")
    assert [roof.dtype for roof in made] == ["bf16", "fp32"]
    assert [roof.ridge_flops_per_byte for roof in made] == pytest.approx([200, 10])


def test_a_roof_that_was_not_measured_is_left_out() -> None:
    assert [roof.dtype for roof in roofs(CEILINGS, "fp16")] == ["fp32"]
    assert len(roofs(CEILINGS, "fp32")) == 1


def test_a_point_divides_the_chains_flops_by_counted_bytes_and_unprofiled_time() -> None:
    run = eager_attention()
    # Two matmuls of 2 * 32 * 4096^2 * 64, four ops of 32 * 4096^2.
    flops = 2 * 2 * 32 * 4096**2 * 64 + 4 * 32 * 4096**2
    counted = sum(
        (launch.bytes_read.counted or 0) + (launch.bytes_written.counted or 0)
        for launch in run.launches
    )
    point = roofline_point(run)
    assert point is not None
    assert point.flops_per_byte == pytest.approx(flops / counted)
    assert point.flops_per_s == pytest.approx(flops / 5350e-6)
    assert point.pedigree is Pedigree.COUNTED


def test_a_point_from_modelled_bytes_says_so() -> None:
    point = roofline_point(cpu_attention())
    assert point is not None
    assert point.pedigree is Pedigree.MODELLED


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"timing": None}, "not timed"),
        ({"launches": (), "counters": None}, "bytes are not known"),
        ({"graph": replace(GPU_GRAPH, ops=())}, "no floating-point"),
    ],
)
def test_no_point_has_a_reason(change: dict[str, object], words: str) -> None:
    run = replace(eager_attention(), **change)  # type: ignore[arg-type]  # one field a case
    assert roofline_point(run) is None
    assert words in why_no_point(run)


def test_a_failed_runs_reason_is_its_error() -> None:
    assert roofline_point(failed_run()) is None
    assert why_no_point(failed_run()) == failed_run().error


def test_the_floor_is_the_larger_of_memory_and_arithmetic() -> None:
    run = measured(sdpa_attention())
    found = floor(run)
    rows, square = 2 * 16 * 4096 * 64 * 2, 4096 * 4096 * 2
    matmul_us = 2 * 2 * 32 * 4096**2 * 64 / 840e12 * 1e6
    assert found is not None
    assert found.n_bytes == 4 * rows + square
    assert found.bound is Bound.ARITHMETIC
    assert found.time_us == pytest.approx(matmul_us)


def test_a_chain_without_matmuls_is_bound_by_memory() -> None:
    run = measured(eager_attention())
    ops = tuple(op for op in run.graph.ops if op.name == "scale")
    found = floor(replace(run, graph=replace(run.graph, ops=ops)))
    assert found is not None
    assert found.bound is Bound.MEMORY
    # Four inputs to one output, of which a fifth goes beyond 3:1.
    inputs, outputs = 3 * 2 * 16 * 4096 * 64 * 2 + 4096 * 4096 * 2, 2 * 16 * 4096 * 64 * 2
    assert found.n_bytes == inputs + outputs
    beyond = (inputs / (inputs + outputs) - 0.75) / 0.25
    a_byte_us = (beyond / 4.2e12 + (1 - beyond) / 4e12) * 1e6
    assert found.time_us == pytest.approx(found.n_bytes * a_byte_us)


def test_the_floor_counts_what_is_updated_in_place_as_written() -> None:
    inputs = tuple(
        Tensor(
            id=name, name=name, shape=(4000,), dtype="fp32", n_bytes=16_000, role=TensorRole.INPUT
        )
        for name in "pgmv"
    )
    step = replace(
        GPU_GRAPH.ops[0], name="step", kind=OpKind.ELEMENTWISE, reads=tuple("pgmv"),
        writes=tuple("pmv"), flops=0,
    )  # fmt: skip
    run = measured(eager_attention())
    found = floor(replace(run, graph=OpGraph(ops=(step,), tensors=inputs)))
    assert found is not None
    # Four tensors read and three written: 4:3 lies between 1:1 and 3:1, so at the copy's rate.
    assert found.n_bytes == 7 * 16_000
    assert found.time_us == pytest.approx(7 * 16_000 / 4e12 * 1e6)


def test_no_ceilings_no_floor() -> None:
    assert floor(measured(eager_attention(), None)) is None


def test_share_of_the_ceiling() -> None:
    launch = Launch(
        kernel="k", title="k", duration_us=100.0, bytes_read=Bytes(counted=150_000_000),
        bytes_written=Bytes(counted=60_000_000),
    )  # fmt: skip
    assert share_of_ceiling(launch, CEILINGS) == pytest.approx(2.1e12 / 4e12)
    assert share_of_ceiling(launch, None) is None
    assert share_of_ceiling(replace(launch, duration_us=None), CEILINGS) is None
    faster = share_of_ceiling(replace(launch, duration_us=10.0), CEILINGS)
    assert faster is not None
    assert faster > 1


@pytest.mark.parametrize(
    ("read", "written", "rate"),
    [
        (1, 1, 4e12),
        (3, 1, 4e12),
        (2, 1, 4e12),
        (1, 0, 4.2e12),
        (0, 1, 3e12),
        (0, 0, 4e12),
        (7, 1, 2 / (1 / 4.2e12 + 1 / 4e12)),
        (1, 3, 2 / (1 / 3e12 + 1 / 4e12)),
    ],
)
def test_a_mix_has_the_ceiling_between_those_measured(read: int, written: int, rate: float) -> None:
    assert CEILINGS.bytes_per_s(read, written) == pytest.approx(rate)


def test_reading_alone_is_not_held_to_a_slower_sum() -> None:
    slow_sum = replace(CEILINGS, read_bytes_per_s=3.9e12)
    assert slow_sum.bytes_per_s(1, 0) == pytest.approx(4e12)
    assert replace(CEILINGS, write_bytes_per_s=0.0).bytes_per_s(0, 1) == 0.0


def test_a_write_is_judged_by_what_writing_reaches() -> None:
    fill = Launch(
        kernel="k", title="k", duration_us=100.0, bytes_read=Bytes(counted=0),
        bytes_written=Bytes(counted=270_000_000),
    )  # fmt: skip
    assert share_of_ceiling(fill, CEILINGS) == pytest.approx(0.9)
