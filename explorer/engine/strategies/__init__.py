"""The table of strategies; a new one is one file with its ``ENTRIES``, named here."""

from explorer.engine.strategies import (
    compiled,
    cudagraph,
    eager,
    flashinfer,
    flex,
    liger,
    quack,
    sdpa,
    torch_operators,
)
from explorer.engine.strategies.base import Built, Case, PeakFamily, Strategy
from explorer.engine.strategies.plan import plan_strategy
from explorer.model.errors import UsageError
from explorer.model.strategies import is_plan

STRATEGIES: tuple[Strategy, ...] = (
    *eager.ENTRIES,
    *compiled.ENTRIES,
    *cudagraph.ENTRIES,
    *sdpa.ENTRIES,
    *flex.ENTRIES,
    *torch_operators.ENTRIES,
    *liger.ENTRIES,
    *quack.ENTRIES,
    *flashinfer.ENTRIES,
)


def find_strategy(spec: str) -> Strategy:
    """Return the strategy written ``name`` or ``name:option``; a plan's is made for it.

    Raises:
        UsageError: There is none; the sentence lists the names, or the name's options.
    """
    if is_plan(spec):
        return plan_strategy(spec)
    for strategy in STRATEGIES:
        if strategy.spec == spec:
            return strategy
    name, _, option = spec.partition(":")
    options = [s.option for s in STRATEGIES if s.name == name]
    if not options:
        known = ", ".join(dict.fromkeys(s.name for s in STRATEGIES))
        raise UsageError(f"There is no strategy {name!r}; known strategies: {known}.")
    known = ", ".join(option for option in options if option)
    if not known:
        raise UsageError(f"{name} takes no option, so there is no {spec!r}.")
    raise UsageError(f"{name} has no option {option!r}; it takes none or one of {known}.")


__all__ = ["STRATEGIES", "Built", "Case", "PeakFamily", "Strategy", "find_strategy"]
