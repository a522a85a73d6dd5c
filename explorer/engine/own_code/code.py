"""The ``ChainCode`` of somebody's own code: what the engine asks of any chain."""

from typing import NoReturn

import torch

from explorer.chains.descriptor import Chain
from explorer.engine.chain_functions.base import (
    DTYPE_NAMES,
    ChainCode,
    InputSpec,
    Parameters,
    stored_dtype,
)
from explorer.engine.own_code.subject import OwnCaptured
from explorer.engine.prepared import ChainFunction
from explorer.model.run import Scalar

CALM = "without randomness"
"""The setting that takes the randomness out; no symbol of a text has blanks in its name."""


def own_chain_code(chain: Chain, own: OwnCaptured, device: torch.device) -> ChainCode:
    """What is known of own code once it was captured.

    Args:
        chain: Its descriptor.
        own: What was captured.
        device: Where it is to run.
    """

    def without_randomness(parameters: Parameters) -> dict[str, Scalar]:
        calm: dict[str, Scalar] = {CALM: True}
        return {**parameters, **(calm if own.is_random else {})}

    def make_function(parameters: Parameters) -> ChainFunction:
        return own.calm().function if CALM in parameters else own.ready(device, 0)[0]

    def make_inputs(
        _parameters: Parameters, where: torch.device, seed: int
    ) -> dict[str, torch.Tensor]:
        return own.ready(where, seed)[1]

    return ChainCode(
        chain_id=chain.id,
        size_parameter=None,
        source_file="",
        input_specs=lambda _parameters: own.input_specs,
        make_inputs=make_inputs,
        make_function=make_function,
        reference=_not_sliced,
        slice_as_written=_not_sliced,
        without_randomness=without_randomness,
        compared_whole=True,
        captured_function=lambda: own.calm().function,
        dtype_of=lambda parameters: dtype_of(own.input_specs, parameters),
    )


def dtype_of(specs: dict[str, InputSpec], parameters: Parameters) -> str:
    """The dtype that code computes in, by its name on screen.

    That of its parameter ``dtype``, else the coarsest floating dtype among its inputs; fp32 where
    there is none.
    """
    if "dtype" in parameters:
        return str(parameters["dtype"])
    floating = [spec.dtype for spec in specs.values() if spec.dtype.is_floating_point]
    coarsest = max(floating, key=lambda dtype: torch.finfo(dtype).eps, default=stored_dtype("fp32"))
    return DTYPE_NAMES[coarsest]


def _not_sliced(*_: object) -> NoReturn:
    raise NotImplementedError("own code is compared as a whole")
