"""Splits a functional ATen graph into one graph for each group of its nodes.

It takes any such graph: an exported chain, or what AOTAutograd hands to a compiler for forward and
backward. Each piece does anew the views that it needs. What the code updates in place is written
in place by the piece that computes it, once. A graph says in one of two ways that an input is
updated: the caller names the node whose value the input takes, or the graph ends with a ``copy_``
onto the input.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from explorer.engine.aten_graph import attribute, compute_nodes, folds, updates_of
from explorer.engine.data_flow import DataFlow, PartitionError
from explorer.engine.piece_builder import MARK, Piece, build_piece

PieceCall = Callable[[list[Any]], Sequence[Any]]
"""A piece that runs: takes the values of its inputs, and may empty the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """A graph in pieces.

    Attributes:
        pieces: In an order in which each finds what it needs.
        placeholders: The whole graph's inputs, in order.
        constants: The tensors that pieces take without their being given or computed.
        results: What the whole graph returns, flattened: values of pieces, inputs, or constants
            such as None. An input that is updated stands for its new value.
        tail: Makes the results of ``tail_inputs`` where some are views of those; else None.
        tail_inputs: Nodes of the whole graph.
    """

    pieces: tuple[Piece, ...]
    placeholders: tuple[fx.Node, ...]
    constants: dict[fx.Node, torch.Tensor]
    results: tuple[object, ...]
    tail: fx.GraphModule | None = None
    tail_inputs: tuple[fx.Node, ...] = ()


def split(
    module: fx.GraphModule,
    groups: Iterable[Iterable[fx.Node]],
    updates: Mapping[fx.Node, fx.Node] | None = None,
) -> Partition:
    """Split a graph.

    Args:
        module: Functional but for ``copy_`` onto its inputs; not changed.
        groups: Disjoint groups of its compute nodes; those in none stay alone.
        updates: By compute node, the input that the code writes its value to in place. Left out,
            they are those that the graph itself stores.

    Raises:
        PartitionError: Groups wait for each other.
    """
    held = [tuple(group) for group in groups]
    if updates is not None:
        return _partition(DataFlow(module, held, updates))
    stores = updates_of(module)
    try:
        return _partition(DataFlow(module, held, stores))
    except PartitionError:
        if not stores:
            raise
        # Who reads the old values may have to wait for the new ones. Only then are these kept in
        # memory of their own, and stored at the end.
        return _partition(DataFlow(module, held, _harmless(module, held, stores)))


def _harmless(
    module: fx.GraphModule, groups: Iterable[Iterable[fx.Node]], stores: dict[fx.Node, fx.Node]
) -> dict[fx.Node, fx.Node]:
    """The stores that these groups have room for."""
    kept: dict[fx.Node, fx.Node] = {}
    for value, target in stores.items():
        try:
            DataFlow(module, groups, {**kept, value: target}).run_order()
        except PartitionError:
            continue
        kept[value] = target
    return kept


def _partition(flow: DataFlow) -> Partition:
    order = flow.run_order()
    crossing = flow.crossing()
    pieces = tuple(build_piece(flow, place, crossing) for place in order)
    results = tuple(
        flow.in_memory_of(value) if isinstance(value, fx.Node) else value for value in flow.results
    )
    tail, tail_inputs = _tail(flow, results)
    taken = {node for piece in pieces for node in piece.inputs} | set(tail_inputs)
    taken |= {value for value in results if isinstance(value, fx.Node)}
    constants = {n: attribute(flow.module, n.target) for n in taken if n.op == "get_attr"}
    return Partition(
        pieces=pieces,
        placeholders=tuple(n for n in flow.module.graph.nodes if n.op == "placeholder"),
        constants={n: value for n, value in constants.items() if isinstance(value, torch.Tensor)},
        results=results,
        tail=tail,
        tail_inputs=tail_inputs,
    )


def _tail(
    flow: DataFlow, results: Sequence[object]
) -> tuple[fx.GraphModule | None, tuple[fx.Node, ...]]:
    """A graph for the results, where some are views."""
    nodes = [value for value in results if isinstance(value, fx.Node)]
    if not any(folds(node) for node in nodes):
        return None, ()
    graph = fx.Graph()
    sources = (flow.in_memory_of(s) for node in nodes for s in flow.sources(node))
    inputs = {source: graph.placeholder(source.name) for source in dict.fromkeys(sources)}
    made = dict(inputs)

    def get(node: fx.Node) -> fx.Node:
        held = flow.in_memory_of(node)
        if held not in made:
            made[held] = graph.node_copy(held, get)
        return made[held]

    returned: tuple[Any, ...] = tuple(get(v) if isinstance(v, fx.Node) else v for v in results)
    graph.output(returned)
    return fx.GraphModule(torch.nn.Module(), graph, class_name="Tail"), tuple(inputs)


class PiecewiseCall:
    """Runs the pieces of a partition one after the other; a value is let go when last used."""

    def __init__(self, partition: Partition, calls: Sequence[PieceCall]) -> None:
        """Work out once what goes where.

        Args:
            partition: The graph in pieces.
            calls: One a piece.
        """
        slots: dict[fx.Node, int] = {}

        def slot(node: fx.Node) -> int:
            return slots.setdefault(node, len(slots))

        for node in partition.placeholders:
            slot(node)
        self._n_inputs = len(slots)
        kept = {slot(node) for node in partition.constants}
        results = partition.results if partition.tail is None else partition.tail_inputs
        self._results = [(slot(v), None) if isinstance(v, fx.Node) else (None, v) for v in results]
        kept |= {place for place, _ in self._results if place is not None}
        self._steps = [
            (
                call,
                [slot(n) for n in piece.inputs],
                [(slot(n), number) for number, n in enumerate(piece.outputs)],
            )
            for call, piece in zip(calls, partition.pieces, strict=True)
        ]
        last = {place: step for step, (_, taken, _) in enumerate(self._steps) for place in taken}
        self._freed = [
            [place for place in taken if last[place] == step and place not in kept]
            for step, (_, taken, _) in enumerate(self._steps)
        ]
        self._tail = partition.tail
        self._empty: list[Any] = [None] * len(slots)
        for node, value in partition.constants.items():
            self._empty[slots[node]] = value

    def __call__(self, *inputs: Any) -> list[Any]:
        """The whole graph's results, flattened."""
        return self.emptying(list(inputs))

    def emptying(self, inputs: list[Any]) -> list[Any]:
        """The same, of inputs in a list that is emptied, so that they too go when last used."""
        values = self._empty.copy()
        values[: self._n_inputs] = inputs
        inputs.clear()
        for (call, taken, made), freed in zip(self._steps, self._freed, strict=True):
            given = [values[place] for place in taken]
            for place in freed:
                values[place] = None
            computed = call(given)
            for place, number in made:
                values[place] = computed[number]
            # Else it would be held while the next piece runs.
            del computed
        results = [value if place is None else values[place] for place, value in self._results]
        return results if self._tail is None else list(self._tail(*results))


__all__ = [
    "MARK",
    "Partition",
    "PartitionError",
    "Piece",
    "PieceCall",
    "PiecewiseCall",
    "compute_nodes",
    "split",
    "updates_of",
]
