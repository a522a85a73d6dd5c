"""Which op each node is, of a line that runs several times and that the compiler takes apart."""

from collections.abc import Sequence

from explorer.engine.measure.calls import packet_of
from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.prepared import CapturedNode


def ops_of_repeats(nodes: Sequence[GraphNode], captured: Sequence[CapturedNode]) -> dict[str, str]:
    """The op by node name, where every run of the line left the same operators; else none.

    Dynamo makes several operators of some methods, such as ``addcmul_`` with a value, and no node
    names the method then. What a compiler puts behind them, such as the copy into an input that is
    updated, belongs to the op whose value it takes.

    Args:
        nodes: Those of the line, in order.
        captured: The ops of the line, in order.
    """
    if len({packet_of(each.aten) for each in captured}) != 1:
        return {}
    calls: dict[str, list[GraphNode]] = {}
    for node in nodes:
        if node.source is not None:
            calls.setdefault(node.source, []).append(node)
    left = list(calls.values())
    length, rest = divmod(len(left), len(captured))
    did = [[node.target for node in call] for call in left]
    if rest or did != did[:length] * len(captured):
        return {}
    found = {
        node.name: captured[place // length].op for place, call in enumerate(left) for node in call
    }
    for node in nodes:
        taken = {found[name] for name in node.inputs if name in found}
        if node.name not in found and len(taken) == 1:
            found[node.name] = taken.pop()
    return found
