"""Makes a chain ready on a device: captured first, which takes no memory, then its inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch

from explorer.chains import find_chain
from explorer.chains.descriptor import Chain
from explorer.chains.own import is_own
from explorer.engine.capture import Captured, capture
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.chain_functions.base import ChainCode, InputSpec
from explorer.engine.prepared import Prepared
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from explorer.model.messages import GraphRequest, GroupingRequest, RunRequest
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is to be captured.

    Attributes:
        chain: Id of a built-in chain, or what names somebody's own code.
        settings: Parameters by name; those left out take the device's defaults.
        direction: Forward, or forward and backward.
        own: How own code is called; None for a built-in chain.
    """

    chain: str
    settings: Mapping[str, object] = field(default_factory=dict)
    direction: Direction = Direction.FORWARD
    own: OwnCode | None = None

    @classmethod
    def of(cls, request: RunRequest | GraphRequest | GroupingRequest) -> "Subject":
        """What a request is about."""
        return cls(
            chain=request.chain,
            settings=request.parameters,
            direction=request.direction,
            own=request.own,
        )

    def with_settings(self, **settings: object) -> "Subject":
        """The same with some parameters set."""
        return replace(self, settings={**self.settings, **settings})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenChain:
    """A captured chain with its parameters, before anything is allocated."""

    subject: Subject
    chain: Chain
    code: ChainCode
    parameters: dict[str, Scalar]
    device: torch.device
    captured: Captured

    @property
    def input_specs(self) -> dict[str, InputSpec]:
        """All inputs by name: the chain's own, then the gradients that a backward pass takes."""
        return {**self.code.input_specs(self.parameters), **self.captured.tangents}

    @property
    def inputs_bytes(self) -> int:
        """Bytes of all inputs."""
        return sum(spec.n_bytes for spec in self.input_specs.values())

    def make_inputs(self, seed: int) -> dict[str, torch.Tensor]:
        """The inputs on the device; gradients are standard normal."""
        inputs = self.code.make_inputs(self.parameters, self.device, seed)
        generator = torch.Generator(self.device).manual_seed(seed)
        for name, spec in self.captured.tangents.items():
            tangent = torch.empty(spec.shape, dtype=spec.dtype, device=self.device)
            inputs[name] = tangent.normal_(generator=generator)
        return inputs


def device_kind(device: torch.device) -> DeviceKind:
    """CUDA or CPU."""
    return DeviceKind.CUDA if device.type == "cuda" else DeviceKind.CPU


def capture_subject(subject: Subject, device: torch.device) -> ChosenChain:
    """Check the settings and capture the chain; allocates nothing, however large it is.

    Args:
        subject: What to capture.
        device: Where it is to run.

    Raises:
        UsageError: The chain or a parameter does not exist, a value is out of range, or the chain
            has no backward pass.
        CaptureError: The code is not the chain that its descriptor describes.
    """
    chain, code = _described(subject, device)
    parameters = chain.resolve(subject.settings, device_kind(device))
    differentiated: tuple[str, ...] = ()
    if subject.direction is Direction.FORWARD_BACKWARD:
        differentiated = code.differentiated(parameters)
        if not differentiated:
            raise UsageError(
                f"{chain.id} has no backward pass, since no training needs one; "
                "leave --backward out."
            )
    captured = capture(
        code.make_function(parameters),
        code.input_specs(parameters),
        None if is_own(chain.id) else chain.ops(parameters),
        source_file=code.source_file,
        device=device,
        differentiated=differentiated,
    )
    return ChosenChain(
        subject=subject,
        chain=chain,
        code=code,
        parameters=parameters,
        device=device,
        captured=captured,
    )


def _described(subject: Subject, device: torch.device) -> tuple[Chain, ChainCode]:
    chain = find_chain(subject.chain)
    return chain, CHAIN_CODE[chain.id]


def capture_chain(
    chain_id: str,
    settings: Mapping[str, object],
    device: torch.device,
    direction: Direction = Direction.FORWARD,
) -> ChosenChain:
    """Capture a built-in chain; see :func:`capture_subject`."""
    return capture_subject(Subject(chain=chain_id, settings=settings, direction=direction), device)


def make_ready(chosen: ChosenChain, seed: int) -> Prepared:
    """Allocate and fill the inputs on the device that was chosen."""
    return _prepared(chosen, seed, chosen.make_inputs(seed), is_real=True)


def without_memory(chosen: ChosenChain) -> Prepared:
    """The chain with inputs that have shapes and no memory, to compile it and not to run it."""
    inputs = {
        name: torch.empty(spec.shape, dtype=spec.dtype, device="meta")
        for name, spec in chosen.input_specs.items()
    }
    return _prepared(chosen, 0, inputs, is_real=False)


def _prepared(
    chosen: ChosenChain, seed: int, inputs: dict[str, torch.Tensor], *, is_real: bool
) -> Prepared:
    captured = chosen.captured
    return Prepared(
        chain=chosen.chain,
        parameters=chosen.parameters,
        device=chosen.device,
        seed=seed,
        inputs=inputs,
        function=chosen.code.make_function(chosen.parameters),
        graph=captured.graph,
        graph_module=captured.graph_module,
        nodes=captured.nodes,
        updated=captured.updated,
        direction=chosen.subject.direction,
        differentiated=captured.differentiated,
        tangents=tuple(captured.tangents),
        remake_inputs=(lambda: chosen.make_inputs(seed)) if is_real else None,
    )


def prepare(
    chain_id: str,
    settings: Mapping[str, object],
    device: torch.device,
    seed: int = 0,
    direction: Direction = Direction.FORWARD,
) -> Prepared:
    """Capture a chain and make its inputs; see :func:`capture_subject` for what may go wrong."""
    return make_ready(capture_chain(chain_id, settings, device, direction), seed)
