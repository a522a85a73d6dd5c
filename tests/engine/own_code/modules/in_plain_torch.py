"""Modules in plain torch, as somebody would write them: scan, loop, buffer, break and error."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


class SelectiveScan(nn.Module):
    """Mamba's state, step by step: h = exp(delta A) h + delta B x, then y = C h + D x.

    The input is [batch, seq_len, channels], the state [batch, channels, n_states].
    """

    def __init__(self, channels: int, n_states: int) -> None:
        super().__init__()
        self.log_a = nn.Parameter(torch.randn(channels, n_states))
        self.project = nn.Linear(channels, 2 * n_states + channels)
        self.skip = nn.Parameter(torch.ones(channels))
        self.n_states = n_states

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, channels = self.n_states, x.shape[-1]
        b, c, delta = self.project(x).split([n, n, channels], dim=-1)
        delta = functional.softplus(delta)
        decay = torch.exp(delta.unsqueeze(-1) * -torch.exp(self.log_a))
        given = (delta * x).unsqueeze(-1) * b.unsqueeze(-2)
        state = torch.zeros_like(given[:, 0])
        outputs = []
        for step in range(x.shape[1]):
            state = decay[:, step] * state + given[:, step]
            outputs.append((state * c[:, step].unsqueeze(-2)).sum(-1))
        return torch.stack(outputs, dim=1) + self.skip * x


class LoopedLayers(nn.Module):
    """A Python loop over layers; keeps what each of them gives in a list if asked to."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x: torch.Tensor, *, collect: bool = False) -> list[torch.Tensor]:
        hidden = [x]
        for layer in self.layers:
            hidden.append(torch.relu(layer(hidden[-1])) + hidden[-1])
        return hidden if collect else hidden[-1:]


class ConvBlock(nn.Module):
    """A convolution with batch norm, whose running mean and variance training updates."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed: torch.Tensor = self.norm(self.conv(x))
        return torch.relu(normed + x)


class RunningMean(nn.Module):
    """Keeps an average of what it was given in a buffer, in place."""

    mean: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.mul_(0.9).add_(0.1 * x.mean(0))
        return x - self.mean


class Clipped(nn.Module):
    """Looks at a value and decides: the graph breaks there."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        if hidden.abs().max().item() > 0.5:
            hidden = hidden * 0.5
        return torch.sigmoid(self.second(hidden))


class WrongSizes(nn.Module):
    """Adds two tensors that do not fit."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide: torch.Tensor = self.up(x)
        return wide + x


@dataclass
class Mixed:
    """What experts make of their input, and how much of each of them is in it."""

    output: torch.Tensor
    weights: torch.Tensor


class SoftGate(nn.Module):
    """Experts that are all asked and mixed; hands out a dataclass."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.Parameter(torch.randn(experts, width, width) / width**0.5)

    def forward(self, x: torch.Tensor) -> Mixed:
        weights = torch.softmax(self.gate(x), dim=-1)
        each = torch.einsum("rw,ewv->rev", x, self.experts)
        return Mixed(output=(weights.unsqueeze(-1) * each).sum(-2), weights=weights)


def dropping_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Attention with dropout, which autograd takes apart on a CPU."""
    return functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
