"""LayerNorm, one operator a line."""

from collections.abc import Iterator

import torch

from explorer.chains.layernorm import LAYERNORM
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
)
from explorer.engine.chain_functions.shared import (
    made_normal,
    matrix_spec,
    row_spec,
    sliced_rows,
)
from explorer.engine.prepared import ChainFunction

EPS = 1e-5


def layernorm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Each row freed from its mean and divided by its deviation, then weighted and biased.

    Args:
        x: ``[rows, columns]``, as is the result.
        w: ``[columns]``.
        b: ``[columns]``, added behind the weight.
    """
    mean = x.mean(-1, keepdim=True)
    y = x - mean
    squares = y.pow(2)
    variance = squares.mean(-1, keepdim=True)
    variance = variance + EPS
    r = torch.rsqrt(variance)
    y = y * r
    y = y * w
    return y + b


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows, the weight and the bias."""
    row = row_spec(parameters)
    return {"x": matrix_spec(parameters), "w": row, "b": row}


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return layernorm


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time; three fp64 tensors of them are held at once."""

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        return (normalized(inputs["x"][part].double(), inputs["w"], inputs["b"]),)

    return sliced_rows(rows, parameters, held=3, max_bytes=max_bytes)


def normalized(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """LayerNorm in fp64.

    Args:
        x: Rows in fp64.
        w: The weight in any dtype.
        b: The bias in any dtype.
    """
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) / (variance + EPS).sqrt() * w.double() + b.double()


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return layernorm(inputs["x"][index], inputs["w"], inputs["b"])


CODE = ChainCode(
    chain_id=LAYERNORM.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "w", "b"),
)
