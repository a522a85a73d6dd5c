"""Makes a chain ready on a device: captured first, which takes no memory, then its inputs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import torch

from explorer.chains import find_chain
from explorer.chains.descriptor import Chain
from explorer.chains.own import is_own, own_chain
from explorer.engine.capture import Captured, capture
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.chain_functions.base import ChainCode, InputSpec, Parameters
from explorer.engine.own_code import OwnCaptured, capture_own, own_chain_code
from explorer.engine.prepared import ChainFunction, Prepared
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from explorer.model.messages import GraphRequest, GroupingRequest, RunRequest
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Scalar

_SEED_OF_TANGENTS = 0x7A4E


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
    own: OwnCaptured | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What every run of it should say."""
        return () if self.own is None else self.own.notes

    @property
    def dtype(self) -> str:
        """Of the chain's tensors, empty where they have none in common."""
        named = str(self.parameters.get("dtype", ""))
        return named if self.own is None else self.code.dtype_of(self.parameters)

    def capture_calm(self, parameters: Parameters) -> Captured:
        """The chain captured with its randomness taken out.

        Raises:
            NoReferenceError: It cannot be, of own code.
        """
        if self.own is None:
            return capture_subject(
                replace(self.subject, settings=dict(parameters)), self.device
            ).captured
        return self.own.calm().captured

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
        return self.with_tangents(self.code.make_inputs(self.parameters, self.device, seed), seed)

    def with_tangents(self, inputs: dict[str, torch.Tensor], seed: int) -> dict[str, torch.Tensor]:
        """The chain's own inputs, and the gradients that a backward pass takes."""
        # Another seed than the inputs', or a gradient would be the same numbers as an input.
        generator = torch.Generator(self.device).manual_seed(seed ^ _SEED_OF_TANGENTS)
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
    if is_own(subject.chain):
        return _own(subject, device)
    chain = find_chain(subject.chain)
    code = CHAIN_CODE[chain.id]
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
        chain.ops(parameters),
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


def _own(subject: Subject, device: torch.device) -> ChosenChain:
    """Somebody's own code: its descriptor is made of its texts, the rest is known once captured."""
    how = subject.own or OwnCode()
    chain = own_chain(subject.chain, how)
    parameters = chain.resolve(subject.settings, device_kind(device))
    own = capture_own(chain, parameters, how, subject.direction, device)
    return chosen_of_own(own, chain, parameters, subject, device)


def chosen_of_own(
    own: OwnCaptured,
    chain: Chain,
    parameters: dict[str, Scalar],
    subject: Subject,
    device: torch.device,
) -> ChosenChain:
    """Own code that was captured, as the chain that is chosen."""
    return ChosenChain(
        subject=subject,
        chain=chain,
        code=own_chain_code(chain, own, device),
        parameters=parameters,
        device=device,
        captured=own.captured,
        own=own,
    )


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
    if chosen.own is None:
        function = chosen.code.make_function(chosen.parameters)
        return _prepared(
            chosen, seed, chosen.make_inputs(seed), function, lambda: chosen.make_inputs(seed)
        )
    # A module holds its inputs itself, so that they are made with it; what calls update is kept.
    bound, own_inputs = chosen.own.ready(chosen.device, seed)
    inputs = chosen.with_tangents(own_inputs, seed)
    kept = {name: inputs[name].clone() for name in chosen.captured.updated}
    return _prepared(chosen, seed, inputs, bound, lambda: kept)


def without_memory(chosen: ChosenChain) -> Prepared:
    """The chain with inputs that have shapes and no memory, to compile it and not to run it."""
    inputs = {
        name: torch.empty(spec.shape, dtype=spec.dtype, device="meta")
        for name, spec in chosen.input_specs.items()
    }
    return _prepared(chosen, 0, inputs, _not_run)


def _not_run(*_: torch.Tensor) -> None:
    raise NotImplementedError("inputs without memory are compiled for, and not run on")


def _prepared(
    chosen: ChosenChain,
    seed: int,
    inputs: dict[str, torch.Tensor],
    function: ChainFunction,
    remake_inputs: Callable[[], dict[str, torch.Tensor]] | None = None,
) -> Prepared:
    captured = chosen.captured
    return Prepared(
        chain=chosen.chain,
        parameters=chosen.parameters,
        device=chosen.device,
        seed=seed,
        inputs=inputs,
        function=function,
        graph=captured.graph,
        graph_module=captured.graph_module,
        nodes=captured.nodes,
        updated=captured.updated,
        direction=chosen.subject.direction,
        differentiated=captured.differentiated,
        tangents=tuple(captured.tangents),
        remake_inputs=remake_inputs,
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
