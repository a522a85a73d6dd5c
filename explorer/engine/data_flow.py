"""Who makes, reads and overwrites what in a graph whose nodes are in groups; in which order to run.

An input that is updated holds several values one after the other: what was given, then what each
updating node writes. Whoever reads one of them must have run before the next is written.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import torch
from torch import fx

from explorer.engine.aten_graph import attribute, computing, flat, folds, is_folded, is_store
from explorer.model.errors import ExplorerError


class PartitionError(ExplorerError):
    """The groups cannot run one after the other; ``nodes`` are those of a circle of groups."""

    def __init__(self, circle: Sequence[Sequence[fx.Node]]) -> None:
        self.nodes = tuple(node for group in circle for node in group)
        names = " and ".join("+".join(node.name for node in group) for group in circle)
        super().__init__(f"The kernels {names} would wait for each other.")


class DataFlow:
    """A graph with groups.

    Attributes:
        module: The graph.
        order: Place of each node in it.
        groups: By place, each in the graph's order; every compute node is in one.
        updates: By value, the input whose memory it ends up in.
        versions: By updated input, what it holds one after the other: itself, then the values that
            are written to it.
        results: What the graph returns, flattened.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        groups: Iterable[Iterable[fx.Node]],
        updates: Mapping[fx.Node, fx.Node],
    ) -> None:
        """Find out.

        Args:
            module: A functional graph.
            groups: Disjoint groups of its compute nodes; those in none stay alone.
            updates: By compute node, or by what picks one of its results, the input that the value
                is written to in place.

        Raises:
            ValueError: A node is in two groups.
        """
        nodes = list(module.graph.nodes)
        own = computing(module, updates)
        self.module = module
        self.order = {node: place for place, node in enumerate(nodes)}
        self.groups = self._grouped(groups, own)
        self._group_of = {n: place for place, group in enumerate(self.groups) for n in group}
        self.results = tuple(flat(nodes[-1].args[0]))
        self.updates: dict[fx.Node, fx.Node] = {
            **updates,
            **{n: n.args[0] for n in nodes if is_store(n)},
        }
        self.versions: dict[fx.Node, list[fx.Node]] = {}
        for writer in sorted(self.updates, key=self.order.__getitem__):
            if self.maker(writer) is not None:
                target = self.updates[writer]
                self.versions.setdefault(target, [target]).append(writer)

    def _grouped(
        self, given: Iterable[Iterable[fx.Node]], own: Sequence[fx.Node]
    ) -> list[tuple[fx.Node, ...]]:
        known = set(own)
        groups = [tuple(sorted(set(g) & known, key=self.order.__getitem__)) for g in given]
        named = {node for group in groups for node in group}
        if sum(map(len, groups)) != len(named):
            raise ValueError("a node is in two groups")
        groups = [group for group in groups if group]
        groups += [(node,) for node in own if node not in named]
        return sorted(groups, key=lambda group: self.order[group[0]])

    def sources(self, node: fx.Node) -> tuple[fx.Node, ...]:
        """The values that a node's value comes from when views are seen through."""
        if is_folded(node, self.updates) and node not in self._group_of:
            return self.sources(node.all_input_nodes[1])
        if not folds(node):
            return (node,)
        found = (source for n in node.all_input_nodes for source in self.sources(n))
        return tuple(dict.fromkeys(found))

    def reads(self, node: fx.Node) -> tuple[fx.Node, ...]:
        """The values that a compute node reads."""
        inputs = [n for n in node.all_input_nodes if not (is_store(node) and n is node.args[0])]
        return tuple(dict.fromkeys(s for n in inputs for s in self.sources(n)))

    def maker(self, value: fx.Node) -> int | None:
        """The group that makes a value; None for an input or a constant."""
        return self._group_of.get(self.computed_by(value))

    def computed_by(self, value: fx.Node) -> fx.Node:
        """The compute node that a value is a result of; what it comes from if there is none."""
        while value.op == "call_function" and value not in self._group_of and value.all_input_nodes:
            value = value.all_input_nodes[0]
        return value

    def is_graph(self, node: fx.Node) -> bool:
        """Whether a node gets a graph, which an operator takes; not a tensor."""
        if node.op != "get_attr":
            return False
        return not isinstance(attribute(self.module, node.target), torch.Tensor)

    def in_memory_of(self, value: fx.Node) -> fx.Node:
        """When all has run: the input that holds an updated value, or the value's own node."""
        target: fx.Node | None = self.updates.get(value)
        if target is None or (self.versions[target][-1] is not value and not is_store(value)):
            return value
        return target

    def crossing(self) -> tuple[fx.Node, ...]:
        """Values that others than their makers need, and that no input's memory holds for them."""
        found: dict[fx.Node, None] = {}
        for node, place in self._group_of.items():
            for value in self.reads(node):
                if self.maker(value) not in (None, place) and value not in self.updates:
                    found[value] = None
        for result in self.results:
            for value in self.sources(result) if isinstance(result, fx.Node) else ():
                if self.maker(value) is not None and self.in_memory_of(value) is value:
                    found[value] = None
        return tuple(sorted(found, key=self.order.__getitem__))

    def run_order(self) -> list[int]:
        """The groups so that each comes behind what it waits for; the graph's order where free.

        Raises:
            PartitionError: There is no such order.
        """
        waits = self._waits()
        done: set[int] = set()
        order: list[int] = []
        while len(order) < len(self.groups):
            left = [place for place in range(len(self.groups)) if place not in done]
            ready = next((place for place in left if waits[place] <= done), None)
            if ready is None:
                raise PartitionError([self.groups[place] for place in _circle(waits, left, done)])
            done.add(ready)
            order.append(ready)
        return order

    def _waits(self) -> list[set[int]]:
        """For each group, those that must run before. Itself does not count."""
        waits: list[set[int]] = [set() for _ in self.groups]
        readers: dict[fx.Node, list[int]] = {}
        for node, place in self._group_of.items():
            for value in self.reads(node):
                readers.setdefault(value, []).append(place)
                made = self.maker(value)
                if made is not None:
                    waits[place].add(made)
        for versions in self.versions.values():
            for old, writer in pairwise(versions):
                waits[self._group_of[self.computed_by(writer)]].update(readers.get(old, ()))
                made = self.maker(old)
                if made is not None:
                    waits[self._group_of[self.computed_by(writer)]].add(made)
        return [needed - {place} for place, needed in enumerate(waits)]


def _circle(waits: Sequence[set[int]], left: Sequence[int], done: set[int]) -> list[int]:
    """Groups that wait for each other, each behind the one that it waits for."""
    way = [left[0]]
    while True:
        needed = min(waits[way[-1]] - done)
        if needed in way:
            return way[way.index(needed) :][::-1]
        way.append(needed)
