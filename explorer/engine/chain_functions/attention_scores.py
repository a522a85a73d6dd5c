"""What attention does to its scores, one operator a line: no matmul, all of it can be fused."""

import functools
import math
from collections.abc import Callable, Iterator

import torch

from explorer.chains.attention_scores import ATTENTION_SCORES, HEAD_DIM
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
)
from explorer.engine.chain_functions.randomness import LOOK_BYTES, Dropout, look_at, look_elements
from explorer.engine.chain_functions.scores import (
    filled,
    mask_specs,
    row_parts,
    score_settings,
    without_dropout,
)
from explorer.engine.prepared import ChainFunction
from explorer.model.run import DistributionCheck

SCALE = 1.0 / math.sqrt(HEAD_DIM)


def attention_scores(
    scores: torch.Tensor, mask: torch.Tensor | None = None, *, p_drop: float
) -> torch.Tensor:
    """From the product of q and k to what multiplies v.

    Args:
        scores: ``[batch, heads, seq_len, seq_len]``, as is the result.
        mask: ``[seq_len, seq_len]``, added to the scores of every head; None for no mask.
        p_drop: Share of the probabilities set to zero; 0 leaves the op out.
    """
    s = scores * SCALE
    if mask is not None:
        s = s + mask
    p = torch.softmax(s, dim=-1)
    if p_drop > 0:
        p = torch.dropout(p, p_drop, True)
    return p


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The scores, and the mask where there is one."""
    s = score_settings(parameters)
    scores = InputSpec(shape=(s.batch, s.heads, s.seq_len, s.seq_len), dtype=s.dtype)
    return {"scores": scores, **mask_specs(s)}


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Scores as large as the product of normal q and k has them; a mask as attention has it."""
    return filled(
        input_specs(parameters),
        is_causal=parameters["mask"] == "causal",
        device=device,
        seed=seed,
        deviation=1.0 / SCALE,
    )


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with the dropout rate of these parameters."""
    return functools.partial(attention_scores, p_drop=score_settings(parameters).dropout)


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain without dropout in fp64, a few rows of one head at a time.

    A slice holds three fp64 tensors of ``rows × seq_len`` at once; ``max_bytes`` bounds them.
    """
    mask = inputs.get("mask")
    for batch, head, rows in row_parts(score_settings(parameters), max_bytes):
        scores = inputs["scores"][batch, head, rows].double()
        scores *= SCALE
        if mask is not None:
            scores += mask[rows].double()
        yield ReferenceSlice(index=(batch, head, rows), values=torch.softmax(scores, dim=-1))


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows of one head by the textbook code, dropout off."""
    mask = inputs.get("mask")
    rows = index[-1]
    return attention_scores(
        inputs["scores"][index], None if mask is None else mask[rows], p_drop=0.0
    )


def distribution(
    parameters: Parameters,
    inputs: Inputs,
    call: Callable[[], torch.Tensor],
    resolution: float,
) -> tuple[DistributionCheck, ...]:
    """Look at slices of the result: dropout is the last op, so that what it did is there to see."""
    s = score_settings(parameters)
    if s.dropout == 0:
        return ()
    dropped = call()
    kept = look_at(
        Dropout(p=s.dropout, resolution=resolution, dtype=s.dtype),
        reference(parameters, inputs, LOOK_BYTES),
        result=lambda index: dropped[index],
        as_written=lambda index: slice_as_written(parameters, inputs, index, 0),
        max_elements=look_elements(dropped.device),
    )
    return (kept.kept_check(), *kept.value_checks())


CODE = ChainCode(
    chain_id=ATTENTION_SCORES.id,
    size_parameter="seq_len",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("scores"),
    without_randomness=without_dropout,
    distribution=distribution,
)
