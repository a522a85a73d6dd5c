"""Which part of a tensor an op reads, where it does not read all of it."""

import math
from collections.abc import Iterable

import torch

from explorer.engine.op_facts import picks
from explorer.model.opgraph import TensorPart
from explorer.model.tensor import Tensor


def reachable_bytes(value: torch.Tensor) -> int:
    """Bytes that a tensor's strides can reach: an axis of stride 0 counts once."""
    axes = zip(value.shape, value.stride(), strict=True)
    return math.prod(size for size, stride in axes if stride) * value.dtype.itemsize


def parts_read(
    node: torch.fx.Node, arguments: Iterable[tuple[torch.fx.Node, Tensor]]
) -> tuple[TensorPart, ...]:
    """What an op reads of tensors that it sees a part of, through views or by index.

    Args:
        node: The op.
        arguments: What it is given, each with the tensor in whose memory it lies.
    """
    parts: dict[Tensor, dict[str, int]] = {}
    for place, (argument, tensor) in enumerate(arguments):
        value = argument.meta.get("val")
        if not isinstance(value, torch.Tensor):
            continue
        part, n_bytes = _part_of(value), reachable_bytes(value)
        if place == 0 and picks(node.target):
            part = f"picked by {node.name}"
            n_bytes = node.meta["val"].numel() * value.dtype.itemsize
        parts.setdefault(tensor, {})[part] = min(n_bytes, tensor.n_bytes)
    return tuple(
        TensorPart(tensor=tensor.id, part=part, n_bytes=n_bytes)
        for tensor, found in parts.items()
        if max(found.values()) < tensor.n_bytes
        for part, n_bytes in found.items()
    )


def _part_of(value: torch.Tensor) -> str:
    """Which part of a tensor's memory a view of it shows, whatever the order of its axes."""
    axes = zip(value.shape, value.stride(), strict=True)
    shown = sorted((stride, size) for size, stride in axes if stride and size > 1)
    steps = " ".join(f"{size}/{stride}" for stride, size in shown)
    return f"{steps} from {value.storage_offset()}"
