"""Which dtypes a device computes in, and the precision of its matmuls while a chain runs."""

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from explorer.chains.descriptor import Chain
from explorer.engine.chain_functions.base import DTYPES
from explorer.model.device import DtypeAbility
from explorer.model.run import Scalar

CHAIN_DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8")
"""Every dtype that a chain may take, as on screen."""

_TF32, _FP8 = "tf32", "fp8"
_TF32_CAPABILITY, _FP8_CAPABILITY = (8, 0), (8, 9)
_TF32_EPS = 2.0**-11
"""A tensor core keeps 10 bits of a factor's fraction, and rounds to the nearest."""


def dtype_abilities(device: torch.device) -> tuple[DtypeAbility, ...]:
    """Each dtype that a chain may take, with the reason where the device lacks it."""
    return tuple(
        DtypeAbility(name=name, available=reason is None, reason=reason)
        for name, reason in ((name, dtype_refusal(name, device)) for name in CHAIN_DTYPES)
    )


def dtype_refusal(name: str, device: torch.device) -> str | None:
    """Why a device does not compute in a dtype: one sentence with the remedy, or None."""
    if device.type == "cuda":
        return _refusal_by_capability(name, torch.cuda.get_device_capability(device))
    if name == _TF32:
        return "tf32 is a precision of NVIDIA's tensor cores, which a CPU does not have; use fp32."
    if not _multiplies_on_cpu(name):
        return f"This torch ({torch.__version__}) does not multiply {name} on this CPU; use fp32."
    return None


def _refusal_by_capability(name: str, capability: tuple[int, int]) -> str | None:
    needed, remedy = {
        _TF32: (_TF32_CAPABILITY, "use fp32"),
        _FP8: (_FP8_CAPABILITY, "use bf16 or fp16"),
        "bf16": (_TF32_CAPABILITY, "use fp16"),
    }.get(name, ((0, 0), ""))
    if capability < needed:
        return (
            f"{name} needs compute capability {needed[0]}.{needed[1]}, and this GPU has "
            f"{capability[0]}.{capability[1]}; {remedy}."
        )
    if name == _FP8 and not hasattr(torch, "_scaled_mm"):
        return f"torch {torch.__version__} has no fp8 matmul (torch._scaled_mm); {remedy}."
    return None


@functools.cache
def _multiplies_on_cpu(name: str) -> bool:
    """Whether a small matmul runs; which dtypes do differs by torch's release."""
    left = torch.ones(16, 16).to(DTYPES[name])
    try:
        if name == _FP8:
            one = torch.ones(())
            torch._scaled_mm(left, left.t(), one, one, out_dtype=torch.bfloat16)
        else:
            left @ left
    except (RuntimeError, NotImplementedError, AttributeError):
        return False
    return True


def settings_refusal(
    chain: Chain, parameters: Mapping[str, Scalar], device: torch.device
) -> str | None:
    """Why a device lacks a dtype that a chain's settings ask for, or None."""
    chosen = (
        str(parameters[parameter.name])
        for parameter in chain.parameters
        if parameter.kind == "choice"
    )
    refusals = (dtype_refusal(name, device) for name in chosen if name in CHAIN_DTYPES)
    return next((reason for reason in refusals if reason is not None), None)


@contextmanager
def precision_of(parameters: Mapping[str, Scalar]) -> Iterator[None]:
    """Let tensor cores multiply fp32 where the settings ask for tf32, for what is compiled as well.

    Other settings leave torch as it is.
    """
    if _TF32 not in map(str, parameters.values()):
        yield
        return
    # torch has two ways to set this, and raises where both are used; this one it knows in every
    # release, and the program uses no other.
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def rounding_of(name: object, stored: torch.dtype) -> float:
    """What one rounding is worth, as a share of the value.

    Args:
        name: The dtype as on screen.
        stored: What its tensors are stored in.
    """
    return _TF32_EPS if name == _TF32 else float(torch.finfo(stored).eps)
