"""Softmax cross-entropy, one operator a line."""

from collections.abc import Iterator

import torch

from explorer.chains.cross_entropy import CROSS_ENTROPY
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
    stored_dtype,
)
from explorer.engine.chain_functions.shared import normal_inputs, whole_number
from explorer.engine.prepared import ChainFunction

_HELD = 3 * 8
"""Bytes a logit while the reference is computed: three fp64 tensors of some rows."""
_WRITTEN_BYTES = 64 << 20
"""Of the logits that are taken at once where the whole does not fit."""


def cross_entropy(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """The mean of what each row's target lacks in probability: a scalar.

    A sum over a narrow dtype runs in fp32 and is rounded to that dtype when it is stored, so that
    the operators one by one lose digits that a fused kernel may keep.

    Args:
        logits: ``[rows, vocabulary]``.
        targets: ``[rows]``, int64, each below ``vocabulary``.
    """
    losses = row_losses(logits, targets)
    return losses.mean()


def row_losses(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """``[rows, 1]``: the chain up to the mean."""
    # It only keeps exp in range and cancels out: no gradient flows through it.
    largest = logits.detach().amax(-1, keepdim=True)
    shifted = logits - largest
    e = shifted.exp()
    total = e.sum(-1, keepdim=True)
    total = total.log()
    picked = shifted.gather(-1, targets.unsqueeze(-1))
    return total - picked


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The logits, and the token that each row should have foretold."""
    rows, vocabulary = _sizes(parameters)
    return {
        "logits": InputSpec(shape=(rows, vocabulary), dtype=stored_dtype(parameters["dtype"])),
        "targets": InputSpec(shape=(rows,), dtype=torch.int64),
    }


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal logits, and targets of which each is as likely."""
    rows, vocabulary = _sizes(parameters)
    generator = torch.Generator(device).manual_seed(seed)
    targets = torch.randint(vocabulary, (rows,), generator=generator, device=device)
    logits = normal_inputs({"logits": input_specs(parameters)["logits"]}, device, seed)
    return {**logits, "targets": targets}


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return cross_entropy


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The loss in fp64; rows are summed up some at a time, so that their number is no matter."""
    rows, vocabulary = _sizes(parameters)
    total = torch.zeros((), dtype=torch.float64, device=inputs["logits"].device)
    for part in _parts(rows, max_bytes // (_HELD * vocabulary)):
        logits = inputs["logits"][part].double()
        picked = logits.gather(-1, inputs["targets"][part, None]).squeeze(-1)
        total += (torch.logsumexp(logits, dim=-1) - picked).sum()
    yield ReferenceSlice(index=(), values=total / rows)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, _index: SliceIndex, _output: int
) -> torch.Tensor:
    """The loss by the code as written, some rows at a time up to the mean."""
    rows, vocabulary = _sizes(parameters)
    logits, targets = inputs["logits"], inputs["targets"]
    parts = _parts(rows, _WRITTEN_BYTES // (logits.element_size() * vocabulary))
    return torch.cat([row_losses(logits[part], targets[part]) for part in parts]).mean()


def _parts(rows: int, at_once: int) -> Iterator[slice]:
    """All rows, that many at once; at least one."""
    step = max(1, at_once)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def _sizes(parameters: Parameters) -> tuple[int, int]:
    return whole_number(parameters, "rows"), whole_number(parameters, "vocabulary")


CODE = ChainCode(
    chain_id=CROSS_ENTROPY.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("logits"),
)
