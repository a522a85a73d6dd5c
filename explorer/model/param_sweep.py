"""Parameter sweeps read out of runs: time, traffic, speed-up and memory against one parameter.

A point is a value of the swept parameter under one strategy. Only like is compared with like: a
point is held against the baseline at the same value, with the rules of ``comparison``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from explorer.model.comparison import (
    Headline,
    SpeedUp,
    distrust,
    headline,
    speed_up,
)
from explorer.model.errors import UsageError
from explorer.model.run import Pedigree, Run, Samples, Scalar
from explorer.model.strategies import parse_spec
from explorer.model.traffic import peak_bytes, run_traffic

EAGER = "eager"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterPoint:
    """A run as a parameter sweep sees it.

    Attributes:
        value: Of the swept parameter.
        run: What was measured.
        head: Its time with the condition it was taken in, cold where there is one; None if it was
            not timed.
        bytes_read: From memory, of ``pedigree``; None if no pedigree is known.
        bytes_written: To memory, alike.
        pedigree: The best that both have.
        speed_up: Over the baseline at this value; None of the baseline itself, and where one of
            the two has no time.
        peak_bytes: Highest memory over the inputs, None if unknown.
        launches: Kernels, helpers left out.
        distrust: Why its time must not be used; empty if it may be, or if it failed.
    """

    value: Scalar
    run: Run
    head: Headline | None
    bytes_read: int | None
    bytes_written: int | None
    pedigree: Pedigree | None
    speed_up: SpeedUp | None
    peak_bytes: int | None
    launches: int
    distrust: str = ""

    @property
    def error(self) -> str:
        """Why it failed, one sentence; empty if it did not."""
        return self.run.error or ""

    @property
    def time(self) -> Samples | None:
        """Its times, None if it was not timed."""
        return None if self.head is None else self.head.samples

    @property
    def traffic(self) -> int | None:
        """Bytes read and written together."""
        if self.bytes_read is None or self.bytes_written is None:
            return None
        return self.bytes_read + self.bytes_written

    @property
    def usable_time(self) -> Samples | None:
        """Its times, None also where a check failed."""
        return None if self.error or self.distrust else self.time


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of one strategy, in the order of the sweep's values.

    Attributes:
        spec: The strategy as on the command line.
        title: As on screen.
        points: One a value that was measured or failed.
    """

    spec: str
    title: str
    points: tuple[ParameterPoint, ...]

    def at(self, value: Scalar) -> ParameterPoint | None:
        """The point of a value, None where it was not run."""
        return next((point for point in self.points if point.value == value), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterSweep:
    """One parameter of a chain swept, all else alike.

    Attributes:
        name: Of the swept parameter.
        values: Those that were run: numbers from the smallest on, others in the order run.
        series: One a strategy, in the order run.
        baseline: The spec that speed-ups are over: eager, or without it the first strategy. None
            where there is one strategy alone.
        fixed: The other parameters.
        first: The first run, for the chain, the device and the versions, which all share.
    """

    name: str
    values: tuple[Scalar, ...]
    series: tuple[Series, ...]
    baseline: str | None
    fixed: dict[str, Scalar]
    first: Run

    @property
    def is_numeric(self) -> bool:
        """Whether the values are numbers, so that they have a place on an axis."""
        return all(is_number(value) for value in self.values)

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs, in the order of values and, at each, of strategies."""
        return tuple(
            point.run
            for value in self.values
            for series in self.series
            if (point := series.at(value)) is not None
        )

    def of(self, spec: str) -> Series | None:
        """The series of a strategy, None if it did not run."""
        return next((series for series in self.series if series.spec == spec), None)


def is_number(value: Scalar) -> bool:
    """Whether a value of a parameter is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_point(run: Run) -> bool:
    """Whether a run is a point of a parameter sweep."""
    return run.swept is not None and run.swept in run.chain.parameters


def point_title(run: Run) -> str:
    """``compile at seq_len=8192``; of a run that is no point the strategy alone."""
    if not is_point(run):
        return run.strategy.spec
    return f"{run.strategy.spec} at {run.swept}={run.chain.parameters[run.swept or '']}"


def sweeps_in(runs: Sequence[Run]) -> tuple[ParameterSweep, ...]:
    """Find the parameter sweeps among runs.

    Runs belong together that are points of a sweep of the same parameter and alike in all else.
    Of several runs of one point the newest counts; one that failed this time keeps the run that
    it has.

    Args:
        runs: Oldest first; those that are no point of a sweep are passed over.
    """
    found: dict[object, list[Run]] = {}
    for run in runs:
        if is_point(run):
            found.setdefault(_what_is_alike(run), []).append(run)
    return tuple(_sweep(group) for group in found.values())


def _what_is_alike(run: Run) -> object:
    others = [(name, str(v)) for name, v in run.chain.parameters.items() if name != run.swept]
    return (
        run.swept, run.chain.name, run.chain.own, run.chain.direction, tuple(sorted(others)),
        run.device.id, run.device.name, run.seed, run.versions.torch,
    )  # fmt: skip


def _sweep(runs: Sequence[Run]) -> ParameterSweep:
    first = runs[0]
    name = first.swept or ""
    newest: dict[tuple[str, Scalar], Run] = {}
    for run in runs:
        key = (run.strategy.spec, run.chain.parameters[name])
        if run.error is None or key not in newest:
            newest[key] = run
    specs = tuple(dict.fromkeys(spec for spec, _ in newest))
    values = _in_order(value for _, value in newest)
    baseline = EAGER if EAGER in specs else specs[0]
    return ParameterSweep(
        name=name,
        values=values,
        series=tuple(_series(spec, values, newest, baseline) for spec in specs),
        baseline=baseline if len(specs) > 1 else None,
        fixed={key: value for key, value in first.chain.parameters.items() if key != name},
        first=first,
    )


def _in_order(values: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Each value once: numbers by size, others as they came."""
    once = tuple(dict.fromkeys(values))
    numbers = [value for value in once if isinstance(value, int | float)]
    if len(numbers) == len(once) and all(is_number(value) for value in once):
        return tuple(sorted(numbers))
    return once


def _series(
    spec: str,
    values: Sequence[Scalar],
    newest: dict[tuple[str, Scalar], Run],
    baseline: str,
) -> Series:
    points = tuple(
        _point(value, run, None if spec == baseline else newest.get((baseline, value)))
        for value in values
        if (run := newest.get((spec, value))) is not None
    )
    return Series(spec=spec, title=_title(points[0].run), points=points)


def _title(run: Run) -> str:
    """What a strategy is called in a sentence; a later release's has the title it came with."""
    try:
        return parse_spec(run.strategy.spec).title
    except UsageError:
        return run.strategy.title or run.strategy.spec


def _point(value: Scalar, run: Run, baseline: Run | None) -> ParameterPoint:
    best = run_traffic(run).best if run.launches else None
    read, written, pedigree = best or (None, None, None)
    return ParameterPoint(
        value=value,
        run=run,
        head=None if run.error else headline(run),
        bytes_read=read,
        bytes_written=written,
        pedigree=pedigree,
        speed_up=_speed_up(run, baseline),
        peak_bytes=peak_bytes(run),
        launches=sum(not launch.is_helper for launch in run.launches),
        distrust="" if run.error else distrust(run),
    )


def _speed_up(run: Run, baseline: Run | None) -> SpeedUp | None:
    if baseline is None or run.error is not None or baseline.error is not None:
        return None
    return speed_up(run, baseline)
