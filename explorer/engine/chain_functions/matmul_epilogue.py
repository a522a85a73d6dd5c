"""Matmul, bias and activation, one operator a line."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F  # noqa: N812 - the name everyone knows it by

from explorer.chains.matmul_epilogue import MATMUL_EPILOGUE
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


def matmul_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A linear layer and GELU by the error function.

    Args:
        x: ``[rows, columns]``.
        w: ``[columns, features]``.
        b: ``[features]``; the result is ``[rows, features]``.
    """
    y = x @ w
    y = y + b
    return F.gelu(y)


def matmul_gelu_tanh(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same with GELU by tanh."""
    y = x @ w
    y = y + b
    return F.gelu(y, approximate="tanh")


def matmul_silu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The same with SiLU."""
    y = x @ w
    y = y + b
    return F.silu(y)


def _silu_in_fp64(y: torch.Tensor) -> torch.Tensor:
    return y / (1 + (-y).exp())


_Linear = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_FUNCTIONS: dict[str, _Linear] = {
    "gelu": matmul_gelu,
    "gelu-tanh": matmul_gelu_tanh,
    "silu": matmul_silu,
}
_IN_FP64: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": partial(exactly, {"gelu": "exact"}),
    "gelu-tanh": partial(exactly, {"gelu": "tanh"}),
    "silu": _silu_in_fp64,
}


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows, the weight and the bias."""
    return {
        "x": spec_of(parameters, "rows", "columns"),
        "w": spec_of(parameters, "columns", "features"),
        "b": spec_of(parameters, "features"),
    }


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal rows and bias, and a weight that keeps values about as large."""
    weights = {"w": whole_number(parameters, "columns")}
    return weighted_inputs(input_specs(parameters), weights, device, seed)


def make_function(parameters: Parameters) -> _Linear:
    """The chain with the activation of these parameters."""
    return _FUNCTIONS[str(parameters["activation"])]


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time."""
    columns, features = (whole_number(parameters, name) for name in ("columns", "features"))
    activation = _IN_FP64[str(parameters["activation"])]

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        product = in_fp64(inputs["x"][part].double(), inputs["w"])
        return (activation(product + inputs["b"].double()),)

    held = columns + 5 * features
    return rows_of_products(rows, parameters, held=held, max_bytes=max_bytes)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    return make_function(parameters)(inputs["x"][index], inputs["w"], inputs["b"])


CODE = ChainCode(
    chain_id=MATMUL_EPILOGUE.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "w", "b"),
)
