"""A step of Adam or AdamW in place on a list of parameters, one operator a line."""

import functools
import random
from collections.abc import Iterator

import torch

from explorer.chains.adam_list import ADAM_LIST, N_MATRICES, tensors_of
from explorer.engine.chain_functions.adam import (
    BETA1,
    BETA2,
    CORRECTION1,
    EPS,
    LEARNING_RATE,
    ROOT_CORRECTION2,
    STEP,
    updated_in_fp64,
)
from explorer.engine.chain_functions.base import (
    ChainCode,
    Inputs,
    InputSpec,
    Parameters,
    ReferenceSlice,
    SliceIndex,
    stored_dtype,
)
from explorer.engine.chain_functions.shared import normal_inputs, sliced, whole_number
from explorer.engine.internals import internal
from explorer.engine.prepared import ChainFunction

WEIGHT_DECAY = 0.01
"""As torch's AdamW has it unless told otherwise."""
_SHRUNK = 1 - LEARNING_RATE * WEIGHT_DECAY
_P_SCALE, _M_SCALE = 0.02, 0.3
_KINDS = ("p", "g", "m", "v")

Tensors = tuple[torch.Tensor, ...]


def adam_loop(*tensors: torch.Tensor, is_adamw: bool) -> None:
    """The tenth step, tensor by tensor; updates p, m and v in place.

    Args:
        tensors: Of the first parameter p, g, m and v: itself, its gradient, and the running means
            of that and of its square; then of the others.
        is_adamw: Take a share off each parameter first.
    """
    for p, g, m, v in zip(*by_kind(tensors), strict=True):
        if is_adamw:
            p.mul_(_SHRUNK)
        m.lerp_(g, 1 - BETA1)
        v.mul_(BETA2)
        v.addcmul_(g, g, value=1 - BETA2)
        root = v.sqrt()
        corrected = root / ROOT_CORRECTION2
        denominator = corrected + EPS
        p.addcdiv_(m, denominator, value=-LEARNING_RATE / CORRECTION1)


def adam_foreach(*tensors: torch.Tensor, is_adamw: bool) -> None:
    """The same, each op on all tensors at once; for the arguments see :func:`adam_loop`."""
    p, g, m, v = by_kind(tensors)
    if is_adamw:
        torch._foreach_mul_(p, _SHRUNK)
    # By its name: Dynamo makes fifteen operators of one whose weight is given by its place.
    torch._foreach_lerp_(m, g, weight=1 - BETA1)
    torch._foreach_mul_(v, BETA2)
    torch._foreach_addcmul_(v, g, g, 1 - BETA2)
    root = torch._foreach_sqrt(v)
    corrected = torch._foreach_div(root, ROOT_CORRECTION2)
    denominator = torch._foreach_add(corrected, EPS)
    torch._foreach_addcdiv_(p, m, denominator, -LEARNING_RATE / CORRECTION1)


def by_kind(tensors: Tensors) -> tuple[Tensors, Tensors, Tensors, Tensors]:
    """The lists of all p, g, m and v."""
    return tensors[0::4], tensors[1::4], tensors[2::4], tensors[3::4]


def is_adamw(parameters: Parameters) -> bool:
    """Whether a share is taken off each parameter first."""
    return parameters["optimizer"] == "adamw"


def fused_step(parameters: Parameters) -> ChainFunction:
    """The chain by torch's own fused operator; takes and updates the same inputs.

    What it needs of the step's number is made at the first call, on the inputs' device.
    """
    name = "torch:_fused_adamw_" if is_adamw(parameters) else "torch:_fused_adam_"
    operator = internal(name)
    weight_decay = WEIGHT_DECAY if is_adamw(parameters) else 0.0

    @functools.cache
    def steps(device: torch.device) -> list[torch.Tensor]:
        # One tensor a parameter: on a GPU the operator takes them in the lists that it divides.
        return [torch.tensor(float(STEP), device=device) for _ in range(tensors_of(parameters))]

    def step(*tensors: torch.Tensor) -> None:
        p, g, m, v = by_kind(tensors)
        operator(
            p, g, m, v, [], steps(tensors[0].device),
            lr=LEARNING_RATE, beta1=BETA1, beta2=BETA2, weight_decay=weight_decay, eps=EPS,
            amsgrad=False, maximize=False,
        )  # fmt: skip

    return step


def shapes_of(parameters: Parameters) -> tuple[tuple[int, ...], ...]:
    """The shapes of all parameters, layer by layer, as of Llama.

    Raises:
        KeyError: A parameter is missing.
    """
    hidden = whole_number(parameters, "hidden")
    # 11008 of 4096 in Llama.
    inner = hidden * 11 // 4
    square, up, down = (hidden, hidden), (hidden, inner), (inner, hidden)
    layer = (*[square] * (N_MATRICES - 3), up, up, down, (hidden,), (hidden,))
    return layer * whole_number(parameters, "layers")


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """p0, g0, m0, v0 of the first parameter, then of the others."""
    dtype = stored_dtype(parameters["dtype"])
    return {
        f"{kind}{number}": InputSpec(shape=shape, dtype=dtype)
        for number, shape in enumerate(shapes_of(parameters))
        for kind in _KINDS
    }


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """As of the chain of one parameter: normal p, g and m, and v as nine steps leave it."""
    inputs = normal_inputs(input_specs(parameters), device, seed)
    p, _, m, v = by_kind(tuple(inputs.values()))
    for number in range(tensors_of(parameters)):
        p[number].mul_(_P_SCALE)
        m[number].mul_(_M_SCALE)
        v[number].square_().add_(1.0).mul_((1 - BETA2 ** (STEP - 1)) / 2)
    return inputs


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain as a loop, or by ops over the list."""
    is_foreach = parameters["implementation"] == "foreach"
    return functools.partial(
        adam_foreach if is_foreach else adam_loop, is_adamw=is_adamw(parameters)
    )


def _results(parameters: Parameters) -> list[tuple[int, int]]:
    """Which of m, v and p of which tensor each result is; in the order of the first updates."""
    numbers = range(tensors_of(parameters))
    # AdamW's first op is on p.
    order = (2, 0, 1) if is_adamw(parameters) else (0, 1, 2)
    if parameters["implementation"] == "foreach":
        return [(kind, number) for kind in order for number in numbers]
    return [(kind, number) for number in numbers for kind in order]


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """m, v and p of each tensor after the step in fp64, some rows of one at a time."""
    places = {place: output for output, place in enumerate(_results(parameters))}
    shrunk = _SHRUNK if is_adamw(parameters) else 1.0
    numbers = list(range(tensors_of(parameters)))
    # Shuffled, so that a reference cut short still looks at every kind of tensor.
    random.Random(0).shuffle(numbers)
    for number in numbers:
        p, g, m, v = (inputs[f"{kind}{number}"] for kind in _KINDS)

        def rows(
            part: slice,
            p: torch.Tensor = p,
            g: torch.Tensor = g,
            m: torch.Tensor = m,
            v: torch.Tensor = v,
        ) -> tuple[torch.Tensor, ...]:
            return updated_in_fp64(p[part].double() * shrunk, g[part], m[part], v[part])

        a_row = 4 * 8 * (p.numel() // p.shape[0])
        for part in sliced(rows, length=p.shape[0], bytes_an_index=a_row, max_bytes=max_bytes):
            output = places[part.output, number]
            yield ReferenceSlice(index=part.index, values=part.values, output=output)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, output: int
) -> torch.Tensor:
    """Rows of m, v or p of a tensor by the code as written, on a copy."""
    kind, number = _results(parameters)[output]
    p, g, m, v = (inputs[f"{name}{number}"][index].clone() for name in _KINDS)
    make_function(parameters)(p, g, m, v)
    return (m, v, p)[kind]


CODE = ChainCode(
    chain_id=ADAM_LIST.id,
    size_parameter="hidden",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
)
