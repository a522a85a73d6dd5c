"""The sweep that is under way, of plans or of a parameter: its replies, its faults and its end."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer.model.messages import Progress, RunRequest
from explorer.model.run import Run
from explorer.ui.store import Store

if TYPE_CHECKING:
    from explorer.ui.point_sweep import PointSweep
    from explorer.ui.sweeping import Sweeping


class RunningSweep:
    """Says what comes next in a sweep, and keeps a run of whatever failed in it.

    It is off until one begins; then everything but beginning does nothing.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sweep: Sweeping | PointSweep | None = None

    def begin_points(self, requests: Sequence[RunRequest], *, is_comparison: bool) -> RunRequest:
        """Begin with points of a parameter; returns the first to send."""
        # Imported when asked for: the window is on the screen sooner.
        from explorer.ui.point_sweep import PointSweep

        self._sweep = PointSweep(requests, is_comparison=is_comparison)
        return requests[0]

    def begin_plans(self, request: RunRequest) -> RunRequest:
        """Begin with plans, each a strategy of one request; returns what to send."""
        from explorer.ui.sweeping import Sweeping

        self._sweep = Sweeping(request)
        return request

    def show_progress(self, told: Progress | None = None) -> bool:
        """Tell how far the whole sweep is; returns whether there is one."""
        if self._sweep is not None:
            self._store.set_progress(self._sweep.progress(told))
        return self._sweep is not None

    def take(self, run: Run) -> None:
        """A strategy of it has its run."""
        if self._sweep is not None:
            self._sweep.take(run)

    def keep_refused(self, sentence: str) -> None:
        """Keep failed runs of what the worker would not begin with."""
        abilities = self._store.state.abilities
        if self._sweep is not None and abilities is not None:
            self._store.add_runs(self._sweep.refused(sentence, abilities), show=False)

    def next_request(self) -> RunRequest | None:
        """What to send once the worker is done with a request; None where nothing is left."""
        return self._sweep.next_request() if self._sweep is not None else None

    def go_on(self, sentence: str) -> RunRequest | None:
        """Keep a failed run of what ended the worker; returns what another one is to do.

        None where nothing is left to do, or the worker died before it said anything: the next one
        would do the same.
        """
        sweep, abilities = self._sweep, self._store.state.abilities
        if sweep is None or abilities is None or not sweep.is_heard:
            return None
        self._store.add_runs([sweep.lost(sentence, abilities)], show=False)
        self._store.tell(sentence)
        return sweep.go_on()

    def end(self) -> None:
        """It is over: variants that were to be compared are shown side by side."""
        sweep = self._sweep
        self.drop()
        if sweep is None or not sweep.is_comparison:
            return
        from explorer.ui.side_by_side import telling_pair

        pair = telling_pair(self._store.state, sweep.runs)
        if pair is not None:
            self._store.show_run(pair[0])
            self._store.compare_run(pair[1])

    def drop(self) -> str:
        """Give it up; returns how far it came in words, empty where there was none."""
        words = self._sweep.end_words() if self._sweep is not None else ""
        self._sweep = None
        return words
