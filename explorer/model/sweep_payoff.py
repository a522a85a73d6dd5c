"""What a parameter sweep shows: from which value on fusion pays, and how the traffic grows.

A strategy pays from the smallest value on from which it is faster than the baseline, beyond noise,
there and at every larger value that could be compared. Comparisons that are withheld, because a
check failed, count neither for it nor against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.model.comparison import Verdict
from explorer.model.param_sweep import ParameterPoint, ParameterSweep, Series
from explorer.model.run import Pedigree, Scalar

FITTED_SHARE = 0.02
"""Traffic that lies within this share of a straight line, or of one value, follows it."""
LEAST_FITTED = 3
"""Through two points there is always a line."""


class Payoff(StrEnum):
    """Where a strategy is faster than the baseline, beyond noise."""

    FROM_THE_START = "from the start"
    FROM = "from a value on"
    NEVER = "never"
    NOT_AT_THE_END = "not at the largest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossover:
    """Where a strategy starts to pay, and keeps paying up to the largest value measured.

    Attributes:
        series: The strategy.
        baseline: Over which.
        payoff: Whether and where.
        at: The smallest point from which it is faster at every larger value too; None where there
            is none.
        compared: The points that could be compared, smallest value first.
        left_out: Values whose comparison is withheld or lacks a time, smallest first.
    """

    series: Series
    baseline: Series
    payoff: Payoff
    at: ParameterPoint | None
    compared: tuple[ParameterPoint, ...]
    left_out: tuple[Scalar, ...]

    @property
    def below(self) -> ParameterPoint | None:
        """The largest compared point below the crossover, None where there is none."""
        if self.at is None:
            return None
        place = self.compared.index(self.at)
        return self.compared[place - 1] if place else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How a strategy's traffic goes with the parameter.

    Attributes:
        series: The strategy.
        bytes_a_unit: What one more of the parameter adds, by a least-squares line; 0 where the
            traffic is the same for all values.
        mean_bytes: The traffic on average.
        pedigree: Of the bytes.
        n: Points that it is read from.
    """

    series: Series
    bytes_a_unit: float
    mean_bytes: float
    pedigree: Pedigree
    n: int

    @property
    def is_constant(self) -> bool:
        """Whether the traffic does not depend on the parameter."""
        return self.bytes_a_unit == 0


def crossover(sweep: ParameterSweep, spec: str) -> Crossover | None:
    """Where a strategy starts to pay over the sweep's baseline.

    Args:
        sweep: Of a number.
        spec: The strategy.

    Returns:
        None where there is nothing to tell: no number is swept, it is the baseline itself, or
        fewer than two values can be compared.
    """
    series = sweep.of(spec)
    baseline = sweep.of(sweep.baseline) if sweep.baseline else None
    if series is None or baseline is None or series is baseline or not sweep.is_numeric:
        return None
    compared = tuple(p for p in series.points if p.speed_up and p.speed_up.ratio is not None)
    if len(compared) < 2:
        return None
    known = {point.value for point in compared}
    at = None
    for point in reversed(compared):
        if not _is_faster(point):
            break
        at = point
    return Crossover(
        series=series,
        baseline=baseline,
        payoff=_payoff(compared, at),
        at=at,
        compared=compared,
        left_out=tuple(value for value in sweep.values if value not in known),
    )


def crossovers(sweep: ParameterSweep) -> tuple[Crossover, ...]:
    """Where each strategy starts to pay, in the order run; those that tell nothing left out."""
    found = (crossover(sweep, series.spec) for series in sweep.series)
    return tuple(each for each in found if each is not None)


def growth(sweep: ParameterSweep, spec: str) -> Growth | None:
    """How a strategy's traffic goes with the swept number.

    Returns:
        None unless enough points have bytes of one pedigree that keep to one value or to a line.
    """
    series = sweep.of(spec)
    if series is None or not sweep.is_numeric:
        return None
    placed = [
        (float(point.value), float(point.traffic), point.pedigree)
        for point in series.points
        if isinstance(point.value, int | float) and point.traffic and point.pedigree
    ]
    pedigrees = {pedigree for _, _, pedigree in placed}
    if len(placed) < LEAST_FITTED or len(pedigrees) != 1:
        return None
    traffics = [traffic for _, traffic, _ in placed]
    mean = sum(traffics) / len(traffics)
    if max(traffics) <= min(traffics) * (1 + FITTED_SHARE):
        slope = 0.0
    else:
        slope, start = _line([(value, traffic) for value, traffic, _ in placed])
        if any(abs(start + slope * v - t) > FITTED_SHARE * t for v, t, _ in placed):
            return None
    return Growth(
        series=series,
        bytes_a_unit=slope,
        mean_bytes=mean,
        pedigree=pedigrees.pop(),
        n=len(placed),
    )


def _is_faster(point: ParameterPoint) -> bool:
    return point.speed_up is not None and point.speed_up.verdict is Verdict.FASTER


def _payoff(compared: Sequence[ParameterPoint], at: ParameterPoint | None) -> Payoff:
    if at is not None:
        return Payoff.FROM_THE_START if at is compared[0] else Payoff.FROM
    return Payoff.NOT_AT_THE_END if any(map(_is_faster, compared)) else Payoff.NEVER


def _line(placed: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The least-squares line through points whose values differ: its slope and its start at 0."""
    middle = sum(value for value, _ in placed) / len(placed)
    mean = sum(traffic for _, traffic in placed) / len(placed)
    across = sum((value - middle) * (traffic - mean) for value, traffic in placed)
    slope = across / sum((value - middle) ** 2 for value, _ in placed)
    return slope, mean - slope * middle
