"""Functions as somebody may write them, for the tests of own code."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch


def scores(
    x: torch.Tensor, w: torch.Tensor, causal: bool = False, *, scale: float = 0.5
) -> torch.Tensor:
    y = x * scale
    y = y @ w
    if causal:
        y = y.tril()
    return torch.softmax(y, -1)


def swapped(
    pair: tuple[torch.Tensor, torch.Tensor], extra: None = None
) -> tuple[torch.Tensor, ...]:
    first, second = pair
    return second + 1, first * 2


@dataclass
class Moments:
    mean: torch.Tensor
    spread: torch.Tensor


def moments(x: torch.Tensor) -> Moments:
    return Moments(mean=x.mean(-1), spread=x.std(-1))


def counted(ids: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return (ids * 2 + 1) * keep


def looped(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.relu(x) + 1
    return x


def scaled_in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.exp()
    y.mul_(2)
    return y


TABLE = torch.eye(8)


def by_table(x: torch.Tensor) -> torch.Tensor:
    return x @ TABLE


def raises(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    raise ValueError(f"no {y.dim()} dimensions, please")


def leaves(x: torch.Tensor) -> torch.Tensor:
    sys.exit(3)


NOT_CODE = 3


class Plain:
    """A class that is no module."""


def by_numpy(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = torch.from_numpy(np.tanh(y.numpy()))
    return z + 1


def printed(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    print("half way")  # noqa: T201 - the graph is to break here
    return torch.relu(y)


def scaled_by_its_largest(x: torch.Tensor) -> torch.Tensor:
    return x / x.max().item()


def _plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


_not_compiled: Callable[[torch.Tensor], torch.Tensor] = torch.compiler.disable(_plus_one)  # type: ignore[no-untyped-call] # torch has no hints there


def uncompiled_between(x: torch.Tensor) -> torch.Tensor:
    return _not_compiled(x * 2) * 3
