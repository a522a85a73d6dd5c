"""What the plots of a parameter sweep show, without a plot: lines, marks, ranges and labels."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from explorer.model.comparison import Verdict
from explorer.model.param_sweep import EAGER, ParameterPoint, ParameterSweep, Series
from explorer.model.param_sweep_words import failure_label, point_words, value_text
from explorer.model.run import Run
from explorer.model.sweep_payoff import Payoff, crossovers
from explorer.model.units import format_bytes, format_us

COLORS = ("fused", "read", "write", "compute", "playhead", "cache", "warning")
"""Of the strategies in the order run, in turn; the baseline has the colour of what is plain."""
SYMBOLS = ("o", "t1", "p", "d", "t", "h", "star")
BASE_SYMBOL = "s"
"""The baseline's alone, so that marks are told apart without their colours."""
AIR = 0.1
"""Left free round the marks, as a share of their range."""
FOOT = 0.12
"""Left free below them beside that where points failed: they stand at the lower edge."""
LEAST_TICKS, MOST_TICKS = 3, 5
LEAST_DECADES = 0.3
"""A range is no smaller than a doubling, so that noise does not look like a slope."""


Ticks = tuple[tuple[float, str], ...]
"""Places on an axis with what stands there."""


class Measure(StrEnum):
    """What is drawn against the parameter."""

    TIME = "Time"
    SPEED_UP = "Speed-up"
    TRAFFIC = "Traffic"
    PEAK = "Peak memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One run on the plot, in the plot's coordinates.

    Attributes:
        run: It.
        line: Place of its line.
        x: Along the parameter.
        y: Up; None for a point that failed, which stands at the lower edge.
        low: Lower quartile, the same as ``y`` where there is none.
        high: Upper one.
        words: All that is known of it, a line each.
        label: Why it failed, in a few words; empty if it did not.
        is_wrong: A check of it failed, so that its number must not be used.
        is_shown: It is the run that the window shows.
    """

    run: Run
    line: int
    x: float
    y: float | None
    low: float
    high: float
    words: tuple[str, ...]
    label: str = ""
    is_wrong: bool = False
    is_shown: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One strategy: its title, how it looks, and its dots from left to right."""

    title: str
    color: str
    symbol: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pays:
    """From where on a strategy is faster than the baseline: where that is, and in words."""

    x: float
    line: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamPicture:
    """Everything a plot shows.

    Attributes:
        measure: What is up.
        parameter: What is across.
        lines: One a strategy.
        is_numeric: The values are numbers, so that there is something between two of them.
        ticks: Where each value of the parameter stands, and its text.
        x_range: Left and right edge.
        y_range: Lower and upper edge.
        y_ticks: Where values stand on the vertical axis, and their texts.
        pays: From where on strategies pay.
        even: Where a speed-up is neither; None of other measures.
        taken: Over what it is drawn, and how it was taken.
    """

    measure: Measure
    parameter: str
    lines: tuple[Line, ...]
    is_numeric: bool
    ticks: Ticks
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    y_ticks: Ticks
    pays: tuple[Pays, ...]
    even: float | None
    taken: str

    @property
    def caption(self) -> str:
        """What is up, over what, and how it was taken."""
        return f"{self.measure.value} {self.taken}"

    @property
    def dots(self) -> tuple[Dot, ...]:
        """Every dot, line by line."""
        return tuple(dot for line in self.lines for dot in line.dots)


def picture_of(
    sweep: ParameterSweep, measure: Measure, shown: Run | None = None
) -> ParamPicture | None:
    """The picture of one measure.

    Returns:
        None where no point has a value of it.
    """
    places = _places(sweep)
    known = [
        value
        for series in sweep.series
        for point in series.points
        if (found := _value(point, measure)) is not None
        for value in found
    ]
    if not known:
        return None
    is_log = min(known) > 0
    lines = tuple(
        _line(sweep, number, measure, places, shown, is_log)
        for number in range(len(sweep.series))
        if measure is not Measure.SPEED_UP or sweep.series[number].spec != sweep.baseline
    )
    lines = tuple(
        replace(line, dots=tuple(replace(dot, line=place) for dot in line.dots))
        for place, line in enumerate(lines)
    )
    if measure is Measure.SPEED_UP:
        known.append(1.0)
    has_failed = any(dot.y is None for line in lines for dot in line.dots)
    x_values = [places[i] for i in range(len(sweep.values))]
    air = 0.06 * (x_values[-1] - x_values[0]) or 0.5
    y_range = _y_range(known, is_log=is_log, has_failed=has_failed)
    return ParamPicture(
        measure=measure,
        parameter=sweep.name,
        lines=lines,
        is_numeric=sweep.is_numeric,
        ticks=tuple(
            (place, value_text(value)) for place, value in zip(x_values, sweep.values, strict=True)
        ),
        x_range=(x_values[0] - air, x_values[-1] + air),
        y_range=y_range,
        y_ticks=_ticks(y_range, is_log, measure),
        pays=_pays(sweep, lines, places) if measure in (Measure.TIME, Measure.SPEED_UP) else (),
        even=(0.0 if is_log else 1.0) if measure is Measure.SPEED_UP else None,
        taken=_taken(sweep, measure),
    )


def pictures_of(sweep: ParameterSweep, shown: Run | None = None) -> dict[Measure, ParamPicture]:
    """A picture of each measure that something is known of."""
    found = ((measure, picture_of(sweep, measure, shown)) for measure in Measure)
    return {measure: picture for measure, picture in found if picture is not None}


def picture_words(picture: ParamPicture, found: Sequence[str]) -> str:
    """The whole plot for a screen reader: what was found, then every point."""
    return " ".join([*found, *(f"{', '.join(dot.words)}." for dot in picture.dots)])


def neighbour(picture: ParamPicture, at: int, step: tuple[int, int]) -> int:
    """Number of the dot that an arrow key leads to; the same where there is none.

    Args:
        picture: What is shown.
        at: Number of the dot that one is on.
        step: (1, 0) for the next value of the parameter, (0, 1) for the line above, or back.
    """
    dots = picture.dots
    here = dots[at]
    if step[0]:
        same = [i for i, dot in enumerate(dots) if dot.line == here.line]
        place = min(max(same.index(at) + step[0], 0), len(same) - 1)
        return same[place]
    column = [i for i, dot in enumerate(dots) if dot.x == here.x]
    column.sort(key=lambda i: (_height(dots[i]), i))
    place = min(max(column.index(at) + step[1], 0), len(column) - 1)
    return column[place]


def _height(dot: Dot) -> float:
    return -math.inf if dot.y is None else dot.y


def _places(sweep: ParameterSweep) -> list[float]:
    """Where the values stand: in log10 where they are positive numbers, else side by side."""
    numbers = [float(value) for value in sweep.values if isinstance(value, int | float)]
    if sweep.is_numeric and len(numbers) == len(sweep.values) and min(numbers) > 0:
        return [math.log10(number) for number in numbers]
    return [float(place) for place in range(len(sweep.values))]


def _line(
    sweep: ParameterSweep,
    number: int,
    measure: Measure,
    places: Sequence[float],
    shown: Run | None,
    is_log: bool,
) -> Line:
    series = sweep.series[number]
    # Eager alone is no baseline, and looks as it does everywhere.
    plain = sweep.baseline or EAGER
    base = next((i for i, each in enumerate(sweep.series) if each.spec == plain), -1)
    # The baseline has a look of its own; the others take turns, whatever its place is.
    turn = number - (base >= 0 and number > base)
    is_base = number == base
    return Line(
        title=series.title,
        color="plain" if is_base else COLORS[turn % len(COLORS)],
        symbol=BASE_SYMBOL if is_base else SYMBOLS[turn % len(SYMBOLS)],
        dots=tuple(
            dot
            for point in series.points
            if (dot := _dot(sweep, series, point, measure, places, shown, is_log)) is not None
        ),
    )


def _dot(
    sweep: ParameterSweep,
    series: Series,
    point: ParameterPoint,
    measure: Measure,
    places: Sequence[float],
    shown: Run | None,
    is_log: bool,
) -> Dot | None:
    """The dot of a point; None where it neither failed nor has a value of the measure."""
    value = _value(point, measure)
    if value is None and not point.error:
        return None
    y = low = high = None
    if value is not None:
        y, low, high = (math.log10(each) if is_log else each for each in value)
    return Dot(
        run=point.run,
        line=0,
        x=places[sweep.values.index(point.value)],
        y=y,
        low=low or 0.0,
        high=high or 0.0,
        words=point_words(sweep, series, point),
        label=failure_label(point.run),
        is_wrong=bool(point.distrust),
        is_shown=point.run is shown,
    )


def _value(point: ParameterPoint, measure: Measure) -> tuple[float, float, float] | None:
    """What is drawn of a point, with both ends of its bar; None where it is not known."""
    if measure is Measure.TIME:
        time = point.time
        return (time.median_us, time.q1_us, time.q3_us) if time else None
    single: float | None = None
    if measure is Measure.TRAFFIC:
        single = point.traffic
    elif measure is Measure.PEAK:
        single = point.peak_bytes
    elif point.speed_up is not None and point.speed_up.ratio is not None:
        # Within noise there is no ratio to show.
        equal = point.speed_up.verdict is Verdict.EQUAL
        single = 1.0 if equal else point.speed_up.ratio
    return None if single is None else (single, single, single)


def _y_range(known: Sequence[float], *, is_log: bool, has_failed: bool) -> tuple[float, float]:
    if is_log:
        low, high = math.log10(min(known)), math.log10(max(known))
        missing = max(LEAST_DECADES - (high - low), 0.0)
        low, high = low - missing / 2, high + missing / 2
    else:
        low, high = 0.0, max(known) or 1.0
    span = high - low
    below = AIR * span if is_log else 0.0
    return low - below - (FOOT * span if has_failed else 0.0), high + 1.4 * AIR * span


def _pays(
    sweep: ParameterSweep, lines: Sequence[Line], places: Sequence[float]
) -> tuple[Pays, ...]:
    """The crossovers that lie within what was measured: not those from the first value on."""
    titles = [line.title for line in lines]
    return tuple(
        Pays(
            x=places[sweep.values.index(found.at.value)],
            line=titles.index(found.series.title),
            words=f"{found.series.title} pays from {value_text(found.at.value)}",
        )
        for found in crossovers(sweep)
        if found.at is not None and found.payoff is Payoff.FROM and found.series.title in titles
    )


def _taken(sweep: ParameterSweep, measure: Measure) -> str:
    points = [point for series in sweep.series for point in series.points]
    if measure in (Measure.TIME, Measure.SPEED_UP):
        kinds = [point.head.condition.value for point in points if point.head]
    elif measure is Measure.TRAFFIC:
        kinds = [point.pedigree.value for point in points if point.pedigree]
    else:
        kinds = ["beyond the inputs"]
    over = f"over {sweep.name}"
    if measure is Measure.SPEED_UP and sweep.baseline:
        over = f"against {sweep.baseline}, {over}"
    return " · ".join((over, " / ".join(dict.fromkeys(kinds))))


def _ticks(y_range: tuple[float, float], is_log: bool, measure: Measure) -> Ticks:
    """Round values within a range: as few as tell the scale."""
    low, high = y_range
    if is_log:
        for steps in _LOG_STEPS:
            places = [
                decade + math.log10(step)
                for decade in range(math.floor(low), math.ceil(high) + 1)
                for step in steps
            ]
            inside = [place for place in places if low <= place <= high]
            if len(inside) >= LEAST_TICKS:
                break
        thin = inside[:: max(math.ceil(len(inside) / MOST_TICKS), 1)]
        return tuple((place, _TEXTS[measure](10**place)) for place in thin)
    rough = (high - max(low, 0.0)) / MOST_TICKS or 1.0
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    count = math.floor(high / step)
    return tuple((i * step, _TEXTS[measure](i * step)) for i in range(count + 1))


def _round_text(text: str) -> str:
    """``1.00 ms`` -> ``1 ms``."""
    number, space, unit = text.partition(" ")
    return f"{float(number.replace(',', '')):,g}{space}{unit}"


_LOG_STEPS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3,
              3.5, 4, 4.5, 5, 6, 7, 8, 9))  # fmt: skip
_TEXTS: dict[Measure, Callable[[float], str]] = {
    Measure.TIME: lambda value: _round_text(format_us(value)),
    Measure.SPEED_UP: lambda value: f"{value:,.3g}×",
    Measure.TRAFFIC: lambda value: _round_text(format_bytes(value)),
    Measure.PEAK: lambda value: _round_text(format_bytes(value)),
}
