"""Code that is called as its author would call it, and what it hands out as a row of tensors."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BoundFunction:
    """A function or module with everything that it is called with.

    Attributes:
        target: What is called, and what a compiler is given.
        args: Its arguments by place.
        kwargs: Its arguments by name.
        held: The chain's inputs by name: the module's parameters and buffers, and the tensors
            among the arguments. They are the very tensors that a call reads and writes.
        rebuilt: The arguments with other tensors in the place of theirs.
        n_parameters: How many of ``held`` are the module's.
        buffers: Where the module keeps its buffers: owner, name and tensor.
    """

    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    held: dict[str, torch.Tensor]
    rebuilt: Callable[[Sequence[torch.Tensor]], tuple[tuple[Any, ...], dict[str, Any]]]
    n_parameters: int
    buffers: tuple[tuple[torch.nn.Module, str, torch.Tensor], ...] = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the code."""
        return self.target(*args, **kwargs)

    def run(self) -> Any:
        """Call the code with its own arguments; hands out whatever it does."""
        return self.target(*self.args, **self.kwargs)

    def unbound(self, names: Sequence[str]) -> Callable[..., Any]:
        """The same as a function of tensors, which stand for those it holds.

        Args:
            names: What the function's arguments are, in order; others than it holds are ignored.
        """
        own = list(self.held)

        def function(*tensors: torch.Tensor) -> Any:
            given = {**self.held, **dict(zip(names, tensors, strict=True))}
            args, kwargs = self.rebuilt([given[name] for name in own[self.n_parameters :]])
            if not isinstance(self.target, torch.nn.Module):
                return self.target(*args, **kwargs)
            parameters = {name: given[name] for name in own[: self.n_parameters]}
            return torch.func.functional_call(self.target, parameters, args, kwargs)

        return function

    def put_buffers_back(self) -> None:
        """Undo that calls put other tensors in the place of buffers, rather than write to them."""
        for owner, name, tensor in self.buffers:
            if owner._buffers.get(name) is not tensor:
                owner._buffers[name] = tensor


def flat_tensors(value: Any) -> tuple[torch.Tensor, ...]:
    """The tensors in what code hands out, in its order; what is no tensor is left out.

    Looks into tuples, lists, dicts and dataclasses. It is written so that Dynamo can follow it.
    """
    if isinstance(value, torch.Tensor):
        return (value,)
    if isinstance(value, tuple | list):
        items = list(value)
    elif isinstance(value, Mapping):
        items = list(value.values())
    elif dataclasses.is_dataclass(value):
        items = [getattr(value, field.name) for field in dataclasses.fields(value)]
    else:
        return ()
    found: tuple[torch.Tensor, ...] = ()
    for item in items:
        found += flat_tensors(item)
    return found
