"""Rotary embedding, one operator a line."""

from collections.abc import Iterator

import torch

from explorer.chains.rotary import ROTARY
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
from explorer.engine.chain_functions.scores import head_parts
from explorer.engine.chain_functions.shared import normal_inputs, whole_number
from explorer.engine.prepared import ChainFunction

BASE = 10_000.0
"""Of the geometric series of wavelengths: Su et al., 2021, arXiv:2104.09864."""
_HELD = 5 * 8
"""Bytes a feature while the reference is computed: five fp64 tensors, the tables' among them."""


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn each pair of features by an angle that grows with the token's place.

    Args:
        x: ``[batch, heads, seq_len, head_dim]``, as is the result: queries or keys.
        cos: ``[seq_len, head_dim]``, as is ``sin``; its two halves are equal.
        sin: Sines of the same angles.
    """
    first, second = x.chunk(2, dim=-1)
    y = x * cos
    turned = -second
    turned = torch.cat((turned, first), dim=-1)
    turned = turned * sin
    return y + turned


def input_specs(parameters: Parameters) -> dict[str, InputSpec]:
    """What is turned, and the tables."""
    batch, heads, seq_len, head_dim = _sizes(parameters)
    dtype = stored_dtype(parameters["dtype"])
    table = InputSpec(shape=(seq_len, head_dim), dtype=dtype)
    whole = InputSpec(shape=(batch, heads, seq_len, head_dim), dtype=dtype)
    return {"x": whole, "cos": table, "sin": table}


def make_inputs(parameters: Parameters, device: torch.device, seed: int) -> dict[str, torch.Tensor]:
    """Normal x, and the tables of a sequence from its first token on."""
    specs = input_specs(parameters)
    seq_len, head_dim = specs["cos"].shape
    powers = torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim
    places = torch.arange(seq_len, device=device, dtype=torch.float32)
    angles = (places[:, None] * BASE**-powers).repeat(1, 2)
    return {
        **normal_inputs({"x": specs["x"]}, device, seed),
        "cos": angles.cos().to(specs["cos"].dtype),
        "sin": angles.sin().to(specs["sin"].dtype),
    }


def make_function(_parameters: Parameters) -> ChainFunction:
    """The chain; it has no constants that a parameter sets."""
    return rotary


def reference(parameters: Parameters, inputs: Inputs, max_bytes: int) -> Iterator[ReferenceSlice]:
    """The chain in fp64, half by half, a few tokens of one head at a time."""
    batch, heads, seq_len, head_dim = _sizes(parameters)
    half = head_dim // 2
    for index in head_parts(
        batch, heads, seq_len, bytes_a_row=_HELD * head_dim, max_bytes=max_bytes
    ):
        x, cos, sin = (
            inputs[name][place].double()
            for name, place in (("x", index), ("cos", index[-1]), ("sin", index[-1]))
        )
        first, second = x[:, :half], x[:, half:]
        values = torch.empty_like(x)
        values[:, :half] = first * cos[:, :half] - second * sin[:, :half]
        values[:, half:] = second * cos[:, half:] + first * sin[:, half:]
        yield ReferenceSlice(index=index, values=values)


def slice_as_written(
    _parameters: Parameters, inputs: Inputs, index: SliceIndex, _output: int
) -> torch.Tensor:
    """Tokens of one head by the code as written."""
    tokens = index[-1]
    return rotary(inputs["x"][index], inputs["cos"][tokens], inputs["sin"][tokens])


def _sizes(parameters: Parameters) -> tuple[int, int, int, int]:
    batch, heads, seq_len, head_dim = (
        whole_number(parameters, name) for name in ("batch", "heads", "seq_len", "head_dim")
    )
    return batch, heads, seq_len, head_dim


CODE = ChainCode(
    chain_id=ROTARY.id,
    size_parameter="seq_len",
    source_file=__file__,
    input_specs=input_specs,
    make_inputs=make_inputs,
    make_function=make_function,
    reference=reference,
    slice_as_written=slice_as_written,
    differentiated=gradients_of("x"),
)
