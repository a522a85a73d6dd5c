"""What Inductor's scheduler decided for one graph: its nodes, its kernels, and its fusion log.

Everything is taken while code is generated and kept as plain data, so that it can be stored with a
compiled piece. What it means is read by ``measure/refusals.py``.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from explorer.engine.internals import internal

FUSION_LOG = "torch._inductor.scheduler:fusion_log"
_SAYS_NO = re.compile(r"cannot fuse")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class NodeKind(StrEnum):
    """What the scheduler makes of a node."""

    COMPUTED = "computed"
    """Generated code: loops over elements."""
    TEMPLATE = "template"
    """Generated from a template, such as a matmul that the autotuner picked."""
    EXTERN = "extern"
    """A call of something that is there already."""
    NOTHING = "nothing"
    """No code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledNode:
    """A node of the scheduler before fusion: one set of loops, or one call.

    Attributes:
        name: As the log calls it, e.g. ``op3``.
        kind: Generated loops, a template or a call.
        nodes: Names of the graph's nodes that it computes.
        value: The node whose value it stores, or a step on the way to it; None if unknown.
        is_reduction: Whether several elements become one.
        loops: Sizes of the loops over what it writes; on a GPU one number, their product.
        reduced: Sizes of the loops that are reduced.
        device: ``cpu`` or ``cuda:0``.
        buffers: Names of the buffers that it writes.
        reads: Names of the buffers that it reads, the graph's inputs among them.
        takes: Names of the scheduler's nodes that write those, itself left out.
        kernel: Name of the kernel it went into: the names of its nodes, joined.
        calls: What a call calls, e.g. ``extern_kernels.bmm``; empty for generated code.
    """

    name: str
    kind: NodeKind
    nodes: tuple[str, ...]
    value: str | None
    is_reduction: bool
    loops: tuple[str, ...]
    reduced: tuple[str, ...]
    device: str
    buffers: tuple[str, ...]
    reads: tuple[str, ...]
    takes: tuple[str, ...]
    kernel: str
    calls: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FusionNotes:
    """What was decided for one graph.

    Attributes:
        scheduled: By name, in the order in which they run.
        lines: What the log said against fusions, word by word, in order.
    """

    scheduled: dict[str, ScheduledNode]
    lines: tuple[str, ...]


class _Listener(logging.Handler):
    def __init__(self, note: Callable[[str], None]) -> None:
        super().__init__(logging.DEBUG)
        self._note = note

    def emit(self, record: logging.LogRecord) -> None:
        line = _COLOURS.sub("", record.getMessage())
        if _SAYS_NO.match(line):
            self._note(line)


@contextmanager
def listening(note: Callable[[str], None]) -> Iterator[None]:
    """Hear each line of the fusion log that says no, inside the ``with`` block.

    The log is as it was afterwards, and costs nothing then.

    Raises:
        InternalMovedError: There is no such log.
    """
    log: logging.Logger = internal(FUSION_LOG)
    level, propagates, disabled = log.level, log.propagate, log.disabled
    listener = _Listener(note)
    log.addHandler(listener)
    # Who has switched the log on still gets it; who has not is not to see it now.
    was_on = log.isEnabledFor(logging.DEBUG)
    log.setLevel(logging.DEBUG)
    log.propagate = propagates and was_on
    log.disabled = False
    try:
        yield
    finally:
        log.removeHandler(listener)
        log.setLevel(level)
        log.propagate, log.disabled = propagates, disabled


def fusion_notes(graph: Any, lines: list[str]) -> FusionNotes:
    """What the scheduler of a graph whose code is complete has decided."""
    scheduler = graph.scheduler
    kernels = [
        (kernel.get_name(), leaf) for kernel in scheduler.nodes for leaf in kernel.get_nodes()
    ]
    makers = {buffer: leaf.get_name() for _, leaf in kernels for buffer in leaf.get_buffer_names()}
    found = [_scheduled(kernel, leaf, makers) for kernel, leaf in kernels]
    return FusionNotes(scheduled={node.name: node for node in found}, lines=tuple(lines))


def _scheduled(kernel: str, leaf: Any, makers: dict[str, str]) -> ScheduledNode:
    kind = _kind(leaf)
    origin = leaf.node.get_origin_node() if leaf.node is not None else None
    loops, reduced = _loops(leaf)
    nodes = _computed(leaf, kind, origin)
    reads = tuple(dict.fromkeys(str(dependency.name) for dependency in leaf.read_writes.reads))
    own = leaf.get_name()
    takes = dict.fromkeys(makers[name] for name in reads if makers.get(name, own) != own)
    return ScheduledNode(
        name=own,
        kind=kind,
        nodes=nodes,
        # The compiler lists a node before those that it took into its loops.
        value=next(iter(nodes), None) if origin is None else origin.name,
        is_reduction=leaf.is_reduction(),
        loops=loops,
        reduced=reduced,
        device=str(leaf.get_device() or ""),
        buffers=tuple(leaf.get_buffer_names()),
        reads=reads,
        takes=tuple(takes),
        kernel=kernel,
        calls=_calls(leaf) if kind is NodeKind.EXTERN else "",
    )


def _kind(leaf: Any) -> NodeKind:
    if leaf.is_template():
        return NodeKind.TEMPLATE
    if leaf.is_extern():
        return NodeKind.EXTERN
    return NodeKind.COMPUTED if hasattr(leaf, "group") else NodeKind.NOTHING


def _computed(leaf: Any, kind: NodeKind, origin: Any) -> tuple[str, ...]:
    """The graph's nodes behind it; a call's or a template's are named after its inputs as well."""
    if leaf.node is None:
        return ()
    if kind is not NodeKind.COMPUTED and origin is not None:
        return (origin.name,)
    return tuple(node.name for node in leaf.node.get_origins())


def _loops(leaf: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    group = getattr(leaf, "group", None)
    if group is None:
        return (), ()
    _, (outer, inner) = group
    return _sizes(outer), _sizes(inner)


def _sizes(sizes: Any) -> tuple[str, ...]:
    each = sizes if isinstance(sizes, tuple | list) else (sizes,)
    return tuple(str(size) for size in each)


def _calls(leaf: Any) -> str:
    name = getattr(leaf.node, "python_kernel_name", None)
    if isinstance(name, str):
        return name
    operator = getattr(leaf.node, "op_overload", None)
    return "" if operator is None else str(operator)
