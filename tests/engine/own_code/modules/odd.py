"""Functions that return what is seldom returned, or fail."""

from collections.abc import Iterator

import torch


def nothing_returned(x: torch.Tensor) -> None:
    x * 2


def no_arguments() -> torch.Tensor:
    return torch.ones(4) * 3


def spectrum(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.fft.rfft(x)
    return result


def inverted(keep: torch.Tensor) -> torch.Tensor:
    return ~keep


def empty(x: torch.Tensor) -> torch.Tensor:
    return x[:0] * 2


def sparse(x: torch.Tensor) -> torch.Tensor:
    return x.to_sparse()


def cut_off(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x * 2


def too_large(x: torch.Tensor) -> torch.Tensor:
    large = torch.ones(1 << 45)
    return x + large.sum().item()


async def awaited(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def generated(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield x * 2


def in_doubles(x: torch.Tensor) -> torch.Tensor:
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(mode=False)
    return x + torch.ones(4)


def looked_up(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table[ids]


class Lazy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.LazyLinear(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.linear(x)
        return result
