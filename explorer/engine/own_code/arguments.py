"""What own code is called with: from a line of text, or from the file's ``example_inputs()``."""

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from explorer.chains.input_text import BoundDtype, BoundTensor, BoundValue
from explorer.engine.chain_functions.base import DTYPES
from explorer.engine.op_naming import numbered
from explorer.model.errors import UsageError

DEFAULT_BELOW = 100
"""Whole numbers are drawn from 0 to below it where the text does not say."""
_EXAMPLE = "bf16[1024,1024]"
_TORCHS_INPUT = "input"
_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of a call.

    Attributes:
        args: By place.
        kwargs: By name.
        names: What the arguments by place are called.
        notes: What a person should know of them.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def tensors(self, taken: Sequence[str] = ()) -> dict[str, torch.Tensor]:
        """Every tensor among them by name: ``x``, ``pair[0]``, ``cache.keys``.

        Args:
            taken: Names that others have.
        """
        found: dict[str, torch.Tensor] = {}
        named = [*zip(self.names, self.args, strict=True), *self.kwargs.items()]
        for name, value in named:
            for path, tensor in _leaves(name, value):
                found[numbered(path, {*taken, *found})] = tensor
        return found

    def rebuilt(self, tensors: Sequence[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same arguments with other tensors, in the order of :meth:`tensors`."""
        left = list(tensors)
        args = tuple([_replaced(value, left) for value in self.args])
        return args, {name: _replaced(value, left) for name, value in self.kwargs.items()}

    def mapped(self, change: Callable[[torch.Tensor], torch.Tensor]) -> "Arguments":
        """The same with each tensor changed."""
        args, kwargs = self.rebuilt([change(tensor) for tensor in self.tensors().values()])
        return Arguments(args=args, kwargs=kwargs, names=self.names, notes=self.notes)


def _leaves(name: str, value: object) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, tuple | list):
        for place, item in enumerate(value):
            yield from _leaves(f"{name}[{place}]", item)
    elif type(value) is dict:
        for key, item in value.items():
            yield from _leaves(f"{name}.{key}", item)


def _replaced(value: Any, left: list[torch.Tensor]) -> Any:
    """A value with its tensors taken from a list, first to last; Dynamo follows it."""
    if isinstance(value, torch.Tensor):
        return left.pop(0)
    if type(value) is dict:
        return {key: _replaced(item, left) for key, item in value.items()}
    if type(value) is list:
        return [_replaced(item, left) for item in value]
    if isinstance(value, tuple):
        items = [_replaced(item, left) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def from_text(
    code: Callable[..., Any],
    values: Mapping[str, BoundValue],
    make: Callable[[str, BoundTensor], torch.Tensor],
) -> Arguments:
    """Arguments that a text gives.

    Args:
        code: What is called.
        values: By name of its parameter.
        make: Makes a tensor, given its argument's name.

    Raises:
        UsageError: The code takes other arguments.
    """
    parameters = parameters_of(code)
    any_name = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    called = getattr(code, "__name__", type(code).__name__)
    for name in values:
        if name not in parameters and not any_name:
            known = ", ".join(parameters) or "nothing"
            raise UsageError(f"{called} has no argument {name!r}; it takes {known}.")
    missing = [name for name in required(parameters) if name not in values]
    if missing:
        raise UsageError(
            f"{called} needs {' and '.join(missing)} as well: {needed_input(parameters)}."
        )
    notes = tuple(
        f"{name} holds whole numbers from 0 to below {DEFAULT_BELOW}, since its text names no "
        f"bound; write {name}={bound.dtype}[...]<N for another."
        for name, value in values.items()
        for bound in _unbounded(value)
    )
    made = {name: _made(name, value, make) for name, value in values.items()}
    args: list[Any] = []
    names: list[str] = []
    for name, parameter in parameters.items():
        if name in made and parameter.kind in _BY_PLACE:
            value = made.pop(name)
            spread = parameter.kind is parameter.VAR_POSITIONAL and isinstance(value, tuple | list)
            args += value if spread else [value]
            names += [f"{name}[{i}]" for i in range(len(value))] if spread else [name]
    return Arguments(
        args=tuple(args), kwargs=made, names=tuple(names), notes=tuple(dict.fromkeys(notes))
    )


def parameters_of(code: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """What a function or module takes.

    One written in C need not tell: it is given everything by name, as torch's own can be, which
    call what they work on ``input``.
    """
    signature = _signature(code)
    if signature is None:
        return {_TORCHS_INPUT: inspect.Parameter(_TORCHS_INPUT, inspect.Parameter.VAR_KEYWORD)}
    return signature.parameters


def _signature(code: Callable[..., Any]) -> inspect.Signature | None:
    """None where the code does not tell."""
    try:
        return inspect.signature(code.forward if isinstance(code, torch.nn.Module) else code)
    except ValueError:
        return None


def check_call(code: Callable[..., Any], arguments: Arguments, given_by: str) -> None:
    """Make sure that code can be called with what is there for it.

    Args:
        code: A function or module.
        arguments: What it would be called with.
        given_by: Who gave them, as a sentence begins.

    Raises:
        UsageError: It takes others, or one is no dense tensor.
    """
    if any(isinstance(value, Iterator | Awaitable) for value in arguments.args):
        raise UsageError(
            f"{given_by} is a generator or async, which gives nothing when called; have it return "
            "the arguments."
        )
    for name, tensor in arguments.tensors().items():
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            raise UsageError(
                f"{given_by} gives {name} as a sparse, quantized or nested tensor; only dense ones "
                "are drawn and measured."
            )
    signature = _signature(code)
    if signature is None:
        return
    try:
        signature.bind(*arguments.args, **arguments.kwargs)
    except TypeError as error:
        takes = ", ".join(signature.parameters) or "nothing"
        called = getattr(code, "__name__", type(code).__name__)
        raise UsageError(
            f"{given_by} gives other arguments than {called} takes ({error}); it takes {takes}."
        ) from error


def required(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The names without which it cannot be called."""
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        name for name, p in parameters.items() if p.default is p.empty and p.kind not in optional
    ]


def needed_input(parameters: Mapping[str, inspect.Parameter]) -> str:
    """What to write, in words, with the names of what the code takes."""
    text = " ".join(f"{name}={_EXAMPLE}" for name in required(parameters) or list(parameters)[:1])
    return f"--input '{text}', say"


def no_inputs(name: str, code: Callable[..., Any], where: str) -> UsageError:
    """The error for code of which nobody says what it is called with."""
    parameters = parameters_of(code)
    return UsageError(
        f"What {name} is called with is not known: give {needed_input(parameters)}, or let "
        f"{where} have a function example_inputs() that returns its arguments."
    )


def _unbounded(value: BoundValue) -> Iterator[BoundTensor]:
    if isinstance(value, BoundTensor):
        if (
            value.below is None
            and not _dtype(value.dtype).is_floating_point
            and value.dtype != "bool"
        ):
            yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _unbounded(item)


def _dtype(name: str) -> torch.dtype:
    return DTYPES[name]


def _made(name: str, value: BoundValue, make: Callable[[str, BoundTensor], torch.Tensor]) -> Any:
    if isinstance(value, BoundTensor):
        return make(name, value)
    return plain(value) if not isinstance(value, tuple | list) else type(value)(
        [_made(name, item, make) for item in value]
    )  # fmt: skip


def plain(value: BoundValue) -> Any:
    """A value as Python code takes it: a dtype is torch's."""
    if isinstance(value, BoundDtype):
        return _dtype(value.dtype)
    if isinstance(value, tuple | list):
        return type(value)([plain(item) for item in value])
    return value


def random_tensor(
    bound: BoundTensor, device: torch.device, generator: torch.Generator
) -> torch.Tensor:
    """Standard normal numbers, whole numbers below the bound, or True and False at random."""
    dtype = _dtype(bound.dtype)
    if dtype is torch.bool:
        below, drawn = 2, torch.uint8
    elif not dtype.is_floating_point:
        below, drawn = bound.below or DEFAULT_BELOW, dtype
    else:
        # What is smaller than two bytes has no generator of its own.
        drawn = dtype if dtype.itemsize > 1 else torch.float16
        normal = torch.empty(bound.shape, dtype=drawn, device=device)
        return normal.normal_(generator=generator).to(dtype)
    whole = torch.empty(bound.shape, dtype=drawn, device=device)
    return whole.random_(0, below, generator=generator).to(dtype)


def empty_tensor(bound: BoundTensor, device: torch.device) -> torch.Tensor:
    """A tensor without values, for capture."""
    return torch.empty(bound.shape, dtype=_dtype(bound.dtype), device=device)


def from_example(given: Any, names: Sequence[str]) -> Arguments:
    """Arguments that ``example_inputs()`` returned.

    Args:
        given: A tensor, a tuple or list of arguments by place, a dict of arguments by name, or
            both as ``(args, kwargs)``.
        names: What the code calls its arguments, in order.
    """
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(given, dict):
        kwargs = dict(given)
    elif (
        isinstance(given, tuple)
        and len(given) == 2
        and isinstance(given[0], tuple | list)
        and isinstance(given[1], dict)
    ):
        args, kwargs = tuple(given[0]), dict(given[1])
    elif isinstance(given, tuple | list):
        args = tuple(given)
    else:
        args = (given,)
    called = [*names, *(f"input{place + 1}" for place in range(len(names), len(args)))]
    return Arguments(args=args, kwargs=kwargs, names=tuple(called[: len(args)]))
