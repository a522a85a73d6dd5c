"""Carries a run request through, one worker after the other if need be."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from explorer.cli.ask import ask
from explorer.cli.plans import is_sweep, steps
from explorer.cli.progress import PointPlace, ProgressDisplay, starting
from explorer.model.device import Abilities
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.fusion import sweep_plans
from explorer.model.messages import (
    GraphCaptured,
    GraphRequest,
    GroupingFound,
    GroupingRequest,
    Progress,
    RequestFailed,
    RunFinished,
    RunRequest,
)
from explorer.model.run import Run
from explorer.worker.blocking import WorkerClient, WorkerEndedError
from explorer.worker.failed_run import failed_run


class Measurement:
    """A request and the runs that came of it: one for each strategy, in the order asked for.

    ``plan:*`` becomes every plan of the chain, in its place. A strategy that ends the worker gets
    a failed run, and a new worker goes on with the next.

    Attributes:
        runs: What is done so far.
        abilities: What the worker last said of itself, None before there was one.
        inductor_plan: Of a sweep: how Inductor would group the ops, where no run tells it.
    """

    def __init__(
        self,
        client: WorkerClient,
        request: RunRequest,
        display: ProgressDisplay,
        on_run: Callable[[Sequence[Run]], None],
        *,
        may_leave_out: bool = False,
        place: PointPlace | None = None,
    ) -> None:
        """Take what is needed; nothing runs yet.

        Args:
            client: The worker.
            request: What to measure.
            display: Where progress is shown.
            on_run: Called with all runs so far after each one.
            may_leave_out: Whether strategies that this machine cannot run are left out and told
                of, because nobody named them; otherwise they are wrong usage.
            place: Which point of a sweep this is, for progress; None if it is none.
        """
        self._client = client
        self._request = request
        self._display = display
        self._on_run = on_run
        self._may_leave_out = may_leave_out
        self._place = place
        self.abilities: Abilities | None = None
        self._has_sweep = any(is_sweep(spec) for spec in request.strategies)
        self._titles = request.strategies
        self.runs: list[Run] = []
        self.inductor_plan: str | None = None

    def measure(self) -> None:
        """Measure every strategy.

        Raises:
            UsageError: The worker refused what was asked for, before any run came of it.
            WorkerEndedError: No worker can be started, and no run has come about.
        """
        if self._client.abilities is None:
            self._display.update(starting())
        if self._has_sweep:
            self._write_out_sweep()
        while len(self.runs) < len(self._request.strategies):
            try:
                self._measure_rest()
            except ExplorerError as error:
                if not self.runs:
                    raise
                # No other worker will do better, and what is done has to be told.
                while len(self.runs) < len(self._request.strategies):
                    self._fail_next(str(error))
        if self._has_sweep:
            self._ask_for_inductors_plan()

    @property
    def strategies(self) -> tuple[str, ...]:
        """What is asked for, without what was left out and with every plan of a sweep."""
        return self._request.strategies

    @property
    def n_wanted(self) -> int:
        """How many runs are asked for."""
        return len(self._request.strategies)

    def _write_out_sweep(self) -> None:
        """Put the chain's plans in the place of ``plan:*``; which they are, its graph tells."""
        request = self._request
        captured = ask(
            self._client,
            GraphRequest(
                chain=request.chain,
                parameters=request.parameters,
                device=request.device,
                direction=request.direction,
                own=request.own,
            ),
            GraphCaptured,
            self._display,
        )
        written_out = steps(request.strategies, sweep_plans(captured.graph, request.chain))
        self._request = replace(request, strategies=tuple(step.spec for step in written_out))
        self._titles = tuple(step.title for step in written_out)

    def _ask_for_inductors_plan(self) -> None:
        """Find out which plan is Inductor's own; a sweep is of use without it."""
        if any(run.strategy.spec == "compile" and run.launches for run in self.runs):
            return
        request = self._request
        question = GroupingRequest(
            chain=request.chain,
            parameters=request.parameters,
            device=request.device,
            direction=request.direction,
            own=request.own,
        )
        try:
            found = ask(self._client, question, GroupingFound, self._display)
        except ExplorerError as error:
            self._display.tell(f"Which plan is Inductor's own is not known: {error}")
        else:
            self.inductor_plan = found.plan

    def _leave_out(self, abilities: Abilities) -> None:
        """Drop the strategies that the device cannot run, unless that would leave none."""
        refused = refusals(abilities, self._request.device)
        able = tuple(spec for spec in self._request.strategies if spec not in refused)
        if not able:
            return
        for spec in self._request.strategies:
            if spec in refused:
                self._display.tell(f"{spec} is left out: {refused[spec]}")
        self._request = replace(self._request, strategies=able)
        # Strategies that nobody named are called what they are.
        self._titles = able

    def _measure_rest(self) -> None:
        """Ask for the strategies that are left; the next one has a run then, maybe a failed one.

        Raises:
            UsageError: The worker refused what was asked for.
            WorkerEndedError: No worker can be started.
        """
        self.abilities = self._client.start()
        if self._may_leave_out:
            self._leave_out(self.abilities)
            self._may_leave_out = False
        rest = replace(self._request, strategies=self._request.strategies[len(self.runs) :])
        done = len(self.runs)
        try:
            for reply in self._client.request(rest):
                if isinstance(reply, Progress):
                    self._display.update(self._titled(reply))
                elif isinstance(reply, RunFinished):
                    self._keep(reply.run)
                elif isinstance(reply, RequestFailed):
                    if reply.usage:
                        raise UsageError(reply.sentence)
                    self._fail_next(reply.sentence)
        except WorkerEndedError as error:
            self._fail_next(str(error))
        if len(self.runs) == done:
            self._fail_next("The worker gave no result for it.")

    def _fail_next(self, sentence: str) -> None:
        """Keep a failed run in the place of the next strategy's, if there is one left."""
        assert self.abilities is not None
        if len(self.runs) == len(self._request.strategies):
            return
        spec = self._request.strategies[len(self.runs)]
        self._keep(failed_run(self._request, spec, sentence, self.abilities, self.runs))

    def _titled(self, progress: Progress) -> Progress:
        """The same, with what the strategy under way is called here, and at which point."""
        told = self._with_title(progress)
        return told if self._place is None else self._place.placed(told)

    def _with_title(self, progress: Progress) -> Progress:
        if progress.strategy is None or len(self.runs) == len(self._titles):
            return progress
        title = self._titles[len(self.runs)]
        if title == progress.strategy:
            return progress
        # The plan is in the title, and a line has room for it once.
        sentence = progress.sentence.replace(progress.strategy, "it")
        return replace(progress, strategy=title, sentence=sentence)

    def _keep(self, run: Run) -> None:
        title = self._titles[len(self.runs)]
        if self._place is not None:
            title = self._place.title(title)
        self.runs.append(run)
        self._display.finished(run, title)
        self._on_run(tuple(self.runs))


def refusals(abilities: Abilities, device: str) -> dict[str, str]:
    """Why strategies cannot run on a device, by spec; those that can are not in it.

    Args:
        abilities: Of the worker.
        device: As on the command line: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    """
    wanted = {"auto": abilities.default_device, "cuda": "cuda:0"}.get(device, device)
    return {
        strategy.spec: strategy.reason or "it cannot run here."
        for ability in abilities.devices
        if ability.device.id == wanted
        for strategy in ability.strategies
        if not strategy.available
    }
