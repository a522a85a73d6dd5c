"""What the chains over ``seq_len × seq_len`` scores share: settings, mask, slices, dropout off."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import torch

from explorer.engine.chain_functions.base import InputSpec, Parameters, stored_dtype
from explorer.model.run import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSettings:
    """The parameters that they share, with their types."""

    batch: int
    heads: int
    seq_len: int
    dtype: torch.dtype
    dropout: float
    mask: str


def score_settings(parameters: Parameters) -> ScoreSettings:
    """Read them from a chain's parameters."""
    return ScoreSettings(
        batch=cast("int", parameters["batch"]),
        heads=cast("int", parameters["heads"]),
        seq_len=cast("int", parameters["seq_len"]),
        dtype=stored_dtype(parameters["dtype"]),
        dropout=cast("float", parameters["dropout"]),
        mask=str(parameters["mask"]),
    )


def mask_specs(s: ScoreSettings) -> dict[str, InputSpec]:
    """The mask, where there is one."""
    if s.mask == "none":
        return {}
    return {"mask": InputSpec(shape=(s.seq_len, s.seq_len), dtype=s.dtype)}


def filled(
    specs: dict[str, InputSpec],
    *,
    is_causal: bool,
    device: torch.device,
    seed: int,
    deviation: float = 1.0,
) -> dict[str, torch.Tensor]:
    """Normal inputs; the mask normal too, or the causal one: -inf above the diagonal.

    Made on the device, in the chain's own dtype, so that nothing larger is ever needed.

    Args:
        specs: Of all inputs.
        is_causal: Whether the mask is the causal one.
        device: Where to make them.
        seed: Of the random numbers.
        deviation: Standard deviation of all but the mask, which has 1.
    """
    generator = torch.Generator(device).manual_seed(seed)
    inputs: dict[str, torch.Tensor] = {}
    for name, spec in specs.items():
        tensor = torch.empty(spec.shape, dtype=spec.dtype, device=device)
        if name == "mask" and is_causal:
            tensor.fill_(-math.inf).triu_(1)
        else:
            std = 1.0 if name == "mask" else deviation
            tensor.normal_(std=std, generator=generator)
        inputs[name] = tensor
    return inputs


def row_parts(s: ScoreSettings, max_bytes: int) -> Iterator[tuple[int, int, slice]]:
    """Some rows of one head at a time, so that three fp64 tensors of them stay in a budget.

    Args:
        s: Sizes.
        max_bytes: The budget; at least one row is taken whatever it holds.
    """
    return head_parts(
        s.batch, s.heads, s.seq_len, bytes_a_row=3 * 8 * s.seq_len, max_bytes=max_bytes
    )


def head_parts(
    batch: int, heads: int, rows: int, *, bytes_a_row: int, max_bytes: int
) -> Iterator[tuple[int, int, slice]]:
    """Some rows of one head at a time.

    Shuffled, so that a reference cut short still looks at every head and every region.

    Args:
        batch: Sequences.
        heads: Of each.
        rows: Of each head.
        bytes_a_row: What is held for one.
        max_bytes: The budget; at least one row is taken whatever it holds.
    """
    step = max(1, min(rows, max_bytes // bytes_a_row))
    places = [
        (sequence, head, start)
        for sequence in range(batch)
        for head in range(heads)
        for start in range(0, rows, step)
    ]
    random.Random(0).shuffle(places)
    for sequence, head, start in places:
        yield sequence, head, slice(start, min(start + step, rows))


def without_dropout(parameters: Parameters) -> dict[str, Scalar]:
    """The same chain with dropout off."""
    return {**parameters, "dropout": 0.0}
