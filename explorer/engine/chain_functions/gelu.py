"""GELU's two forms, by the parameter of the chains that have one."""

import math

import torch

from explorer.engine.chain_functions.base import Parameters

_TORCHS_NAMES = {"exact": "none", "tanh": "tanh"}
_CUBE = 0.044715
"""Factor of the cube in the approximation: Hendrycks and Gimpel, 2016, arXiv:1606.08415."""


def approximate(parameters: Parameters) -> str:
    """The form by torch's name for it."""
    return _TORCHS_NAMES[str(parameters["gelu"])]


def exactly(parameters: Parameters, x: torch.Tensor) -> torch.Tensor:
    """The chosen form in fp64, by its formula.

    Args:
        parameters: Of the chain.
        x: In fp64.
    """
    if approximate(parameters) == "none":
        return x * (1 + torch.erf(x / math.sqrt(2.0))) / 2
    inner = math.sqrt(2.0 / math.pi) * (x + _CUBE * x**3)
    return x / (1 + (-2 * inner).exp())
