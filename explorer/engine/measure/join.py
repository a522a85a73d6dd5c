"""Joins counted bytes to launches, but only where it is certain which range is which launch."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.engine.cupti.counters import RangeBytes

_MOST_TIMES = 3.0
_SHORT_US = 20.0
"""Below this a duration says little: starting a launch is a good part of it."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Ranges in the order of the kernels, or why they could not be joined."""

    ranges: tuple[RangeBytes, ...] = ()
    refusal: str | None = None


def join_ranges(
    ranges: Sequence[RangeBytes],
    counted: Sequence[str],
    traced: Sequence[str],
    durations_us: Sequence[float],
) -> Joined:
    """Match the ranges of a counter pass, which have no names, to the kernels of a call.

    Args:
        ranges: One a kernel in launch order, as counted.
        counted: Names of the kernels of the counter pass.
        traced: Names of the kernels of a traced call.
        durations_us: Of the kernels in ``counted``, as timed by the trace.

    Returns:
        The ranges if the same kernels ran in both passes, there are as many ranges as kernels,
        and each range took about as long as its kernel; otherwise the reason.
    """
    if tuple(counted) != tuple(traced):
        return Joined(
            refusal="Counted bytes are not joined: other kernels ran in the counter pass than in "
            f"the trace ({_difference(traced, counted)})."
        )
    if len(ranges) != len(counted):
        return Joined(
            refusal=f"Counted bytes are not joined: the counters saw {len(ranges)} kernels and "
            f"the trace {len(counted)}."
        )
    wrong = _out_of_order(ranges, durations_us)
    if wrong is not None:
        return Joined(
            refusal=f"Counted bytes are not joined: kernel {wrong + 1} ({counted[wrong]}) took "
            f"{ranges[wrong].duration_us or 0:.1f} µs by the counters and "
            f"{durations_us[wrong]:.1f} µs by the trace, so that the order is in doubt."
        )
    return Joined(ranges=tuple(ranges))


def _out_of_order(ranges: Sequence[RangeBytes], durations_us: Sequence[float]) -> int | None:
    """The first kernel whose two durations are too far apart, with the clocks' ratio taken out."""
    ratios = [
        item.duration_us / traced
        for item, traced in zip(ranges, durations_us, strict=True)
        if item.duration_us is not None and traced >= _SHORT_US
    ]
    if not ratios:
        return None
    usual = statistics.median(ratios)
    for place, (item, traced) in enumerate(zip(ranges, durations_us, strict=True)):
        if item.duration_us is None:
            continue
        expected = traced * usual
        is_long = max(expected, item.duration_us) >= _SHORT_US
        apart = max(expected, item.duration_us) / max(min(expected, item.duration_us), 1e-3)
        if is_long and apart > _MOST_TIMES:
            return place
    return None


def _difference(traced: Sequence[str], counted: Sequence[str]) -> str:
    for place, (first, second) in enumerate(zip(traced, counted, strict=False), start=1):
        if first != second:
            return f"number {place} is {second}, not {first}"
    return f"{len(counted)} of them, not {len(traced)}"
