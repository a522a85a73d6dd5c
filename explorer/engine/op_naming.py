"""Names for the ops of code that nobody described: by the ATen operator, repeats numbered."""

from collections.abc import Container, Mapping, Sequence

import torch

from explorer.chains.descriptor import OpName
from explorer.model.aten_names import aten_names


def numbered(name: str, taken: Container[str]) -> str:
    """The name, with a number from 2 on if it is taken."""
    found, number = name, 2
    while found in taken:
        found = f"{name}{number}"
        number += 1
    return found


def operator_names(
    nodes: Sequence[torch.fx.Node], updates: Mapping[str, tuple[str, ...]]
) -> tuple[OpName, ...]:
    """A name for each compute node, in order: ``mul``, ``mul2``.

    Args:
        nodes: Of a captured graph.
        updates: By node name, the inputs that it writes in place.
    """
    names = aten_names([str(node.target) for node in nodes])
    return tuple(
        OpName(
            name=name,
            detail="",
            output=(updates.get(node.name) or (name,))[0],
            more_outputs=updates.get(node.name, ())[1:],
            in_place=bool(updates.get(node.name)),
        )
        for node, name in zip(nodes, names, strict=True)
    )
