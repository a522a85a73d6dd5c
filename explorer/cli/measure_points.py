"""Carries the points of a parameter sweep through, one request after the other."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from explorer.cli.measure import Measurement
from explorer.cli.param_sweep import Points
from explorer.cli.progress import PointPlace, ProgressDisplay
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.messages import RunRequest
from explorer.model.run import Run
from explorer.model.sweep_range import pinned
from explorer.worker.blocking import WorkerClient
from explorer.worker.failed_run import failed_run


class PointsMeasurement:
    """The points of a sweep and the runs that came of them, point by point in every strategy.

    A point that cannot run keeps failed runs, and the sweep goes on. Only where every point is
    refused was the sweep wrong usage.

    Attributes:
        inductor_plan: None; a parameter sweep has no plan of its own.
    """

    inductor_plan = None

    def __init__(
        self,
        client: WorkerClient,
        points: Points,
        display: ProgressDisplay,
        on_run: Callable[[Sequence[Run]], None],
        *,
        may_leave_out: bool = False,
    ) -> None:
        """Take what is needed; nothing runs yet.

        Args:
            client: The worker.
            points: What to measure.
            display: Where progress is shown.
            on_run: Called with all runs so far after each one.
            may_leave_out: As of :class:`Measurement`.
        """
        self._client = client
        self._points = points
        self._display = display
        self._on_run = on_run
        self._may_leave_out = may_leave_out
        self._strategies = points.requests[0].strategies
        self._abilities = client.abilities
        self._first: Run | None = None
        self._before: list[Run] = []
        self._here: Sequence[Run] = ()
        self._refusal: UsageError | None = None
        self._left_out: list[str] = []

    @property
    def runs(self) -> Sequence[Run]:
        """What is done so far; nothing as long as every point was refused."""
        return [] if self._first is None else [*self._before, *self._here]

    @property
    def n_wanted(self) -> int:
        """How many runs are asked for, without what was left out."""
        return len(self._strategies) * (len(self._points.requests) - len(self._left_out))

    def measure(self) -> None:
        """Measure every point.

        Raises:
            UsageError: The worker refused every point, or its Python cannot be one.
            WorkerEndedError: No worker can be started, and no run has come about.
        """
        for place, request in enumerate(self._points.requests, start=1):
            self._measure_point(place, request)
            self._before += self._here
            self._here = ()
        if self._first is None and self._refusal is not None:
            raise self._refusal
        # Where every point is refused, nothing is left out of anything.
        for sentence in self._left_out:
            self._display.tell(sentence)

    def _measure_point(self, number: int, point: RunRequest) -> None:
        request = replace(point, strategies=self._strategies)
        if self._first is not None:
            request = pinned(request, self._first.chain.parameters)
        text = f"{request.swept}={request.parameters[request.swept or '']}"
        measurement = Measurement(
            self._client,
            request,
            self._display,
            self._keep,
            may_leave_out=self._may_leave_out,
            place=PointPlace(number=number, of=len(self._points.requests), text=text),
        )
        try:
            measurement.measure()
        except UsageError as error:
            # A Python that cannot be a worker will be none at the next point.
            if measurement.abilities is None:
                raise
            self._refuse(request, text, error)
        except ExplorerError as error:
            # Nothing was ever done, and no worker will do better at the next point.
            if self._first is None:
                raise
            self._fail(request, str(error))
        finally:
            self._strategies = measurement.strategies
            self._abilities = measurement.abilities or self._abilities
            # What was left out is told once.
            self._may_leave_out = self._may_leave_out and measurement.abilities is None

    def _keep(self, runs: Sequence[Run]) -> None:
        self._first = self._first or runs[0]
        self._here = runs
        self._on_run(self.runs)

    def _refuse(self, request: RunRequest, text: str, error: UsageError) -> None:
        """A point that the worker will not run: left out if nobody named it, else failed."""
        self._refusal = self._refusal or error
        if self._points.is_asked_for:
            self._fail(request, str(error))
            return
        self._left_out.append(f"{text} is left out: {error}")

    def _fail(self, request: RunRequest, sentence: str) -> None:
        abilities = self._client.abilities or self._abilities
        if abilities is None:
            return
        self._here = [failed_run(request, spec, sentence, abilities) for spec in request.strategies]
        if self._first is not None:
            self._on_run(self.runs)
