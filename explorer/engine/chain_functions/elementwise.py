"""Multiplications and additions in turn, as many as asked for."""

import functools
import itertools
from collections.abc import Iterator, Sequence

import torch

from explorer.chains.elementwise import ELEMENTWISE, FACTORS, TERMS
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
    flat_spec,
    made_normal,
    sliced_elements,
    whole_number,
)
from explorer.engine.prepared import ChainFunction


def elementwise(
    x: torch.Tensor, *, factors: Sequence[float], terms: Sequence[float]
) -> torch.Tensor:
    """Each factor in turn, and behind each its term.

    Args:
        x: ``[elements]``, as is the result.
        factors: Constants to multiply by.
        terms: Constants to add, as many or one fewer.
    """
    for factor, term in itertools.zip_longest(factors, terms):
        x = x * factor
        if term is not None:
            x = x + term
    return x


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """The tensor."""
    return {"x": flat_spec(parameters)}


def make_function(parameters: Parameters) -> ChainFunction:
    """The chain with ``k`` constants."""
    factors, terms = _constants(parameters)
    return functools.partial(elementwise, factors=factors, terms=terms)


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, some elements at a time; two fp64 tensors of them are held at once."""
    factors, terms = _constants(parameters)

    def elements(part: slice) -> tuple[torch.Tensor, ...]:
        return (elementwise(inputs["x"][part].double(), factors=factors, terms=terms),)

    return sliced_elements(elements, parameters, held=2, max_bytes=max_bytes)


def slice_as_written(
    parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Elements by the code as written."""
    factors, terms = _constants(parameters)
    return elementwise(inputs["x"][index], factors=factors, terms=terms)


def _constants(parameters: Parameters) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Factors and terms of ``k`` ops."""
    k = whole_number(parameters, "k")
    factors = itertools.islice(itertools.cycle(FACTORS), (k + 1) // 2)
    return tuple(factors), tuple(itertools.islice(itertools.cycle(TERMS), k // 2))


CODE = ChainCode(
    chain_id=ELEMENTWISE.id,
    size_parameter="elements",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=made_normal(input_specs),
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x"),
)
