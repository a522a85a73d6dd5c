"""Which ops of the backward pass calls and nodes are: the captured backward pass tells.

It was traced by the same autograd as runs, so its ops come in the order in which eager calls them.
A compiler's nodes carry autograd's number of the forward operator whose gradient they help to make;
among the nodes of one forward op the operator tells, and where several are alike, their order.
"""

from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from explorer.engine.measure.calls import RecordedCall, packet_of
from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.prepared import CapturedNode

_Key = tuple[str, str]
"""A forward op, and an operator of its backward pass."""


def eager_backward_ops(
    calls: Sequence[RecordedCall], captured: Sequence[CapturedNode]
) -> list[str | None]:
    """The op of each eager call of a backward pass, None where it is not known.

    Args:
        calls: In order.
        captured: The ops of the backward pass, in order.
    """
    found: list[str | None] = [None] * len(calls)
    called = [packet_of(call.name) for call in calls]
    known = [packet_of(each.aten) for each in captured]
    for how, c0, c1, k0, k1 in SequenceMatcher(None, called, known, autojunk=False).get_opcodes():
        # Eager may run an op by another operator: on a CPU dropout's gradient is a product.
        if how == "equal" or (how == "replace" and c1 - c0 == k1 - k0):
            found[c0:c1] = [each.op for each in captured[k0:k1]]
        elif how == "replace" and k1 - k0 == 1:
            found[c0:c1] = [captured[k0].op] * (c1 - c0)
    return _with_the_rest(found, called, captured)


def _with_the_rest(
    found: Sequence[str | None], called: Sequence[str], captured: Sequence[CapturedNode]
) -> list[str | None]:
    """Calls out of order, as another way to write the chain has them: one op left can be it."""
    left = [each for each in captured if each.op not in found]
    rest = list(found)
    for place, operator in enumerate(called):
        alike = [each.op for each in left if packet_of(each.aten) == operator]
        if rest[place] is None and len(alike) == 1:
            rest[place] = alike[0]
    return rest


def compiled_backward_ops(
    nodes: Iterable[GraphNode],
    captured: Sequence[CapturedNode],
    forward: Mapping[int, str],
) -> dict[str, str]:
    """The op of each node of a compiled backward graph, by node name, as far as it is known.

    Args:
        nodes: Of one graph, in order; nodes of the forward pass are left alone.
        captured: The ops of the backward pass, in order.
        forward: The forward op by autograd's number.
    """
    ours = [node for node in nodes if node.is_backward and not node.is_view]
    found = dict(_sums(ours, captured))
    ops: dict[_Key, list[str]] = {}
    for each in captured:
        if not each.adds_gradients and each.gradient_of is not None:
            ops.setdefault((each.gradient_of, packet_of(each.aten)), []).append(each.op)
    for key, same in _by_origin(ours, forward).items():
        there = ops.get(key, [])
        if len(there) == 1:
            found.update(dict.fromkeys((node.name for node in same), there[0]))
        elif len(there) == len(same):
            found.update(zip((node.name for node in same), there, strict=True))
    return found


def _sums(
    nodes: Sequence[GraphNode], captured: Sequence[CapturedNode]
) -> Iterable[tuple[str, str]]:
    """Nodes that add up gradients, where there are as many as the chain has."""
    there = [each.op for each in captured if each.adds_gradients]
    seen = [node.name for node in nodes if node.adds_gradients]
    return zip(seen, there, strict=True) if len(seen) == len(there) else ()


def _by_origin(
    nodes: Sequence[GraphNode], forward: Mapping[int, str]
) -> dict[_Key, list[GraphNode]]:
    found: dict[_Key, list[GraphNode]] = {}
    for node in nodes:
        origin = forward.get(-1 if node.sequence is None else node.sequence)
        if origin is not None and not node.adds_gradients:
            operator = packet_of(node.original_aten or node.target)
            found.setdefault((origin, operator), []).append(node)
    return found
