"""Runs side by side: the headline time of each, and a speed-up only where the clock can tell.

Two times differ when their quartile ranges do not overlap. Otherwise they are equal within noise
and no ratio is given, whichever median is the lower.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.model.run import Run, Samples, Timing
from explorer.model.units import format_ratio

EQUAL_WORDS = "equal within noise"


class Condition(StrEnum):
    """What state a call was timed in; only like is compared with like."""

    COLD = "cold L2"
    WARM = "warm L2"
    GRAPH = "graph replay"


class Verdict(StrEnum):
    """What a comparison found."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The time a run is judged by: cold where it was taken, otherwise the next best, named."""

    samples: Samples
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedUp:
    """A run against a baseline.

    Attributes:
        ratio: The baseline's median over the run's: 2 is twice as fast.
        verdict: Whether the quartile ranges are apart, and which way.
        condition: What both were timed in.
        baseline: The baseline's strategy, as on the command line.
    """

    ratio: float
    verdict: Verdict
    condition: Condition
    baseline: str

    @property
    def text(self) -> str:
        """``1.42×``, or words where the ranges overlap: a ratio would then be noise."""
        return EQUAL_WORDS if self.verdict is Verdict.EQUAL else format_ratio(self.ratio)


def headline(run: Run) -> Headline | None:
    """The time a run is judged by, None if it was not timed."""
    for condition in Condition:
        samples = _samples(run.timing, condition)
        if samples is not None:
            return Headline(samples=samples, condition=condition)
    return None


def ranges_overlap(first: Samples, second: Samples) -> bool:
    """Whether the ranges from lower to upper quartile have a point in common."""
    return first.q1_us <= second.q3_us and second.q1_us <= first.q3_us


def speed_up(run: Run, baseline: Run) -> SpeedUp | None:
    """Compare a run with a baseline, in the first condition that both were timed in.

    Returns:
        None if no condition is common to both.
    """
    for condition in Condition:
        mine = _samples(run.timing, condition)
        theirs = _samples(baseline.timing, condition)
        if mine is None or theirs is None or min(mine.median_us, theirs.median_us) <= 0:
            continue
        ratio = theirs.median_us / mine.median_us
        if ranges_overlap(mine, theirs):
            verdict = Verdict.EQUAL
        else:
            verdict = Verdict.FASTER if ratio > 1 else Verdict.SLOWER
        return SpeedUp(
            ratio=ratio, verdict=verdict, condition=condition, baseline=baseline.strategy.spec
        )
    return None


def is_comparable(first: Run, second: Run) -> bool:
    """Whether two runs did the same work on the same device with the same torch."""
    return (
        first.chain.name == second.chain.name
        and first.chain.parameters == second.chain.parameters
        and first.chain.direction == second.chain.direction
        and (first.device.id, first.device.name) == (second.device.id, second.device.name)
        and first.versions.torch == second.versions.torch
    )


def find_baseline(run: Run, runs: Sequence[Run], spec: str = "eager") -> Run | None:
    """The run that a speed-up is measured over: same work, strategy ``spec``, not itself.

    Returns:
        The one nearest before ``run``, else the first after it, else None: a baseline that was
        not asked for does not exist.
    """
    fit = [
        other
        for other in runs
        if other.strategy.spec == spec and other.error is None and is_comparable(run, other)
    ]
    if run.strategy.spec == spec or not fit:
        return None
    position = next((i for i, other in enumerate(runs) if other is run), len(runs))
    before = [other for other in fit if any(other is each for each in runs[:position])]
    return before[-1] if before else fit[0]


def _samples(timing: Timing | None, condition: Condition) -> Samples | None:
    if timing is None:
        return None
    return {
        Condition.COLD: timing.cold,
        Condition.WARM: timing.warm,
        Condition.GRAPH: timing.graph,
    }[condition]
