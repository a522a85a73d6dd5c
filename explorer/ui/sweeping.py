"""A sweep in progress: where it stands, and how it goes on after a plan that ended the worker."""

from dataclasses import replace

from explorer.model.device import Abilities
from explorer.model.messages import Progress, RunRequest, Stage
from explorer.model.run import Run
from explorer.model.strategies import is_plan
from explorer.worker.failed_run import failed_run


class Sweeping:
    """Counts the runs of one request, whose answers may come from several workers in turn."""

    def __init__(self, request: RunRequest) -> None:
        """Take the whole request; nothing is done yet."""
        self._request = request
        self._runs: list[Run] = []
        self._begun = 0
        self.is_comparison = False
        """Whether its runs are variants to be looked at side by side."""
        self.is_heard = False
        """Whether the present worker said anything: one that did not would die again."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """All runs so far, failed ones included."""
        return tuple(self._runs)

    @property
    def rest(self) -> RunRequest:
        """What is left to ask for; it may hold no strategy."""
        return replace(self._request, strategies=self._request.strategies[len(self._runs) :])

    @property
    def plans(self) -> int:
        """How many plans there are in all."""
        return sum(map(is_plan, self._request.strategies))

    @property
    def plans_done(self) -> int:
        """How many of them ran, failed ones included."""
        return sum(map(is_plan, self._request.strategies[: len(self._runs)]))

    def take(self, run: Run) -> None:
        """The next strategy has its run."""
        self.is_heard = True
        self._runs.append(run)

    def next_request(self) -> None:
        """All of it is one request: there is no next one."""

    def refused(self, sentence: str, abilities: Abilities) -> tuple[Run, ...]:
        """No records are made: what is said of one plan's chain holds for all of them."""
        return ()

    def go_on(self) -> RunRequest | None:
        """The request for another worker after one ended; None where nothing is left."""
        self._begun = len(self._runs)
        self.is_heard = False
        return self.rest if self.rest.strategies else None

    def lost(self, sentence: str, abilities: Abilities) -> Run:
        """The record of the strategy under way when the worker ended; it counts as done."""
        spec = self.rest.strategies[0]
        run = failed_run(self._request, spec, sentence, abilities, self._runs)
        self.take(run)
        return run

    def progress(self, told: Progress | None = None) -> Progress:
        """What a worker tells of its part, as said of the whole sweep."""
        self.is_heard = self.is_heard or told is not None
        told = told or Progress(stage=Stage.STARTING, sentence="Waiting for the worker")
        number = min(self.plans_done + 1, self.plans)
        strategies = self._request.strategies
        part = len(strategies) - self._begun
        fraction = None
        if told.fraction is not None:
            fraction = (self._begun + told.fraction * part) / len(strategies)
        spec = strategies[min(len(self._runs), len(strategies) - 1)]
        where = f"plan {number} of {self.plans}" if is_plan(spec) else f"before {self.plans} plans"
        return replace(told, sentence=f"{where} · {told.sentence}", fraction=fraction)

    def end_words(self) -> str:
        """How it ended before it was over."""
        return f"{self.plans_done} of {self.plans} plans are done and stay in the list."
