"""quack's CuTe kernels, by chain: the table of the strategy ``quack``."""

import torch

from explorer.engine.chain_functions import layernorm, rmsnorm
from explorer.engine.chain_functions.base import Parameters
from explorer.engine.prepared import ChainFunction
from explorer.engine.strategies.library import (
    Library,
    LibraryOperator,
    forward_only,
    same_for_all,
    strategy_of,
    table,
)
from explorer.engine.strategies.liger import around_softmax


def _rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    from quack.rmsnorm import rmsnorm as quack_rmsnorm

    y: torch.Tensor = quack_rmsnorm(x, w, eps=rmsnorm.EPS)
    return y


def _residual_rms_norm(
    x: torch.Tensor, res: torch.Tensor, w: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    from quack.rmsnorm import rmsnorm as quack_rmsnorm

    y, h = quack_rmsnorm(x, w, residual=res, eps=rmsnorm.EPS, prenorm=True)
    return y, h


def _layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    from quack.rmsnorm import layernorm_fwd

    # It takes them in fp32 alone: two launches of a row each.
    y: torch.Tensor = layernorm_fwd(x, w.float(), b.float(), eps=layernorm.EPS)
    return y


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    from quack.cross_entropy import cross_entropy

    losses: torch.Tensor = cross_entropy(logits, targets, reduction="none")
    return losses.mean().to(logits.dtype)


def _softmax(parameters: Parameters) -> ChainFunction:
    return around_softmax(parameters, _quack_softmax)


def _quack_softmax(x: torch.Tensor) -> torch.Tensor:
    from quack.softmax import softmax

    y: torch.Tensor = softmax(x.flatten(0, -2))
    return y.view(x.shape)


QUACK = Library(
    name="quack",
    title="quack",
    owner="quack",
    module="quack",
    package="quack-kernels",
    needs_gpu=True,
    operators=table(
        LibraryOperator(
            chain_id="rmsnorm", name="quack.rmsnorm.rmsnorm", make=same_for_all(_rms_norm)
        ),
        LibraryOperator(
            chain_id="residual-rmsnorm",
            name="quack.rmsnorm.rmsnorm",
            make=same_for_all(_residual_rms_norm),
        ),
        LibraryOperator(
            chain_id="layernorm",
            name="quack.rmsnorm.layernorm_fwd",
            make=same_for_all(_layer_norm),
            refusal=forward_only("quack", "has no gradient of the bias"),
        ),
        LibraryOperator(
            chain_id="cross-entropy",
            name="quack.cross_entropy.cross_entropy",
            make=same_for_all(_cross_entropy),
            ops=(
                (
                    "quack.cross_entropy_fwd",
                    ("max", "subtract", "exp", "sum", "log", "pick", "loss"),
                ),
            ),
        ),
        LibraryOperator(
            chain_id="attention-scores",
            name="quack.softmax.softmax",
            make=_softmax,
            ops=(("softmax", ("softmax",)),),
        ),
    ),
)

ENTRIES = (strategy_of(QUACK),)
