"""Own code without its randomness, to be compared: its captured graph with dropout taken out."""

import copy
import dataclasses
import operator
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from explorer.engine.capture import Captured
from explorer.engine.faults import NoReferenceError
from explorer.engine.joint import place_of
from explorer.engine.op_facts import is_attention, kind_of_node, set_dropout
from explorer.engine.own_code.whole import Whole
from explorer.engine.prepared import Returned
from explorer.model.opgraph import OpKind

_DROPOUT = torch.ops.aten.native_dropout.default
_VIEW = torch.ops.aten.view.default
_DROPOUT_BACKWARD = torch.ops.aten.native_dropout_backward.default


@dataclass(frozen=True, slots=True, kw_only=True)
class Calm:
    """Code without randomness.

    Attributes:
        function: Takes all inputs, in order.
        captured: The captured graph without the random ops.
    """

    function: "GraphFunction"
    captured: Captured


class GraphFunction:
    """A captured forward graph as a function: what it stores, it stores in its inputs."""

    def __init__(self, module: fx.GraphModule, targets: tuple[int, ...]) -> None:
        """Take the graph.

        Args:
            module: Returns what inputs become, then its results.
            targets: By place among the values that it returns first, the input that takes it.
        """
        self._module = module
        self._targets = targets

    def __call__(self, *inputs: torch.Tensor) -> Returned:
        """The results."""
        returned: tuple[Any, ...] = tuple(self._module(*inputs))
        for value, target in zip(returned, self._targets, strict=False):
            # Autograd is not to know: the backward pass may need what was there, which it saved.
            inputs[target].data.copy_(value.data)
        results = returned[len(self._targets) :]
        return tuple(value for value in results if isinstance(value, torch.Tensor))


def calm_of(captured: Captured, whole: Whole | None) -> Calm:
    """Take dropout out of a captured graph.

    Raises:
        NoReferenceError: The code draws other random numbers, or was not captured whole.
    """
    if whole is None:
        raise NoReferenceError(
            "There is no accuracy: the code draws random numbers, and these can be taken out of "
            "code only that is captured whole."
        )
    others = [
        str(node.target)
        for node in whole.forward.graph.nodes
        if kind_of_node(node) is OpKind.RANDOM
        and node.target is not _DROPOUT
        and not is_attention(node)
    ]
    if others:
        raise NoReferenceError(
            f"There is no accuracy: the code draws random numbers by {others[0]}, and only "
            "dropout can be taken out to compare it."
        )
    calm = without_dropout(whole.forward)
    put_plain_attention(calm)
    function = GraphFunction(calm, whole.update_targets)
    return Calm(function=function, captured=_calm_graph(captured))


def without_dropout(module: fx.GraphModule) -> fx.GraphModule:
    """The same graph, in which dropout hands on what it is given, forward and backward."""
    calm = copy.deepcopy(module)
    for node in list(calm.graph.nodes):
        if node.target is _DROPOUT_BACKWARD:
            node.replace_all_uses_with(node.args[0])
            calm.graph.erase_node(node)
    for node in list(calm.graph.nodes):
        if is_attention(node):
            set_dropout(node, 0.0)
        if node.target is not _DROPOUT:
            continue
        for user in list(node.users):
            is_kept = user.args[1] == 1
            user.replace_all_uses_with(
                _ones(user, node) if is_kept and user.users else node.args[0]
            )
            calm.graph.erase_node(user)
        calm.graph.erase_node(node)
    calm.recompile()
    return calm


def put_plain_attention(module: fx.GraphModule) -> None:
    """Put torch's attention in the place of the operators that it chose: some know no fp64.

    It may lay out its result in another order, which not every view of it takes.
    """
    for node in list(module.graph.nodes):
        if not is_attention(node):
            continue
        if not all(map(_takes_first, node.users)):
            continue
        names = [argument.name for argument in node.target._schema.arguments]
        given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        with module.graph.inserting_before(node):
            plain = module.graph.call_function(
                torch.ops.aten.scaled_dot_product_attention.default,
                (given["query"], given["key"], given["value"]),
                {
                    "attn_mask": given.get("attn_mask", given.get("attn_bias")),
                    "is_causal": given.get("is_causal", False),
                    "scale": given.get("scale"),
                    "enable_gqa": given.get("enable_gqa", False),
                },
            )
        plain.meta["val"] = node.meta["val"][0]
        for user in list(node.users):
            user.replace_all_uses_with(plain)
            module.graph.erase_node(user)
        module.graph.erase_node(node)
    for node in module.graph.find_nodes(op="call_function", target=_VIEW):
        node.target = torch.ops.aten.reshape.default
    module.recompile()


def _takes_first(node: fx.Node) -> bool:
    return node.target is operator.getitem and place_of(node) == 0


def _ones(kept: fx.Node, dropout: fx.Node) -> fx.Node:
    """What dropout keeps: everything."""
    with dropout.graph.inserting_before(dropout):
        ones = dropout.graph.call_function(
            torch.ops.aten.ones_like.default, (dropout.args[0],), {"dtype": torch.bool}
        )
    ones.meta["val"] = kept.meta["val"]
    return ones


def _calm_graph(captured: Captured) -> Captured:
    module = without_dropout(captured.graph_module)
    left = {node.name for node in module.graph.nodes}
    nodes = tuple(node for node in captured.nodes if node.node in left)
    kept = {node.op for node in nodes}
    graph = captured.graph
    return dataclasses.replace(
        captured,
        graph=dataclasses.replace(graph, ops=tuple(op for op in graph.ops if op.name in kept)),
        graph_module=module,
        nodes=nodes,
    )
