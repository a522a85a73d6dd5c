"""FlashInfer's kernels, by chain: the table of the strategy ``flashinfer``.

FlashInfer launches them itself, where nobody sees it: one of torch's operators is made of each, and
its schema says what is read and written.
"""

import functools
from typing import Any

import torch

from explorer.engine.chain_functions import rmsnorm
from explorer.engine.strategies.library import (
    Library,
    LibraryOperator,
    forward_only,
    same_for_all,
    strategy_of,
    table,
)

_NO_BACKWARD = forward_only("flashinfer", "does not exist: it is for inference")


@functools.cache
def _registered() -> tuple[torch.library.Library, Any]:
    """The operator, and what has to live as long as it."""
    # torch has no hints of it.
    make: Any = torch.library.Library
    library = make("kernel_explorer", "FRAGMENT")
    library.define("flashinfer_rmsnorm(Tensor x, Tensor w, float eps, *, Tensor(a!) out) -> ()")

    def call(x: torch.Tensor, w: torch.Tensor, eps: float, *, out: torch.Tensor) -> None:
        from flashinfer.norm import rmsnorm as flashinfer_rmsnorm

        flashinfer_rmsnorm(x, w, eps, out=out)

    library.impl("flashinfer_rmsnorm", call, "CUDA")
    return library, torch.ops.kernel_explorer.flashinfer_rmsnorm.default


def _rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    _, operator = _registered()
    y = torch.empty_like(x)
    operator(x, w, rmsnorm.EPS, out=y)
    return y


FLASHINFER = Library(
    name="flashinfer",
    title="FlashInfer",
    owner="FlashInfer",
    module="flashinfer",
    package="flashinfer-python",
    needs_gpu=True,
    operators=table(
        LibraryOperator(
            chain_id="rmsnorm",
            name="flashinfer.norm.rmsnorm",
            make=same_for_all(_rms_norm),
            refusal=_NO_BACKWARD,
        ),
    ),
)

ENTRIES = (strategy_of(FLASHINFER),)
