"""Eager: the chain as written, one kernel an operator."""

from explorer.engine.prepared import Prepared
from explorer.engine.strategies.base import Built, PeakFamily, Strategy, always, plain_call


def _build(prepared: Prepared) -> Built:
    call = plain_call(prepared)
    call()
    return Built(call=call)


ENTRIES = (
    Strategy(
        name="eager",
        title="Eager, as written",
        build=_build,
        peak=always(PeakFamily.EAGER),
    ),
)
