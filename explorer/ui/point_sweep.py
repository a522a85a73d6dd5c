"""A parameter sweep in progress: one request a point, and how it goes on after a fault."""

from collections.abc import Sequence
from dataclasses import replace

from explorer.model.device import Abilities
from explorer.model.messages import Progress, RunRequest, Stage
from explorer.model.param_sweep_words import value_text
from explorer.model.run import Run
from explorer.worker.failed_run import failed_run


class PointSweep:
    """Carries the points of a sweep through, each with all its strategies, in their order.

    Every strategy has exactly one run at every point: one that the worker refuses or that ends it
    has a failed run, and the sweep goes on.
    """

    def __init__(self, requests: Sequence[RunRequest], *, is_comparison: bool = False) -> None:
        """Take the whole sweep; nothing is done yet.

        Args:
            requests: One a point, all with the same strategies.
            is_comparison: The points are variants to be looked at side by side.
        """
        self._requests = tuple(requests)
        self._place = 0
        self._runs: list[Run] = []
        self._begun = 0
        self.is_comparison = is_comparison
        self.is_heard = False
        """Whether the present worker said anything: one that did not would die again."""
        self.runs: list[Run] = []
        """All runs so far, failed ones included."""

    @property
    def first(self) -> RunRequest:
        """What to send first."""
        return self._requests[0]

    @property
    def n_points(self) -> int:
        """How many points there are in all."""
        return len(self._requests)

    @property
    def points_done(self) -> int:
        """How many of them are over, with failed runs or without."""
        return self._place

    @property
    def _request(self) -> RunRequest:
        """The point under way; the last one when all are over."""
        return self._requests[min(self._place, len(self._requests) - 1)]

    @property
    def rest(self) -> RunRequest:
        """What is left of the point under way; it may hold no strategy."""
        return replace(self._request, strategies=self._request.strategies[len(self._runs) :])

    def take(self, run: Run) -> None:
        """The next strategy has its run."""
        self.is_heard = True
        self._runs.append(run)
        self.runs.append(run)

    def next_request(self) -> RunRequest | None:
        """The request for the next point, once the worker is done with one; None at the end."""
        self._place += 1
        self._runs.clear()
        self._begun = 0
        return self._requests[self._place] if self._place < len(self._requests) else None

    def go_on(self) -> RunRequest | None:
        """The request for another worker after one ended; None where nothing is left."""
        self.is_heard = False
        self._begun = len(self._runs)
        return self.rest if self.rest.strategies else self.next_request()

    def lost(self, sentence: str, abilities: Abilities) -> Run:
        """The record of the strategy under way when the worker ended; it counts as done."""
        run = failed_run(self._request, self.rest.strategies[0], sentence, abilities, self._runs)
        self.take(run)
        return run

    def refused(self, sentence: str, abilities: Abilities) -> tuple[Run, ...]:
        """The records of all strategies of a point that the worker would not begin with."""
        return tuple(self.lost(sentence, abilities) for _ in self.rest.strategies)

    def progress(self, told: Progress | None = None) -> Progress:
        """What a worker tells of its part, as said of the whole sweep."""
        self.is_heard = self.is_heard or told is not None
        told = told or Progress(stage=Stage.STARTING, sentence="Waiting for the worker")
        request = self._request
        n_strategies = len(request.strategies)
        done = float(self._begun)
        if told.fraction is not None:
            done += told.fraction * (n_strategies - self._begun)
        done = max(done, float(len(self._runs)))
        name = request.swept or ""
        where = (
            f"{min(self._place + 1, self.n_points)} of {self.n_points} · "
            f"{name} {value_text(request.parameters.get(name))}"
        )
        fraction = (self._place + min(done / n_strategies, 1.0)) / self.n_points
        return replace(told, sentence=f"{where} · {told.sentence}", fraction=min(fraction, 1.0))

    def end_words(self) -> str:
        """How it ended before it was over."""
        return (
            f"{len(self.runs)} of {self.n_points * len(self.first.strategies)} runs are done and "
            "stay in the list."
        )
