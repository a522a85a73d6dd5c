"""LayerNorm and GELU, one operator a line."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.layernorm_gelu import LAYERNORM_GELU
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


def layernorm_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Each row freed from its mean and scaled to variance 1, weighted, then GELU by tanh.

    Args:
        x: ``[rows, columns]``, as is the result.
        w: ``[columns]``.
        b: ``[columns]``, added behind the weight.
    """
    y = F.layer_norm(x, w.shape, w, b)
    return F.gelu(y, approximate="tanh")


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows, the weight and the bias."""
    row = row_spec(parameters)
    return {"x": matrix_spec(parameters), "w": row, "b": row}


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return layernorm_gelu


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time; four fp64 tensors of them are held at once."""
    w, b = inputs["w"].double(), inputs["b"].double()

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        return (layernorm_gelu(inputs["x"][part].double(), w, b),)

    return sliced_rows(rows, parameters, held=4, max_bytes=max_bytes)


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return layernorm_gelu(inputs["x"][index], inputs["w"], inputs["b"])


CODE = ChainCode(
    chain_id=LAYERNORM_GELU.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "w", "b"),
)
