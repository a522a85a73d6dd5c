"""Which two runs of several variants are shown beside each other. No Qt."""

from collections.abc import Sequence

from explorer.chains import CHAINS
from explorer.model.comparison import headline
from explorer.model.run import Run
from explorer.ui.state import State


def telling_pair(state: State, runs: Sequence[Run]) -> tuple[str, str] | None:
    """Keys of the first variant's run and of the second's, under one strategy.

    It is the strategy under which their times differ most: with some, a compiler has already made
    one of the other. Where no times are known it is the first that has both.

    Args:
        state: Whose list the runs are in.
        runs: Of a sweep over the variants, in the order run.

    Returns:
        None where no strategy has launches under two variants.
    """
    by_strategy: dict[str, list[Run]] = {}
    for run in runs:
        if run.launches and _key(state, run):
            by_strategy.setdefault(run.strategy.spec, []).append(run)
    pairs = [(found[0], found[1]) for found in by_strategy.values() if len(found) > 1]
    if not pairs:
        return None
    first, second = max(pairs, key=lambda pair: _times_apart(*pair))
    return _key(state, first), _key(state, second)


def variants_among(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Those that a chain is there to compare, if a recording holds some of only one chain."""
    chain = CHAINS.get(runs[0].chain.name) if runs else None
    if chain is None or chain.compared is None:
        return ()
    is_compared = all(run.swept == chain.compared and run.chain.name == chain.id for run in runs)
    return tuple(runs) if is_compared else ()


def _key(state: State, run: Run) -> str:
    """What the list has a run under; empty if it is not in it."""
    return next((item.key for item in state.runs if item.run == run), "")


def _times_apart(first: Run, second: Run) -> float:
    """How many times as long the slower one takes; 1 where that is not known."""
    times = [head.samples.median_us for run in (first, second) if (head := headline(run))]
    return max(times) / min(times) if len(times) == 2 and min(times) > 0 else 1.0
