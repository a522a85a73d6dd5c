"""Forward and backward as one graph: what AOTAutograd traces for training, node by node.

The captured forward graph is run on fake tensors under autograd, and everything that autograd runs
below is traced, as AOTAutograd does for its joint graph. Nothing is decomposed, so the nodes are
what eager launches. Each backward node is known to belong to the forward node whose gradient
function ran it.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export.graph_signature import OutputKind
from torch.fx.experimental.proxy_tensor import make_fx

from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.internals import internal, patch_point
from explorer.engine.op_facts import is_view

_FORWARD, _BACKWARD, _ADDED = "forward", "backward", "added"
"""Keys of ``node.meta["custom"]`` while tracing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A captured graph, with what its nodes are of.

    Attributes:
        module: Takes the chain's inputs, then the tangents; returns what an exported graph does
            (updated inputs, then results), then the gradients.
        forward: By node, the node of the forward graph that it is.
        backward: By node, the node of the forward graph whose gradient it helps to make; of one
            that adds up gradients, the node whose result they are the gradients of.
        added: The nodes that add up gradients of a value that several ops took.
        tangents: The gradients of the results by name.
        gradients: By node and place among its results: what the gradient that it makes is called.
    """

    module: torch.fx.GraphModule
    forward: Mapping[torch.fx.Node, str]
    backward: Mapping[torch.fx.Node, str] = field(default_factory=dict)
    added: frozenset[torch.fx.Node] = frozenset()
    tangents: Mapping[str, InputSpec] = field(default_factory=dict)
    gradients: Mapping[torch.fx.Node, Mapping[int, str]] = field(default_factory=dict)


def updated_by(program: torch.export.ExportedProgram) -> dict[str, str]:
    """What an exported graph updates: by the node that has the new value, the placeholder.

    In the order in which the graph returns the values, before anything else.
    """
    signature = program.graph_signature
    holders = {target: name for name, target in signature.inputs_to_buffers.items()}
    kinds = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
    return {
        str(spec.arg.name): holders.get(str(spec.target), str(spec.target))
        for spec in signature.output_specs
        if spec.kind in kinds
    }


def forward_only(program: torch.export.ExportedProgram) -> Joint:
    """The forward graph as it is."""
    module = program.graph_module
    return Joint(module=module, forward={node: node.name for node in module.graph.nodes})


def joint_graph(
    program: torch.export.ExportedProgram, inputs: Sequence[str], differentiated: Sequence[str]
) -> Joint:
    """Trace forward and backward.

    Args:
        program: The captured forward pass.
        inputs: Names of its inputs, in order.
        differentiated: Those of them whose gradients are wanted.

    Raises:
        RuntimeError: A result does not depend on any of these, or an operator has no gradient.
    """
    forward = program.graph_module
    placeholders = [node for node in forward.graph.nodes if node.op == "placeholder"]
    fake = [node.meta["val"] for node in placeholders]
    n_updated = len(updated_by(program))
    wanted = [name in differentiated for name in inputs]
    mode = fake[0].fake_mode
    with mode, torch.autograd.set_multithreading_enabled(False), _keeping_meta():
        roots = _differentiable(_results(forward, fake, wanted)[n_updated:])
        tangents = {
            _tangent_name(place, len(roots)): torch.empty_like(root, requires_grad=False)
            for place, root in enumerate(roots)
        }

        def both(*given: torch.Tensor) -> tuple[Any, ...]:
            primals = [
                value.detach().requires_grad_() if is_wanted else value
                for value, is_wanted in zip(given, wanted, strict=False)
            ]
            with torch.enable_grad():
                results = _Marking(forward).run(*primals)
                roots = _differentiable(results[n_updated:])
                leaves = [p for p, is_wanted in zip(primals, wanted, strict=True) if is_wanted]
                gradients = torch.autograd.grad(roots, leaves, given[len(primals) :])
            return (*results, *gradients)

        traced = make_fx(both, decomposition_table={}, tracing_mode="real")(
            *fake, *tangents.values()
        )
    marks = _taken_marks(traced)
    inputs_called = dict(zip(differentiated, _names_of(placeholders, wanted), strict=True))
    gradients = _gradients(traced, differentiated)
    added = {
        node: _taker(node, marks[_BACKWARD], marks[_ADDED], gradients, inputs_called)
        for node in marks[_ADDED]
    }
    return Joint(
        module=traced,
        forward=marks[_FORWARD],
        backward=marks[_BACKWARD] | added,
        added=frozenset(added),
        tangents={
            name: InputSpec(shape=tuple(value.shape), dtype=value.dtype)
            for name, value in tangents.items()
        },
        gradients={
            node: {place: f"grad_{name}" for place, name in names.items()}
            for node, names in gradients.items()
        },
    )


def holder(node: torch.fx.Node) -> torch.fx.Node:
    """The op or input whose memory a node's value lies in: views and getitem are seen through."""
    while node.op == "call_function" and is_view(node.target):
        node = node.all_input_nodes[0]
    return node


def place_of(node: torch.fx.Node) -> int:
    """Which of an operator's results a ``getitem`` takes; 0 for any other node."""
    place = node.args[1] if node.target is operator.getitem else 0
    return place if isinstance(place, int) else 0


class _Marking(torch.fx.Interpreter):
    """Runs the forward graph; what is traced meanwhile, and later of its gradients, is marked."""

    def run_node(self, n: torch.fx.Node) -> Any:
        n.meta["custom"] = {_FORWARD: n.name}
        value = super().run_node(n)
        meta = _backward_meta(n)
        for result in value if isinstance(value, tuple | list) else (value,):
            if n.op == "call_function" and getattr(result, "grad_fn", None) is not None:
                result.grad_fn.register_prehook(lambda _gradients: _set_meta(meta))
                # What autograd runs between gradient functions adds up gradients.
                result.grad_fn.register_hook(lambda _made, _given: _set_meta(_adding_meta()))
        return value


def _set_meta(meta: dict[str, Any]) -> None:
    """Have the nodes that are traced from now on carry this."""
    owner, name, _ = patch_point("torch.fx.traceback:current_meta")
    setattr(owner, name, meta)


def _backward_meta(node: torch.fx.Node) -> dict[str, Any]:
    kept = {name: node.meta[name] for name in ("stack_trace",) if name in node.meta}
    return {**kept, "custom": {_BACKWARD: holder(node).name}}


def _adding_meta() -> dict[str, Any]:
    return {"custom": {_ADDED: ""}}


def _taker(
    node: torch.fx.Node,
    backward: Mapping[torch.fx.Node, str],
    added: Mapping[torch.fx.Node, str],
    gradients: Mapping[torch.fx.Node, Mapping[int, str]],
    inputs: Mapping[str, str],
) -> str:
    """The forward node whose result's gradients a node adds up: who takes the sum tells."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found in gradients:
            return inputs[next(iter(gradients[found].values()))]
        if found in backward:
            return backward[found]
        waiting.extend(found.users)
    return ""


def _names_of(nodes: Sequence[torch.fx.Node], wanted: Sequence[bool]) -> list[str]:
    return [node.name for node, is_wanted in zip(nodes, wanted, strict=True) if is_wanted]


def _keeping_meta() -> Any:
    return internal("torch.fx.traceback:preserve_node_meta")()


def _results(
    module: torch.fx.GraphModule, inputs: Sequence[Any], wanted: Sequence[bool]
) -> tuple[Any, ...]:
    with torch.enable_grad():
        primals = [
            value.detach().requires_grad_() if is_wanted else value
            for value, is_wanted in zip(inputs, wanted, strict=True)
        ]
        results: tuple[Any, ...] = tuple(torch.fx.Interpreter(module).run(*primals))
    return results


def _differentiable(values: Sequence[Any]) -> list[torch.Tensor]:
    return [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad]


def _tangent_name(place: int, n_results: int) -> str:
    return "grad_output" if n_results == 1 else f"grad_output{place + 1}"


def _taken_marks(module: torch.fx.GraphModule) -> dict[str, dict[torch.fx.Node, str]]:
    """The marks by kind and node; they are removed, since compilers hash them."""
    found: dict[str, dict[torch.fx.Node, str]] = {_FORWARD: {}, _BACKWARD: {}, _ADDED: {}}
    for node in module.graph.nodes:
        for key, name in (node.meta.pop("custom", None) or {}).items():
            found[key][node] = name
    return found


def _gradients(
    module: torch.fx.GraphModule, names: Sequence[str]
) -> dict[torch.fx.Node, dict[int, str]]:
    """The names of those that the gradients are of, by the nodes that make them."""
    [output] = [node for node in module.graph.nodes if node.op == "output"]
    returned = list(output.args[0])[-len(names) :]
    found: dict[torch.fx.Node, dict[int, str]] = {}
    for gradient, name in zip(returned, names, strict=True):
        node, place = gradient, 0
        while isinstance(node, torch.fx.Node) and is_view(node.target):
            place = place_of(node)
            node = node.all_input_nodes[0]
        if isinstance(node, torch.fx.Node) and node.op == "call_function":
            found.setdefault(node, {}).setdefault(place, name)
    return found
