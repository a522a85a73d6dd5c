"""Runs as comma-separated values, for a spreadsheet or a script.

Numbers are whole: bytes, and microseconds with all their digits; what is not known is an empty
cell. Columns name their units. Lines end as RFC 4180 has it.
"""

import csv
import io
from collections.abc import Iterable, Sequence

from explorer.model.comparison import NOT_CHECKED_WORDS, SpeedUp
from explorer.model.param_sweep import ParameterPoint, ParameterSweep
from explorer.model.run import Launch, Run
from explorer.model.traffic import launch_traffic

Cell = str | int | float | None

SWEEP_COLUMNS = (
    "chain", "direction", "device", "parameter", "value", "strategy", "median_us", "q1_us",
    "q3_us", "condition", "bytes_read", "bytes_written", "bytes_are", "speed_up", "over",
    "speed_up_is", "peak_bytes", "launches", "error",
)  # fmt: skip
LAUNCH_COLUMNS = (
    "run", "chain", "direction", "parameters", "device", "strategy", "launch", "kernel", "title",
    "ops", "is_helper", "start_us", "duration_us", "bytes_read_modelled", "bytes_written_modelled",
    "bytes_read_counted", "bytes_written_counted", "bytes_are", "stream", "registers",
    "shared_bytes", "spills", "error",
)  # fmt: skip


def sweep_csv(sweeps: Sequence[ParameterSweep]) -> str:
    """A row a run of a parameter sweep, in the order of values and, at each, of strategies."""
    rows = (
        _sweep_row(sweep, series.spec, point)
        for sweep in sweeps
        for value in sweep.values
        for series in sweep.series
        if (point := series.at(value)) is not None
    )
    return _written(SWEEP_COLUMNS, rows)


def launches_csv(runs: Sequence[Run]) -> str:
    """A row a launch of every run, in the order given; a run without launches has a row too."""
    return _written(LAUNCH_COLUMNS, (row for i, run in enumerate(runs, 1) for row in _of(i, run)))


def _sweep_row(sweep: ParameterSweep, spec: str, point: ParameterPoint) -> list[Cell]:
    run, time = point.run, point.time
    over = point.speed_up
    return [
        run.chain.name,
        run.chain.direction.value,
        run.device.name,
        sweep.name,
        _plain(point.value),
        spec,
        None if time is None else time.median_us,
        None if time is None else time.q1_us,
        None if time is None else time.q3_us,
        None if point.head is None else point.head.condition.value,
        point.bytes_read,
        point.bytes_written,
        None if point.pedigree is None else point.pedigree.value,
        None if over is None else over.ratio,
        None if over is None else over.baseline,
        None if over is None else _certainty(over),
        point.peak_bytes,
        point.launches if run.launches else None,
        point.error or point.distrust,
    ]


def _certainty(over: SpeedUp) -> str:
    """How far a ratio is to be believed: ``faster``, ``equal`` within noise, ``withheld``."""
    words = over.verdict.value
    if over.ratio is None or over.is_checked:
        return words
    return f"{words}, {NOT_CHECKED_WORDS}"


def _of(number: int, run: Run) -> list[list[Cell]]:
    parameters = " ".join(f"{name}={value}" for name, value in run.chain.parameters.items())
    head: list[Cell] = [
        number, run.chain.name, run.chain.direction.value, parameters, run.device.name,
        run.strategy.spec,
    ]  # fmt: skip
    if not run.launches:
        empty: list[Cell] = [None] * (len(LAUNCH_COLUMNS) - len(head) - 1)
        return [[*head, *empty, run.error]]
    return [
        [*head, place, *_launch_cells(launch), None] for place, launch in enumerate(run.launches, 1)
    ]


def _launch_cells(launch: Launch) -> list[Cell]:
    pedigree = launch_traffic(launch).pedigree
    return [
        launch.kernel,
        launch.title,
        " ".join(launch.ops),
        _plain(launch.is_helper),
        launch.start_us,
        launch.duration_us,
        launch.bytes_read.modelled,
        launch.bytes_written.modelled,
        launch.bytes_read.counted,
        launch.bytes_written.counted,
        None if pedigree is None else pedigree.value,
        launch.stream,
        launch.registers,
        launch.shared_bytes,
        launch.spills,
    ]


def _plain(value: object) -> str | int | float | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, int | float) or value is None else str(value)


def _written(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()
