"""Which two runs of several variants are shown beside each other. No Qt."""

from collections.abc import Sequence

from explorer.model.run import Run
from explorer.ui.state import State


def first_pair(state: State, runs: Sequence[Run]) -> tuple[str, str] | None:
    """Keys of the first variant's run and of the second's, under the first strategy that has both.

    Args:
        state: Whose list the runs are in.
        runs: Of a sweep over the variants, in the order run.

    Returns:
        None where no strategy has launches under two variants.
    """
    keys = {id(item.run): item.key for item in state.runs}
    by_strategy: dict[str, list[str]] = {}
    for run in runs:
        if run.launches and id(run) in keys:
            by_strategy.setdefault(run.strategy.spec, []).append(keys[id(run)])
    pairs = (found for found in by_strategy.values() if len(found) > 1)
    return next(((first, second) for first, second, *_ in pairs), None)
