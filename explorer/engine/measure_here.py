"""Measures a function or module in this process, for notebooks and scripts.

A module keeps its parameters, its mode and its dtype; its buffers and the inputs are copied, since
calls may change them. See :func:`explorer.measure`.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from explorer.chains.own import MODULE_MARK
from explorer.engine.own_code.arguments import (
    Arguments,
    check_call,
    from_example,
    parameters_of,
)
from explorer.engine.own_code.construct import convert, copied
from explorer.engine.own_code.making import Callee
from explorer.engine.own_code.subject import handing_over
from explorer.engine.session import Session
from explorer.model.errors import UsageError
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run

# What fails is in the runs; a program that wants the tracebacks sets logging up.
logging.getLogger("explorer").addHandler(logging.NullHandler())


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
    _check(code, strategies)
    given = from_example(inputs, names or _names(code))
    check_call(code, given, "inputs")
    tensors = list(given.tensors().values())
    if isinstance(code, torch.nn.Module):
        tensors += [*code.parameters(), *code.buffers()]
    where = _device(device) if device else _common_device(tensors)
    if where.type != "meta" and any(tensor.is_meta for tensor in tensors):
        raise UsageError(
            "The module or an input is on the device meta, where tensors have no values; give them "
            "values first, as module.to_empty(device=...) and its initialisation do."
        )
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
    gpus = [where] if where.type == "cuda" and torch.cuda.is_available() else []
    with (
        # The seed is the run's own; the random numbers that the program draws later are not.
        torch.random.fork_rng(devices=gpus),
        handing_over(name, code, _maker(code, given, where)),
    ):
        Session().handle(request, emit)
    return finished


def _check(code: object, strategies: object) -> None:
    """Make sure that there is something to call, and a list of strategies.

    Raises:
        UsageError: There is not.
    """
    if not callable(code):
        raise UsageError(f"measure takes a function or a module, and {code!r} cannot be called.")
    if isinstance(code, type):
        raise UsageError(
            f"measure takes a function or a module, and {code.__name__} is a class; make one of it."
        )
    if isinstance(strategies, str) or not (
        isinstance(strategies, Sequence) and all(isinstance(spec, str) for spec in strategies)
    ):
        raise UsageError(
            f"strategies={strategies!r} is no list of names; write it as ('eager', 'compile')."
        )


def _device(name: str) -> torch.device:
    """The device of that name.

    Raises:
        UsageError: torch knows none.
    """
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise UsageError(
            f"torch knows no device {name!r}; there are cpu, cuda and cuda:N."
        ) from error


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
