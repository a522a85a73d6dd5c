"""The roofline: what bandwidth and arithmetic allow, by our own measured ceilings.

A point is a run: the chain's FLOPs over its bytes, against its FLOPs over its time.

Source: Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009.
"""

from dataclasses import dataclass
from enum import StrEnum

from explorer.model.comparison import headline
from explorer.model.device import Ceilings
from explorer.model.opgraph import OpKind
from explorer.model.run import Launch, Pedigree, Run
from explorer.model.tensor import TensorRole
from explorer.model.traffic import achieved_bytes_per_s, launch_traffic, run_traffic


class Bound(StrEnum):
    """What sets the floor."""

    MEMORY = "memory"
    ARITHMETIC = "arithmetic"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """The level part of a roofline: the best matmul rate of one dtype.

    Attributes:
        dtype: Of the matmul.
        flops_per_s: As measured.
        ridge_flops_per_byte: From this intensity on arithmetic is the limit, not memory.
    """

    dtype: str
    flops_per_s: float
    ridge_flops_per_byte: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """Where a run lies.

    Attributes:
        flops_per_byte: The chain's FLOPs over the bytes moved (arithmetic intensity).
        flops_per_s: The chain's FLOPs over the unprofiled time.
        pedigree: Of the bytes.
    """

    flops_per_byte: float
    flops_per_s: float
    pedigree: Pedigree


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least time the device's ceilings allow for the chain, however it is fused.

    Attributes:
        time_us: Least time.
        bound: What sets it.
        n_bytes: Inputs read once and outputs written once.
    """

    time_us: float
    bound: Bound
    n_bytes: int


def roofs(ceilings: Ceilings, dtype: str) -> tuple[Roof, ...]:
    """The roofs that concern a chain: its dtype's matmul rate and fp32's, highest first."""
    rates = {
        name: ceilings.flops_per_s[name]
        for name in (dtype, "fp32")
        if ceilings.flops_per_s.get(name, 0) > 0
    }
    made = [
        Roof(dtype=name, flops_per_s=rate, ridge_flops_per_byte=rate / ceilings.memory_bytes_per_s)
        for name, rate in rates.items()
    ]
    return tuple(sorted(made, key=lambda roof: -roof.flops_per_s))


def roofline_point(run: Run) -> RooflinePoint | None:
    """Where ``run`` lies, or None: then :func:`why_no_point` says why."""
    timed, best = headline(run), run_traffic(run).best
    if run.error or timed is None or best is None or run.graph.flops <= 0:
        return None
    read, written, pedigree = best
    if read + written <= 0 or timed.samples.median_us <= 0:
        return None
    return RooflinePoint(
        flops_per_byte=run.graph.flops / (read + written),
        flops_per_s=run.graph.flops / (timed.samples.median_us * 1e-6),
        pedigree=pedigree,
    )


def why_no_point(run: Run) -> str:
    """Why a run has no point, in one sentence."""
    if run.error:
        return run.error
    if headline(run) is None:
        return "It was not timed."
    if run.graph.flops <= 0:
        return "The chain has no floating-point operations."
    return "Its bytes are not known for every launch."


def floor(run: Run) -> Floor | None:
    """The least time for the run's chain on its device; None without measured ceilings.

    Memory: every input read once, and every output and every input that is updated in place
    written once, at that mix's rate. Arithmetic:
    the matmuls at the rate of the chain's dtype, everything else at the fp32 rate; the two can
    overlap.
    """
    ceilings = run.device.ceilings
    written = {name for op in run.graph.ops for name in op.writes}
    inputs = sum(t.n_bytes for t in run.graph.tensors if t.role is TensorRole.INPUT)
    outputs = sum(
        tensor.n_bytes
        for tensor in run.graph.tensors
        if tensor.role is TensorRole.OUTPUT
        or (tensor.role is TensorRole.INPUT and tensor.id in written)
    )
    rate = 0.0 if ceilings is None else ceilings.bytes_per_s(inputs, outputs)
    if ceilings is None or rate <= 0:
        return None
    memory_us = (inputs + outputs) / rate * 1e6
    matmul = sum(op.flops for op in run.graph.ops if op.kind is OpKind.MATMUL)
    arithmetic_us = max(
        _time_us(matmul, ceilings.flops_per_s.get(run.chain.dtype)),
        _time_us(run.graph.flops - matmul, ceilings.flops_per_s.get("fp32")),
    )
    if max(memory_us, arithmetic_us) <= 0:
        return None
    is_memory = memory_us >= arithmetic_us
    return Floor(
        time_us=max(memory_us, arithmetic_us),
        bound=Bound.MEMORY if is_memory else Bound.ARITHMETIC,
        n_bytes=inputs + outputs,
    )


def _time_us(flops: int, flops_per_s: float | None) -> float:
    return flops / flops_per_s * 1e6 if flops_per_s else 0.0


def share_of_ceiling(launch: Launch, ceilings: Ceilings | None) -> float | None:
    """A launch's achieved bandwidth over the measured ceiling of its own mix, 0 to 1.

    Returns:
        None where a part is unknown. Above 1 the ceilings are out of date: callers say so and
        never print the number.
    """
    achieved, moved = achieved_bytes_per_s(launch), launch_traffic(launch).best
    if achieved is None or moved is None or ceilings is None:
        return None
    read, written, _ = moved
    ceiling = ceilings.bytes_per_s(read, written)
    return achieved[0] / ceiling if ceiling > 0 else None
