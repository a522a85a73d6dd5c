"""Measures fusion plans of a chain through the session, on the first GPU."""

from collections.abc import Sequence

from explorer.engine.session import Session
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.run import Run, Scalar
from explorer.model.strategies import plan_spec


def measure(
    engine: Session, chain: str, plans: Sequence[str], **settings: Scalar
) -> dict[str, Run]:
    """The runs, by the plan's text."""
    replies: list[Reply] = []
    request = RunRequest(
        chain=chain,
        parameters=settings,
        strategies=tuple(plan_spec(plan) for plan in plans),
        device="cuda:0",
        timing_s=0.1,
        measure_ceilings=False,
    )
    engine.handle(request, replies.append)
    return {r.run.strategy.option or "": r.run for r in replies if isinstance(r, RunFinished)}
