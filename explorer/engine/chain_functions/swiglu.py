"""SwiGLU's elementwise part, one operator a line."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.swiglu import SWIGLU
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
    sliced_rows,
)
from explorer.engine.prepared import ChainFunction


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """One half of a layer's features gates the other.

    Args:
        gate: ``[rows, columns]``, as are ``up`` and the result.
        up: What is let through.
    """
    y = F.silu(gate)
    return y * up


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """Both halves."""
    matrix = matrix_spec(parameters)
    return {"gate": matrix, "up": matrix}


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return swiglu


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time; four fp64 tensors of them are held at once."""

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        gate = inputs["gate"][part].double()
        return (gate / (1 + (-gate).exp()) * inputs["up"][part].double(),)

    return sliced_rows(rows, parameters, held=4, max_bytes=max_bytes)


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return swiglu(inputs["gate"][index], inputs["up"][index])


CODE = ChainCode(
    chain_id=SWIGLU.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("gate", "up"),
)
