"""Makes own code ready to be called: a function or a module of a class, with its arguments."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from explorer.chains.input_text import bound as bound_text
from explorer.chains.own import read_init, read_inputs, read_name
from explorer.engine.capture import fake_tensors
from explorer.engine.own_code.arguments import (
    Arguments,
    check_call,
    empty_tensor,
    from_example,
    from_text,
    no_inputs,
    parameters_of,
    plain,
    random_tensor,
)
from explorer.engine.own_code.construct import FillingEmpty, constructor_arguments, convert, copied
from explorer.engine.own_code.errors import told_by_line
from explorer.engine.own_code.load import Target
from explorer.model.errors import UsageError
from explorer.model.own_code import OwnCode
from explorer.model.run import Scalar

_logger = logging.getLogger(__name__)

_EXAMPLE = "example_inputs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """Code with its arguments.

    Attributes:
        target: A function or module.
        arguments: Of a call.
        notes: What a person should know of it.
    """

    target: Any
    arguments: Arguments
    notes: tuple[str, ...] = ()


MakeCallee = Callable[[int, bool], Callee]
"""Makes the code from a seed; on tensors without memory if the second argument says so."""


def maker(
    target: Target, own: OwnCode, parameters: Mapping[str, Scalar], device: torch.device
) -> MakeCallee:
    """What makes the code that was named, with the arguments that are given for it.

    Args:
        target: What was named.
        own: How it is called.
        parameters: Of its texts, defaults filled in.
        device: Where it is to run.

    Raises:
        UsageError: A text cannot be read.
    """
    inputs, init = bound_text(read_inputs(own), parameters), bound_text(read_init(own), parameters)
    where = read_name(target.name).where

    def make(seed: int, is_fake: bool) -> Callee:
        with told_by_line(f"making {target.name}", target.is_own):
            torch.manual_seed(seed)
            called = _made(target.found, init, device, is_fake=is_fake)
            if inputs:
                generator = None if is_fake else torch.Generator(device).manual_seed(seed)
                arguments = from_text(
                    called,
                    inputs,
                    lambda _name, tensor: (
                        empty_tensor(tensor, device)
                        if generator is None
                        else random_tensor(tensor, device, generator)
                    ),
                )
            else:
                arguments = _example(target, called, device, where)
        if not isinstance(called, torch.nn.Module):
            return Callee(target=called, arguments=arguments, notes=arguments.notes)
        called.train(own.training)
        notes = (*arguments.notes, *_cast(called, arguments))
        return Callee(target=called, arguments=arguments, notes=notes)

    return make


def _made(found: Any, init: Mapping[str, Any], device: torch.device, *, is_fake: bool) -> Any:
    """The function itself, or a module of the class."""
    values = {name: plain(value) for name, value in init.items()}
    if isinstance(found, type):
        arguments = constructor_arguments(found, values)
        with torch.device(device), FillingEmpty():  # type: ignore[no-untyped-call]
            made = found(**arguments)
        convert(made, device, None)
        return made
    if values:
        raise UsageError(
            "--init gives a constructor's arguments, and this is no class; give a function's "
            "arguments by --input."
        )
    if isinstance(found, torch.nn.Module):
        found = copied(found, is_fake=is_fake)
        convert(found, device, None)
    return found


def _example(target: Target, called: Any, device: torch.device, where: str) -> Arguments:
    """What the file's own ``example_inputs()`` gives.

    Raises:
        UsageError: It has none, and the code takes something.
    """
    example = getattr(target.module, _EXAMPLE, None)
    names = [
        name
        for name, p in parameters_of(called).items()
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if not callable(example):
        if not parameters_of(called):
            return Arguments(args=(), kwargs={}, names=())
        raise no_inputs(target.name, called, where)
    with torch.device(device):
        given = example()
    arguments = from_example(given, names)
    check_call(called, arguments, f"{_EXAMPLE}() of {where}")
    return arguments.mapped(lambda tensor: tensor.detach().to(device))


def _cast(module: torch.nn.Module, arguments: Arguments) -> tuple[str, ...]:
    """Give a module the floating dtype of its inputs, if each of them has one in common.

    A module of several dtypes was written so, and its code casts between them.
    """
    dtypes = {t.dtype for t in arguments.tensors().values() if t.is_floating_point()}
    own = {p.dtype for p in module.parameters() if p.is_floating_point()}
    if len(dtypes) != 1 or len(own) != 1 or own == dtypes:
        return ()
    [dtype] = dtypes
    if dtype.itemsize < 2:
        return ()
    convert(module, None, dtype)
    name = str(dtype).removeprefix("torch.")
    return (f"The module's parameters were cast to {name}, the dtype of its inputs.",)


def without_memory(make: MakeCallee) -> Callee:
    """The code and its arguments on tensors without memory.

    A constructor that such tensors do not suit, since it takes numbers out of them or casts a part
    of the module, runs on real ones.
    """
    try:
        with fake_tensors():
            return make(0, True)
    except UsageError:
        raise
    except Exception:
        _logger.info("own code is made on real tensors", exc_info=True)
        made = make(0, False)
    with fake_tensors():
        is_module = isinstance(made.target, torch.nn.Module)
        return replace(
            made,
            target=copied(made.target, is_fake=True) if is_module else made.target,
            arguments=made.arguments.mapped(
                lambda tensor: torch.empty_strided(
                    tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
                )
            ),
        )
