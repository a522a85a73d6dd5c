"""A run in the place of one that a worker's end kept from coming about."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from explorer.chains.own import chain_of
from explorer.model.device import Abilities, Device
from explorer.model.messages import RunRequest
from explorer.model.opgraph import OpGraph
from explorer.model.run import ChainInfo, Run
from explorer.model.strategies import parse_spec


def requested_device(request: RunRequest, abilities: Abilities) -> Device:
    """The device that a request means: ``auto`` is the worker's choice, ``cuda`` its first GPU."""
    wanted = abilities.default_device if request.device == "auto" else request.device
    devices = [ability.device for ability in abilities.devices]
    matching = [each for each in devices if each.id == wanted or each.kind.value == wanted]
    return (matching or devices)[0]


def failed_run(
    request: RunRequest,
    spec: str,
    sentence: str,
    abilities: Abilities,
    finished: Sequence[Run] = (),
) -> Run:
    """Make the record of a strategy that has no result.

    Args:
        request: What was asked.
        spec: The strategy that was under way.
        sentence: Why it failed.
        abilities: What the worker said of itself before it ended.
        finished: Runs of the same request that came about: they know the op graph.
    """
    device = requested_device(request, abilities)
    chain = chain_of(request.chain, request.own)
    parameters = chain.resolve(request.parameters, device.kind)
    return Run(
        id=uuid.uuid4().hex,
        chain=ChainInfo(
            name=chain.id,
            title=chain.title,
            parameters=parameters,
            dtype=str(parameters.get("dtype", "")),
            direction=request.direction,
            own=request.own,
        ),
        strategy=parse_spec(spec),
        device=device,
        versions=abilities.versions,
        seed=request.seed,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        graph=finished[-1].graph if finished else OpGraph(ops=(), tensors=()),
        error=sentence,
        swept=request.swept,
    )
