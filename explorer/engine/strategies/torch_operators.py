"""torch's own fused operators, by chain: the table of the strategy ``torch``."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.engine.chain_functions import adam, adam_list, layernorm, rmsnorm
from explorer.engine.chain_functions.base import Parameters
from explorer.engine.internals import internal
from explorer.engine.prepared import ChainFunction
from explorer.engine.strategies.library import (
    Library,
    LibraryOperator,
    same_for_all,
    strategy_of,
    table,
)

_BETA_ROUNDING = 2**-16
_BETA_NOTE = (
    "torch's fused kernel subtracts β₂ from 1 in fp32, which makes 1 − β₂ wrong by a part in "
    "75,000: its error is judged with a rounding of a part in 65,536 allowed."
)
_NO_RMS_NORM = "torch has no kernel of rms_norm for a CPU and computes it op by op there."


def _rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, w.shape, w, rmsnorm.EPS)


def _residual_rms_norm(
    x: torch.Tensor, res: torch.Tensor, w: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    h = x + res
    return F.rms_norm(h, w.shape, w, rmsnorm.EPS), h


def _layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, w.shape, w, b, layernorm.EPS)


def _residual_layer_norm(
    x: torch.Tensor, res: torch.Tensor, w: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    h = x + res
    return F.layer_norm(h, w.shape, w, b, layernorm.EPS), h


def _layer_norm_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(F.layer_norm(x, w.shape, w, b), approximate="tanh")


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits, targets)


def _linear(parameters: Parameters) -> ChainFunction:
    """The matmul with its bias; the activation is a kernel of its own."""
    activation = str(parameters["activation"])

    def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        y = torch.addmm(b, x, w)
        if activation == "silu":
            return F.silu(y)
        return F.gelu(y, approximate="tanh" if activation == "gelu-tanh" else "none")

    return linear


def _fused_adam(_parameters: Parameters) -> ChainFunction:
    """What ``torch.optim.Adam(fused=True)`` calls, which first counts its step up by one."""
    operator = internal("torch:_fused_adam_")
    steps: dict[torch.device, torch.Tensor] = {}

    def step(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> None:
        if p.device not in steps:
            steps[p.device] = torch.tensor(float(adam.STEP), device=p.device)
        operator(
            [p], [g], [m], [v], [], [steps[p.device]],
            lr=adam.LEARNING_RATE, beta1=adam.BETA1, beta2=adam.BETA2, weight_decay=0.0,
            eps=adam.EPS, amsgrad=False, maximize=False,
        )  # fmt: skip

    return step


TORCH = Library(
    name="torch",
    title="torch's own fused operator",
    owner="torch",
    operators=table(
        LibraryOperator(
            chain_id="rmsnorm",
            name="torch.nn.functional.rms_norm",
            make=same_for_all(_rms_norm),
            cpu_note=_NO_RMS_NORM,
        ),
        LibraryOperator(
            chain_id="residual-rmsnorm",
            name="an addition, then torch.nn.functional.rms_norm",
            make=same_for_all(_residual_rms_norm),
            cpu_note=_NO_RMS_NORM,
        ),
        LibraryOperator(
            chain_id="layernorm",
            name="torch.nn.functional.layer_norm",
            make=same_for_all(_layer_norm),
        ),
        LibraryOperator(
            chain_id="residual-layernorm",
            name="an addition, then torch.nn.functional.layer_norm",
            make=same_for_all(_residual_layer_norm),
        ),
        LibraryOperator(
            chain_id="layernorm-gelu",
            name="torch.nn.functional.layer_norm, then gelu",
            make=same_for_all(_layer_norm_gelu),
        ),
        LibraryOperator(
            chain_id="cross-entropy",
            name="torch.nn.functional.cross_entropy",
            make=same_for_all(_cross_entropy),
            ops=(
                ("log_softmax", ("max", "subtract", "exp", "sum", "log", "loss")),
                ("nll_loss", ("pick", "mean")),
            ),
        ),
        LibraryOperator(
            chain_id="matmul-epilogue",
            name="torch.addmm, then the activation",
            make=_linear,
            ops=(("addmm", ("matmul", "bias")),),
        ),
        LibraryOperator(
            chain_id="adam-list",
            name="the kernel of torch.optim.Adam(fused=True)",
            make=adam_list.fused_step,
            rounding=_BETA_ROUNDING,
            rounding_note=_BETA_NOTE,
        ),
        LibraryOperator(
            chain_id="adam",
            name="the kernel of torch.optim.Adam(fused=True)",
            make=_fused_adam,
            rounding=_BETA_ROUNDING,
            rounding_note=_BETA_NOTE,
        ),
    ),
)

ENTRIES = (strategy_of(TORCH),)
