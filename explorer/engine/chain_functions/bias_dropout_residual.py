"""Bias, dropout and residual addition, one operator a line."""

import functools
from collections.abc import Callable, Iterator
from typing import cast

import torch

from explorer.chains.bias_dropout_residual import BIAS_DROPOUT_RESIDUAL
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    gradients_of,
    stored_dtype,
)
from explorer.engine.chain_functions.randomness import LOOK_BYTES, Dropout, look_at, look_elements
from explorer.engine.chain_functions.scores import without_dropout
from explorer.engine.chain_functions.shared import (
    made_normal,
    matrix_spec,
    row_spec,
    sliced_rows,
)
from explorer.engine.prepared import ChainFunction
from explorer.model.run import DistributionCheck


def bias_dropout_residual(
    x: torch.Tensor, b: torch.Tensor, res: torch.Tensor, *, p_drop: float
) -> torch.Tensor:
    """What ends a transformer's half block, behind its last matmul.

    Args:
        x: ``[rows, columns]``, as are ``res`` and the result.
        b: ``[columns]``.
        res: What went into the half block.
        p_drop: Share of the values set to zero; 0 leaves the op out.
    """
    y = x + b
    if p_drop > 0:
        y = torch.dropout(y, p_drop, True)
    return y + res


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows, the bias, and what the result is added to."""
    matrix = matrix_spec(parameters)
    return {"x": matrix, "b": row_spec(parameters), "res": matrix}


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with the dropout rate of these parameters."""
    return functools.partial(bias_dropout_residual, p_drop=cast("float", parameters["dropout"]))


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain without dropout in fp64, some rows at a time; three fp64 tensors are held."""
    b = inputs["b"].double()

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        return (inputs["res"][part].double() + inputs["x"][part].double() + b,)

    return sliced_rows(rows, parameters, held=3, max_bytes=max_bytes)


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written, dropout off."""
    return bias_dropout_residual(inputs["x"][index], inputs["b"], inputs["res"][index], p_drop=0.0)


def distribution(
    parameters: Parameters,
    inputs: Inputs,
    call: Callable[[], torch.Tensor],
    resolution: float,
) -> tuple[DistributionCheck, ...]:
    """Look at the dropped values themselves, through the result.

    With nothing to add to, the result is what dropout left. With x and b made positive their sum
    is never zero, so that a zero was dropped.
    """
    p_drop = cast("float", parameters["dropout"])
    if p_drop == 0:
        return ()
    saved = {name: tensor.clone() for name, tensor in inputs.items()}
    try:
        inputs["x"].abs_()
        inputs["b"].abs_()
        inputs["res"].zero_()
        dropped = call()
        kept = look_at(
            Dropout(
                p=p_drop,
                resolution=resolution,
                dtype=stored_dtype(parameters["dtype"]),
                one="value",
                many="values",
            ),
            reference(parameters, inputs, LOOK_BYTES),
            result=lambda index: dropped[index],
            as_written=lambda index: slice_as_written(parameters, inputs, index, 0),
            max_elements=look_elements(dropped.device),
        )
    finally:
        for name, tensor in saved.items():
            inputs[name].copy_(tensor)
    return (kept.kept_check(), *kept.value_checks())


CODE = ChainCode(
    chain_id=BIAS_DROPOUT_RESIDUAL.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x", "b", "res"),
    without_randomness=without_dropout,
    distribution=distribution,
)
