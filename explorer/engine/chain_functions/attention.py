"""Textbook attention, one operator a line, with its inputs and its fp64 reference."""

import functools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.attention import ATTENTION
from explorer.engine.chain_functions.base import (
    DTYPES,
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
)
from explorer.engine.prepared import ChainFunction
from explorer.model.run import DistributionCheck, Scalar


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
class _Settings:
    """The parameters with their types."""

    batch: int
    heads: int
    seq_len: int
    head_dim: int
    dtype: torch.dtype
    dropout: float
    mask: str

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.head_dim)


def _settings(parameters: Parameters) -> _Settings:
    return _Settings(
        batch=cast("int", parameters["batch"]),
        heads=cast("int", parameters["heads"]),
        seq_len=cast("int", parameters["seq_len"]),
        head_dim=cast("int", parameters["head_dim"]),
        dtype=DTYPES[str(parameters["dtype"])],
        dropout=cast("float", parameters["dropout"]),
        mask=str(parameters["mask"]),
    )


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """q, k and v, and the mask where there is one."""
    s = _settings(parameters)
    qkv = InputSpec(shape=(s.batch, s.heads, s.seq_len, s.head_dim), dtype=s.dtype)
    specs = {"q": qkv, "k": qkv, "v": qkv}
    if s.mask != "none":
        specs["mask"] = InputSpec(shape=(s.seq_len, s.seq_len), dtype=s.dtype)
    return specs


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal q, k, v; a normal additive mask, or the causal one: -inf above the diagonal.

    Made on the device, in the chain's own dtype, so that nothing larger is ever needed.
    """
    generator = torch.Generator(device).manual_seed(seed)
    causal = parameters["mask"] == "causal"
    inputs: dict[str, torch.Tensor] = {}
    for name, spec in input_specs(parameters).items():
        tensor = torch.empty(spec.shape, dtype=spec.dtype, device=device)
        if name == "mask" and causal:
            tensor.fill_(-math.inf).triu_(1)
        else:
            tensor.normal_(generator=generator)
        inputs[name] = tensor
    return inputs


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
    rows = max(1, min(s.seq_len, max_bytes // (3 * 8 * s.seq_len)))
    places = [
        (batch, head, start)
        for batch in range(s.batch)
        for head in range(s.heads)
        for start in range(0, s.seq_len, rows)
    ]
    # Shuffled, so that a reference cut short still looks at every head and every region.
    random.Random(0).shuffle(places)
    mask = inputs.get("mask")
    for batch, head, start in places:
        part = slice(start, min(start + rows, s.seq_len))
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


def without_randomness(parameters: Parameters) -> dict[str, Scalar]:
    """The same chain with dropout off."""
    return {**parameters, "dropout": 0.0}


def distribution(
    parameters: Parameters,
    inputs: Inputs,
    call: Callable[[], torch.Tensor],
    resolution: float,
) -> tuple[DistributionCheck, ...]:
    """Look at the dropped probabilities themselves, through the output.

    With q set to zero and a mask that adds nothing, every row's probabilities are equal; with v
    set to single ones, output element ``[i, d]`` is the dropped probability ``[i, d]``, zero or
    scaled up. So both the share that is kept and the mean can be read off.
    """
    s = _settings(parameters)
    if s.dropout == 0:
        return ()
    changed = [name for name in ("q", "v", "mask") if name in inputs]
    if s.mask == "causal":
        changed.remove("mask")
    saved = {name: inputs[name].clone() for name in changed}
    columns = min(s.head_dim, s.seq_len)
    try:
        for name in changed:
            inputs[name].zero_()
        inputs["v"].diagonal(dim1=-2, dim2=-1).fill_(1)
        dropped = call()[..., :columns].double()
    finally:
        for name, tensor in saved.items():
            inputs[name].copy_(tensor)
    if s.mask == "causal":
        # Row i spreads over i + 1 keys; only rows that see all the columns looked at count.
        dropped = dropped[..., columns - 1 :, :]
        keys = torch.arange(columns, s.seq_len + 1, device=dropped.device).double()[:, None]
    else:
        keys = torch.full((1, 1), float(s.seq_len), device=dropped.device, dtype=torch.float64)
    keep = 1.0 - s.dropout
    kept = float((dropped != 0).double().mean())
    mean = float((dropped * keys).mean())
    # Five standard deviations of a sum of independent draws: one false alarm in 1.7 million.
    spread = 5.0 * math.sqrt(keep * s.dropout / dropped.numel())
    kept_tolerance = spread + resolution
    mean_tolerance = (spread + resolution) / keep + _rounding(s)
    return (
        _check("share of probabilities kept", keep, kept, kept_tolerance),
        _check("mean after dropout, over the mean before", 1.0, mean, mean_tolerance),
    )


def _rounding(s: _Settings) -> float:
    """The most that the dtype rounds a probability by, as a share of it.

    Long rows have probabilities below the least normal number of fp16, which has fewer digits
    there: its smallest step then counts, once for the probability and once for what is scaled up.
    """
    info = torch.finfo(s.dtype)
    return max(info.eps, info.smallest_normal * info.eps * s.seq_len)


def _check(name: str, expected: float, observed: float, tolerance: float) -> DistributionCheck:
    return DistributionCheck(
        name=name,
        expected=expected,
        observed=observed,
        tolerance=tolerance,
        passed=abs(observed - expected) <= tolerance,
    )


CODE = ChainCode(
    chain_id=ATTENTION.id,
    size_parameter="seq_len",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    without_randomness=without_randomness,
    distribution=distribution,
    sdpa=make_sdpa,
)
