"""A step of Adam in place, one operator a line."""

import math
from collections.abc import Iterator

import torch

from explorer.chains.adam import ADAM
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
)
from explorer.engine.chain_functions.shared import (
    flat_spec,
    normal_inputs,
    sliced_elements,
)
from explorer.engine.prepared import ChainFunction

LEARNING_RATE = 1e-3
BETA1, BETA2 = 0.9, 0.999
EPS = 1e-8
STEP = 10
CORRECTION1 = 1 - BETA1**STEP
ROOT_CORRECTION2 = math.sqrt(1 - BETA2**STEP)
_P_SCALE, _M_SCALE = 0.02, 0.3
"""As weights are drawn at first; and what is left of gradients after averaging some."""


def adam(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> None:
    """The tenth step of Adam; updates p, m and v in place.

    Args:
        p: ``[elements]``, as are all: the parameter.
        g: Its gradient.
        m: The running mean of the gradient.
        v: The running mean of its square.
    """
    m.lerp_(g, 1 - BETA1)
    v.mul_(BETA2)
    v.addcmul_(g, g, value=1 - BETA2)
    root = v.sqrt()
    corrected = root / ROOT_CORRECTION2
    denominator = corrected + EPS
    p.addcdiv_(m, denominator, value=-LEARNING_RATE / CORRECTION1)


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The parameter, its gradient, and Adam's two means."""
    return dict.fromkeys(("p", "g", "m", "v"), flat_spec(parameters))


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal p, g and m, made on the device; v about as nine steps of such gradients leave it.

    No v is nearly zero, as it would not be after several steps: p then moves by about the rate.
    """
    inputs = normal_inputs(input_specs(parameters), device, seed)
    inputs["p"].mul_(_P_SCALE)
    inputs["m"].mul_(_M_SCALE)
    inputs["v"].square_().add_(1.0).mul_((1 - BETA2 ** (STEP - 1)) / 2)
    return inputs


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return adam


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """m, v and p after the step in fp64, from the inputs as they were before it.

    Some elements at a time; four fp64 tensors of them are held at once.
    """

    def elements(part: slice) -> tuple[torch.Tensor, ...]:
        return updated_in_fp64(*(inputs[name][part] for name in ("p", "g", "m", "v")))

    return sliced_elements(elements, parameters, held=4, max_bytes=max_bytes)


def updated_in_fp64(
    p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """m, v and p after the step in fp64."""
    g = g.double()
    m = BETA1 * m.double() + (1 - BETA1) * g
    v = BETA2 * v.double() + (1 - BETA2) * g * g
    denominator = v.sqrt() / ROOT_CORRECTION2 + EPS
    return m, v, p.double() - LEARNING_RATE / CORRECTION1 * m / denominator


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, output: int
) -> torch.Tensor:
    """Elements of m, v or p by the code as written, on a copy."""
    p, g, m, v = (inputs[name][index].clone() for name in ("p", "g", "m", "v"))
    adam(p, g, m, v)
    return (m, v, p)[output]


CODE = ChainCode(
    chain_id=ADAM.id,
    size_parameter="elements",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
)
