"""What makes a time doubtful, or says what it is the time of: one sentence each."""

from collections.abc import Iterator, Sequence

from explorer.model.opgraph import OpGraph, OpKind
from explorer.model.run import Clock, Launch, Timing
from explorer.model.units import format_us

_WIDE_SPREAD = 0.3
_HARMLESS_REASONS = {"idle", "application clocks setting", "display clock setting"}
_STARVED_SHARE = 0.7


def timing_doubts(timing: Timing, full_sm_mhz: int | None = None) -> tuple[str, ...]:
    """Sentences about a wide spread, clocks that were held down, and a host that was too slow.

    Args:
        timing: With the sum of the launches' durations, where they were traced.
        full_sm_mhz: The highest SM clock that the device goes up to, None if not known.
    """
    return (*_spread(timing), *_held_down(timing, full_sm_mhz), *_starved(timing))


def unseen_ops(graph: OpGraph, launches: Sequence[Launch]) -> tuple[str, ...]:
    """A sentence about ops of the code that no launch carries out.

    Args:
        graph: What the code was captured as.
        launches: Of an eager run. Where it is not known of each which ops it carries out, nothing
            is said: the op may be that launch's.
    """
    if not launches or not all(launch.ops for launch in launches):
        return ()
    carried = {op for launch in launches for op in launch.ops}
    unseen = [
        op.name
        for op in graph.ops
        if op.name not in carried
        and not op.is_backward
        and op.kind is not OpKind.VIEW
        and not op.aten.startswith("aten.empty")
    ]
    if not unseen:
        return ()
    return (
        f"No launch was seen of {', '.join(unseen)}: the code does that outside of torch, as with "
        "numpy, or torch leaves it out as it runs; its bytes are missing here.",
    )


def _spread(timing: Timing) -> Iterator[str]:
    cold = timing.cold
    if cold is not None and cold.q3_us - cold.q1_us > _WIDE_SPREAD * cold.median_us:
        yield (
            "The times spread widely (the middle half over more than 30 % of the median): "
            "something else may have been using the machine."
        )


def _held_down(timing: Timing, full_sm_mhz: int | None) -> Iterator[str]:
    reasons = {reason for clocks in timing.clocks for reason in clocks.throttle_reasons}
    held_down = ", ".join(sorted(reasons - _HARMLESS_REASONS))
    if not held_down:
        return
    speeds = [clocks.sm_mhz for clocks in timing.clocks if clocks.sm_mhz is not None]
    if not speeds:
        yield f"The clocks were held down while timing ({held_down})."
        return
    if full_sm_mhz is not None and min(speeds) >= full_sm_mhz:
        return
    slowest, fastest = (f"{speed:,}" for speed in (min(speeds), max(speeds)))
    span = slowest if slowest == fastest else f"{slowest} to {fastest}"
    of_full = "" if full_sm_mhz is None else f" of {full_sm_mhz:,}"
    yield (
        f"The clocks were held down while timing ({held_down}): the SMs ran at {span}{of_full} "
        "MHz, so the times are longer than at full clock."
    )


def _starved(timing: Timing) -> Iterator[str]:
    """A GPU that waits for its host: neither the kernels nor the cache decide the time then.

    CUPTI stays attached once something was traced: seven launches took 79 µs instead of 54 on an
    H200. Kineto's ``TEARDOWN_CUPTI`` lifts that, but no counter can be opened afterwards.
    """
    cold, launches_us = timing.cold, timing.launch_total_us
    if cold is None or launches_us is None or cold.clock is not Clock.EVENTS:
        return
    if launches_us < _STARVED_SHARE * cold.median_us:
        yield (
            f"The GPU worked for {format_us(launches_us)} of the {format_us(cold.median_us)} and "
            "waited for the host the rest: this is the time of launching rather than of the "
            "kernels, and the tracer in this process makes each launch a few µs slower."
        )
