"""From a chain's code to its op graph, without running it and without any memory.

Strict export runs Dynamo over the code, so every node knows its source line. Nothing is decomposed
but what eager decomposes too (``matmul`` into ``bmm``), so the nodes are what eager launches.
"""

import dataclasses
import operator
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch

from explorer.chains.descriptor import OpName
from explorer.engine.chain_functions.base import DTYPE_NAMES, InputSpec
from explorer.engine.internals import internal, settings
from explorer.engine.op_facts import flops_of, is_view, kind_of
from explorer.engine.prepared import CapturedNode, ChainFunction, Returned
from explorer.model.errors import ExplorerError
from explorer.model.opgraph import Op, OpGraph, OpKind
from explorer.model.tensor import Tensor, TensorRole

_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in ')
_UPDATES = "updates"
"""Key of ``node.meta["custom"]``, which export carries over to what becomes of a node."""
_NAMED_RESULTS: dict[Any, tuple[str, ...]] = {
    torch.ops.aten.native_layer_norm.default: ("mean", "rstd"),
}
"""What an operator writes beside its result, used or not."""


class CaptureError(ExplorerError):
    """The captured graph is not the chain that the descriptor describes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What capture found; ``nodes`` are in the order of ``graph.ops``."""

    graph: OpGraph
    graph_module: torch.fx.GraphModule
    nodes: tuple[CapturedNode, ...]

    @property
    def updated(self) -> tuple[str, ...]:
        """The inputs that the chain updates in place, in the order of the ops that do."""
        return tuple(dict.fromkeys(node.updates for node in self.nodes if node.updates))


class _AsModule(torch.nn.Module):
    """Export takes modules only."""

    def __init__(self, function: ChainFunction) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Returned:
        return self.function(*inputs)


def capture(
    function: ChainFunction,
    input_specs: Mapping[str, InputSpec],
    op_names: Sequence[OpName],
    *,
    source_file: str,
    device: torch.device,
) -> Captured:
    """Capture the chain on fake inputs.

    Args:
        function: The chain.
        input_specs: Its inputs by name, in argument order.
        op_names: The ops it must consist of, in order.
        source_file: The file whose lines are shown beside the ops.
        device: Where it would run; nothing is allocated there.

    Raises:
        CaptureError: The compute nodes are not the ops named, or an input is updated in a way
            that the ops do not tell.
    """
    program = _export(function, input_specs, device)
    module = cast("torch.fx.GraphModule", program.graph_module)
    computing = [node for node in module.graph.nodes if _computes(node)]
    if len(computing) != len(op_names):
        raise CaptureError(
            f"The chain was captured as {len(computing)} ops "
            f"({', '.join(str(node.target) for node in computing)}), but its description names "
            f"{len(op_names)} ({', '.join(name.name for name in op_names)})."
        )
    builder = _Builder(source_file=source_file, on_cuda=device.type == "cuda")
    builder.add_inputs(module, tuple(input_specs))
    for node, name in zip(computing, op_names, strict=True):
        builder.add_op(node, name, updates=_taken_mark(node))
    builder.check_updates(program)
    builder.mark_outputs(module)
    graph = OpGraph(ops=tuple(builder.ops), tensors=tuple(builder.tensors.values()))
    return Captured(graph=graph, graph_module=module, nodes=tuple(builder.nodes))


def _export(
    function: ChainFunction, input_specs: Mapping[str, InputSpec], device: torch.device
) -> torch.export.ExportedProgram:
    fake_tensors = internal("torch._subclasses.fake_tensor:FakeTensorMode")
    with fake_tensors():
        inputs = tuple(
            torch.empty(spec.shape, dtype=spec.dtype, device=device)
            for spec in input_specs.values()
        )
    with (
        warnings.catch_warnings(),
        torch.no_grad(),
        settings("torch._dynamo.config", enable_dynamo_decompositions=False),
    ):
        # Export warns of deprecations in its own code, which differ between releases.
        warnings.simplefilter("ignore")
        program = torch.export.export(_AsModule(function), inputs, strict=True)
        _mark_updates(program, tuple(input_specs))
        program = program.run_decompositions(_eager_decompositions(program))
    return cast("torch.export.ExportedProgram", program)


def _mark_updates(program: torch.export.ExportedProgram, inputs: Sequence[str]) -> None:
    """Note on each node that works in place which input it updates.

    Decomposing makes the graph functional, and what was in place looks like any other op there.
    """
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    memory = dict(zip(placeholders, inputs, strict=False))
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        changed = _changed_argument(node, node.target)
        source = node.all_input_nodes[0] if is_view(node.target) else changed
        if source in memory:
            memory[node] = memory[source]
        if changed in memory:
            custom = {**node.meta.get("custom", {}), _UPDATES: memory[changed]}
            node.meta["custom"] = custom


def _changed_argument(node: torch.fx.Node, target: torch._ops.OpOverload) -> torch.fx.Node | None:
    """What an operator in place writes to, and returns."""
    for value, argument in zip(node.args, target._schema.arguments, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write:
            return value if isinstance(value, torch.fx.Node) else None
    return None


def _taken_mark(node: torch.fx.Node) -> str | None:
    """The input that a node updates; the mark is removed, since compilers hash it."""
    custom = dict(node.meta.get("custom") or {})
    updates: str | None = custom.pop(_UPDATES, None)
    if updates is not None:
        node.meta["custom"] = custom
    return updates


def _eager_decompositions(program: torch.export.ExportedProgram) -> dict[Any, Any]:
    """Only the composite ops, which eager itself takes apart before it launches anything."""
    known = torch.export.default_decompositions()
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    targets = {node.target for node in program.graph.nodes if node.op == "call_function"}
    return {
        target: known[target]
        for target in targets
        if isinstance(target, torch._ops.OpOverload)
        and target.has_kernel_for_dispatch_key(composite)
        and target in known
    }


def _computes(node: torch.fx.Node) -> bool:
    if node.op != "call_function" or is_view(node.target):
        return False
    # Checks of tensor metadata have no result and launch nothing.
    return any(isinstance(value, torch.Tensor) for value in _values(node))


def _values(node: torch.fx.Node) -> tuple[Any, ...]:
    value = node.meta.get("val")
    return tuple(value) if isinstance(value, tuple | list) else (value,)


@dataclass(slots=True)
class _Builder:
    """Collects ops and tensors; ``held`` says which tensor a node's value lives in."""

    source_file: str
    on_cuda: bool
    ops: list[Op] = field(default_factory=list)
    nodes: list[CapturedNode] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    held: dict[torch.fx.Node, str] = field(default_factory=dict)

    def add_inputs(self, module: torch.fx.GraphModule, names: Sequence[str]) -> None:
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        if len(placeholders) != len(names):
            raise CaptureError(
                f"The chain was captured with {len(placeholders)} inputs instead of {len(names)}."
            )
        for node, name in zip(placeholders, names, strict=True):
            self._add_tensor(name, node.meta["val"], TensorRole.INPUT)
            self.held[node] = name

    def add_op(self, node: torch.fx.Node, name: OpName, *, updates: str | None) -> None:
        """Add a node as the op of that name; ``updates`` is the input that it writes in place."""
        if name.in_place != (updates is not None) or (updates or name.output) != name.output:
            raise CaptureError(
                f"{name.name} {'updates' if name.in_place else 'makes'} {name.output} by its "
                f"description, but the code {f'updates {updates}' if updates else 'does not'}."
            )
        kind = kind_of(node.target)
        line, text = self._source(node)
        reads = tuple(dict.fromkeys(self._tensor_of(argument) for argument in node.all_input_nodes))
        writes = self._results(node, name, kind)
        self.ops.append(
            Op(
                name=name.name,
                aten=str(node.target),
                kind=kind,
                reads=reads,
                writes=writes,
                flops=flops_of(node),
                detail=name.detail,
                source_line=text,
            )
        )
        self.nodes.append(
            CapturedNode(
                op=name.name,
                aten=str(node.target),
                source_line=line,
                node=node.name,
                updates=updates,
            )
        )

    def check_updates(self, program: torch.export.ExportedProgram) -> None:
        """Compare the updates found with those that export itself tells.

        Raises:
            CaptureError: An input ends as something else than what its last update leaves.
        """
        by_name = {node.name: node for node in program.graph.nodes}
        last = {node.updates: node.node for node in self.nodes if node.updates}
        told = {
            self._tensor_of(by_name[target]): self._holder(by_name[value]).name
            for value, target in program.graph_signature.user_inputs_to_mutate.items()
        }
        if last != told:
            raise CaptureError(
                "The chain updates inputs in a way that no op names: "
                f"the ops leave {last or 'nothing'}, export tells {told or 'nothing'}."
            )

    def mark_outputs(self, module: torch.fx.GraphModule) -> None:
        """Give what the chain hands out its role."""
        [output] = [node for node in module.graph.nodes if node.op == "output"]
        for node in output.all_input_nodes:
            tensor = self.tensors[self._tensor_of(node)]
            if tensor.role is not TensorRole.INPUT:
                self.tensors[tensor.id] = _with_role(tensor, TensorRole.OUTPUT)

    def _results(self, node: torch.fx.Node, name: OpName, kind: OpKind) -> tuple[str, ...]:
        values = _values(node)
        if not name.in_place:
            self._add_tensor(name.output, _as_written(node, values[0]), TensorRole.INTERMEDIATE)
        self.held[node] = name.output
        written = [name.output]
        # Dropout on CUDA writes which elements it kept, one byte each, used or not; on a CPU it
        # is made of other ops and has no such result.
        if kind is OpKind.RANDOM and len(values) > 1 and self.on_cuda:
            written.append(self._add_beside("keep", values[1], name))
        for beside, value in zip(_NAMED_RESULTS.get(node.target, ()), values[1:], strict=False):
            written.append(self._add_beside(beside, value, name))
        return tuple(written)

    def _add_beside(self, beside: str, value: torch.Tensor, name: OpName) -> str:
        """A tensor that an op writes beside its result; returns its id."""
        tensor_id = beside if beside not in self.tensors else f"{name.output}_{beside}"
        self._add_tensor(tensor_id, value, TensorRole.WORKSPACE)
        return tensor_id

    def _add_tensor(self, name: str, value: torch.Tensor, role: TensorRole) -> None:
        n_elements = 1
        for size, stride in zip(value.shape, value.stride(), strict=True):
            n_elements *= size if stride else 1
        self.tensors[name] = Tensor(
            id=name,
            name=name,
            shape=tuple(value.shape),
            dtype=DTYPE_NAMES[value.dtype],
            n_bytes=n_elements * value.dtype.itemsize,
            role=role,
        )

    def _tensor_of(self, node: torch.fx.Node) -> str:
        """The tensor whose memory a node's value lies in."""
        return self.held[self._holder(node)]

    def _holder(self, node: torch.fx.Node) -> torch.fx.Node:
        """The op or input that a node's value is of: views and getitem are seen through."""
        while node not in self.held:
            if node.target is operator.getitem and node.args[1] != 0:
                raise CaptureError(f"{node.args[0]} has several results, which no chain names yet.")
            node = node.all_input_nodes[0]
        return node

    def _source(self, node: torch.fx.Node) -> tuple[int | None, str | None]:
        frames = [
            int(match["line"])
            for match in _FRAME.finditer(node.meta.get("stack_trace") or "")
            if Path(match["file"]).resolve() == Path(self.source_file).resolve()
        ]
        if not frames:
            return None, None
        lines = Path(self.source_file).read_text(encoding="utf-8").splitlines()
        return frames[-1], lines[frames[-1] - 1].strip()


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
