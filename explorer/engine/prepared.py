"""A chain made ready on a device: inputs, function and captured graph, shared by all strategies."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from explorer.chains.descriptor import Chain
from explorer.model.device import DeviceKind
from explorer.model.opgraph import OpGraph
from explorer.model.run import Scalar

ChainFunction = Callable[..., torch.Tensor]
"""A chain as plain torch code; takes the inputs in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedNode:
    """A compute node of the captured graph and the op it is.

    Attributes:
        op: The op's name in the ``OpGraph``.
        aten: The overload, e.g. ``aten.mul.Tensor``.
        source_line: Line number in the file of the chain's function, None if unknown.
    """

    op: str
    aten: str
    source_line: int | None


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

    @property
    def kind(self) -> DeviceKind:
        """CUDA or CPU."""
        return DeviceKind.CUDA if self.device.type == "cuda" else DeviceKind.CPU
