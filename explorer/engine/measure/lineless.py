"""Which op each node is, of code whose lines torch leaves out: that of torch's own modules."""

from collections.abc import Iterable, Sequence

from explorer.engine.measure.calls import packet_of
from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.prepared import CapturedNode

_Key = tuple[str, str]


def ops_by_module(nodes: Iterable[GraphNode], captured: Sequence[CapturedNode]) -> dict[str, str]:
    """The op by node name, by the module that both are in and the operator; else none.

    Several alike in one module are told by their order, where there are as many of both.

    Args:
        nodes: Those without a line, no views among them, in order.
        captured: The ops of the forward pass.
    """
    ops: dict[_Key, list[str]] = {}
    for each in captured:
        if each.source_file is None and each.module is not None:
            ops.setdefault((each.module, packet_of(each.aten)), []).append(each.op)
    calls: dict[_Key, dict[str, list[GraphNode]]] = {}
    for node in nodes:
        key = (node.module or "", packet_of(node.original_aten or node.target))
        if node.module is not None and key in ops:
            # An operator that was taken apart is of one call; one that was not is a call itself.
            call = node.source if packet_of(node.target) != key[1] else node.name
            calls.setdefault(key, {}).setdefault(call or node.name, []).append(node)
    return {
        node.name: op
        for key, found in calls.items()
        if len(found) == len(ops[key])
        for op, call in zip(ops[key], found.values(), strict=True)
        for node in call
    }
