"""The truth of a forward and backward pass: the chain's own code in fp64, under autograd.

A gradient sums over what a chain's reference computes slice by slice, so here the whole is computed
at once, and only compared in slices.
"""

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.engine.chain_functions.base import ReferenceSlice
from explorer.engine.devices import free_bytes
from explorer.engine.measure.estimate import peak_bytes
from explorer.engine.measure.tolerance import as_numbers
from explorer.engine.prepared import Prepared
from explorer.engine.strategies.base import PeakFamily
from explorer.model.opgraph import OpGraph, OpKind
from explorer.model.tensor import TensorRole
from explorer.model.units import BYTES_PER_ELEMENT, format_bytes

_FP64_BYTES = 8


class _InDouble(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no hints there
    """What code converts to a floating dtype of its choice stays fp64."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # nor here

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        keywords = dict(kwargs or {})
        dtype = keywords.get("dtype")
        if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
            keywords["dtype"] = torch.float64
        return func(*args, **keywords)


def fp64_results(prepared: Prepared) -> tuple[torch.Tensor, ...]:
    """All results and gradients of a call, computed in fp64.

    Args:
        prepared: A chain without randomness, its inputs as they were made. Those that are no
            floating-point numbers, such as labels, stay what they are.

    Raises:
        torch.OutOfMemoryError: It would not fit; nothing was allocated then.
    """
    needed = fp64_bytes(prepared.graph, on_cuda=prepared.device.type == "cuda")
    there = free_bytes(prepared.device)
    if needed > there:
        raise torch.OutOfMemoryError(
            f"The fp64 reference needs about {format_bytes(needed)} and {format_bytes(there)} are "
            f"free on {prepared.device}."
        )
    inputs = {
        name: value.double() if value.is_floating_point() else value
        for name, value in prepared.inputs.items()
    }
    function = prepared.of_any_inputs
    in_fp64 = dataclasses.replace(prepared, inputs=inputs, function=function)
    call = in_fp64.caller(function)
    with torch.autograd.set_multithreading_enabled(False), _InDouble():
        return in_fp64.results(call())


def fp64_bytes(graph: OpGraph, *, on_cuda: bool) -> int:
    """What computing it takes, inputs included."""
    widened = dataclasses.replace(
        graph,
        tensors=tuple(
            dataclasses.replace(
                t, n_bytes=int(t.n_bytes * _FP64_BYTES / BYTES_PER_ELEMENT[t.dtype])
            )
            for t in graph.tensors
        ),
    )
    inputs = sum(t.n_bytes for t in widened.tensors if t.role is TensorRole.INPUT)
    return inputs + peak_bytes(widened, PeakFamily.EAGER, on_cuda=on_cuda)


def longest_sum(graph: OpGraph) -> int:
    """The most numbers that a value of a chain may be the sum of: an upper bound."""
    shapes = {tensor.id: tensor.shape for tensor in graph.tensors}
    longest = 1
    for op in graph.ops:
        if op.kind not in (OpKind.REDUCTION, OpKind.MATMUL, OpKind.OPAQUE):
            continue
        read = [shapes[name] for name in op.reads]
        longest = max([longest, *(size for shape in read for size in shape)])
        if op.kind is OpKind.REDUCTION:
            least = min(math.prod(shapes[name]) for name in op.writes)
            longest = max(longest, max(map(math.prod, read)) // max(least, 1))
    return longest


def slices_of(results: Sequence[torch.Tensor], max_bytes: int) -> Iterator[ReferenceSlice]:
    """Results cut along their first axis: a part of each, then another of each, and so on.

    Args:
        results: In fp64.
        max_bytes: The most that a part holds; a row at least.
    """
    parts = [_parts(result, number, max_bytes) for number, result in enumerate(results)]
    for of_each in zip_longest(*parts):
        for part in of_each:
            if part is not None:
                yield part


def _parts(result: torch.Tensor, number: int, max_bytes: int) -> list[ReferenceSlice]:
    if not result.dim():
        return [ReferenceSlice(index=(), values=as_numbers(result).double(), output=number)]
    length = result.shape[0]
    row_bytes = max(1, _FP64_BYTES * result.numel() // max(length, 1))
    step = max(1, max_bytes // row_bytes)
    starts = list(range(0, length, step))
    # Shuffled, so that a reference cut short still looks at every region.
    random.Random(0).shuffle(starts)
    return [
        ReferenceSlice(
            index=(slice(start, start + step),),
            values=as_numbers(result[start : start + step]).double(),
            output=number,
        )
        for start in starts
    ]
