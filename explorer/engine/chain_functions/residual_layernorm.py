"""Residual addition and LayerNorm, one operator a line; the sum is a result too."""

from collections.abc import Iterator

import torch

from explorer.chains.residual_layernorm import RESIDUAL_LAYERNORM
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
)
from explorer.engine.chain_functions.layernorm import EPS, normalized
from explorer.engine.chain_functions.shared import (
    made_normal,
    matrix_spec,
    row_spec,
    sliced_rows,
)
from explorer.engine.prepared import ChainFunction


def residual_layernorm(
    x: torch.Tensor, res: torch.Tensor, w: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """LayerNorm of a sum; returns it and the sum, which the next block adds to.

    Args:
        x: ``[rows, columns]``, as are both results.
        res: What is added to it.
        w: ``[columns]``.
        b: ``[columns]``, added behind the weight.
    """
    h = x + res
    mean = h.mean(-1, keepdim=True)
    y = h - mean
    squares = y.pow(2)
    variance = squares.mean(-1, keepdim=True)
    variance = variance + EPS
    r = torch.rsqrt(variance)
    y = y * r
    y = y * w
    y = y + b
    return y, h


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows, what is added to them, the weight and the bias."""
    matrix, row = matrix_spec(parameters), row_spec(parameters)
    return {"x": matrix, "res": matrix, "w": row, "b": row}


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return residual_layernorm


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time; four fp64 tensors of them are held at once."""

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        h = inputs["x"][part].double() + inputs["res"][part].double()
        return normalized(h, inputs["w"], inputs["b"]), h

    return sliced_rows(rows, parameters, held=4, max_bytes=max_bytes)


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, output: int
) -> torch.Tensor:
    """Rows of y or h by the code as written."""
    x, res = inputs["x"][index], inputs["res"][index]
    return residual_layernorm(x, res, inputs["w"], inputs["b"])[output]


CODE = ChainCode(
    chain_id=RESIDUAL_LAYERNORM.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "res", "w", "b"),
)
