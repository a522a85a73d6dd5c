"""What the plot of a sweep shows, without a plot: marks, front, floor, ranges and labels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from explorer.model.fusion import FusionPlan
from explorer.model.run import Run
from explorer.model.sweep import Sweep, SweepPoint
from explorer.model.sweep_words import point_words
from explorer.model.units import format_rate, format_us

BYTES_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
TIME_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
MOST_STRETCH = 1.3
"""The range of the plans' times may grow by this for what is beside them, and no further."""
AIR = 0.09
"""Left free round the marks, as a share of their range."""
FOOT = 0.12
"""Left free below them beside that: the fastest plan's label stands there."""


class MarkKind(StrEnum):
    """What a mark stands for; each has a symbol of its own."""

    PLAN = "plan"
    WRONG = "wrong"
    EAGER = "eager"
    COMPILED = "compiled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepMark:
    """One run on the plot.

    Attributes:
        run: It.
        kind: Which symbol it has.
        x: Traffic in bytes.
        y: Time in microseconds.
        low: Lower quartile of the time.
        high: Upper one.
        label: Short words that stand beside it; empty for none.
        words: All that is known of it, a line each.
        on_front: No other plan beats it.
        ringed: It is Inductor's own choice.
        shown: It is the run that the window shows.
        current: It is the plan that is being drawn.
    """

    run: Run
    kind: MarkKind
    x: float
    y: float
    low: float
    high: float
    label: str
    words: tuple[str, ...]
    on_front: bool = False
    ringed: bool = False
    shown: bool = False
    current: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPicture:
    """Everything the plot shows.

    Attributes:
        marks: Eager and compiled, then the plans; what matters most is last, on top.
        x_range: Bytes at the left and at the right edge.
        y_range: Microseconds at the bottom and at the top.
        x_unit: Bytes of one unit of the axis, and its name.
        y_unit: Microseconds of one unit of the axis, and its name.
        front: Corners of the front's line, from the upper left to the right.
        floor_bytes_per_us: Slope of the floor; None where no ceiling was measured.
        floor_words: What the floor is.
        caption: What is up, what is across, and where the floor lies.
        about: The caption at length.
    """

    marks: tuple[SweepMark, ...]
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_unit: tuple[float, str]
    y_unit: tuple[float, str]
    front: tuple[tuple[float, float], ...]
    floor_bytes_per_us: float | None
    floor_words: str
    caption: str
    about: str

    @property
    def floor(self) -> tuple[tuple[float, float], ...]:
        """Both ends of the floor's line within the ranges; empty where it lies below."""
        if self.floor_bytes_per_us is None:
            return ()
        (left, right), (low, _) = self.x_range, self.y_range
        start = max(left, low * self.floor_bytes_per_us)
        if start >= right:
            return ()
        return tuple((x, x / self.floor_bytes_per_us) for x in (start, right))

    def beyond(self, mark: SweepMark) -> int:
        """1 for a mark above the range, which stands at the upper edge instead; -1 below it."""
        low, high = self.y_range
        return int(mark.y > high) - int(mark.y < low)


def picture_of(
    sweep: Sweep, shown: Run | None = None, current: FusionPlan | None = None
) -> SweepPicture | None:
    """The picture of a sweep.

    Args:
        sweep: What ran.
        shown: The run that the window shows.
        current: The plan that is being drawn there.

    Returns:
        None while no plan has both a time and a traffic.
    """
    marks = [_mark(sweep, point, shown, current) for point in sweep.points if point.is_placed]
    if not marks or sweep.pedigree is None or sweep.condition is None:
        return None
    beside = [
        _mark(sweep, point, shown, None)
        for point in (sweep.eager, sweep.compiled)
        if point is not None and point.is_placed
    ]
    marks.sort(
        key=lambda mark: (mark.shown, mark.ringed, mark.on_front, mark.kind is MarkKind.WRONG)
    )
    ceilings = marks[0].run.device.ceilings
    rate = ceilings.memory_bytes_per_s if ceilings else 0.0
    x_range = _widened([mark.x for mark in (*marks, *beside)])
    y_range = _time_range(marks, beside, x_range[0] / rate * 1e6 if rate else None)
    memory = marks[0].run.device.memory_name
    picture = SweepPicture(
        marks=(*beside, *marks),
        x_range=x_range,
        y_range=y_range,
        x_unit=_unit(x_range[1], BYTES_UNITS),
        y_unit=_unit(y_range[1], TIME_UNITS),
        front=_stairs(sweep.front, x_range, y_range),
        floor_bytes_per_us=rate / 1e6 if rate else None,
        floor_words=f"{memory} at {format_rate(rate)}" if rate else "",
        caption=f"Time over {memory} traffic",
        about=f"Times are {sweep.condition.value}, bytes {sweep.pedigree.value}.",
    )
    if not rate:
        return picture
    least_us = min(mark.x for mark in marks) / rate * 1e6
    return replace(
        picture,
        caption=f"{picture.caption} · floor at {format_us(least_us)}",
        about=f"{picture.about} The floor is what the traffic takes at the measured ceiling of "
        f"{format_rate(rate)}: {format_us(least_us)} for the least.",
    )


def picture_words(picture: SweepPicture, found: Sequence[str]) -> str:
    """The whole plot for a screen reader: what was found, then every mark."""
    return " ".join([*found, *(f"{', '.join(mark.words)}." for mark in picture.marks)])


def neighbour(picture: SweepPicture, at: int, step: tuple[int, int]) -> int:
    """Number of the mark that an arrow key leads to; the same where there is none.

    Args:
        picture: What is shown.
        at: Number of the mark that one is on.
        step: (1, 0) for the next one in traffic, (0, 1) for the next one in time, or back.
    """
    across = step[0] != 0

    def key(number: int) -> tuple[float, float, int]:
        mark = picture.marks[number]
        return (mark.x, mark.y, number) if across else (mark.y, mark.x, number)

    order = sorted(range(len(picture.marks)), key=key)
    place = order.index(at) + (step[0] if across else step[1])
    return order[min(max(place, 0), len(order) - 1)]


def _mark(
    sweep: Sweep, point: SweepPoint, shown: Run | None, current: FusionPlan | None
) -> SweepMark:
    assert point.time is not None, "only placed points have a mark"
    kind = MarkKind.PLAN
    if point is sweep.eager:
        kind = MarkKind.EAGER
    elif point is sweep.compiled:
        kind = MarkKind.COMPILED
    elif point.distrust:
        kind = MarkKind.WRONG
    return SweepMark(
        run=point.run,
        kind=kind,
        x=float(point.traffic or 0),
        y=point.time.median_us,
        low=point.time.q1_us,
        high=point.time.q3_us,
        label=_label(sweep, point, is_shown=point.run is shown),
        words=point_words(sweep, point),
        on_front=any(other is point for other in sweep.front),
        ringed=point is sweep.inductor_point,
        shown=point.run is shown,
        current=current is not None and point.plan == current,
    )


def _label(sweep: Sweep, point: SweepPoint, *, is_shown: bool) -> str:
    """What stands beside a mark: why it matters, else nothing."""
    if point.plan is None:
        return point.text
    words = [
        word
        for best, word in (
            (sweep.fastest, "fastest"),
            (sweep.leanest, "least traffic"),
            (sweep.inductor_point, "Inductor's choice"),
        )
        if best is point
    ]
    if not words and (is_shown or any(other is point for other in sweep.front)):
        return point.text
    return ", ".join(words)


def _unit(most: float, units: Sequence[tuple[float, str]]) -> tuple[float, str]:
    return next((unit for unit in units if most >= unit[0]), units[-1])


def _widened(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    air = AIR * (high - low) or 0.25 * high or 1.0
    return max(low - air, 0.0), high + air


def _time_range(
    marks: Sequence[SweepMark], beside: Sequence[SweepMark], floor_us: float | None
) -> tuple[float, float]:
    """From the plans' times, stretched to what is beside them where that is not far."""
    low, high = _widened([value for mark in marks for value in (mark.low, mark.high)])
    low = max(low - FOOT * (high - low), 0.0)
    most = MOST_STRETCH * (high - low)
    wanted = [mark.high for mark in beside]
    for value in sorted(wanted):
        top = value + AIR * (high - low)
        if top > high and top - low <= most:
            high = top
    lows = [mark.low for mark in beside] + ([floor_us] if floor_us is not None else [])
    for value in sorted(lows, reverse=True):
        bottom = max(value - AIR * (high - low), 0.0)
        if bottom < low and high - bottom <= most:
            low = bottom
    return low, high


def _stairs(
    front: Sequence[SweepPoint], x_range: tuple[float, float], y_range: tuple[float, float]
) -> tuple[tuple[float, float], ...]:
    """The front as a line round what no plan reaches: down at a point, then right to the next."""
    corners: list[tuple[float, float]] = []
    above = y_range[1]
    for point in front:
        x, y = float(point.traffic or 0), min(point.median_us, above)
        corners += [(x, above), (x, y)]
        above = y
    return (*corners, (x_range[1], above)) if corners else ()
