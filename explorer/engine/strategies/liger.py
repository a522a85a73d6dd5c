"""Liger's Triton kernels, by chain: the table of the strategy ``liger``.

Its kernels are launched by Triton itself, not by torch's dispatcher or by Inductor.
"""

from typing import Any

import torch

from explorer.engine.chain_functions import layernorm, rmsnorm
from explorer.engine.chain_functions.attention_scores import SCALE
from explorer.engine.chain_functions.base import Parameters
from explorer.engine.prepared import ChainFunction
from explorer.engine.strategies.base import Case
from explorer.engine.strategies.library import (
    Library,
    LibraryOperator,
    forward_only,
    same_for_all,
    strategy_of,
    table,
)

_OVERWRITES = forward_only("liger", "writes the gradients over the inputs")


def _rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction

    # Everything in fp32, as the reference has it; and gradients in memory of their own.
    y: torch.Tensor = LigerRMSNormFunction.apply(x, w, rmsnorm.EPS, 0.0, "gemma", False)
    return y


def _residual_rms_norm(
    x: torch.Tensor, res: torch.Tensor, w: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction

    y, h = LigerFusedAddRMSNormFunction.apply(x, res, w, rmsnorm.EPS, 0.0, "gemma", False)
    return y, h


def _layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction

    y: torch.Tensor = LigerLayerNormFunction.apply(x, w, b, layernorm.EPS)
    return y


def _swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

    y: torch.Tensor = LigerSiLUMulFunction.apply(gate, up)
    return y


def _geglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    from liger_kernel.ops.geglu import LigerGELUMulFunction

    y: torch.Tensor = LigerGELUMulFunction.apply(gate, up)
    return y


def _only_by_tanh(case: Case) -> str | None:
    if case.parameters.get("gelu") != "tanh":
        return "liger has geglu with GELU by tanh alone; set gelu=tanh."
    return _OVERWRITES(case)


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    loss: torch.Tensor = LigerCrossEntropyFunction.apply(logits, targets, None)[0]
    return loss


def _softmax(parameters: Parameters) -> ChainFunction:
    return around_softmax(parameters, _liger_softmax)


def _liger_softmax(x: torch.Tensor) -> torch.Tensor:
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    y: torch.Tensor = LigerSoftmaxFunction.apply(x)
    return y


def around_softmax(parameters: Parameters, softmax: Any) -> ChainFunction:
    """The scores of attention with a library's softmax; scale, mask and dropout are torch's."""
    rate = parameters["dropout"]
    p_drop = float(rate) if isinstance(rate, int | float) else 0.0

    def scores_to_probabilities(
        scores: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        s = scores * SCALE
        if mask is not None:
            s = s + mask
        p: torch.Tensor = softmax(s)
        return torch.dropout(p, p_drop, True) if p_drop > 0 else p

    return scores_to_probabilities


LIGER = Library(
    name="liger",
    title="Liger",
    owner="Liger",
    module="liger_kernel",
    package="liger-kernel",
    needs_gpu=True,
    operators=table(
        LibraryOperator(
            chain_id="rmsnorm", name="LigerRMSNormFunction", make=same_for_all(_rms_norm)
        ),
        LibraryOperator(
            chain_id="residual-rmsnorm",
            name="LigerFusedAddRMSNormFunction",
            make=same_for_all(_residual_rms_norm),
        ),
        LibraryOperator(
            chain_id="layernorm", name="LigerLayerNormFunction", make=same_for_all(_layer_norm)
        ),
        LibraryOperator(
            chain_id="swiglu",
            name="LigerSiLUMulFunction",
            make=same_for_all(_swiglu),
            refusal=_OVERWRITES,
        ),
        LibraryOperator(
            chain_id="geglu",
            name="LigerGELUMulFunction",
            make=same_for_all(_geglu),
            refusal=_only_by_tanh,
        ),
        LibraryOperator(
            chain_id="cross-entropy",
            name="LigerCrossEntropyFunction",
            make=same_for_all(_cross_entropy),
            ops=(
                (
                    "liger_cross_entropy_kernel",
                    ("max", "subtract", "exp", "sum", "log", "pick", "loss"),
                ),
                ("aten.sum", ("mean",)),
            ),
            refusal=_OVERWRITES,
        ),
        LibraryOperator(
            chain_id="attention-scores",
            name="LigerSoftmaxFunction",
            make=_softmax,
            ops=(("softmax", ("softmax",)),),
        ),
    ),
)

ENTRIES = (strategy_of(LIGER),)
