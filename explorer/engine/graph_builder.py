"""Builds the op graph that people see from a captured ATen graph: ops, tensors and lines."""

import dataclasses
import linecache
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from explorer.chains.descriptor import OpName
from explorer.engine.chain_functions.base import DTYPE_NAMES
from explorer.engine.joint import place_of
from explorer.engine.module_paths import module_path
from explorer.engine.op_facts import flops_of, is_view, kind_of_node, nodes_read
from explorer.engine.prepared import CapturedNode
from explorer.engine.tensor_parts import parts_read, reachable_bytes
from explorer.model.errors import ExplorerError
from explorer.model.opgraph import Op, OpKind
from explorer.model.tensor import Tensor, TensorRole

_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in ')
_NAMED_RESULTS: dict[Any, tuple[str, ...]] = {
    torch.ops.aten.native_layer_norm.default: ("mean", "rstd"),
}
"""What an operator writes beside its result, used or not."""


class CaptureError(ExplorerError):
    """The captured graph is not the chain that the descriptor describes."""


def computes(node: torch.fx.Node) -> bool:
    """Whether a node is an op: no view, and no check of metadata, which has no result."""
    if node.op != "call_function" or is_view(node.target):
        return False
    return any(isinstance(value, torch.Tensor) for value in values_of(node))


def values_of(node: torch.fx.Node) -> tuple[Any, ...]:
    """A node's results, one by one."""
    value = node.meta.get("val")
    return tuple(value) if isinstance(value, tuple | list) else (value,)


@dataclass(slots=True)
class GraphBuilder:
    """Collects ops and tensors.

    Attributes:
        is_shown: Whether a file's lines are shown beside the ops, by its name in tracebacks; the
            innermost line of such a file is.
        tells_place: Say where the lines stand as well, as with code that is not built in.
        on_cuda: Whether the chain would run on a GPU.
        ops: So far.
        nodes: The graph's nodes that they are, alike.
        tensors: By id.
        held: Which tensors a node's results live in, one by one.
    """

    is_shown: Callable[[str], bool]
    on_cuda: bool
    tells_place: bool = False
    ops: list[Op] = field(default_factory=list)
    nodes: list[CapturedNode] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    held: dict[torch.fx.Node, tuple[str, ...]] = field(default_factory=dict)

    def add_inputs(self, module: torch.fx.GraphModule, names: Sequence[str]) -> None:
        """Add the inputs.

        Raises:
            CaptureError: The graph has another number of them.
        """
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        if len(placeholders) != len(names):
            raise CaptureError(
                f"The chain was captured with {len(placeholders)} inputs instead of {len(names)}."
            )
        for node, name in zip(placeholders, names, strict=True):
            self._add_tensor(name, node.meta["val"], TensorRole.INPUT)
            self.held[node] = (name,)

    def add_op(
        self,
        node: torch.fx.Node,
        name: OpName,
        *,
        updates: tuple[str, ...] = (),
        result_names: Mapping[int, str] = MappingProxyType({}),
        gradient_of: str | None = None,
        adds_gradients: bool = False,
    ) -> None:
        """Add a node as the op of that name.

        Args:
            node: Of the captured graph.
            name: What it is called.
            updates: The inputs that it writes in place.
            result_names: What its results after the first are called, by their place.
            gradient_of: Of the backward pass: the forward op or the input that it belongs to.
            adds_gradients: Of the backward pass: it adds up gradients.

        Raises:
            CaptureError: It does not update what its name says.
        """
        if updates != (name.outputs if name.in_place else ()):
            does = f"updates {' '.join(updates)}" if updates else "does not"
            raise CaptureError(
                f"{name.name} {'updates' if name.in_place else 'makes'} {' '.join(name.outputs)} "
                f"by its description, but the code {does}."
            )
        kind = kind_of_node(node)
        source = self._source(node)
        held = [(each, self.tensors[self._tensor_of(each)]) for each in nodes_read(node)]
        reads = tuple(dict.fromkeys(tensor.id for _, tensor in held))
        writes = self._results(node, name, kind, result_names)
        self.ops.append(
            Op(
                name=name.name,
                aten=str(node.target),
                kind=kind,
                reads=reads,
                writes=writes,
                flops=flops_of(node),
                detail=name.detail,
                source_line=None if source is None else source.text,
                source_place=None if source is None or not self.tells_place else source.place,
                is_backward=gradient_of is not None,
                parts=parts_read(node, held),
            )
        )
        self.nodes.append(
            CapturedNode(
                op=name.name,
                aten=str(node.target),
                source_line=None if source is None else source.line,
                source_file=None if source is None else source.file,
                module=module_path(node),
                node=node.name,
                updates=updates,
                is_backward=gradient_of is not None,
                gradient_of=gradient_of,
                adds_gradients=adds_gradients,
            )
        )

    def mark_outputs(self, module: torch.fx.GraphModule) -> None:
        """Give what the chain hands out its role."""
        [output] = [node for node in module.graph.nodes if node.op == "output"]
        for node in output.all_input_nodes:
            tensor = self.tensors[self._tensor_of(node)]
            if tensor.role is not TensorRole.INPUT:
                self.tensors[tensor.id] = _with_role(tensor, TensorRole.OUTPUT)

    def _results(
        self, node: torch.fx.Node, name: OpName, kind: OpKind, names: Mapping[int, str]
    ) -> tuple[str, ...]:
        """Name an op's results; those that it writes whether or not they are used come along."""
        if name.in_place:
            self.held[node] = name.outputs
            return name.outputs
        values = values_of(node)
        self._add_tensor(name.output, _as_written(node, values[0]), TensorRole.INTERMEDIATE)
        held = [name.output]
        written = [name.output]
        used = {user.args[1] for user in node.users if user.target is operator.getitem}
        called = name.more_outputs or _NAMED_RESULTS.get(node.target, ())
        for place, value in enumerate(values[1:], start=1):
            # Dropout on CUDA writes which elements it kept, one byte each, used or not; on a CPU
            # it is made of other ops and has no such result unless the backward pass needs it.
            is_kept = kind is OpKind.RANDOM and place == 1
            unused = is_kept and not self.on_cuda and place not in used
            if unused or not isinstance(value, torch.Tensor):
                held.append("")
                continue
            beside = names.get(place) or f"{name.output}_{place + 1}"
            if is_kept:
                beside = "keep"
            elif place <= len(called):
                beside = called[place - 1]
            role = TensorRole.INTERMEDIATE if place in used else TensorRole.WORKSPACE
            held.append(self._add_beside(beside, value, name, role))
            written.append(held[-1])
        self.held[node] = tuple(held)
        return tuple(written)

    def _add_beside(self, beside: str, value: torch.Tensor, name: OpName, role: TensorRole) -> str:
        """A tensor that an op writes beside its result; returns its id."""
        tensor_id = beside if beside not in self.tensors else f"{name.output}_{beside}"
        self._add_tensor(tensor_id, value, role)
        return tensor_id

    def _add_tensor(self, name: str, value: torch.Tensor, role: TensorRole) -> None:
        self.tensors[name] = Tensor(
            id=name,
            name=name,
            shape=tuple(value.shape),
            dtype=DTYPE_NAMES[value.dtype],
            n_bytes=reachable_bytes(value),
            role=role,
        )

    def _tensor_of(self, node: torch.fx.Node) -> str:
        """The tensor whose memory a node's value lies in: views and getitem are seen through."""
        place = 0
        while node not in self.held:
            place = place_of(node)
            node = node.all_input_nodes[0]
        held = self.held[node]
        return held[place] if place < len(held) else held[0]

    def _source(self, node: torch.fx.Node) -> "_Source | None":
        frames = [
            _Source(match["file"], int(match["line"]))
            for match in _FRAME.finditer(node.meta.get("stack_trace") or "")
            if self.is_shown(match["file"])
        ]
        return frames[-1] if frames else None


@dataclass(frozen=True, slots=True)
class _Source:
    """A line of code."""

    file: str
    line: int

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    @property
    def place(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


def _as_written(node: torch.fx.Node, value: torch.Tensor) -> torch.Tensor:
    """The result in the shape that the chain's code sees: a lone reshape of it is followed."""
    users = list(node.users)
    while len(users) == 1 and is_view(users[0].target):
        seen = users[0].meta.get("val")
        if not isinstance(seen, torch.Tensor) or not seen.is_contiguous():
            break
        if seen.numel() == value.numel():
            value = seen
        # A reshape back to batch × heads belongs to the reading matmul, not to this result.
        if users[0].target is not operator.getitem:
            break
        users = list(users[0].users)
    return value


def _with_role(tensor: Tensor, role: TensorRole) -> Tensor:
    return dataclasses.replace(tensor, role=role)
