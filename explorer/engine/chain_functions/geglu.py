"""GEGLU's elementwise part, one operator a line."""

import functools
from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.geglu import GEGLU
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
    sliced_rows,
)
from explorer.engine.prepared import ChainFunction


def geglu(gate: torch.Tensor, up: torch.Tensor, *, approximate: str) -> torch.Tensor:
    """One half of a layer's features gates the other.

    Args:
        gate: ``[rows, columns]``, as are ``up`` and the result.
        up: What is let through.
        approximate: Which GELU, by torch's name: ``none`` or ``tanh``.
    """
    y = F.gelu(gate, approximate=approximate)
    return y * up


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """Both halves."""
    matrix = matrix_spec(parameters)
    return {"gate": matrix, "up": matrix}


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with the GELU of these parameters."""
    return functools.partial(geglu, approximate=approximate(parameters))


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time; five fp64 tensors of them are held at once."""

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        gated = exactly(parameters, inputs["gate"][part].double())
        return (gated * inputs["up"][part].double(),)

    return sliced_rows(rows, parameters, held=5, max_bytes=max_bytes)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return geglu(inputs["gate"][index], inputs["up"][index], approximate=approximate(parameters))


CODE = ChainCode(
    chain_id=GEGLU.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("gate", "up"),
)
