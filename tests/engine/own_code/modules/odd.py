"""Functions that return what is seldom returned, or fail."""

import os
from collections.abc import Iterator

import torch
from torch.utils.checkpoint import checkpoint


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


def exits(x: torch.Tensor) -> torch.Tensor:
    os._exit(3)
    return x


def rectified(x: torch.Tensor) -> torch.Tensor:
    return x.relu()


def same(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


class Shapeless(torch.nn.Module):
    """Lacks a forward pass."""


class Settings:
    def __init__(self, width: int = 4) -> None:
        self.width = width


class OfTwoDtypes(torch.nn.Module):
    """Casts a part while it is made, and takes a number out of a tensor."""

    def __init__(self, config: Settings) -> None:
        super().__init__()
        self.first = torch.nn.Linear(config.width, config.width)
        self.second = torch.nn.Linear(config.width, config.width).bfloat16()
        self.share = torch.linspace(0, 1, 3)[1].item()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.second(self.first(x).bfloat16())
        return result * self.share


class Summing(torch.nn.Module):
    """Adds to a buffer what has a gradient."""

    total: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.mean(0))
        return x + self.total


class Checkpointed(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = checkpoint(torch.sin, x, use_reentrant=False)
        return result


class Hooked(torch.nn.Linear):
    def __init__(self) -> None:
        super().__init__(4, 4)
        self.register_full_backward_hook(lambda _module, _made, _given: None)


class Lazy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.LazyLinear(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.linear(x)
        return result


class Doubling(torch.autograd.Function):
    """Has the exponential's value and twice its gradient."""

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def] # as such code is written
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # alike
        return grad * ctx.saved_tensors[0] * 2


def doubling(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = Doubling.apply(x * 3)  # type: ignore[no-untyped-call] # it has no hints
    return result


def distinct(x: torch.Tensor) -> torch.Tensor:
    values: torch.Tensor = torch.unique(x)
    return values


def noised(x: torch.Tensor) -> torch.Tensor:
    noise = torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    return x + noise


def branching(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t - 1, (x,))
    return result


def attended(q: torch.Tensor, dropout: float = 0.0) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=dropout) * 2


class Heads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.heads = torch.nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.heads(x, x, x)[0]
        return result


class TrainedHeads(torch.nn.Module):
    """Attention as ``torch.nn.MultiheadAttention`` runs it where it is trained, on every call."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = torch.nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.heads.train()
        result: torch.Tensor = self.heads(x, x, x)[0]
        return result
