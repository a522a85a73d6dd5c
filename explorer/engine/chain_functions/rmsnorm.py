"""RMSNorm, one operator a line."""

from collections.abc import Iterator

import torch

from explorer.chains.rmsnorm import RMSNORM
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

EPS = 1e-6


def rmsnorm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Each row divided by the root of its mean square, then weighted.

    Args:
        x: ``[rows, columns]``, as is the result.
        w: ``[columns]``.
    """
    squares = x.pow(2)
    mean = squares.mean(-1, keepdim=True)
    mean = mean + EPS
    r = torch.rsqrt(mean)
    y = x * r
    return y * w


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows and the weight."""
    return {"x": matrix_spec(parameters), "w": row_spec(parameters)}


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return rmsnorm


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time; three fp64 tensors of them are held at once."""

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        return (normalized(inputs["x"][part].double(), inputs["w"]),)

    return sliced_rows(rows, parameters, held=3, max_bytes=max_bytes)


def normalized(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """RMSNorm in fp64.

    Args:
        x: Rows in fp64.
        w: The weight in any dtype.
    """
    rms = (x.square().mean(-1, keepdim=True) + EPS).sqrt()
    return x / rms * w.double()


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return rmsnorm(inputs["x"][index], inputs["w"])


CODE = ChainCode(
    chain_id=RMSNORM.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "w"),
)
