"""A parameter sweep as text: a row a point, columns for each strategy, and what it all says."""

from collections.abc import Sequence

from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import paragraphs
from explorer.model.param_sweep import ParameterPoint, ParameterSweep, Series, point_title
from explorer.model.param_sweep_words import failure_label, findings, value_text, values_text
from explorer.model.run import Pedigree
from explorer.model.units import format_bytes, format_us

NOTHING = "–"
SPEC_WIDTH = 32
MOST_NAMED = 3
MOST_TOLD, MOST_NUMBERS, MOST_VARIANTS = 8, 2, 4
"""With more runs, or more values, their launches would hide the table."""


def param_sweep_lines(sweep: ParameterSweep) -> list[str]:
    """The table, what its numbers are, and what the points together say."""
    columns = [Column(title=sweep.name, is_text=not sweep.is_numeric)]
    for series in sweep.series:
        columns += _columns(sweep, series)
    rows = [
        [value_text(value), *(cell for s in sweep.series for cell in _cells(sweep, s, s.at(value)))]
        for value in sweep.values
    ]
    found = paragraphs(findings(sweep))
    return [
        f"swept: {sweep.name} {values_text(sweep)}",
        "",
        *render(columns, rows),
        *_legend(sweep),
        *(["", *found] if found else []),
        *_sentences(sweep),
    ]


def _columns(sweep: ParameterSweep, series: Series) -> list[Column]:
    group = shortened(series.spec, SPEC_WIDTH)
    pedigree = _common_pedigree(series)
    traffic = f"traffic, {pedigree.value}" if pedigree else "traffic"
    over = [] if sweep.baseline in (None, series.spec) else [f"over {sweep.baseline}"]
    titles = ["time", *over, traffic, "peak memory"]
    return [Column(title=title, group=group) for title in titles]


def _cells(sweep: ParameterSweep, series: Series, point: ParameterPoint | None) -> list[str]:
    has_over = sweep.baseline not in (None, series.spec)
    if point is None:
        return [NOTHING] * (4 if has_over else 3)
    over = NOTHING if point.speed_up is None else point.speed_up.text
    return [
        _time(point),
        *([over] if has_over else []),
        _traffic(point, _common_pedigree(series)),
        NOTHING if point.peak_bytes is None else format_bytes(point.peak_bytes),
    ]


def _time(point: ParameterPoint) -> str:
    if point.error:
        return failure_label(point.run)
    text = NOTHING if point.time is None else format_us(point.time.median_us)
    return f"{text} !" if point.distrust else text


def _traffic(point: ParameterPoint, common: Pedigree | None) -> str:
    if point.traffic is None or point.pedigree is None:
        return NOTHING
    text = format_bytes(point.traffic)
    return text if common is not None else f"{text} {point.pedigree.value}"


def _common_pedigree(series: Series) -> Pedigree | None:
    """Of all its bytes, None where they have several or none."""
    found = {point.pedigree for point in series.points if point.pedigree is not None}
    return found.pop() if len(found) == 1 else None


def _legend(sweep: ParameterSweep) -> list[str]:
    points = [point for series in sweep.series for point in series.points]
    states = dict.fromkeys(point.head.condition.value for point in points if point.head)
    state = f", {' or '.join(states)}" if states else ""
    lines = [f"time: median{state}; traffic: read and written; peak memory: over the inputs"]
    if any(point.distrust for point in points):
        lines.append("!: a check failed, the time is not to be used")
    return lines


def _sentences(sweep: ParameterSweep) -> list[str]:
    """Why points failed, and what runs should be told with, each once with its points."""
    failures = [
        f"{point_title(run)}: {failure_label(run)}: {run.error}" for run in sweep.runs if run.error
    ]
    places: dict[str, list[str]] = {}
    # Where the launches of each run follow, so do its warnings.
    for run in () if is_told_at_length(sweep) else sweep.runs:
        for warning in dict.fromkeys(run.warnings):
            places.setdefault(warning, []).append(point_title(run))
    warnings = [f"{_at(titles)}: {warning}" for warning, titles in places.items()]
    told = [*failures, *warnings]
    return ["", *paragraphs(told, "  ")] if told else []


def _at(titles: Sequence[str]) -> str:
    return ", ".join(titles) if len(titles) <= MOST_NAMED else f"{len(titles)} runs"


def is_told_at_length(sweep: ParameterSweep) -> bool:
    """Whether each run has a table of its launches: of few values, such as a chain's variants."""
    most_values = MOST_NUMBERS if sweep.is_numeric else MOST_VARIANTS
    return len(sweep.values) <= most_values and len(sweep.runs) <= MOST_TOLD
