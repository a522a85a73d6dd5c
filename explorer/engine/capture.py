"""From a chain's code to its op graph, without running it and without any memory.

Strict export runs Dynamo over the code, so every node knows its source line. Nothing is decomposed
but what eager decomposes too (``matmul`` into ``bmm``), so the nodes are what eager launches.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch

from explorer.chains.descriptor import OpName
from explorer.engine.chain_functions.base import InputSpec
from explorer.engine.graph_builder import CaptureError, GraphBuilder, computes
from explorer.engine.internals import internal, settings
from explorer.engine.joint import Joint, forward_only, holder, joint_graph, updated_by
from explorer.engine.op_facts import is_view
from explorer.engine.op_naming import numbered, operator_names
from explorer.engine.prepared import CapturedNode, ChainFunction, Returned
from explorer.model.opgraph import OF_BACKWARD, OpGraph

_UPDATES = "updates"
"""Key of ``node.meta["custom"]``, which export carries over to what becomes of a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What capture found.

    Attributes:
        graph: What people see.
        graph_module: The functional ATen graph behind it.
        nodes: The compute nodes, in the order of ``graph.ops``.
        tangents: Of a forward and backward pass: the inputs behind the chain's own, which are the
            gradients of its results.
        differentiated: The inputs whose gradients it makes.
        stored: The inputs that it updates as well, without an op that is known to write there.
    """

    graph: OpGraph
    graph_module: torch.fx.GraphModule
    nodes: tuple[CapturedNode, ...]
    tangents: Mapping[str, InputSpec] = field(default_factory=dict)
    differentiated: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()

    @property
    def updated(self) -> tuple[str, ...]:
        """The inputs that the chain updates in place, in the order of the ops that do."""
        by_ops = dict.fromkeys(name for node in self.nodes for name in node.updates)
        return (*by_ops, *(name for name in self.stored if name not in by_ops))


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
    op_names: Sequence[OpName] | None,
    *,
    source_file: str,
    device: torch.device,
    differentiated: Sequence[str] = (),
) -> Captured:
    """Capture the chain on fake inputs.

    Args:
        function: The chain.
        input_specs: Its inputs by name, in argument order.
        op_names: The ops it must consist of, in order; None names them by their operators.
        source_file: The file whose lines are shown beside the ops.
        device: Where it would run; nothing is allocated there.
        differentiated: Inputs whose gradients are to be made: then the backward pass is captured
            as well, from the gradients of the results, which become further inputs.

    Raises:
        CaptureError: The compute nodes are not the ops named, or an input is updated in a way
            that the ops do not tell.
    """
    with fake_tensors():
        inputs = tuple(
            torch.empty(spec.shape, dtype=spec.dtype, device=device)
            for spec in input_specs.values()
        )
    program = exported(_AsModule(function), inputs, tuple(input_specs))
    computing = computing_nodes(program)
    updates = {node.name: taken_mark(node) for node in computing}
    if op_names is None:
        op_names = operator_names(computing, updates)
    if len(computing) != len(op_names):
        raise CaptureError(
            f"The chain was captured as {len(computing)} ops "
            f"({', '.join(str(node.target) for node in computing)}), but its description names "
            f"{len(op_names)} ({', '.join(name.name for name in op_names)})."
        )
    _check_updates(program, updates, tuple(input_specs))
    own_file = Path(source_file).resolve()
    return captured_of(
        program,
        tuple(input_specs),
        {node.name: name for node, name in zip(computing, op_names, strict=True)},
        builder=GraphBuilder(
            is_shown=lambda file: Path(file).resolve() == own_file, on_cuda=device.type == "cuda"
        ),
        updates=updates,
        differentiated=differentiated,
    )


def computing_nodes(program: torch.export.ExportedProgram) -> list[torch.fx.Node]:
    """The nodes of an exported graph that are ops, in order."""
    return [node for node in program.graph_module.graph.nodes if computes(node)]


def captured_of(
    program: torch.export.ExportedProgram,
    inputs: Sequence[str],
    named: Mapping[str, OpName],
    *,
    builder: GraphBuilder,
    updates: Mapping[str, tuple[str, ...]],
    differentiated: Sequence[str] = (),
) -> Captured:
    """What an exported program is, with its backward pass if gradients are wanted.

    Args:
        program: Functional, see :func:`exported`.
        inputs: What its placeholders are called, in order.
        named: What its compute nodes are called, by name of the node.
        builder: Takes the ops; empty.
        updates: By compute node, the inputs that the code has it write in place.
        differentiated: Inputs whose gradients are to be made.

    Raises:
        CaptureError: An op does not update what its name says.
    """
    # In the order in which gradients are handed out.
    differentiated = tuple(name for name in inputs if name in differentiated)
    joint = forward_only(program) if not differentiated else (
        joint_graph(program, inputs, differentiated)
    )  # fmt: skip
    called = {**_input_names(program, inputs), **{n: o.name for n, o in named.items()}}
    builder.add_inputs(joint.module, (*inputs, *joint.tangents))
    for node in joint.module.graph.nodes:
        if not computes(node):
            continue
        origin = joint.forward.get(node)
        if origin is not None:
            builder.add_op(
                node, _of_a_part(named[origin], called, builder), updates=updates.get(origin, ())
            )
        else:
            _add_backward_op(builder, node, joint, called)
    builder.mark_outputs(joint.module)
    graph = OpGraph(ops=tuple(builder.ops), tensors=tuple(builder.tensors.values()))
    return Captured(
        graph=graph,
        graph_module=joint.module,
        nodes=tuple(builder.nodes),
        tangents=joint.tangents,
        differentiated=differentiated,
    )


def _of_a_part(name: OpName, called: Mapping[str, str], builder: GraphBuilder) -> OpName:
    """The name, with a number where autograd runs an op in parts, as it does attention's."""
    taken = {op.name for op in builder.ops}
    if name.name not in taken or name.in_place:
        return name
    part = numbered(name.name, {*taken, *called.values(), *builder.tensors})
    return OpName(name=part, detail=name.detail, output=part)


def _add_backward_op(
    builder: GraphBuilder, node: torch.fx.Node, joint: Joint, called: Mapping[str, str]
) -> None:
    """Add an op of the backward pass: ``d_`` and the op of the forward pass that it belongs to."""
    origin = called.get(joint.backward.get(node, ""), "results")
    name = numbered(f"{OF_BACKWARD}{origin}", {op.name for op in builder.ops})
    gradients = joint.gradients.get(node, {})
    output = gradients.get(0, name)
    builder.add_op(
        node,
        OpName(name=name, detail="", output=output),
        result_names={place: called for place, called in gradients.items() if place},
        gradient_of=origin,
        adds_gradients=node in joint.added,
    )


def _check_updates(
    program: torch.export.ExportedProgram,
    updates: Mapping[str, tuple[str, ...]],
    inputs: Sequence[str],
) -> None:
    """Compare the updates found with those that export itself tells.

    Raises:
        CaptureError: An input ends as something else than what its last update leaves.
    """
    nodes = {node.name: node for node in program.graph.nodes}
    called = _input_names(program, inputs)
    last = {target: node for node, targets in updates.items() for target in targets}
    told = {
        called[target]: holder(nodes[value]).name for value, target in updated_by(program).items()
    }
    if last != told:
        raise CaptureError(
            "The chain updates inputs in a way that no op names: "
            f"the ops leave {last or 'nothing'}, export tells {told or 'nothing'}."
        )


def _input_names(program: torch.export.ExportedProgram, inputs: Sequence[str]) -> dict[str, str]:
    """What the chain calls its inputs, by placeholder."""
    return dict(zip((node.name for node in _placeholders(program)), inputs, strict=False))


def _placeholders(program: torch.export.ExportedProgram) -> list[torch.fx.Node]:
    return [node for node in program.graph.nodes if node.op == "placeholder"]


def exported(
    module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], names: Sequence[str]
) -> torch.export.ExportedProgram:
    """The functional graph of a module, undecomposed but for what eager takes apart as well.

    Args:
        module: Its parameters are fake tensors, if it has any.
        inputs: Fake tensors, one for each argument.
        names: What the placeholders are called, in order, for those that are updated; a module's
            own come before its inputs.
    """
    with (
        warnings.catch_warnings(),
        torch.no_grad(),
        settings("torch._dynamo.config", enable_dynamo_decompositions=False),
    ):
        # Export warns of deprecations in its own code, which differ between releases.
        warnings.simplefilter("ignore")
        program = torch.export.export(module, inputs, strict=True)
        _drop_idle_dropout(program)
        _mark_updates(program, names or [node.name for node in _placeholders(program)])
        program = program.run_decompositions(_eager_decompositions(program))
    _drop_checks(program)
    return cast("torch.export.ExportedProgram", program)


def _drop_idle_dropout(program: torch.export.ExportedProgram) -> None:
    """Take out dropout that drops nothing: eager hands its input on, a decomposition copies it."""
    module = program.graph_module
    for node in list(module.graph.nodes):
        if node.target is not torch.ops.aten.dropout.default:
            continue
        given, share, trains = node.args
        if share and trains:
            continue
        node.replace_all_uses_with(given)
        program.graph_signature.replace_all_uses(node.name, given.name)
        module.graph.erase_node(node)
    module.recompile()


def _drop_checks(program: torch.export.ExportedProgram) -> None:
    """Take out what export puts before each change of dtype: the code as written checks nothing."""
    module = program.graph_module
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            module.graph.erase_node(node)
    module.recompile()


def fake_tensors() -> Any:
    """Tensors that are made inside its ``with`` block have shapes and no memory."""
    return internal("torch._subclasses.fake_tensor:FakeTensorMode")()


def _mark_updates(program: torch.export.ExportedProgram, inputs: Sequence[str]) -> None:
    """Note on each node that works in place which inputs it updates.

    Decomposing makes the graph functional, and what was in place looks like any other op there.
    A list that is partly of inputs is left out: what becomes of them is refused later.
    """
    memory = dict(zip(_placeholders(program), inputs, strict=False))
    for node in program.graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            continue
        changed = _changed_arguments(node, node.target)
        sources = node.all_input_nodes[:1] if is_view(node.target) else changed
        if len(sources) == 1 and sources[0] in memory:
            memory[node] = memory[sources[0]]
        if changed and all(argument in memory for argument in changed):
            updated = tuple(memory[argument] for argument in changed)
            node.meta["custom"] = {**node.meta.get("custom", {}), _UPDATES: updated}


def _changed_arguments(
    node: torch.fx.Node, target: torch._ops.OpOverload
) -> Sequence[torch.fx.Node]:
    """What an operator in place writes to, and returns: a tensor, or those of a list."""
    for value, argument in zip(node.args, target._schema.arguments, strict=False):
        if argument.alias_info is not None and argument.alias_info.is_write:
            values = value if isinstance(value, list | tuple) else [value]
            return [item for item in values if isinstance(item, torch.fx.Node)]
    return []


def taken_mark(node: torch.fx.Node) -> tuple[str, ...]:
    """The inputs that a node updates; the mark is removed, since compilers hash it."""
    custom = dict(node.meta.get("custom") or {})
    updates: tuple[str, ...] = tuple(custom.pop(_UPDATES, ()))
    if updates:
        node.meta["custom"] = custom
    return updates


def _eager_decompositions(program: torch.export.ExportedProgram) -> dict[Any, Any]:
    """Only the composite ops, which eager itself takes apart before it launches anything."""
    known = torch.export.default_decompositions()
    composite = torch._C.DispatchKey.CompositeImplicitAutograd
    targets = {node.target for node in program.graph.nodes if node.op == "call_function"}
    # What a linear layer without bias becomes in bf16 on a CPU, which eager takes apart as well.
    targets.add(torch.ops.aten.matmul.default)
    return {
        target: known[target]
        for target in targets
        if isinstance(target, torch._ops.OpOverload)
        and target.has_kernel_for_dispatch_key(composite)
        and target in known
    }
