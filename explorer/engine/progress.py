"""Says where a request stands: a fraction of the whole, from weights of the steps to come."""

from collections.abc import Callable, Sequence

from explorer.engine.strategies import Strategy
from explorer.model.messages import Progress, Reply, Stage

_ONCE = {Stage.STARTING: 0.2, Stage.CAPTURE: 1.0, Stage.REFERENCE: 1.0}
_CEILINGS_WEIGHT = 5.0
_EACH = {Stage.TRACE: 1.0, Stage.COUNTERS: 0.5, Stage.TIMING: 1.5, Stage.ACCURACY: 0.7}
_COMPILE_WEIGHT = {False: 0.3, True: 3.0}
_AUTOTUNE_WEIGHT = 20.0


class ProgressReporter:
    """Emits one ``Progress`` as each step begins."""

    def __init__(
        self,
        emit: Callable[[Reply], None],
        strategies: Sequence[Strategy],
        *,
        with_ceilings: bool,
    ) -> None:
        """Lay out the steps; the weights are about seconds on a GPU."""
        self._emit = emit
        steps: list[tuple[tuple[Stage, str | None], float]] = [
            ((stage, None), weight) for stage, weight in _ONCE.items()
        ]
        if with_ceilings:
            steps.append(((Stage.CEILINGS, None), _CEILINGS_WEIGHT))
        for strategy in strategies:
            steps.append(((Stage.COMPILE, strategy.spec), _compile_weight(strategy)))
            steps += [((stage, strategy.spec), weight) for stage, weight in _EACH.items()]
        total = sum(weight for _, weight in steps)
        self._fractions: dict[tuple[Stage, str | None], float] = {}
        done = 0.0
        for step, weight in steps:
            self._fractions[step] = done / total
            done += weight
        self._reached = 0.0

    def begin(self, stage: Stage, sentence: str, strategy: str | None = None) -> None:
        """A step begins; the fraction never goes back."""
        fraction = self._fractions.get((stage, strategy), self._reached)
        self._reached = max(self._reached, fraction)
        self._emit(
            Progress(stage=stage, sentence=sentence, fraction=self._reached, strategy=strategy)
        )


def _compile_weight(strategy: Strategy) -> float:
    if "autotune" in (strategy.option or ""):
        return _AUTOTUNE_WEIGHT
    return _COMPILE_WEIGHT[strategy.compiles]
