"""What stands in a functional ATen graph: which nodes compute, which are views, what is stored.

Views cost nothing. A result of an operator with several (``getitem``) belongs to the operator. A
``copy_`` onto an input at the graph's end stores what a node computes, and belongs to that node's
kernel.
"""

import operator
from collections.abc import Iterator, Mapping

import torch
from torch import fx

from explorer.engine.joint import place_of
from explorer.engine.op_facts import is_view

COPY = torch.ops.aten.copy_.default


def compute_nodes(module: fx.GraphModule) -> tuple[fx.Node, ...]:
    """The nodes that have to be in a group, in order: no views, and nothing that only stores."""
    return computing(module, updates_of(module))


def computing(module: fx.GraphModule, updates: Mapping[fx.Node, fx.Node]) -> tuple[fx.Node, ...]:
    """The same where it is known which nodes' values go into which inputs."""
    return tuple(
        node for node in module.graph.nodes if computes(node) and not is_folded(node, updates)
    )


def updates_of(module: fx.GraphModule) -> dict[fx.Node, fx.Node]:
    """By value that a node computes, the input that the graph stores it to with a ``copy_``.

    A store of anything else, of a view or of another input, is an op like others.
    """
    found: dict[fx.Node, fx.Node] = {}
    for node in module.graph.nodes:
        if not is_store(node):
            continue
        target, value = node.args[:2]
        alone = sum(is_store(user) and user.args[0] is target for user in target.users) == 1
        if alone and _is_result(value) and _alike(value, target) and value not in found:
            found[value] = target
    return found


def computes(node: fx.Node) -> bool:
    """Whether a node has to be in a group."""
    if node.op not in ("call_function", "call_module", "call_method"):
        return False
    return node.target is not operator.getitem and not folds(node)


def results_of(node: fx.Node) -> tuple[fx.Node, ...]:
    """The nodes that stand for an operator's results, in order: itself, or those that pick one."""
    if not isinstance(node.meta.get("val"), tuple | list):
        return (node,)
    picking = [user for user in node.users if user.target is operator.getitem]
    return tuple(sorted(picking, key=place_of))


def _is_result(node: fx.Node) -> bool:
    """Whether a node is the result of one that computes, or picks one of its results."""
    if node.target is operator.getitem:
        return computes(node.all_input_nodes[0])
    return computes(node)


def folds(node: fx.Node) -> bool:
    """Whether whoever needs a node's value does the node itself: a view, or a size."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return folds(node.all_input_nodes[0])
    # What has no result is there for what it does, such as an assertion.
    return is_view(node.target) or not (_has_tensor(node) or node.is_impure())


def is_store(node: fx.Node) -> bool:
    """Whether a node copies onto an input."""
    if node.target is not COPY:
        return False
    target, value = node.args[:2]
    return isinstance(target, fx.Node) and target.op == "placeholder" and isinstance(value, fx.Node)


def is_folded(node: fx.Node, updates: Mapping[fx.Node, fx.Node]) -> bool:
    """Whether a node is the store of a value that is written in place anyway."""
    return is_store(node) and updates.get(_node(node.args[1])) is node.args[0]


def flat(value: object) -> Iterator[object]:
    """The leaves of nested tuples and lists."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from flat(item)
    else:
        yield value


def attribute(module: torch.nn.Module, target: object) -> object:
    """What a ``get_attr`` node gets."""
    value: object = module
    for name in str(target).split("."):
        value = getattr(value, name)
    return value


def _node(value: object) -> fx.Node:
    if not isinstance(value, fx.Node):
        raise TypeError(f"{value} is no node")
    return value


def _has_tensor(node: fx.Node) -> bool:
    return any(isinstance(item, torch.Tensor) for item in flat(node.meta.get("val")))


def _alike(first: fx.Node, second: fx.Node) -> bool:
    a, b = first.meta.get("val"), second.meta.get("val")
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return False
    return (a.shape, a.dtype, a.device) == (b.shape, b.dtype, b.device)
