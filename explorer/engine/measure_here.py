"""Measures a function or module in this process, for notebooks and scripts.

A module keeps its parameters, its mode and its dtype; its buffers and the inputs are copied, since
calls may change them. See :func:`explorer.measure`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from explorer.chains.own import MODULE_MARK
from explorer.engine.own_code.arguments import Arguments, from_example, parameters_of
from explorer.engine.own_code.construct import convert, copied
from explorer.engine.own_code.subject import Callee, handing_over
from explorer.engine.session import Session
from explorer.model.errors import UsageError
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run


def measure(
    code: Callable[..., Any],
    inputs: Any,
    strategies: Sequence[str],
    *,
    backward: bool,
    device: str | None,
    seed: int,
    names: Sequence[str] | None,
    timing_s: float,
) -> list[Run]:
    """See :func:`explorer.measure`."""
    if not callable(code):
        raise UsageError(f"measure takes a function or a module, and {code!r} cannot be called.")
    given = from_example(inputs, names or _names(code))
    tensors = list(given.tensors().values())
    if isinstance(code, torch.nn.Module):
        tensors += [*code.parameters(), *code.buffers()]
    where = torch.device(device) if device else _common_device(tensors)
    name = _name(code)
    finished: list[Run] = []

    def emit(reply: Reply) -> None:
        if isinstance(reply, RunFinished):
            finished.append(reply.run)

    request = RunRequest(
        chain=name,
        strategies=tuple(strategies),
        device=str(where),
        seed=seed,
        direction=Direction.FORWARD_BACKWARD if backward else Direction.FORWARD,
        timing_s=timing_s,
        own=OwnCode(training=isinstance(code, torch.nn.Module) and code.training),
    )
    with handing_over(name, code, _maker(code, given, where)):
        Session().handle(request, emit)
    return finished


def _maker(
    code: Callable[..., Any], given: Arguments, where: torch.device
) -> Callable[[int, bool], Callee]:
    def make(seed: int, is_fake: bool) -> Callee:
        torch.manual_seed(seed)
        target = code
        if isinstance(code, torch.nn.Module):
            target = copied(code, is_fake=is_fake)
            convert(target, where, None)
        return Callee(
            target=target,
            arguments=given.mapped(
                lambda tensor: (
                    torch.empty_strided(
                        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=where
                    )
                    if is_fake
                    else tensor.detach().to(where, copy=True)
                )
            ),
        )

    return make


def _names(code: Callable[..., Any]) -> list[str]:
    """What the code calls its arguments by place; none where it does not tell."""
    try:
        parameters: Mapping[str, Any] = parameters_of(code)
    except (TypeError, ValueError):
        return []
    return [
        name
        for name, p in parameters.items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]


def _name(code: Callable[..., Any]) -> str:
    """As of a chain: ``__main__:scores``; what has no name is called by its class."""
    what = code if hasattr(code, "__qualname__") else type(code)
    name = str(what.__qualname__).rpartition(".")[2]
    return f"{what.__module__}{MODULE_MARK}{name if name.isidentifier() else 'function'}"


def _common_device(tensors: Sequence[torch.Tensor]) -> torch.device:
    """Where all tensors are.

    Raises:
        UsageError: They are in several places.
    """
    found = list(dict.fromkeys(str(tensor.device) for tensor in tensors))
    if len(found) > 1:
        raise UsageError(
            f"The module and its inputs are on {' and '.join(found)}; move them to one device, or "
            "name it with device=."
        )
    return torch.device(found[0] if found else "cpu")
