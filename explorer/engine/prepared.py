"""A chain made ready on a device: inputs, function and captured graph, shared by all strategies."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from explorer.chains.descriptor import Chain
from explorer.model.device import DeviceKind
from explorer.model.opgraph import OpGraph
from explorer.model.run import Direction, Scalar

Returned = torch.Tensor | tuple[torch.Tensor, ...] | None
"""What a chain's code hands out; one that only updates its inputs hands out nothing."""

ChainFunction = Callable[..., Returned]
"""A chain as plain torch code; takes the inputs in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedNode:
    """A compute node of the captured graph and the op it is.

    Attributes:
        op: The op's name in the ``OpGraph``.
        aten: The overload, e.g. ``aten.mul.Tensor``.
        source_line: Line number in the file of the chain's function, None if unknown.
        node: Name of the node in the captured graph.
        updates: The input that the code has it write in place, None if its result is new.
        is_backward: It belongs to the backward pass.
    """

    op: str
    aten: str
    source_line: int | None
    node: str = ""
    updates: str | None = None
    is_backward: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Everything a strategy and a measurement need.

    Attributes:
        chain: The descriptor.
        parameters: All of them, defaults filled in.
        device: Where the inputs are.
        seed: Of the inputs and of the random ops.
        inputs: By name, in the function's argument order.
        function: The chain as written.
        graph: The captured graph, ops named as in the descriptor.
        graph_module: The functional ATen graph behind it.
        nodes: The compute nodes, in the order of ``graph.ops``.
        updated: Names of the inputs that a call updates in place.
        direction: What a call runs.
        differentiated: Names of the inputs whose gradients a forward and backward pass makes.
        tangents: Names of the inputs that are the gradients of the results, of such a pass.
        remake_inputs: Makes the inputs anew, as they were before any call.
    """

    chain: Chain
    parameters: dict[str, Scalar]
    device: torch.device
    seed: int
    inputs: dict[str, torch.Tensor]
    function: ChainFunction
    graph: OpGraph
    graph_module: torch.fx.GraphModule
    nodes: tuple[CapturedNode, ...]
    updated: tuple[str, ...] = ()
    direction: Direction = Direction.FORWARD
    differentiated: tuple[str, ...] = ()
    tangents: tuple[str, ...] = ()
    remake_inputs: Callable[[], dict[str, torch.Tensor]] | None = None

    def caller(self, function: ChainFunction) -> Callable[[], Returned]:
        """A call of the chain on the prepared inputs, in the direction that was chosen.

        Args:
            function: The chain in any form, compiled or not: takes its inputs without the tangents.

        Returns:
            Runs forward without autograd; or forward, then backward from the tangents, and hands
            out what the chain does, then the gradients in the order of ``differentiated``.
        """
        if self.direction is Direction.FORWARD:
            inputs = tuple(self.inputs.values())

            def forward() -> Returned:
                with torch.no_grad():
                    return function(*inputs)

            return forward
        tangents = tuple(self.inputs[name] for name in self.tangents)
        # Leaves of their own, which share the memory: the inputs themselves stay plain tensors.
        leaves = {
            name: value.detach().requires_grad_(name in self.differentiated)
            for name, value in self.inputs.items()
            if name not in self.tangents
        }
        wanted = tuple(leaves[name] for name in self.differentiated)

        def forward_backward() -> Returned:
            with torch.enable_grad():
                returned = function(*leaves.values())
                handed_out = (returned,) if isinstance(returned, torch.Tensor) else returned or ()
                roots = tuple(value for value in handed_out if value.requires_grad)
                gradients = torch.autograd.grad(roots, wanted, tangents)
            return (*(value.detach() for value in handed_out), *gradients)

        return forward_backward

    def results(self, returned: Returned) -> tuple[torch.Tensor, ...]:
        """Everything a call leaves behind: what it returned, then the inputs it updated."""
        if returned is None:
            handed_out: tuple[torch.Tensor, ...] = ()
        elif isinstance(returned, torch.Tensor):
            handed_out = (returned,)
        else:
            handed_out = tuple(returned)
        return (*handed_out, *(self.inputs[name] for name in self.updated))

    def restore_inputs(self) -> None:
        """Put the inputs that calls updated back to what they were before the first."""
        if self.updated and self.remake_inputs is not None:
            fresh = self.remake_inputs()
            for name in self.updated:
                self.inputs[name].copy_(fresh[name])

    @property
    def kind(self) -> DeviceKind:
        """CUDA or CPU."""
        return DeviceKind.CUDA if self.device.type == "cuda" else DeviceKind.CPU
