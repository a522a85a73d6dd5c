"""Makes a chain ready on a device: captured first, which takes no memory, then its inputs."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from explorer.chains import find_chain
from explorer.chains.descriptor import Chain
from explorer.engine.capture import Captured, capture
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.chain_functions.base import ChainCode
from explorer.engine.prepared import Prepared
from explorer.model.device import DeviceKind
from explorer.model.run import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenChain:
    """A captured chain with its parameters, before anything is allocated."""

    chain: Chain
    code: ChainCode
    parameters: dict[str, Scalar]
    device: torch.device
    captured: Captured

    @property
    def inputs_bytes(self) -> int:
        """Bytes of all inputs."""
        return sum(spec.n_bytes for spec in self.code.input_specs(self.parameters).values())


def device_kind(device: torch.device) -> DeviceKind:
    """CUDA or CPU."""
    return DeviceKind.CUDA if device.type == "cuda" else DeviceKind.CPU


def capture_chain(
    chain_id: str, settings: Mapping[str, object], device: torch.device
) -> ChosenChain:
    """Check the settings and capture the chain; allocates nothing, however large it is.

    Args:
        chain_id: Id of a built-in chain.
        settings: Parameters by name; those left out take the device's defaults.
        device: Where it is to run.

    Raises:
        UsageError: The chain or a parameter does not exist, or a value is out of range.
        CaptureError: The code is not the chain that its descriptor describes.
    """
    chain = find_chain(chain_id)
    code = CHAIN_CODE[chain.id]
    parameters = chain.resolve(settings, device_kind(device))
    captured = capture(
        code.make_function(parameters),
        code.input_specs(parameters),
        chain.ops(parameters),
        source_file=code.source_file,
        device=device,
    )
    return ChosenChain(
        chain=chain, code=code, parameters=parameters, device=device, captured=captured
    )


def make_ready(chosen: ChosenChain, seed: int) -> Prepared:
    """Allocate and fill the inputs on the device that was chosen."""
    return Prepared(
        chain=chosen.chain,
        parameters=chosen.parameters,
        device=chosen.device,
        seed=seed,
        inputs=chosen.code.make_inputs(chosen.parameters, chosen.device, seed),
        function=chosen.code.make_function(chosen.parameters),
        graph=chosen.captured.graph,
        graph_module=chosen.captured.graph_module,
        nodes=chosen.captured.nodes,
        updated=chosen.captured.updated,
        remake_inputs=lambda: chosen.code.make_inputs(chosen.parameters, chosen.device, seed),
    )


def without_memory(chosen: ChosenChain) -> Prepared:
    """The chain with inputs that have shapes and no memory, to compile it and not to run it."""
    specs = chosen.code.input_specs(chosen.parameters)
    return Prepared(
        chain=chosen.chain,
        parameters=chosen.parameters,
        device=chosen.device,
        seed=0,
        inputs={
            name: torch.empty(spec.shape, dtype=spec.dtype, device="meta")
            for name, spec in specs.items()
        },
        function=chosen.code.make_function(chosen.parameters),
        graph=chosen.captured.graph,
        graph_module=chosen.captured.graph_module,
        nodes=chosen.captured.nodes,
        updated=chosen.captured.updated,
    )


def prepare(
    chain_id: str, settings: Mapping[str, object], device: torch.device, seed: int = 0
) -> Prepared:
    """Capture a chain and make its inputs; see :func:`capture_chain` for what may go wrong."""
    return make_ready(capture_chain(chain_id, settings, device), seed)
