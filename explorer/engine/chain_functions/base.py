"""What the engine knows of a chain's code: one record a chain, matched to the descriptor by id."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch

from explorer.engine.prepared import ChainFunction
from explorer.model.run import DistributionCheck, Scalar

Parameters = Mapping[str, Scalar]
Inputs = Mapping[str, torch.Tensor]
SliceIndex = tuple[int | slice, ...]

DTYPES: dict[str, torch.dtype] = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "i16": torch.int16,
    "i8": torch.int8,
    "u8": torch.uint8,
    "bool": torch.bool,
    "c64": torch.complex64,
    "fp8": torch.float8_e4m3fn,
}
"""Torch's dtypes by the names used on screen."""

STORED_AS: dict[str, str] = {"tf32": "fp32"}
"""Dtypes that are a way to compute: what tensors are stored in."""


def stored_dtype(name: object) -> torch.dtype:
    """The dtype of tensors in memory, by the name used on screen; tf32 is stored as fp32."""
    return DTYPES[STORED_AS.get(str(name), str(name))]


DTYPE_NAMES: dict[torch.dtype, str] = {dtype: name for name, dtype in DTYPES.items()} | {
    torch.float8_e5m2: "fp8"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """Shape and dtype of an input, from which a chain can be captured without any memory."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def n_bytes(self) -> int:
        """Bytes of the contiguous tensor."""
        n_bytes = self.dtype.itemsize
        for size in self.shape:
            n_bytes *= size
        return n_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSlice:
    """A part of the output in fp64.

    Attributes:
        index: Indexes the output so that ``output[index]`` has the shape of ``values``.
        values: The truth, fp64.
        output: Which of ``Prepared.results`` it is a part of.
    """

    index: SliceIndex
    values: torch.Tensor
    output: int = 0


def same_parameters(parameters: Parameters) -> dict[str, Scalar]:
    """The parameters of a chain that has no randomness to take out."""
    return dict(parameters)


def dtype_parameter(parameters: Parameters) -> str:
    """What the chain's parameter ``dtype`` says."""
    return str(parameters["dtype"])


def nothing_differentiated(_parameters: Parameters) -> tuple[str, ...]:
    """No gradient: the chain has no backward pass."""
    return ()


def gradients_of(*names: str) -> Callable[[Parameters], tuple[str, ...]]:
    """The ``differentiated`` of a chain whose inputs of these names are trained or passed on."""
    return lambda _parameters: names


def nothing_random(
    _parameters: Parameters,
    _inputs: Inputs,
    _call: Callable[[], torch.Tensor],
    _resolution: float,
) -> tuple[DistributionCheck, ...]:
    """No check: the chain draws nothing."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainCode:
    """A chain as torch code.

    Attributes:
        chain_id: The descriptor's id.
        size_parameter: The parameter to make smaller where memory does not suffice: a whole
            number. None where there is none.
        source_file: Path of the file that holds the function, as tracebacks give it.
        input_specs: Shapes and dtypes by name, in the function's argument order.
        make_inputs: The inputs themselves on a device, from a seed.
        make_function: The chain with its constants filled in.
        reference: All results in fp64, slice by slice in an order that spreads over them. No more
            than the given bytes are held beyond a slice's result. It is computed from the inputs
            as they were made: take it before any call of a chain that updates them, or restore
            them first.
        slice_as_written: A part of a result by the chain as written, in its own dtype and without
            randomness, for where the whole does not fit. Takes the index and the result's number
            of a ``ReferenceSlice``; like the reference it needs the inputs as they were made, and
            it leaves them so.
        without_randomness: The same parameters with the random ops taken out; left out where there
            are none.
        distribution: Checks of the random ops, left out alike. Given a call that runs the chain
            with its randomness on, and the resolution of its random numbers; the inputs are
            changed in place meanwhile and put back.
        differentiated: Names of the inputs whose gradients training needs; left out where the chain
            has no backward pass.
        sdpa: The chain by torch's own attention operator, None where it is no attention.
        compared_whole: Its truth is the code itself in fp64, at once, so that ``reference`` and
            ``slice_as_written`` are not called.
        captured_function: Its captured graph as a function of all inputs, for code that does not
            run in fp64 itself; raises a ``NoReferenceError`` where there is none.
        dtype_of: The dtype that its results are rounded to, by its name on screen.
    """

    chain_id: str
    size_parameter: str | None
    source_file: str
    input_specs: Callable[[Parameters], dict[str, InputSpec]]
    make_inputs: Callable[[Parameters, torch.device, int], dict[str, torch.Tensor]]
    make_function: Callable[[Parameters], ChainFunction]
    reference: Callable[[Parameters, Inputs, int], Iterator[ReferenceSlice]]
    slice_as_written: Callable[[Parameters, Inputs, SliceIndex, int], torch.Tensor]
    without_randomness: Callable[[Parameters], dict[str, Scalar]] = same_parameters
    distribution: Callable[
        [Parameters, Inputs, Callable[[], torch.Tensor], float], tuple[DistributionCheck, ...]
    ] = nothing_random
    differentiated: Callable[[Parameters], tuple[str, ...]] = nothing_differentiated
    sdpa: Callable[[Parameters], ChainFunction] | None = None
    compared_whole: bool = False
    captured_function: Callable[[], ChainFunction] | None = None
    dtype_of: Callable[[Parameters], str] = dtype_parameter
