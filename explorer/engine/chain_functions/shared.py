"""What the chains without randomness share: normal inputs, and references in slices."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import torch

from explorer.engine.chain_functions.base import (
    InputSpec,
    Parameters,
    ReferenceSlice,
    stored_dtype,
)

_FP64_BYTES = 8


def whole_number(parameters: Parameters, name: str) -> int:
    """A parameter that is a whole number, with its type."""
    return cast("int", parameters[name])


def matrix_spec(parameters: Parameters) -> InputSpec:
    """``[rows, columns]`` in the chain's dtype."""
    shape = (whole_number(parameters, "rows"), whole_number(parameters, "columns"))
    return InputSpec(shape=shape, dtype=stored_dtype(parameters["dtype"]))


def row_spec(parameters: Parameters) -> InputSpec:
    """``[columns]`` in the chain's dtype."""
    return InputSpec(
        shape=(whole_number(parameters, "columns"),), dtype=stored_dtype(parameters["dtype"])
    )


def flat_spec(parameters: Parameters) -> InputSpec:
    """``[elements]`` in the chain's dtype."""
    return InputSpec(
        shape=(whole_number(parameters, "elements"),), dtype=stored_dtype(parameters["dtype"])
    )


def normal_inputs(
    specs: Mapping[str, InputSpec], device: torch.device, seed: int
) -> dict[str, torch.Tensor]:
    """Standard normal tensors, made on the device in their own dtype, in the order of ``specs``."""
    generator = torch.Generator(device).manual_seed(seed)
    return {
        name: torch.empty(spec.shape, dtype=spec.dtype, device=device).normal_(generator=generator)
        for name, spec in specs.items()
    }


def made_normal(
    input_specs: Callable[[Parameters], dict[str, InputSpec]],
) -> Callable[[Parameters, torch.device, int], dict[str, torch.Tensor]]:
    """The ``make_inputs`` of a chain all of whose inputs are standard normal."""

    def make_inputs(
        parameters: Parameters, device: torch.device, seed: int
    ) -> dict[str, torch.Tensor]:
        return normal_inputs(input_specs(parameters), device, seed)

    return make_inputs


def sliced(
    compute: Callable[[slice], tuple[torch.Tensor, ...]],
    *,
    length: int,
    bytes_an_index: int,
    max_bytes: int,
) -> Iterator[ReferenceSlice]:
    """A reference along the first axis of all results, in an order that spreads over it.

    Args:
        compute: Gives that part of every result in fp64.
        length: Of the first axis.
        bytes_an_index: What computing holds for one index of it beyond the results.
        max_bytes: The most to hold at once; at least one index is computed whatever it takes.
    """
    step = max(1, min(length, max_bytes // bytes_an_index))
    starts = list(range(0, length, step))
    # Shuffled, so that a reference cut short still looks at every region.
    random.Random(0).shuffle(starts)
    for start in starts:
        part = slice(start, min(start + step, length))
        for output, values in enumerate(compute(part)):
            yield ReferenceSlice(index=(part,), values=values, output=output)


def sliced_rows(
    compute: Callable[[slice], tuple[torch.Tensor, ...]],
    parameters: Parameters,
    *,
    held: int,
    max_bytes: int,
) -> Iterator[ReferenceSlice]:
    """The same a few rows at a time, ``held`` fp64 tensors of which are held at once."""
    columns = whole_number(parameters, "columns")
    return sliced(
        compute,
        length=whole_number(parameters, "rows"),
        bytes_an_index=held * _FP64_BYTES * columns,
        max_bytes=max_bytes,
    )


def sliced_elements(
    compute: Callable[[slice], tuple[torch.Tensor, ...]],
    parameters: Parameters,
    *,
    held: int,
    max_bytes: int,
) -> Iterator[ReferenceSlice]:
    """The same some elements at a time, ``held`` fp64 tensors of which are held at once."""
    return sliced(
        compute,
        length=whole_number(parameters, "elements"),
        bytes_an_index=held * _FP64_BYTES,
        max_bytes=max_bytes,
    )
