"""Code to try "your own code" with: a function, and a module with a constructor argument.

``kernel-explorer run assets/examples/net.py:gelu_mlp`` runs the function on `example_inputs`;
``--input`` gives it others.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


def example_inputs() -> tuple[Tensor, Tensor]:
    """What `gelu_mlp` is called with where ``--input`` says nothing: [256, 512] and [512, 512]."""
    return torch.randn(256, 512), torch.randn(512, 512)


def gelu_mlp(x: Tensor, w: Tensor) -> Tensor:
    """GELU of a product: x [rows, columns], w [columns, features], out [rows, features]."""
    return functional.gelu(x @ w)


class Block(nn.Module):
    """A pre-norm feed-forward block with its residual, on [..., hidden] of the dtype given."""

    def __init__(self, hidden: int, expansion: int = 4) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, expansion * hidden)
        self.down = nn.Linear(expansion * hidden, hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Shapes and dtype of the result are those of x."""
        out: Tensor = self.down(functional.gelu(self.up(self.norm(x))))
        return x + out
