"""A chain made ready on a device: inputs, function and captured graph, shared by all strategies."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from explorer.chains.descriptor import Chain
from explorer.engine import backward_pass
from explorer.engine.bound import BoundFunction, flat_tensors
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from explorer.model.opgraph import OpGraph
from explorer.model.run import Direction, Scalar

_CUT_OFF = (
    "The code cuts its results off from what they are made of, as under torch.no_grad(), which the "
    "captured graph does not tell; there is nothing to differentiate: leave --backward out."
)

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
        source_line: Line number in ``source_file``, None if unknown.
        node: Name of the node in the captured graph.
        updates: The inputs that the code has it write in place, one for each result; none if its
            results are new.
        is_backward: It belongs to the backward pass.
        gradient_of: Of the backward pass: the op of the forward pass that it belongs to, or the
            input, where it adds up the gradients of one.
        adds_gradients: It adds up gradients of a value that several ops took.
        source_file: The file of the code that calls it, as tracebacks name it.
        module: Path of the module that it is in, from the outermost; None if it is in none.
    """

    op: str
    aten: str
    source_line: int | None
    node: str = ""
    updates: tuple[str, ...] = ()
    is_backward: bool = False
    gradient_of: str | None = None
    adds_gradients: bool = False
    source_file: str | None = None
    module: str | None = None


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
        bound = self.function if isinstance(self.function, BoundFunction) else None
        if self.direction is Direction.FORWARD:
            # Bound code is called as it is written, whatever a strategy made of it.
            args = tuple(self.inputs.values()) if bound is None else bound.args
            kwargs = {} if bound is None else bound.kwargs

            def forward() -> Returned:
                with torch.no_grad():
                    returned: Returned = function(*args, **kwargs)
                    return returned

            return forward
        return self._forward_backward(function, bound)

    def _forward_backward(
        self, function: ChainFunction, bound: BoundFunction | None
    ) -> Callable[[], Returned]:
        tangents = tuple(self.inputs[name] for name in self.tangents)
        # Leaves of their own, which share the memory: the inputs themselves stay plain tensors.
        leaves = (
            bound.held
            if bound is not None
            else {
                name: value.detach().requires_grad_(name in self.differentiated)
                for name, value in self.inputs.items()
                if name not in self.tangents
            }
        )
        args = tuple(leaves.values()) if bound is None else bound.args
        kwargs = {} if bound is None else bound.kwargs
        wanted = tuple(leaves[name] for name in self.differentiated)
        stored = tuple(leaves[name] for name in self.updated)

        def forward_backward() -> Returned:
            with torch.enable_grad():
                handed_out = flat_tensors(function(*args, **kwargs))
                roots = tuple(value for value in handed_out if value.requires_grad)
                if len(roots) != len(tangents):
                    raise UsageError(_CUT_OFF)
                with backward_pass.running():
                    gradients = torch.autograd.grad(roots, wanted, tangents)
                for value in stored:
                    # Else the next call's backward pass would go on into this one.
                    if value.grad_fn is not None:
                        value.detach_()
            return (*(value.detach() for value in handed_out), *gradients)

        return forward_backward

    def results(self, returned: Returned) -> tuple[torch.Tensor, ...]:
        """Everything a call leaves behind: what it returned, then the inputs it updated."""
        return (*flat_tensors(returned), *(self.inputs[name] for name in self.updated))

    def inputs_in_place(self) -> dict[str, torch.Tensor]:
        """The inputs in the memory where they lie by now, which a call may have changed.

        On a GPU an RNN lays its weights beside each other when it is first called.
        """
        held = self.function.held if isinstance(self.function, BoundFunction) else {}
        return {name: held.get(name, value) for name, value in self.inputs.items()}

    def restore_inputs(self) -> None:
        """Put the inputs that calls updated back to what they were before the first."""
        if isinstance(self.function, BoundFunction):
            self.function.put_buffers_back()
        if self.updated and self.remake_inputs is not None:
            fresh = self.remake_inputs()
            for name in self.updated:
                self.inputs[name].copy_(fresh[name])

    @property
    def of_any_inputs(self) -> ChainFunction:
        """The chain as written, as a function of all its inputs."""
        if not isinstance(self.function, BoundFunction):
            return self.function
        return self.function.unbound([n for n in self.inputs if n not in self.tangents])

    @property
    def kind(self) -> DeviceKind:
        """CUDA or CPU."""
        return DeviceKind.CUDA if self.device.type == "cuda" else DeviceKind.CPU
