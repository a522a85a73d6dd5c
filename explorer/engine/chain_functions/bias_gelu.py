"""A bias and GELU, one operator a line."""

import functools
from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.bias_gelu import BIAS_GELU
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
)
from explorer.engine.chain_functions.gelu import approximate, exactly
from explorer.engine.chain_functions.shared import (
    made_normal,
    matrix_spec,
    row_spec,
    sliced_rows,
)
from explorer.engine.prepared import ChainFunction


def bias_gelu(x: torch.Tensor, b: torch.Tensor, *, approximate: str) -> torch.Tensor:
    """What stands behind a linear layer's matmul.

    Args:
        x: ``[rows, columns]``, as is the result.
        b: ``[columns]``.
        approximate: Which GELU, by torch's name: ``none`` or ``tanh``.
    """
    y = x + b
    return F.gelu(y, approximate=approximate)


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows and the bias."""
    return {"x": matrix_spec(parameters), "b": row_spec(parameters)}


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with the GELU of these parameters."""
    return functools.partial(bias_gelu, approximate=approximate(parameters))


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time; four fp64 tensors of them are held at once."""
    b = inputs["b"].double()

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        return (exactly(parameters, inputs["x"][part].double() + b),)

    return sliced_rows(rows, parameters, held=4, max_bytes=max_bytes)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return bias_gelu(inputs["x"][index], inputs["b"], approximate=approximate(parameters))


CODE = ChainCode(
    chain_id=BIAS_GELU.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "b"),
)
