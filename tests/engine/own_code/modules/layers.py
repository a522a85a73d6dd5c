"""Modules as somebody may write them, for the tests of own code."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by
from torch import nn


class T5LikeNorm(nn.Module):
    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
        y = x * torch.rsqrt(variance + self.eps)
        return self.weight * y.to(self.weight.dtype)


class Running(nn.Module):
    """Updates buffers: one in place, a part of another, and those of a batch normalisation."""

    seen: torch.Tensor
    last: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.register_buffer("seen", torch.zeros(width))
        self.register_buffer("last", torch.zeros(4, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.mean(0))
        self.last[:2] = x[:2]
        y: torch.Tensor = self.norm(x)
        return y


class Rebinding(nn.Module):
    """Puts another tensor in the place of a buffer at each call."""

    steps: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps = self.steps + 1
        return x * self.steps


class Dropping(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        kept: torch.Tensor = self.drop(y)
        return kept


class Deciding(nn.Module):
    """Python looks at a value, and prints."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        if y.sum().item() > 1e9:
            y = -y
        y = y + 1
        for step in range(2):
            y = y * 2
            print("step", step)  # noqa: T201 - the graph is to break here
        return y


class ConvNeXtLike(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.up = nn.Linear(channels, 4 * channels)
        self.down = nn.Linear(4 * channels, channels)
        self.gamma = nn.Parameter(torch.full((channels,), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.depthwise(x).permute(0, 2, 3, 1)
        y = self.down(F.gelu(self.up(self.norm(y))))
        moved: torch.Tensor = (self.gamma * y).permute(0, 3, 1, 2)
        return x + moved


class ViTLike(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.first(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        wide: torch.Tensor = self.mlp(self.second(x))
        return x + wide


class MambaLike(nn.Module):
    """A selective scan as a loop in Python."""

    def __init__(self, width: int, states: int) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.rand(width, states))
        self.inner = nn.Linear(width, 2 * states)
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c = self.inner(x).chunk(2, -1)
        state = x.new_zeros(x.shape[0], *self.decay.shape)
        outputs = []
        for t in range(x.shape[1]):
            state = state * torch.exp(-self.decay) + x[:, t, :, None] * b[:, t, None, :]
            outputs.append((state * c[:, t, None, :]).sum(-1))
        return torch.stack(outputs, 1) + x * self.skip


@dataclass
class SmallConfig:
    hidden_size: int = 8
    eps: float = 1e-6


class Configured(nn.Module):
    def __init__(self, config: SmallConfig, layer_idx: int) -> None:
        super().__init__()
        self.linear = nn.Linear(config.hidden_size, config.hidden_size + layer_idx)

    def forward(
        self, x: torch.Tensor, *, gate: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        y = self.linear(x)
        return {"plain": y, "gated": y if gate is None else y * torch.sigmoid(gate)}


class Frozen(nn.Module):
    """Parameters of which one is not trained and one is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Parameter(torch.ones(8))
        self.frozen = nn.Parameter(torch.ones(8), requires_grad=False)
        self.unused = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.used + self.frozen


def example_inputs() -> tuple[torch.Tensor, ...]:
    return (torch.randn(4, 8),)


class Flattened(nn.Module):
    """Keeps its weights in one buffer, and looks at the buffer whole, as cuDNN's RNNs do."""

    def __init__(self, width: int) -> None:
        super().__init__()
        weights = torch.ones(2, width)
        self.scale = nn.Parameter(weights[0])
        self.shift = nn.Parameter(weights[1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.scale
        print("between")  # noqa: T201 - the graph is to break here
        y = y + self.shift
        with torch.no_grad():
            whole = torch.empty(0).set_(self.scale.untyped_storage())
        return y * whole.sum()
