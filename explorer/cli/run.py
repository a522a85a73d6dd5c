"""``kernel-explorer run``: measure a chain, tell how it goes, keep every run that is done."""

import tempfile
import uuid
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from explorer.cli import interrupts
from explorer.cli.measure import Measurement
from explorer.cli.measure_points import PointsMeasurement
from explorer.cli.own_code import chosen_chain
from explorer.cli.param_sweep import Points, find_points
from explorer.cli.plans import SWEEP_TIMING_S, USUAL_TIMING_S, check_plan, is_sweep
from explorer.cli.progress import ProgressDisplay
from explorer.cli.report import report
from explorer.cli.terminal import (
    DONE,
    FAILED,
    INTERRUPTED,
    write_error,
    write_json,
    write_result,
)
from explorer.model.errors import RecordingError, UsageError
from explorer.model.messages import RunRequest
from explorer.model.param_sweep import point_title
from explorer.model.run import Direction, Run, Scalar
from explorer.model.strategies import DEFAULT_SPECS, is_plan, parse_spec
from explorer.recording import SUFFIX, check_writable, runs_to_plain, save_recording
from explorer.worker.blocking import WorkerClient


def execute(options: Namespace) -> int:
    """Measure, save and print.

    Raises:
        UsageError: What was asked for does not exist or cannot be.
        ExplorerError: Nothing could be measured, or the file cannot be written.
    """
    request = make_request(options)
    points = find_points(options.sweep, request)
    if options.save is not None:
        check_writable(options.save)
    done = measure_and_save(
        request,
        options.worker_python,
        options.save,
        may_leave_out=not options.strategy,
        points=points,
    )
    if options.json:
        write_json(runs_to_plain(done.runs))
    elif done.runs:
        write_result(report(done.runs, inductor_plan=done.inductor_plan))
    return done.code


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What measuring left behind.

    Attributes:
        runs: Those that are done, also if interrupted.
        code: The exit code.
        inductor_plan: Of a sweep: Inductor's own plan, where no run tells it.
    """

    runs: Sequence[Run]
    code: int
    inductor_plan: str | None = None


def measure_and_save(
    request: RunRequest,
    python: Path | None,
    save: Path | None,
    *,
    may_leave_out: bool,
    points: Points | None = None,
) -> Measured:
    """Measure with a worker of its own, saving after each run.

    Args:
        request: What to measure.
        python: The worker's Python, None for the default.
        save: Where to, None for nowhere.
        may_leave_out: Whether strategies that this machine cannot run are left out, as those are
            that nobody named.
        points: Of a sweep, which are measured in the place of the request.
    """
    display = ProgressDisplay()
    saver = Saver(save)
    interrupted = False
    with WorkerClient(python) as client:
        measurement: Measurement | PointsMeasurement
        if points is None:
            measurement = Measurement(
                client, request, display, saver.save, may_leave_out=may_leave_out
            )
        else:
            measurement = PointsMeasurement(
                client, points, display, saver.save, may_leave_out=may_leave_out
            )
        try:
            measurement.measure()
            interrupts.ignore()
        except KeyboardInterrupt:
            interrupted = True
            client.cancel()
        finally:
            display.close()
    saver.finish(measurement.runs)
    if saver.complaint is not None:
        write_error(saver.complaint)
    done = len(measurement.runs)
    if interrupted and done < measurement.n_wanted:
        write_error(f"interrupted after {done} of {measurement.n_wanted} runs.")
        return Measured(runs=measurement.runs, code=INTERRUPTED)
    failed = saver.complaint is not None
    for run in measurement.runs:
        if run.error is not None:
            failed = True
            write_error(f"{point_title(run)} failed: {run.error}")
    return Measured(
        runs=measurement.runs,
        code=FAILED if failed else DONE,
        inductor_plan=measurement.inductor_plan,
    )


class Saver:
    """Writes the recording anew after each run; a full disk ends no measurement and loses no run.

    Attributes:
        complaint: Why the last attempt failed, None if it did not.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._saved = 0
        self.complaint: str | None = None

    def save(self, runs: Sequence[Run]) -> None:
        """Write all runs so far."""
        if self._path is None:
            return
        try:
            save_recording(self._path, runs)
        except RecordingError as error:
            self.complaint = str(error)
        else:
            self.complaint = None
            self._saved = len(runs)

    def finish(self, runs: Sequence[Run]) -> None:
        """Write what an interrupt or a full disk kept from being written, elsewhere if need be."""
        if self._path is None or self._saved == len(runs):
            return
        self.save(runs)
        if self.complaint is None:
            return
        try:
            name = f"kernel-explorer-{uuid.uuid4().hex}{SUFFIX}"
            elsewhere = Path(tempfile.gettempdir(), name)
            save_recording(elsewhere, runs)
        except (OSError, RecordingError):
            return
        self.complaint = f"{self.complaint.rstrip('.')}; the runs are in {elsewhere} instead."


def make_request(options: Namespace) -> RunRequest:
    """Turn the options into a request, checking all that can be checked without torch.

    Raises:
        UsageError: A chain, file, parameter or strategy is unknown, or a value out of range.
    """
    chain, own = chosen_chain(options)
    parameters: dict[str, Scalar] = {}
    for name, value in options.settings:
        if name in parameters:
            raise UsageError(f"{name} is set twice; leave one out.")
        parameters[name] = chain.parameter(name).parse(value)
    strategies = tuple(options.strategy or DEFAULT_SPECS)
    direction = Direction.FORWARD_BACKWARD if options.backward else Direction.FORWARD
    has_sweep = False
    for spec in strategies:
        parse_spec(spec)
        if is_plan(spec):
            if not options.sweep:
                check_plan(spec, chain, parameters, options.device, direction)
            has_sweep = has_sweep or is_sweep(spec)
    return RunRequest(
        chain=chain.id,
        parameters=parameters,
        strategies=strategies,
        timing_s=SWEEP_TIMING_S if has_sweep else USUAL_TIMING_S,
        device=options.device,
        seed=options.seed,
        direction=direction,
        own=own,
    )
