"""torch's own attention operator, with the name of the back end that really runs."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.chains.descriptor import Chain
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.prepared import Prepared
from explorer.engine.strategies.base import Built, PeakFamily, Strategy
from explorer.model.run import Scalar

_BACKENDS = {
    "_scaled_dot_product_cudnn_attention": "cuDNN",
    "_scaled_dot_product_flash_attention": "FlashAttention",
    "_scaled_dot_product_efficient_attention": "memory-efficient attention",
    "_scaled_dot_product_flash_attention_for_cpu": "torch's fused CPU attention",
    "_scaled_dot_product_fused_attention_overrideable": "a fused kernel of the device's own",
}
_MATH = "math (not fused)"
_SKIPS = (
    "The fused kernel skips what the causal mask hides, about half of the work: FLOP/s by the "
    "chain's own count come out higher than what it computes."
)


class _SeenOperators(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no hints there
    """Notes the operators that are really dispatched below ``scaled_dot_product_attention``."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # nor here
        self.names: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.names.append(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def _refusal(chain: Chain, _parameters: Mapping[str, Scalar], _device: torch.device) -> str | None:
    if CHAIN_CODE[chain.id].sdpa is not None:
        return None
    return f"sdpa is torch's attention operator, and {chain.id} is no attention."


def _peak(parameters: Mapping[str, Scalar], device: torch.device) -> PeakFamily:
    """Where no fused kernel takes the case, torch computes it op by op, and in fp32."""
    head_dim = parameters.get("head_dim")
    odd = isinstance(head_dim, int) and (head_dim > 256 or head_dim % 8 != 0)
    cpu_dropout = device.type != "cuda" and parameters.get("dropout") != 0
    return PeakFamily.UPCAST if odd or cpu_dropout else PeakFamily.FUSED


def _build(prepared: Prepared) -> Built:
    make = CHAIN_CODE[prepared.chain.id].sdpa
    if make is None:
        raise ValueError(f"{prepared.chain.id} has no form by sdpa")
    function = make(prepared.parameters)
    call = prepared.caller(function)
    with _SeenOperators() as seen:
        call()
    backend = next((_BACKENDS[name] for name in seen.names if name in _BACKENDS), _MATH)
    fused = backend != _MATH
    return Built(
        call=call,
        backend=backend,
        notes=(_SKIPS,) if prepared.parameters.get("mask") == "causal" and fused else (),
        # Fused kernels compare 8 random bits with the rate.
        random_resolution=1 / 256 if fused else 0.0,
    )


ENTRIES = (
    Strategy(
        name="sdpa",
        title="scaled_dot_product_attention",
        refusal=_refusal,
        build=_build,
        peak=_peak,
    ),
)
