"""A matmul, a scale and an activation, one operator a line."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.matmul import MATMUL
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
)
from explorer.engine.chain_functions.gelu import exactly
from explorer.engine.chain_functions.matmuls import (
    in_fp64,
    rows_of_products,
    spec_of,
    weighted_inputs,
)
from explorer.engine.chain_functions.shared import whole_number
from explorer.engine.prepared import ChainFunction

SCALE = 0.5


def matmul(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A product, scaled, through GELU.

    Args:
        x: ``[rows, columns]``.
        w: ``[columns, features]``; the result is ``[rows, features]``.
    """
    y = x @ w
    y = y * SCALE
    return F.gelu(y, approximate="tanh")


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """Both factors."""
    return {
        "x": spec_of(parameters, "rows", "columns"),
        "w": spec_of(parameters, "columns", "features"),
    }


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal rows, and a weight that keeps values about as large."""
    weights = {"w": whole_number(parameters, "columns")}
    return weighted_inputs(input_specs(parameters), weights, device, seed)


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return matmul


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time."""
    columns, features = (whole_number(parameters, name) for name in ("columns", "features"))

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        product = in_fp64(inputs["x"][part].double(), inputs["w"])
        return (exactly({"gelu": "tanh"}, product * SCALE),)

    held = columns + 5 * features
    return rows_of_products(rows, parameters, held=held, max_bytes=max_bytes)


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return matmul(inputs["x"][index], inputs["w"])


CODE = ChainCode(
    chain_id=MATMUL.id,
    # Not the rows, which are compared.
    size_parameter="columns",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "w"),
)
