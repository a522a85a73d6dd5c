"""torch's own attention operator, with the name of the back end that really runs.

Without an option torch picks the back end; with one it may use that one alone.
"""

import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from explorer.chains.descriptor import Chain
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.prepared import ChainFunction, Prepared
from explorer.engine.strategies.base import Built, Case, PeakFamily, PeakRule, Strategy
from explorer.model.run import Scalar

_BACKENDS = {
    "_scaled_dot_product_cudnn_attention": "cuDNN",
    "_scaled_dot_product_flash_attention": "FlashAttention",
    "_scaled_dot_product_efficient_attention": "memory-efficient attention",
    "_scaled_dot_product_flash_attention_for_cpu": "torch's fused CPU attention",
    "_scaled_dot_product_fused_attention_overrideable": "a fused kernel of the device's own",
}
_MATH = "math (not fused)"
_SKIPS = (
    "The fused kernel skips what the causal mask hides, about half of the work: FLOP/s by the "
    "chain's own count come out higher than what it computes."
)
_TRIGGERED = re.compile(r"\s*\(Triggered internally at .*\)\s*$")
_HEADLINE = re.compile(r"kernel not used because:?$")
_QKV = ("q", "k", "v")
_FEW_ROWS = 8
"""Rows of the trial on a CPU, where no check looks at how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """A back end that can be asked for.

    Attributes:
        option: As on the command line.
        title: As in the window.
        backend: torch's name.
        runs: The operators it may turn out to be, of ``_BACKENDS``, or ``_MATH``.
        check: torch's own check of a case on a GPU, None where there is nothing to check.
    """

    option: str
    title: str
    backend: SDPBackend
    runs: tuple[str, ...]
    check: Callable[..., bool] | None = None

    @property
    def spec(self) -> str:
        return f"sdpa:{self.option}"


_CHOICES = (
    _Choice(
        option="flash",
        title="scaled_dot_product_attention, FlashAttention",
        backend=SDPBackend.FLASH_ATTENTION,
        runs=("FlashAttention", "torch's fused CPU attention"),
        check=torch.backends.cuda.can_use_flash_attention,
    ),
    _Choice(
        option="efficient",
        title="scaled_dot_product_attention, memory-efficient",
        backend=SDPBackend.EFFICIENT_ATTENTION,
        runs=("memory-efficient attention",),
        check=torch.backends.cuda.can_use_efficient_attention,
    ),
    _Choice(
        option="cudnn",
        title="scaled_dot_product_attention, cuDNN",
        backend=SDPBackend.CUDNN_ATTENTION,
        runs=("cuDNN",),
        check=torch.backends.cuda.can_use_cudnn_attention,
    ),
    _Choice(
        option="math",
        title="scaled_dot_product_attention, op by op",
        backend=SDPBackend.MATH,
        runs=(_MATH,),
    ),
)


class _SeenOperators(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no hints there
    """Notes the operators that are really dispatched below ``scaled_dot_product_attention``."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # nor here
        self.names: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.names.append(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def is_by_sdpa(chain: Chain) -> bool:
    """Whether a chain's code has a form by torch's attention operator."""
    code = CHAIN_CODE.get(chain.id)
    return code is not None and code.sdpa is not None


def by_sdpa(prepared: Prepared) -> ChainFunction:
    """The chain by torch's attention operator.

    Raises:
        ValueError: It has no such form; the refusal says so before.
    """
    make = CHAIN_CODE[prepared.chain.id].sdpa
    if make is None:
        raise ValueError(f"{prepared.chain.id} has no form by sdpa")
    return make(prepared.parameters)


def _chain_refusal(chain: Chain) -> str | None:
    if is_by_sdpa(chain):
        return None
    known = " and ".join(chain_id for chain_id, code in CHAIN_CODE.items() if code.sdpa is not None)
    return f"sdpa is torch's attention operator, and {chain.id} is no attention; it is for {known}."


def _device_refusal(choice: _Choice) -> Callable[[torch.device], str | None]:
    def refusal(device: torch.device) -> str | None:
        if device.type == "cuda" or choice.backend in (
            SDPBackend.FLASH_ATTENTION,
            SDPBackend.MATH,
        ):
            return None
        return (
            f"{choice.spec} needs an NVIDIA GPU: torch has no such kernel for a CPU, "
            "where there are sdpa:flash and sdpa:math."
        )

    return refusal


def _case_refusal(choice: _Choice) -> Callable[[Case], str | None]:
    def refusal(case: Case) -> str | None:
        specs = CHAIN_CODE[case.chain.id].input_specs(case.parameters)
        if choice.check is None or not set(_QKV) <= set(specs):
            # Of a chain that makes q, k and v itself, only running it can tell.
            return None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            on_gpu = case.device.type == "cuda"
            if _checked_on_gpu(choice, case) if on_gpu else _tried(choice, case):
                return None
            if on_gpu:
                # The check itself does not tell its reason in every release; a call does.
                _tried(choice, case)
        reason = _reason([str(warning.message) for warning in caught])
        return f"torch refuses {choice.spec} here ({reason}); sdpa picks a backend that can."

    return refusal


def _checked_on_gpu(choice: _Choice, case: Case) -> bool:
    """What torch itself says, on tensors of the case's shapes that take the memory of one row."""
    assert choice.check is not None
    given = _attended(case, case.device)
    causal = case.parameters.get("mask") == "causal"
    mask = None if causal else given.get("mask")
    parameters = torch.backends.cuda.SDPAParams(
        given["q"], given["k"], given["v"], mask, _dropout(case), causal, False
    )
    with sdpa_kernel(choice.backend):
        return choice.check(parameters, True)


def _tried(choice: _Choice, case: Case) -> bool:
    """Whether it takes a few rows, run for the purpose: on a CPU torch has no check to ask."""
    given = {
        name: torch.zeros(_few(tensor.shape), dtype=tensor.dtype, device=case.device)
        for name, tensor in _attended(case, torch.device("meta")).items()
    }
    causal = case.parameters.get("mask") == "causal"
    try:
        with torch.no_grad(), sdpa_kernel(choice.backend):
            torch.nn.functional.scaled_dot_product_attention(
                given["q"],
                given["k"],
                given["v"],
                attn_mask=None if causal else given.get("mask"),
                dropout_p=_dropout(case),
                is_causal=causal,
            )
    except RuntimeError:
        return False
    return True


def _few(shape: torch.Size) -> tuple[int, ...]:
    """A shape with one head and few tokens; the mask has nothing but tokens."""
    *head, rows, columns = shape
    few = min(rows, _FEW_ROWS)
    return (*(1 for _ in head), few, columns if head else few)


def _attended(case: Case, device: torch.device) -> dict[str, torch.Tensor]:
    """q, k, v and the mask where there is one: every row is the same memory."""
    specs = CHAIN_CODE[case.chain.id].input_specs(case.parameters)
    return {
        name: torch.empty_strided(
            spec.shape,
            (*(0 for _ in spec.shape[1:]), 1),
            dtype=spec.dtype,
            device=device,
            requires_grad=case.trains and name != "mask",
        )
        for name, spec in specs.items()
        if name in (*_QKV, "mask")
    }


def _dropout(case: Case) -> float:
    rate = case.parameters.get("dropout", 0.0)
    return float(rate) if isinstance(rate, int | float) else 0.0


def _reason(messages: list[str]) -> str:
    """What torch warned of, without a stop."""
    told = [_TRIGGERED.sub("", message).strip() for message in messages]
    told = [message for message in told if message and not _HEADLINE.search(message)]
    # A call tells of each back end in turn why it is not used, of those switched off as well.
    own = [
        message
        for message in told
        if "not used because" not in message and "runtime disabled" not in message
    ]
    if not own:
        return "it gives no reason"
    return "; ".join(dict.fromkeys(message.rstrip(". ") for message in own))


def _peak(choice: _Choice | None) -> PeakRule:
    def rule(parameters: Mapping[str, Scalar], device: torch.device) -> PeakFamily:
        """Where no fused kernel takes the case, torch computes it op by op, and in fp32."""
        if "head_dim" not in parameters:
            # Attention is only a part of the chain, and the rest of it runs op by op.
            return PeakFamily.EAGER
        if choice is not None:
            is_math = choice.backend is SDPBackend.MATH
            return PeakFamily.UPCAST if is_math else PeakFamily.FUSED
        head_dim = parameters.get("head_dim")
        odd = isinstance(head_dim, int) and (head_dim > 256 or head_dim % 8 != 0)
        cpu_dropout = device.type != "cuda" and parameters.get("dropout") != 0
        return PeakFamily.UPCAST if odd or cpu_dropout else PeakFamily.FUSED

    return rule


def _builder(choice: _Choice | None) -> Callable[[Prepared], Built]:
    def build(prepared: Prepared) -> Built:
        call = prepared.caller(by_sdpa(prepared))
        chosen = ExitStack()
        if choice is not None:
            # Until it is closed, not call by call: that would cost each call its host time.
            chosen.enter_context(sdpa_kernel(choice.backend))
        try:
            with _SeenOperators() as seen:
                call()
        except BaseException:
            chosen.close()
            raise
        backend = next((_BACKENDS[name] for name in seen.names if name in _BACKENDS), _MATH)
        fused = backend != _MATH
        notes = []
        if choice is not None and backend not in choice.runs:
            notes.append(f"{choice.spec} was asked for, and {backend} is what really ran.")
        if prepared.parameters.get("mask") == "causal" and fused:
            notes.append(_SKIPS)
        return Built(
            call=call,
            backend=backend,
            notes=tuple(notes),
            give_back=chosen.close,
            # Fused kernels compare 8 random bits with the rate.
            random_resolution=1 / 256 if fused else 0.0,
        )

    return build


ENTRIES = (
    Strategy(
        name="sdpa",
        title="scaled_dot_product_attention",
        chain_refusal=_chain_refusal,
        build=_builder(None),
        peak=_peak(None),
    ),
    *(
        Strategy(
            name="sdpa",
            option=choice.option,
            title=choice.title,
            chain_refusal=_chain_refusal,
            device_refusal=_device_refusal(choice),
            case_refusal=_case_refusal(choice),
            build=_builder(choice),
            peak=_peak(choice),
        )
        for choice in _CHOICES
    ),
)
