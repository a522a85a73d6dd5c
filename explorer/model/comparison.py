"""Runs side by side: the headline time of each, and a speed-up only where the clock can tell.

Two times differ when their quartile ranges do not overlap. Otherwise they are equal within noise
and no ratio is given, whichever median is the lower. Where a run's results or its randomness failed
their check, what it took is of no use: the speed-up is withheld, and that of others over it too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.model.run import DistributionCheck, Run, Samples, Timing
from explorer.model.units import format_ratio

EQUAL_WORDS = "equal within noise"
WITHHELD_WORDS = "withheld"
NOT_CHECKED_WORDS = "not checked"


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
    WITHHELD = "withheld"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The time a run is judged by: cold where it was taken, otherwise the next best, named."""

    samples: Samples
    condition: Condition


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedUp:
    """A run against a baseline.

    Attributes:
        ratio: The baseline's median over the run's: 2 is twice as fast. None where it is withheld.
        verdict: Whether the quartile ranges are apart, and which way.
        condition: What both were timed in.
        baseline: The baseline's strategy, as on the command line.
        reason: Why the ratio is withheld, one sentence; else empty.
        is_checked: Whether the results of both were compared with a reference.
    """

    ratio: float | None
    verdict: Verdict
    condition: Condition
    baseline: str
    reason: str = ""
    is_checked: bool = True

    @property
    def text(self) -> str:
        """``1.42×``, or words where there must be no number: it would be noise, or of no use."""
        if self.ratio is None:
            return WITHHELD_WORDS
        if self.verdict is Verdict.EQUAL:
            return EQUAL_WORDS
        words = format_ratio(self.ratio)
        return words if self.is_checked else f"{words}, {NOT_CHECKED_WORDS}"


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


def distrust(run: Run) -> str:
    """Why a run's time must not be used: the first check that failed, as a sentence.

    Returns:
        Empty if none failed, also where nothing was checked.
    """
    accuracy = run.accuracy
    if accuracy is None:
        return ""
    if accuracy.not_finite:
        n = accuracy.not_finite
        return (
            "Its result is wrong: a value of it is no finite number."
            if n == 1
            else f"Its result is wrong: {n:,} values of it are no finite numbers."
        )
    if not accuracy.passed:
        eager = accuracy.eager_max_abs_error
        beside = "" if eager is None else f", eager by {eager:.1e}"
        return (
            f"Its result is wrong: it is off by up to {accuracy.max_abs_error:.1e} from the fp64 "
            f"reference{beside}."
        )
    failed = next((check for check in accuracy.distribution if not check.passed), None)
    return "" if failed is None else f"Its randomness is wrong: {check_words(failed)}."


def check_words(check: DistributionCheck) -> str:
    """A check of the randomness: what was observed, expected, and asked for if that is other.

    ``share kept: 0.8985, expected 0.8984 ± 0.0005 (230 of 256; the chain asks for 0.9)``.
    """
    words = (
        f"{check.name}: {check.observed:.4g}, expected {check.expected:.4g} ± {check.tolerance:.2g}"
    )
    if check.nominal is None or check.nominal == check.expected:
        return words
    steps = ""
    if check.resolution > 0:
        steps = f"{round(check.expected / check.resolution)} of {round(1 / check.resolution)}; "
    return f"{words} ({steps}the chain asks for {check.nominal:.4g})"


def speed_up(run: Run, baseline: Run) -> SpeedUp | None:
    """Compare a run with a baseline, in the first condition that both were timed in.

    Returns:
        None if no condition is common to both.
    """
    reason = distrust(run)
    if not reason and (doubt := distrust(baseline)):
        reason = f"{baseline.strategy.spec} is no baseline. {doubt}"
    is_checked = run.accuracy is not None and baseline.accuracy is not None
    for condition in Condition:
        mine = _samples(run.timing, condition)
        theirs = _samples(baseline.timing, condition)
        if mine is None or theirs is None or min(mine.median_us, theirs.median_us) <= 0:
            continue
        ratio = theirs.median_us / mine.median_us
        if reason:
            verdict = Verdict.WITHHELD
        elif ranges_overlap(mine, theirs):
            verdict = Verdict.EQUAL
        else:
            verdict = Verdict.FASTER if ratio > 1 else Verdict.SLOWER
        return SpeedUp(
            ratio=None if reason else ratio,
            verdict=verdict,
            condition=condition,
            baseline=baseline.strategy.spec,
            reason=reason,
            is_checked=is_checked,
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
