"""``--sweep``: which points a run consists of, as far as text alone tells."""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.chains.descriptor import Chain
from explorer.chains.own import chain_of
from explorer.cli.plans import check_plan, is_sweep
from explorer.cli.terminal import write_note
from explorer.model.errors import UsageError
from explorer.model.messages import RunRequest
from explorer.model.run import Scalar
from explorer.model.strategies import is_plan
from explorer.model.sweep_range import parse_sweep, points


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """The points of a run, one request each.

    Attributes:
        requests: In the order in which they are run; all have the same strategies.
        is_asked_for: Whether somebody named the values. Those that a chain compares by itself are
            left out where this machine cannot run them.
    """

    requests: tuple[RunRequest, ...]
    is_asked_for: bool


def find_points(texts: Sequence[str], request: RunRequest) -> Points | None:
    """What to run in the place of a single request.

    Args:
        texts: What follows each ``--sweep``.
        request: With all that the points have in common.

    Returns:
        The points of the sweep, else those of what the chain compares by itself, else None.

    Raises:
        UsageError: A sweep cannot be read, or does not go with what else was asked for.
    """
    chain = chain_of(request.chain, request.own)
    if not texts:
        return _compared(chain, request)
    if len(texts) > 1:
        raise UsageError(
            f"--sweep is given {len(texts)} times and a sweep goes over one parameter; keep one, "
            "and --set the others."
        )
    swept = parse_sweep(texts[0])
    name = swept.name
    values = swept.values(chain.parameter(name))
    if name in request.parameters:
        raise UsageError(f"{name} is both set and swept; leave one out.")
    if any(map(is_sweep, request.strategies)):
        raise UsageError(
            "A plan sweep (plan:*) and a parameter sweep do not go together; name single plans, "
            "or leave --sweep out."
        )
    requests = points(request, name, values)
    _check_plans(chain, requests)
    if chain.compared is not None and chain.compared not in {name, *request.parameters}:
        write_note(
            f"{chain.compared} keeps its default in this sweep; --set {chain.compared}=… takes "
            f"another of {_listed(chain.compared_values)}."
        )
    return Points(requests=requests, is_asked_for=True)


def _compared(chain: Chain, request: RunRequest) -> Points | None:
    """The values that a chain sets side by side, unless one was chosen."""
    name, values = chain.compared, chain.compared_values
    if name is None or name in request.parameters:
        return None
    if any(map(is_plan, request.strategies)):
        # The variants differ in their ops, and a plan is of those of one.
        write_note(
            f"{name} keeps its default, as a plan is of one variant's ops; --set {name}=… takes "
            f"another of {_listed(values)}."
        )
        return None
    write_note(
        f"{chain.id} sets {name}={', '.join(map(str, values))} side by side; --set {name}=… runs "
        "one alone."
    )
    requests = points(request, name, values, timing_s=request.timing_s)
    return Points(requests=requests, is_asked_for=False)


def _check_plans(chain: Chain, requests: Sequence[RunRequest]) -> None:
    """Make sure that every plan fits every point: the swept parameter may take ops out.

    Raises:
        UsageError: One does not.
    """
    for request in requests:
        for spec in filter(is_plan, request.strategies):
            check_plan(spec, chain, request.parameters, request.device, request.direction)


def _listed(values: Sequence[Scalar]) -> str:
    return ", ".join(map(str, values))
