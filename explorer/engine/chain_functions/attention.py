"""Textbook attention, one operator a line, with its inputs and its fp64 reference."""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.attention import ATTENTION
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
)
from explorer.engine.chain_functions.randomness import (
    LOOK_BYTES,
    Dropout,
    check,
    kept_check,
    look_at,
    look_elements,
    spread,
)
from explorer.engine.chain_functions.scores import (
    ScoreSettings,
    filled,
    mask_specs,
    row_parts,
    score_settings,
    without_dropout,
)
from explorer.engine.prepared import ChainFunction
from explorer.model.run import DistributionCheck


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    scale: float,
    p_drop: float,
) -> torch.Tensor:
    """Scaled dot-product attention as it stands in the textbook.

    Args:
        q: ``[batch, heads, seq_len, head_dim]``, as are ``k``, ``v`` and the result.
        k: Keys.
        v: Values.
        mask: ``[seq_len, seq_len]``, added to the scores of every head; None for no mask.
        scale: Factor of the scores.
        p_drop: Share of the probabilities set to zero; 0 leaves the op out.
    """
    s = q @ k.transpose(-2, -1)
    s = s * scale
    if mask is not None:
        s = s + mask
    p = torch.softmax(s, dim=-1)
    if p_drop > 0:
        p = torch.dropout(p, p_drop, True)
    return p @ v


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings(ScoreSettings):
    """The parameters with their types."""

    head_dim: int

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.head_dim)


def _settings(parameters: Parameters) -> _Settings:
    shared = score_settings(parameters)
    return _Settings(
        batch=shared.batch,
        heads=shared.heads,
        seq_len=shared.seq_len,
        dtype=shared.dtype,
        dropout=shared.dropout,
        mask=shared.mask,
        head_dim=cast("int", parameters["head_dim"]),
    )


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """q, k and v, and the mask where there is one."""
    s = _settings(parameters)
    qkv = InputSpec(shape=(s.batch, s.heads, s.seq_len, s.head_dim), dtype=s.dtype)
    return {"q": qkv, "k": qkv, "v": qkv, **mask_specs(s)}


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal q, k, v; a normal additive mask, or the causal one."""
    return filled(
        input_specs(parameters),
        is_causal=parameters["mask"] == "causal",
        device=device,
        seed=seed,
    )


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with the scale and the dropout rate of these parameters."""
    s = _settings(parameters)
    return functools.partial(attention, scale=s.scale, p_drop=s.dropout)


def make_sdpa(parameters: Parameters) -> ChainFunction:
    """The chain by ``scaled_dot_product_attention``; takes the same inputs.

    The causal mask becomes ``is_causal``, which is what its kernels are made for.
    """
    s = _settings(parameters)
    causal = s.mask == "causal"

    def sdpa(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=None if causal else mask,
            dropout_p=s.dropout,
            is_causal=causal,
            scale=s.scale,
        )

    return sdpa


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain without dropout in fp64, a few rows of one head at a time.

    A slice holds three fp64 tensors of ``rows × seq_len`` at once, beside fp64 copies of one
    head's k and v; ``max_bytes`` bounds the former.
    """
    s = _settings(parameters)
    mask = inputs.get("mask")
    for batch, head, part in row_parts(s, max_bytes):
        scores = inputs["q"][batch, head, part].double() @ inputs["k"][batch, head].double().T
        scores *= s.scale
        if mask is not None:
            scores += mask[part].double()
        probs = torch.softmax(scores, dim=-1)
        del scores
        yield ReferenceSlice(
            index=(batch, head, part), values=probs @ inputs["v"][batch, head].double()
        )


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows of one head by the textbook code, dropout off."""
    *head, rows = index
    mask = inputs.get("mask")
    return attention(
        inputs["q"][index],
        inputs["k"][tuple(head)],
        inputs["v"][tuple(head)],
        None if mask is None else mask[rows],
        scale=_settings(parameters).scale,
        p_drop=0.0,
    )


def distribution(
    parameters: Parameters,
    inputs: Inputs,
    call: Callable[[], torch.Tensor],
    resolution: float,
) -> tuple[DistributionCheck, ...]:
    """Look at the dropped probabilities themselves, through the output.

    With v set to single ones, output element ``[i, d]`` is the dropped probability ``[i, d]``,
    zero or scaled up. So what becomes of the kept ones can be seen. With q set to zero and a mask
    that adds nothing too, every row's probabilities are equal, so that the share that is kept and
    the mean can be read off all of them.
    """
    s = _settings(parameters)
    if s.dropout == 0:
        return ()
    dropout = Dropout(p=s.dropout, resolution=resolution, dtype=s.dtype)
    flat = [name for name in ("q", "mask") if name in inputs]
    if s.mask == "causal":
        flat.remove("mask")
    saved = {name: inputs[name].clone() for name in (*flat, "v")}
    columns = min(s.head_dim, s.seq_len)
    try:
        inputs["v"].zero_().diagonal(dim1=-2, dim2=-1).fill_(1)
        dropped = call()
        # Without columns that no key has.
        whole = slice(0, columns)
        kept = look_at(
            dropout,
            _cut(reference(parameters, inputs, LOOK_BYTES), columns),
            result=lambda index: dropped[index][..., whole],
            as_written=lambda index: slice_as_written(parameters, inputs, index, 0)[..., whole],
            # What is not looked at of a row has to be computed all the same.
            max_elements=look_elements(dropped.device) * columns // s.seq_len,
        )
        for name in flat:
            inputs[name].zero_()
        uniform = _uniform_checks(call()[..., whole], dropout, s)
    finally:
        for name, tensor in saved.items():
            inputs[name].copy_(tensor)
    return (*uniform, *kept.value_checks())


def _cut(slices: Iterator[ReferenceSlice], columns: int) -> Iterator[ReferenceSlice]:
    for part in slices:
        yield ReferenceSlice(index=part.index, values=part.values[..., :columns])


def _uniform_checks(
    dropped: torch.Tensor, dropout: Dropout, s: _Settings
) -> tuple[DistributionCheck, ...]:
    """The share kept of equal probabilities, and their mean; some heads at a time."""
    columns = dropped.shape[-1]
    if s.mask == "causal":
        # Row i spreads over i + 1 keys; only rows that see all the columns looked at count.
        dropped = dropped[..., columns - 1 :, :]
        keys = torch.arange(columns, s.seq_len + 1, device=dropped.device).double()[:, None]
    else:
        keys = torch.full((1, 1), float(s.seq_len), device=dropped.device, dtype=torch.float64)
    n, n_kept, total = dropped.numel(), 0, 0.0
    heads = max(1, look_elements(dropped.device) // (dropped.shape[-2] * columns))
    together = dropped.flatten(0, 1)
    for start in range(0, together.shape[0], heads):
        part = together[start : start + heads]
        n_kept += int((part != 0).sum())
        total += float((part.double() * keys).sum())
    mean_tolerance = (spread(dropout.keep, n) + dropout.resolution) / dropout.keep + _rounding(s)
    return (
        kept_check(dropout, n_kept, n),
        check("mean after dropout, over the mean before", 1.0, total / n, mean_tolerance),
    )


def _rounding(s: _Settings) -> float:
    """The most that the dtype rounds a probability by, as a share of it.

    Long rows have probabilities below the least normal number of fp16, which has fewer digits
    there: its smallest step then counts, once for the probability and once for what is scaled up.
    """
    info = torch.finfo(s.dtype)
    return max(info.eps, info.smallest_normal * info.eps * s.seq_len)


CODE = ChainCode(
    chain_id=ATTENTION.id,
    size_parameter="seq_len",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("q", "k", "v"),
    without_randomness=without_dropout,
    distribution=distribution,
    sdpa=make_sdpa,
)
