"""Makes a module of somebody's class: its constructor's arguments, a config among them."""

import copy
import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.model.errors import UsageError

_CONFIG = "config"
_BASES_OF_CONFIGS = ("PretrainedConfig", "PreTrainedConfig")
"""What Hugging Face derives every config from; renamed in its release 5."""
_PLAIN = ("dict", "object", "Any", "Mapping", "SimpleNamespace")
"""What a config may be annotated with that is no class of configs."""
_IMPLEMENTATIONS, _AS_WRITTEN = ("_attn_implementation", "_experts_implementation"), "eager"
"""By these Hugging Face's modules choose how to attend and to run experts: here as written."""
_STANDARD_DEVIATION = 0.02
"""Of parameters that a constructor gives no values; what Hugging Face's models start from."""
_EMPTY = (torch.ops.aten.empty, torch.ops.aten.empty_like, torch.ops.aten.empty_strided,
          torch.ops.aten.new_empty)  # fmt: skip
_KINDS_OF_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def constructor_arguments(owner: type, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name that a class is made with.

    What the constructor does not take itself goes to its config, if it takes one; a layer's index
    that nobody gave is 0.

    Args:
        owner: The class.
        given: As said by ``--init``.

    Raises:
        UsageError: Something is missing or not taken.
    """
    parameters = inspect.signature(owner).parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    config = next((p for p in parameters.values() if _is_config(p)), None)
    arguments = {name: value for name, value in given.items() if name in parameters}
    rest = {name: value for name, value in given.items() if name not in parameters}
    if config is not None and config.name not in arguments:
        if rest or config.default is config.empty:
            arguments[config.name] = _made_config(owner, config, rest)
    elif rest and takes_any:
        arguments.update(rest)
    elif rest:
        known = ", ".join(n for n, p in parameters.items() if p.kind not in _KINDS_OF_ANY)
        raise UsageError(
            f"{owner.__name__} has no argument {next(iter(rest))!r}; its constructor takes "
            f"{known or 'nothing'}."
        )
    for name, parameter in parameters.items():
        if parameter.kind in _KINDS_OF_ANY or parameter.default is not parameter.empty:
            continue
        if name == "layer_idx":
            arguments.setdefault(name, 0)
        if name not in arguments:
            missing = [n for n, p in parameters.items()
                       if p.default is p.empty and p.kind not in _KINDS_OF_ANY
                       and n not in arguments]  # fmt: skip
            text = " ".join(f"{n}=..." for n in missing)
            raise UsageError(
                f"{owner.__name__} needs {' and '.join(missing)}: give --init '{text}'."
            )
    return arguments


def copied(module: torch.nn.Module, *, is_fake: bool) -> torch.nn.Module:
    """A module of the same parameters with buffers of its own, which calls may change.

    Args:
        module: Somebody's.
        is_fake: Without memory, parameters too; inside ``fake_tensors()``.
    """
    memo: dict[int, Any] = {}
    for owner in module.modules():
        for tensor in (
            *owner._parameters.values(),
            *owner._buffers.values(),
            *vars(owner).values(),
        ):
            if isinstance(tensor, torch.nn.Parameter):
                memo[id(tensor)] = _fake(tensor) if is_fake else tensor
            elif isinstance(tensor, torch.Tensor):
                memo[id(tensor)] = _fake(tensor) if is_fake else tensor.detach().clone()
    return copy.deepcopy(module, memo)


def _fake(tensor: torch.Tensor) -> torch.Tensor:
    made = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made


class FillingEmpty(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no hints there
    """Has memory that nothing is written to hold small random numbers, and so the same each time.

    A module may leave it to its model to give its parameters values, as Hugging Face's experts do.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Carry an operator out, and fill what it leaves empty."""
        made = func(*args, **(kwargs or {}))
        if func.overloadpacket in _EMPTY:
            if made.is_floating_point() and made.dtype.itemsize > 1:
                made.normal_(0, _STANDARD_DEVIATION)
            else:
                made.zero_()
        return made


def convert(
    module: torch.nn.Module, device: torch.device | None, dtype: torch.dtype | None
) -> None:
    """Move a module's parameters and buffers, and give those with fractions a dtype.

    What ``Module.to`` does; that does not take tensors without memory.

    Raises:
        UsageError: A parameter has no size yet.
    """
    changed: dict[int, torch.Tensor] = {}
    lazy = next((p for p in module.parameters() if torch.nn.parameter.is_lazy(p)), None)
    if lazy is not None:
        raise UsageError(
            f"{type(module).__name__} has lazy layers, whose sizes are known once they were "
            "called; give the layers their sizes."
        )
    for owner in module.modules():
        for held in (owner._parameters, owner._buffers):
            for name, tensor in held.items():
                if tensor is None:
                    continue
                if id(tensor) not in changed:
                    changed[id(tensor)] = _converted(tensor, device, dtype)
                held[name] = changed[id(tensor)]  # type: ignore[assignment] # a parameter stays one


def _converted(
    tensor: torch.Tensor, device: torch.device | None, dtype: torch.dtype | None
) -> torch.Tensor:
    wanted = dtype if tensor.is_floating_point() else None
    made = tensor.detach().to(device=device, dtype=wanted)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made


def _is_config(parameter: inspect.Parameter) -> bool:
    return parameter.name == _CONFIG or _annotated(parameter).endswith("Config")


def _annotated(parameter: inspect.Parameter) -> str:
    """The name of the class that it is annotated with, the first of several; empty if none."""
    annotation = parameter.annotation
    if annotation is parameter.empty:
        return ""
    name = annotation if isinstance(annotation, str) else getattr(
        annotation, "__name__", str(annotation)
    )  # fmt: skip
    return name.replace("Optional[", "").partition("|")[0].strip(" ]'\"").rpartition(".")[2]


def _made_config(owner: type, parameter: inspect.Parameter, values: Mapping[str, Any]) -> Any:
    """A config of the class that goes with a module's.

    Raises:
        UsageError: There is none, or it does not take a value.
    """
    found = _config_class(owner, parameter)
    if found is None:
        raise UsageError(
            f"{owner.__name__} takes a {_annotated(parameter) or 'config'}, and no such class was "
            f"found near it; write a function that makes the module and name that."
        )
    try:
        config = found(**values)
    except TypeError as error:
        raise UsageError(f"{found.__name__} cannot be made from --init: {error}.") from error
    for choice in _IMPLEMENTATIONS:
        if getattr(config, choice, _AS_WRITTEN) is None:
            setattr(config, choice, _AS_WRITTEN)
    return config


def _config_class(owner: type, parameter: inspect.Parameter) -> type | None:
    """The class that annotates the parameter, else the one in its package that fits its name."""
    name = _annotated(parameter)
    annotation = parameter.annotation
    if isinstance(annotation, str):
        annotation = getattr(inspect.getmodule(owner), annotation, None)
    if isinstance(annotation, type) and name not in ("", *_BASES_OF_CONFIGS, *_PLAIN):
        return annotation
    candidates: dict[str, type] = {}
    for module in _near_modules(owner):
        for key, value in vars(module).items():
            if isinstance(value, type) and key.endswith("Config"):
                candidates.setdefault(key, value)
    if name in candidates and name not in _BASES_OF_CONFIGS:
        return candidates[name]
    # A part of a model takes the config of a part, not the one that is made of several.
    parts = [key for key, value in candidates.items() if not getattr(value, "sub_configs", None)]
    parts = parts or list(candidates)

    def common(key: str) -> int:
        alike = 0
        for one, other in zip(key, owner.__name__, strict=False):
            if one != other:
                break
            alike += 1
        return alike

    fitting = [key for key in parts if common(key) == len(key.removesuffix("Config"))]
    best = max(fitting or parts, key=common, default=None)
    return None if best is None or not common(best) else candidates[best]


def _near_modules(owner: type) -> list[Any]:
    """The class's own module, and of a Hugging Face model the one with its configuration."""
    own = inspect.getmodule(owner)
    found = [own] if own is not None else []
    package, _, last = owner.__module__.rpartition(".")
    if last.startswith("modeling_"):
        place = f"{package}.configuration_{last.removeprefix('modeling_')}"
        try:
            found.insert(0, importlib.import_module(place))
        except ImportError:
            return found
    return found
