"""Which ops of the backward pass calls and nodes are: the captured backward pass tells.

It was traced by the same autograd as runs, so its ops come in the order in which eager calls them.
A compiler's nodes carry autograd's number of the forward operator whose gradient they help to make;
among the nodes of one forward op the operator tells, where several are alike their order, and where
the compiler left some out, what they pass on to which.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from explorer.engine.measure.calls import RecordedCall, packet_of
from explorer.engine.measure.observe_compile import GraphNode
from explorer.engine.prepared import CapturedNode
from explorer.model.opgraph import OpGraph
from explorer.model.tensor import TensorRole

_MATMULS = {"aten.mm", "aten.bmm", "aten.addmm", "aten.baddbmm", "aten.mv", "aten.addmv"}


def ops_in_order(
    calls: Sequence[RecordedCall], captured: Sequence[CapturedNode]
) -> list[str | None]:
    """The op of each eager call by the order of their operators, None where it is not known.

    Args:
        calls: In order, such as those of a backward pass.
        captured: The ops that they carry out, in order.
    """
    found: list[str | None] = [None] * len(calls)
    called = [packet_of(call.name).removesuffix("_") for call in calls]
    known = [packet_of(each.aten) for each in captured]
    for how, c0, c1, k0, k1 in SequenceMatcher(None, called, known, autojunk=False).get_opcodes():
        # Eager may run an op by another operator: on a CPU dropout's gradient is a product.
        if how == "equal" or (how == "replace" and c1 - c0 == k1 - k0):
            found[c0:c1] = [each.op for each in captured[k0:k1]]
        elif how == "replace" and k1 - k0 == 1:
            found[c0:c1] = [captured[k0].op] * (c1 - c0)
        elif how == "replace":
            # A batch of matmuls may run as one that sums up over the batch as well.
            run = [place for place in range(c0, c1) if called[place] in _MATMULS]
            meant = [each.op for each in captured[k0:k1] if packet_of(each.aten) in _MATMULS]
            if len(run) == len(meant):
                for place, op in zip(run, meant, strict=True):
                    found[place] = op
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
    nodes: Mapping[str, GraphNode],
    captured: Sequence[CapturedNode],
    graph: OpGraph,
    forward: Mapping[int, str],
) -> dict[str, str]:
    """The op of each node of a compiled backward graph, by node name, as far as it is known.

    Args:
        nodes: Of one graph, in order; nodes of the forward pass are left alone.
        captured: The ops of the backward pass, in order.
        graph: The chain's.
        forward: The forward op by autograd's number.
    """
    if not any(node.is_backward for node in nodes.values()):
        return {}
    search = _Search(nodes=nodes, captured=captured, graph=graph, forward=forward)
    search.by_origin()
    search.by_flow()
    return search.found


@dataclass(slots=True, kw_only=True)
class _Search:
    """Finds the ops of a graph's nodes, the plain cases first.

    Attributes:
        nodes: Of the compiled graph.
        captured: The ops of the backward pass.
        graph: The chain's.
        forward: The forward op by autograd's number.
        found: The op by node name, so far.
    """

    nodes: Mapping[str, GraphNode]
    captured: Sequence[CapturedNode]
    graph: OpGraph
    forward: Mapping[int, str]
    found: dict[str, str] = field(default_factory=dict)

    def by_origin(self) -> None:
        """Nodes of one operator for one forward op: as many as the chain has, in that order."""
        together: dict[tuple[str, ...], list[str]] = {}
        for node in self._open():
            if node.is_backward:
                together.setdefault(tuple(self._could_be(node)), []).append(node.name)
        for ops, names in together.items():
            if len(ops) == 1:
                self.found.update(dict.fromkeys(names, ops[0]))
            elif len(ops) == len(names):
                self.found.update(zip(names, ops, strict=True))

    def by_flow(self) -> None:
        """Nodes that several ops could be, or that nothing is known of: what they pass on tells."""
        is_new = True
        while is_new:
            is_new = False
            for node in self._open():
                ops = self._could_be(node)
                if not ops and not _is_known(node):
                    told = set(self.found.values())
                    ops = [each.op for each in self.captured if each.op not in told]
                fitting = [op for op in ops if self._fits(node, op)]
                if len(fitting) == 1:
                    self.found[node.name] = fitting[0]
                    is_new = True

    def _open(self) -> list[GraphNode]:
        return [
            node
            for node in self.nodes.values()
            if node.name not in self.found
            and not node.is_view
            and "." in node.target
            and (node.is_backward or not _is_known(node))
        ]

    def _could_be(self, node: GraphNode) -> list[str]:
        """Ops of the node's operator that belong to the forward op, or the line, that it does."""
        if node.adds_gradients:
            return [each.op for each in self.captured if each.adds_gradients]
        operator = packet_of(node.original_aten or node.target)
        origin = self.forward.get(-1 if node.sequence is None else node.sequence)
        return [
            each.op
            for each in self.captured
            if packet_of(each.aten) == operator
            and not each.adds_gradients
            and (
                each.gradient_of == origin
                if origin is not None
                else (each.source_file, each.source_line) in node.frames[-1:]
            )
        ]

    def _fits(self, node: GraphNode, name: str) -> bool:
        """Whether an op takes what a node takes, and who takes the node's value takes the op's."""
        [op] = [op for op in self.graph.ops if op.name == name]
        takers = {other.name for other in self.graph.ops if set(other.reads) & set(op.writes)}
        makers = {other.name for other in self.graph.ops if set(other.writes) & set(op.reads)}
        handed_out = any(self.graph.tensor(t).role is TensorRole.OUTPUT for t in op.writes)
        users, inputs = self._around(node, ahead=True), self._around(node, ahead=False)
        is_result = any(self.nodes[user].target == "output" for user in users)
        if is_result and not handed_out:
            return False
        taking = {self.found[user] for user in users if user in self.found} - {name}
        giving = {self.found[given] for given in inputs if given in self.found} - {name}
        is_told = bool(taking or giving or is_result)
        return is_told and taking <= takers and giving <= makers

    def _around(self, node: GraphNode, *, ahead: bool) -> set[str]:
        """The nodes next to a node, views seen through."""
        found: set[str] = set()
        waiting = list(node.users if ahead else node.inputs)
        while waiting:
            other = self.nodes.get(waiting.pop())
            if other is None:
                continue
            if other.is_view:
                waiting.extend(other.users if ahead else other.inputs)
            else:
                found.add(other.name)
        return found


def _is_known(node: GraphNode) -> bool:
    """Whether the compiler says what a node stems from."""
    return node.original_aten is not None
