"""What the chains around matmuls share: shapes of factors, weights, products in fp64."""

import math
from collections.abc import Callable, Iterator, Mapping

import torch

from explorer.engine.chain_functions.base import (
    InputSpec,
    Parameters,
    ReferenceSlice,
    stored_dtype,
)
from explorer.engine.chain_functions.shared import normal_inputs, sliced, whole_number

_FP64_BYTES = 8
_BLOCK_BYTES = 16 << 20
"""Of a factor's fp64 copy: so much of it is held at a time."""


def spec_of(parameters: Parameters, *names: str) -> InputSpec:
    """A tensor in the chain's dtype whose sizes are parameters."""
    shape = tuple(whole_number(parameters, name) for name in names)
    return InputSpec(shape=shape, dtype=stored_dtype(parameters["dtype"]))


def weighted_inputs(
    specs: Mapping[str, InputSpec], weights: Mapping[str, int], device: torch.device, seed: int
) -> dict[str, torch.Tensor]:
    """Standard normal tensors; weights so small that products are about as large as their inputs.

    Args:
        specs: Of all inputs.
        weights: By name of a weight, how many products each sum over it has.
        device: Where to make them.
        seed: Of the random numbers.
    """
    inputs = normal_inputs(specs, device, seed)
    for name, terms in weights.items():
        inputs[name].div_(math.sqrt(terms))
    return inputs


def in_fp64(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """``x @ w`` in fp64, for which only some columns of w are widened at a time.

    Args:
        x: ``[rows, columns]`` in fp64.
        w: ``[columns, features]`` in any dtype.
    """
    step = max(1, _BLOCK_BYTES // (_FP64_BYTES * w.shape[0]))
    product = torch.empty(x.shape[0], w.shape[1], dtype=torch.float64, device=x.device)
    for start in range(0, w.shape[1], step):
        part = slice(start, start + step)
        product[:, part] = x @ w[:, part].double()
    return product


def rows_of_products(
    compute: Callable[[slice], tuple[torch.Tensor, ...]],
    parameters: Parameters,
    *,
    held: int,
    max_bytes: int,
) -> Iterator[ReferenceSlice]:
    """A reference by rows of a chain with matmuls.

    Args:
        compute: Gives some rows of every result in fp64, with the help of :func:`in_fp64`.
        parameters: Of the chain.
        held: Numbers of a row that are held at once in fp64.
        max_bytes: The most to hold at once beside a block of a factor.
    """
    return sliced(
        compute,
        length=whole_number(parameters, "rows"),
        bytes_an_index=held * _FP64_BYTES,
        max_bytes=max(1, max_bytes - _BLOCK_BYTES),
    )
