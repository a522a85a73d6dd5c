"""Makes the graph of one group of a partition."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx

from explorer.engine.aten_graph import COPY, attribute, is_store
from explorer.engine.data_flow import DataFlow

MARK = "explorer_op"
"""Where a node of a piece keeps its place in ``Piece.nodes``: in ``meta["custom"]``, which the
compiler hands on to everything that it makes of the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A group as a graph of its own.

    Attributes:
        nodes: The compute nodes that it carries out, in the whole graph's order.
        module: Takes ``inputs``, returns a tuple of ``outputs``.
        inputs: Nodes of the whole graph: placeholders, constants, results of earlier pieces.
        outputs: Nodes of the whole graph whose values others need.
        updated: Those of ``inputs`` that it writes in place.
    """

    nodes: tuple[fx.Node, ...]
    module: fx.GraphModule
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]
    updated: tuple[fx.Node, ...] = ()


def build_piece(flow: DataFlow, place: int, crossing: Sequence[fx.Node]) -> Piece:
    """The graph of a group.

    Args:
        flow: The whole graph with its groups.
        place: Which group.
        crossing: The values that have to leave the group that makes them.
    """
    return _Builder(flow, place).build(crossing)


class _Builder:
    def __init__(self, flow: DataFlow, place: int) -> None:
        self._flow = flow
        self._place = place
        self._nodes = flow.groups[place]
        self._graph = fx.Graph()
        self._attributes = torch.nn.Module()
        self._made: dict[fx.Node, fx.Node] = {}
        self._inputs: dict[fx.Node, fx.Node] = {}
        self._computed: dict[fx.Node, fx.Node] = {}
        self._stored = self._stores()

    def build(self, crossing: Sequence[fx.Node]) -> Piece:
        flow = self._flow
        written = [*self._stored, *(node for node in self._nodes if is_store(node))]
        updated = [flow.updates[value] for value in sorted(written, key=flow.order.__getitem__)]
        for node in self._nodes:
            for value in flow.reads(node):
                if flow.maker(value) != self._place:
                    self._add_input(value)
        for target in updated:
            self._add_input(target)
        outputs = tuple(value for value in crossing if flow.maker(value) == self._place)
        for number, node in enumerate(self._nodes):
            self._computed[node] = self._made[node] = self._graph.node_copy(node, self._get)
            self._made[node].meta = _meta(node, number)
            for value in [value for value, last in self._stored.items() if last is node]:
                self._store(value)
        # An updated value that leaves all the same does so because the input will be overwritten.
        left = [self._computed.get(v) or self._get(v) for v in outputs]
        self._graph.output(tuple(left))
        return Piece(
            nodes=self._nodes,
            module=fx.GraphModule(self._attributes, self._graph, class_name="Piece"),
            inputs=tuple(self._inputs),
            outputs=outputs,
            updated=tuple(dict.fromkeys(updated)),
        )

    def _stores(self) -> dict[fx.Node, fx.Node]:
        """By value that goes to an input's memory, the node behind which it may do so.

        Of several updates of one input only the last is stored, and not before the last of the
        group's nodes that reads what the input held when the group began.
        """
        flow, stored = self._flow, dict[fx.Node, fx.Node]()
        for versions in flow.versions.values():
            mine = [v for v in versions[1:] if flow.maker(v) == self._place and not is_store(v)]
            if mine:
                old = versions[versions.index(mine[0]) - 1]
                readers = [node for node in self._nodes if old in flow.reads(node)]
                made_by = flow.computed_by(mine[-1])
                stored[mine[-1]] = max([made_by, *readers], key=flow.order.__getitem__)
        return stored

    def _store(self, value: fx.Node) -> None:
        """Put a value into the input's memory; what follows takes it from there."""
        target = self._flow.updates[value]
        computed = self._computed[value] = self._get(value)
        stored = self._graph.call_function(COPY, (self._inputs[target], computed))
        stored.meta = {**computed.meta, "val": target.meta["val"]}
        self._made[value] = stored

    def _add_input(self, value: fx.Node) -> None:
        """Take a value from where it lies when the group runs."""
        held = self._flow.updates.get(value, value)
        if self._flow.is_graph(held):
            return
        if held not in self._inputs:
            placeholder = self._graph.placeholder(held.name)
            known = held.meta.get("val")
            if known is None and held.op == "get_attr":
                known = attribute(self._flow.module, held.target)
            placeholder.meta = {"val": known}
            self._inputs[held] = self._made[held] = placeholder
        self._made[value] = self._inputs[held]

    def _get(self, node: fx.Node) -> fx.Node:
        if node not in self._made:
            if is_store(node):
                return self._get(node.all_input_nodes[1])
            copied = self._graph.node_copy(node, self._get)
            copied.meta = _meta(node, None)
            if node.op == "get_attr":
                self._take_attribute(str(node.target))
            self._made[node] = copied
        return self._made[node]

    def _take_attribute(self, target: str) -> None:
        """Take over a graph that an operator takes."""
        owner = self._attributes
        *path, last = target.split(".")
        for name in path:
            if not hasattr(owner, name):
                owner.add_module(name, torch.nn.Module())
            owner = getattr(owner, name)
        setattr(owner, last, attribute(self._flow.module, target))


def _meta(node: fx.Node, number: int | None) -> dict[str, object]:
    """What a piece's node keeps: what the compiler needs, the user's line, and its place."""
    kept: dict[str, object] = {
        key: node.meta[key] for key in ("val", "stack_trace", "original_aten") if key in node.meta
    }
    if number is not None:
        kept["custom"] = {MARK: number}
    return kept
