"""A module like Hugging Face's: a config among several, parameters that it gives no values."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn


@dataclass
class TowerTextConfig:
    width: int = 8
    _attn_implementation: str | None = None
    _experts_implementation: str | None = None


@dataclass
class TowerConfig:
    sub_configs: ClassVar[dict[str, type]] = {"text_config": TowerTextConfig}
    text_config: TowerTextConfig | None = None


class TowerExperts(nn.Module):
    counts: torch.Tensor

    def __init__(self, config) -> None:  # type: ignore[no-untyped-def] # as such models write it
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.width, config.width))
        self.register_buffer("counts", torch.empty(config.width, dtype=torch.int64))
        self.implementations = (config._attn_implementation, config._experts_implementation)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.implementations != ("eager", "eager"):
            raise ValueError(self.implementations)
        return x @ self.weight + self.counts
