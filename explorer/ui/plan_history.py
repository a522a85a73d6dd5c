"""What Ctrl+Z takes back: edits of the plan and removals of runs, the last one first. No Qt."""

from dataclasses import dataclass, replace

from explorer.model.fusion import FusionPlan
from explorer.ui.state import SessionRun


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStep:
    """An edit of a plan.

    Attributes:
        work: What the plan is kept by: its chain and direction.
        before: Its plan before, None if it had not been touched.
        after: Its plan since.
        was_planning: Whether the op graph showed the plan before.
    """

    work: str
    before: FusionPlan | None
    after: FusionPlan
    was_planning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalStep:
    """A run that was taken off the list, and where it stood."""

    place: int
    item: SessionRun


Step = PlanStep | RemovalStep


class History:
    """Steps that can be taken back, and those that were and can be done again.

    Edits are kept by chain and direction: with another chosen they are out of reach, not in the
    way.
    """

    def __init__(self) -> None:
        self._done: list[Step] = []
        self._undone: list[Step] = []

    def add(self, step: Step) -> None:
        """Remember what was just done; what was taken back before cannot be done again."""
        self._done.append(step)
        self._undone.clear()

    def extend(self, step: PlanStep) -> None:
        """Make an edit part of the one before, as in one stroke over several links."""
        last = self._done[-1] if self._done else None
        if isinstance(last, PlanStep) and last.work == step.work:
            self._done[-1] = replace(last, after=step.after)
            self._undone.clear()
        else:
            self.add(step)

    def last(self, work: str) -> Step | None:
        """What would be taken back while that work is chosen."""
        return _last(self._done, work)

    def last_undone(self, work: str) -> Step | None:
        """What would be done again."""
        return _last(self._undone, work)

    def last_removal(self) -> RemovalStep | None:
        """The run that was taken off the list last and is not back."""
        return next((s for s in reversed(self._done) if isinstance(s, RemovalStep)), None)

    def undo(self, step: Step) -> None:
        """A step was taken back."""
        _take(self._done, step)
        self._undone.append(step)

    def redo(self, step: Step) -> None:
        """A step was done again."""
        _take(self._undone, step)
        self._done.append(step)


def _last(steps: list[Step], work: str) -> Step | None:
    return next((s for s in reversed(steps) if isinstance(s, RemovalStep) or s.work == work), None)


def _take(steps: list[Step], step: Step) -> None:
    place = next(i for i in reversed(range(len(steps))) if steps[i] is step)
    del steps[place]
