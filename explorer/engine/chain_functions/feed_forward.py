"""A gated feed-forward layer, one operator a line, with gate and up as two matmuls or as one."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.feed_forward import FEED_FORWARD
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


def feed_forward(
    x: torch.Tensor, w_gate: torch.Tensor, w_up: torch.Tensor, w_down: torch.Tensor
) -> torch.Tensor:
    """The layer by three matmuls.

    Args:
        x: ``[rows, columns]``, as is the result.
        w_gate: ``[columns, features]``, as is ``w_up``.
        w_up: Makes what is let through.
        w_down: ``[features, columns]``.
    """
    gate = x @ w_gate
    up = x @ w_up
    y = F.silu(gate)
    y = y * up
    return y @ w_down


def feed_forward_in_two(
    x: torch.Tensor, w_gate_up: torch.Tensor, w_down: torch.Tensor
) -> torch.Tensor:
    """The layer by two matmuls, the result of the first of which is split.

    Args:
        x: ``[rows, columns]``, as is the result.
        w_gate_up: ``[columns, 2 · features]``: both weights side by side.
        w_down: ``[features, columns]``.
    """
    both = x @ w_gate_up
    gate, up = both.chunk(2, dim=-1)
    y = F.silu(gate)
    y = y * up
    return y @ w_down


def is_one(parameters: Parameters) -> bool:
    """Whether gate and up are one matmul."""
    return parameters["projections"] == "one"


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows and the weights."""
    down = spec_of(parameters, "features", "columns")
    up = spec_of(parameters, "columns", "features")
    if not is_one(parameters):
        weights = {"w_gate": up, "w_up": up}
    else:
        columns, features = up.shape
        weights = {"w_gate_up": InputSpec(shape=(columns, 2 * features), dtype=up.dtype)}
    return {"x": spec_of(parameters, "rows", "columns"), **weights, "w_down": down}


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal rows, and weights that keep values about as large."""
    specs = input_specs(parameters)
    weights = {name: spec.shape[0] for name, spec in specs.items() if name != "x"}
    return weighted_inputs(specs, weights, device, seed)


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with as many matmuls as the parameters say."""
    return feed_forward_in_two if is_one(parameters) else feed_forward


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time."""
    columns, features = (whole_number(parameters, name) for name in ("columns", "features"))
    if is_one(parameters):
        w_gate, w_up = inputs["w_gate_up"].chunk(2, dim=-1)
    else:
        w_gate, w_up = inputs["w_gate"], inputs["w_up"]

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        x = inputs["x"][part].double()
        gate = in_fp64(x, w_gate)
        inner = gate / (1 + (-gate).exp()) * in_fp64(x, w_up)
        return (in_fp64(inner, inputs["w_down"]),)

    held = columns + 4 * features
    return rows_of_products(rows, parameters, held=held, max_bytes=max_bytes)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    x, *weights = inputs.values()
    if is_one(parameters):
        return feed_forward_in_two(x[index], *weights)
    return feed_forward(x[index], *weights)


def differentiated(parameters: Parameters) -> tuple[str, ...]:
    """Every input."""
    return tuple(input_specs(parameters))


CODE = ChainCode(
    chain_id=FEED_FORWARD.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=differentiated,
)
