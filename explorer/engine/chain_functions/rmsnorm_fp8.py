"""RMSNorm and the matmul behind it, one operator a line, in bf16 or quantized to fp8."""

from collections.abc import Iterator

import torch

from explorer.chains.rmsnorm_fp8 import RMSNORM_FP8
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
    weighted_inputs,
)
from explorer.engine.chain_functions.rmsnorm import EPS, normalized
from explorer.engine.chain_functions.shared import whole_number
from explorer.engine.prepared import ChainFunction

LARGEST = 448.0
"""The largest number of float8_e4m3fn."""
FIXED_SCALE = 8.0 / LARGEST
"""As calibrated: normalized and weighted values beyond 8 are rare."""
_FP8 = torch.float8_e4m3fn


def rmsnorm_matmul(x: torch.Tensor, w_norm: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """RMSNorm and a matmul, all in bf16.

    Args:
        x: ``[rows, columns]``.
        w_norm: ``[columns]``.
        w: ``[features, columns]``, as linear layers hold it; the result is ``[rows, features]``.
    """
    squares = x.pow(2)
    mean = squares.mean(-1, keepdim=True)
    mean = mean + EPS
    r = torch.rsqrt(mean)
    y = x * r
    y = y * w_norm
    return y @ w.t()


def rmsnorm_fp8_row(
    x: torch.Tensor, w_norm: torch.Tensor, w: torch.Tensor, w_scale: torch.Tensor
) -> torch.Tensor:
    """The same with a matmul in fp8 whose rows are scaled by their own largest value.

    Args:
        x: ``[rows, columns]`` in bf16, as are ``w_norm`` and the result.
        w_norm: ``[columns]``.
        w: ``[features, columns]`` in fp8: transposed, it is column-major as the matmul needs it.
        w_scale: ``[1, features]`` in fp32: what each row of w was divided by.
    """
    squares = x.pow(2)
    mean = squares.mean(-1, keepdim=True)
    mean = mean + EPS
    r = torch.rsqrt(mean)
    y = x * r
    y = y * w_norm
    magnitudes = y.abs()
    largest = magnitudes.amax(-1, keepdim=True)
    largest = largest.float()
    scale = largest / LARGEST
    y = y / scale
    y = y.to(_FP8)
    return torch._scaled_mm(y, w.t(), scale, w_scale, out_dtype=torch.bfloat16)


def rmsnorm_fp8_fixed(
    x: torch.Tensor,
    w_norm: torch.Tensor,
    scale: torch.Tensor,
    w: torch.Tensor,
    w_scale: torch.Tensor,
) -> torch.Tensor:
    """The same with one scale that is known before; what is beyond fp8's range is cut off.

    Args:
        x: ``[rows, columns]`` in bf16, as are ``w_norm`` and the result.
        w_norm: ``[columns]``.
        scale: ``[1]`` in fp32: what all of the normalized values are divided by.
        w: ``[features, columns]`` in fp8.
        w_scale: ``[1]`` in fp32: what all of w was divided by.
    """
    squares = x.pow(2)
    mean = squares.mean(-1, keepdim=True)
    mean = mean + EPS
    r = torch.rsqrt(mean)
    y = x * r
    y = y * w_norm
    y = y / scale
    y = y.clamp(-LARGEST, LARGEST)
    y = y.to(_FP8)
    return torch._scaled_mm(y, w.t(), scale, w_scale, out_dtype=torch.bfloat16)


def is_fp8(parameters: Parameters) -> bool:
    """Whether the matmul takes fp8."""
    return parameters["dtype"] == "fp8"


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The rows, the norm's weight, the matmul's, and of fp8 what it was divided by."""
    rows, columns, features = (
        whole_number(parameters, name) for name in ("rows", "columns", "features")
    )
    fp32, bf16 = torch.float32, torch.bfloat16
    specs = {
        "x": InputSpec(shape=(rows, columns), dtype=bf16),
        "w_norm": InputSpec(shape=(columns,), dtype=bf16),
    }
    weight = (features, columns)
    if not is_fp8(parameters):
        return {**specs, "w": InputSpec(shape=weight, dtype=bf16)}
    one = InputSpec(shape=(1,), dtype=fp32)
    scales = InputSpec(shape=(1, features), dtype=fp32)
    if parameters["scale"] == "fixed":
        specs["scale"] = scales = one
    return {**specs, "w": InputSpec(shape=weight, dtype=_FP8), "w_scale": scales}


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal rows, the norm's weights around 1, and a weight that was quantized from bf16's."""
    in_bf16 = {**parameters, "dtype": "bf16"}
    columns = whole_number(parameters, "columns")
    inputs = weighted_inputs(input_specs(in_bf16), {"w": columns}, device, seed)
    inputs["w_norm"].mul_(0.1).add_(1.0)
    if not is_fp8(parameters):
        return inputs
    weight = inputs.pop("w").float()
    if parameters["scale"] == "fixed":
        inputs["scale"] = torch.full((1,), FIXED_SCALE, device=device)
        scale = weight.abs().amax().reshape(1) / LARGEST
    else:
        scale = weight.abs().amax(1, keepdim=True) / LARGEST
    inputs["w"] = (weight / scale).clamp(-LARGEST, LARGEST).to(_FP8)
    inputs["w_scale"] = scale.reshape(input_specs(parameters)["w_scale"].shape)
    return inputs


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain in the dtype and with the scales of these parameters."""
    if not is_fp8(parameters):
        return rmsnorm_matmul
    return rmsnorm_fp8_fixed if parameters["scale"] == "fixed" else rmsnorm_fp8_row


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some rows at a time, with the weight as it is given.

    What is normalized is not quantized: the error of that is part of what a run in fp8 is judged
    by, and eager makes it too.
    """
    columns, features = (whole_number(parameters, name) for name in ("columns", "features"))
    weight = inputs["w"].t()
    scale = inputs["w_scale"].double() if is_fp8(parameters) else None

    def rows(part: slice) -> tuple[torch.Tensor, ...]:
        y = normalized(inputs["x"][part].double(), inputs["w_norm"])
        product = in_fp64(y, weight)
        return (product if scale is None else product * scale,)

    held = 3 * columns + features
    return rows_of_products(rows, parameters, held=held, max_bytes=max_bytes)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Rows by the code as written."""
    x, *others = inputs.values()
    result = make_function(parameters)(x[index], *others)
    if not isinstance(result, torch.Tensor):
        raise TypeError("the chain has one result")
    return result


CODE = ChainCode(
    chain_id=RMSNORM_FP8.id,
    size_parameter="rows",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    # Also of the matmul in fp8.
    dtype_of=lambda _parameters: "bf16",
)
