"""FlexAttention: one kernel that Inductor writes around what is done to a score."""

import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from explorer.chains import CHAINS
from explorer.chains.descriptor import Chain
from explorer.engine.prepared import ChainFunction, Prepared
from explorer.engine.strategies.base import (
    Built,
    Case,
    LibraryOps,
    PeakFamily,
    Strategy,
    always,
)
from explorer.engine.strategies.compiled import build_compiled
from explorer.engine.strategies.sdpa import is_by_sdpa
from explorer.engine.toolchain import compile_refusal

_SKIPS = (
    "The kernel skips the blocks that the causal mask hides, about half of the work: FLOP/s by "
    "the chain's own count come out higher than what it computes."
)


def _chain_refusal(chain: Chain) -> str | None:
    if is_by_sdpa(chain) and chain.is_attention:
        return None
    known = " and ".join(
        each.id for each in CHAINS.values() if is_by_sdpa(each) and each.is_attention
    )
    return f"flex is torch's FlexAttention, and {chain.id} is no attention; it is for {known}."


def _case_refusal(case: Case) -> str | None:
    if case.parameters.get("dropout") != 0:
        return "flex has no dropout: FlexAttention's kernel draws no random numbers; set dropout=0."
    if case.trains and case.device.type != "cuda":
        return (
            "flex has no backward pass on a CPU: torch's FlexAttention is for inference there; "
            "leave --backward out."
        )
    return None


def _build(prepared: Prepared) -> Built:
    mask = str(prepared.parameters["mask"])
    built = build_compiled(prepared, _by_flex(mask, prepared.inputs["q"]))
    return Built(
        call=built.call,
        backend="FlexAttention",
        notes=(_SKIPS,) if mask == "causal" else (),
        give_back=built.give_back,
        graph_breaks=built.graph_breaks,
        library=LibraryOps(by_kernel=(("flex_attention", ()),)),
    )


def _by_flex(mask: str, q: torch.Tensor) -> ChainFunction:
    """The chain by FlexAttention; takes the same inputs."""
    scale = q.shape[-1] ** -0.5
    visible = _causal_blocks(q) if mask == "causal" else None

    def attention(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, added: torch.Tensor | None = None
    ) -> torch.Tensor:
        def add_mask(
            score: torch.Tensor,
            _batch: torch.Tensor,
            _head: torch.Tensor,
            row: torch.Tensor,
            column: torch.Tensor,
        ) -> torch.Tensor:
            assert added is not None
            return score + added[row, column]

        score_mod = add_mask if mask == "additive" else None
        attended = flex_attention(q, k, v, score_mod=score_mod, block_mask=visible, scale=scale)
        assert isinstance(attended, torch.Tensor)
        return attended

    return attention


def _causal_blocks(q: torch.Tensor) -> BlockMask:
    """Which blocks of scores a causal mask leaves: the same for every call."""

    def sees(
        _batch: torch.Tensor, _head: torch.Tensor, row: torch.Tensor, column: torch.Tensor
    ) -> torch.Tensor:
        return row >= column

    tokens = q.shape[-2]
    return create_block_mask(sees, None, None, tokens, tokens, device=str(q.device))


ENTRIES = (
    Strategy(
        name="flex",
        title="FlexAttention",
        chain_refusal=_chain_refusal,
        device_refusal=compile_refusal,
        case_refusal=_case_refusal,
        build=_build,
        peak=always(PeakFamily.FUSED),
        compiles=True,
    ),
)
