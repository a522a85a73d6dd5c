"""The projections in front of attention, one operator a line: three matmuls, or one."""

from collections.abc import Iterator

import torch

from explorer.chains.qkv import QKV
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
)
from explorer.engine.chain_functions.matmuls import (
    in_fp64,
    rows_of_products,
    spec_of,
    weighted_inputs,
)
from explorer.engine.chain_functions.shared import whole_number
from explorer.engine.prepared import ChainFunction

_Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def three_projections(
    x: torch.Tensor, w_q: torch.Tensor, w_k: torch.Tensor, w_v: torch.Tensor
) -> _Three:
    """Queries, keys and values by a matmul each.

    Args:
        x: ``[rows, columns]``, as are the results.
        w_q: ``[columns, columns]``, as are the other weights.
        w_k: Of the keys.
        w_v: Of the values.
    """
    q = x @ w_q
    k = x @ w_k
    v = x @ w_v
    return q, k, v


def one_projection(x: torch.Tensor, w: torch.Tensor) -> _Three:
    """Queries, keys and values by one matmul; they are views of its result.

    Args:
        x: ``[rows, columns]``, as are the results.
        w: ``[columns, 3 · columns]``: the three weights side by side.
    """
    qkv = x @ w
    q, k, v = qkv.chunk(3, dim=-1)
    return q, k, v


def is_one(parameters: Parameters) -> bool:
    """Whether the projections are one matmul."""
    return parameters["projections"] == "one"


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows and the weights."""
    x = spec_of(parameters, "rows", "columns")
    weight = spec_of(parameters, "columns", "columns")
    if not is_one(parameters):
        return {"x": x, "w_q": weight, "w_k": weight, "w_v": weight}
    columns, _ = weight.shape
    return {"x": x, "w": InputSpec(shape=(columns, 3 * columns), dtype=weight.dtype)}


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal rows, and weights that keep values about as large."""
    specs = input_specs(parameters)
    columns = whole_number(parameters, "columns")
    weights = {name: columns for name in specs if name != "x"}
    return weighted_inputs(specs, weights, device, seed)


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with as many matmuls as the parameters say."""
    return one_projection if is_one(parameters) else three_projections


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time."""
    weights = [inputs[name] for name in inputs if name.startswith("w")]
    if is_one(parameters):
        weights = list(weights[0].chunk(3, dim=-1))

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        x = inputs["x"][part].double()
        return tuple(in_fp64(x, weight) for weight in weights)

    held = whole_number(parameters, "columns")
    return rows_of_products(rows, parameters, held=held, max_bytes=max_bytes)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, output: int
) -> torch.Tensor:
    """Rows of q, k or v by the code as written."""
    x, *weights = inputs.values()
    if is_one(parameters):
        return one_projection(x[index], *weights)[output]
    return three_projections(x[index], *weights)[output]


def differentiated(parameters: Parameters) -> tuple[str, ...]:
    """Every input."""
    return tuple(input_specs(parameters))


CODE = ChainCode(
    chain_id=QKV.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=differentiated,
)
