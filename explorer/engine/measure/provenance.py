"""Which ops of the chain each recorded call carries out.

Eager calls are matched by the line of the chain's code that made them, compiled ones by what was
seen of their compilation. A name is never guessed from a kernel's name: what cannot be told stays
empty.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from explorer.engine.measure.backward_origins import compiled_backward_ops
from explorer.engine.measure.calls import CallKind, RecordedCall, packet_of
from explorer.engine.measure.eager_origins import eager_ops, operator_of
from explorer.engine.measure.generated import GeneratedModule, read_module
from explorer.engine.measure.left_over import left_over_ops
from explorer.engine.measure.lineless import ops_by_module
from explorer.engine.measure.observe_compile import (
    CompileObservation,
    FunctionNotes,
    GraphNode,
    ModuleNotes,
)
from explorer.engine.measure.repeated_lines import ops_of_repeats
from explorer.engine.measure.sum_origins import ADDING_MATMULS, sums_with_matmuls
from explorer.engine.prepared import CapturedNode, Prepared
from explorer.model.opgraph import OpKind

_FUSED_ATTENTION = (
    "scaled_dot_product", "flash_attention", "efficient_attention", "native_multi_head_attention"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOrigin:
    """Where a call comes from.

    Attributes:
        ops: Names of the ops it carries out, in the chain's order.
        notes: Of the generated module that made the call, None for eager code.
        nodes: Nodes of that module's graph that the call carries out.
        function: Of a C++ function: its loop nests.
    """

    ops: tuple[str, ...] = ()
    notes: ModuleNotes | None = None
    nodes: tuple[str, ...] = ()
    function: FunctionNotes | None = None


@dataclass(frozen=True, slots=True)
class Origins:
    """The origin of each call, and the op of each node of the generated modules' graphs."""

    calls: tuple[CallOrigin, ...]
    node_ops: dict[tuple[str, str], str]
    """Op by module key and node name."""

    def op_of(self, notes: ModuleNotes, node: str) -> str | None:
        """The op that a node of a generated module's graph belongs to."""
        return self.node_ops.get((notes.key, node))


def source_files(prepared: Prepared) -> frozenset[str]:
    """The files with the code of a chain's ops, as frames name them."""
    return frozenset(c.source_file for c in prepared.nodes if c.source_file is not None)


def find_origins(
    calls: Sequence[RecordedCall], prepared: Prepared, observation: CompileObservation | None
) -> Origins:
    """Find the ops of each call.

    Args:
        calls: As recorded, in order.
        prepared: The chain with its captured graph.
        observation: What was seen of the compilation, None if nothing was compiled.
    """
    modules = observation.modules if observation is not None else {}
    node_ops = ops_of_nodes(modules.values(), prepared)
    by_line = eager_ops(calls, prepared)
    order = {op.name: place for place, op in enumerate(prepared.graph.ops)}
    seen: dict[tuple[str, str], int] = {}
    origins = []
    for call, told in zip(calls, by_line, strict=True):
        notes_of_call = modules.get(call.module_key or "")
        if notes_of_call is None:
            origins.append(CallOrigin(ops=told))
            continue
        nodes = _nodes_of(call, notes_of_call)
        ops = {node_ops[notes_of_call.key, n] for n in nodes if (notes_of_call.key, n) in node_ops}
        function = _function_of(call, notes_of_call, seen)
        origins.append(
            CallOrigin(
                ops=tuple(sorted(ops, key=lambda name: order.get(name, len(order)))),
                notes=notes_of_call,
                nodes=nodes,
                function=function,
            )
        )
    origins = _with_matmuls_of_sums(calls, origins, prepared)
    left = left_over_ops(
        calls, [o.notes for o in origins], [o.ops for o in origins], prepared.nodes
    )
    origins = [
        replace(origin, ops=left.get(place, origin.ops)) for place, origin in enumerate(origins)
    ]
    return Origins(calls=tuple(_with_fused_attention(calls, origins, prepared)), node_ops=node_ops)


def ops_of_nodes(
    modules: Collection[ModuleNotes], prepared: Prepared
) -> dict[tuple[str, str], str]:
    """The op of each node of the generated modules' graphs, by module key and node name."""
    files = source_files(prepared)
    found: dict[str, dict[str, str]] = {}
    for notes in modules:
        # What lies behind a graph break is no op of the graphs before it.
        done = (
            {op for ops in found.values() for op in ops.values()} if prepared.graph.breaks else ()
        )
        left = [c for c in prepared.nodes if c.op not in done]
        found[notes.key] = _ops_of_graph(notes, left, files)
    numbers: dict[int, str] = {}
    for notes in modules:
        for name, op in found[notes.key].items():
            number = notes.nodes[name].sequence
            if number is not None:
                numbers.setdefault(number, op)
    backward = [each for each in prepared.nodes if each.is_backward]
    for notes in modules:
        if not notes.marked:
            found[notes.key] |= compiled_backward_ops(
                notes.nodes, backward, prepared.graph, numbers
            )
    for notes in modules:
        if not notes.marked:
            carried = {op for ops in found.values() for op in ops.values()}
            told = found[notes.key]
            found[notes.key] |= sums_with_matmuls(notes.nodes, told, carried, prepared.graph)
    return {(key, node): op for key, ops in found.items() for node, op in ops.items()}


def computing_node(notes: ModuleNotes, name: str) -> GraphNode | None:
    """The node that computes what a node holds: views are seen through."""
    node = notes.nodes.get(name)
    while node is not None and node.is_view and node.inputs:
        node = notes.nodes.get(node.inputs[0])
    return node


def leaves_its_op(notes: ModuleNotes, node: GraphNode, origins: Origins) -> bool:
    """Whether a node is the result of its op: another op or the graph's output takes it."""
    own = origins.op_of(notes, node.name)
    waiting = list(node.users)
    while waiting:
        user = notes.nodes.get(waiting.pop())
        if user is None:
            continue
        if user.target == "output":
            return True
        if user.is_view:
            waiting.extend(user.users)
        elif origins.op_of(notes, user.name) != own:
            return True
    return False


def _nodes_of(call: RecordedCall, notes: ModuleNotes) -> tuple[str, ...]:
    if call.module is None or call.module_line is None:
        return ()
    module = read_module(call.module)
    handle = module.handle_above(call.module_line)
    if call.kind is CallKind.TRITON and (handle is None or handle.rpartition(":")[0] != call.name):
        # Kernels over lists, and over two axes at once, have no handle.
        return notes.defined.get(call.name, ())
    if handle is None:
        return _updated(call, call.module_line, notes, module)
    nodes = notes.kernels.get(handle, ())
    if call.kind is CallKind.ATEN:
        return nodes
    # A kernel's handle must be its own; one above an operator names it in the wrapper's words.
    if handle.rpartition(":")[0] != call.name:
        return ()
    return _with_joined(call, notes, _computed(call, notes, nodes))


def _updated(
    call: RecordedCall, line: int, notes: ModuleNotes, module: GeneratedModule
) -> tuple[str, ...]:
    """The node of an operator that completes a buffer in place: no handle stands above it."""
    if call.kind is not CallKind.ATEN or not packet_of(call.name).endswith("_"):
        return ()
    variables = module.argument_names(line)
    node = notes.buffers.get((variables[0] if variables else None) or "")
    return () if node is None else (node,)


def _with_joined(call: RecordedCall, notes: ModuleNotes, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """A kernel's nodes, with the concatenations into whose memory it writes parts."""
    written = [notes.buffers.get(t.variable or "") for t in call.touches if t.is_write]
    joined = (joining_node(notes, notes.nodes[name]) for name in written if name in notes.nodes)
    return (*nodes, *dict.fromkeys(node.name for node in joined if node is not None))


def joining_node(notes: ModuleNotes, node: GraphNode) -> GraphNode | None:
    """The concatenation that needs no kernel, since its parts are written where they belong."""
    users = (notes.nodes[name] for name in node.users if name in notes.nodes)
    joins = [user for user in users if packet_of(user.target) == "aten.cat"]
    computed = {name for names in notes.kernels.values() for name in names}
    return joins[0] if len(joins) == 1 and joins[0].name not in computed else None


def _computed(call: RecordedCall, notes: ModuleNotes, nodes: tuple[str, ...]) -> tuple[str, ...]:
    """Those of a kernel's nodes that lie between what it reads and what it writes.

    Inductor names a matmul's template after what made its inputs as well.
    """
    read, written = (
        {
            node.name
            for touch in call.touches
            if touch.is_write is is_write
            and (node := computing_node(notes, notes.buffers.get(touch.variable or "", "")))
        }
        for is_write in (False, True)
    )
    # What it writes to an input, in place, no buffer tells the node of.
    unknown = any(t.is_write and (t.variable or "") not in notes.buffers for t in call.touches)
    if not written or unknown:
        return nodes
    found: dict[str, None] = {}
    waiting = list(written)
    while waiting:
        name = waiting.pop()
        node = notes.nodes.get(name)
        if node is None or name in found or (name in read and name not in written):
            continue
        if name in nodes or node.is_view:
            found[name] = None
            waiting.extend(node.inputs)
    return tuple(name for name in nodes if name in found) or nodes


def _function_of(
    call: RecordedCall, notes: ModuleNotes, seen: dict[tuple[str, str], int]
) -> FunctionNotes | None:
    """The notes of the n-th call of a C++ function in a module."""
    if call.kind is not CallKind.CPP:
        return None
    key = (notes.key, call.name)
    place = seen.get(key, 0)
    seen[key] = place + 1
    calls = notes.functions.get(call.name, [])
    return calls[place] if place < len(calls) else None


def _ops_of_graph(
    notes: ModuleNotes, captured: Sequence[CapturedNode], files: frozenset[str]
) -> dict[str, str]:
    """The op of each node of a generated module's graph, those of a backward pass left out.

    Nodes of a piece are marked; else the source line and the original operator tell.
    """
    ops: dict[str, str] = {}
    by_node = {c.node: c.op for c in captured}
    forward = [c for c in captured if not c.is_backward]
    sources: dict[tuple[tuple[str, int], str], list[str]] = {}
    taken_apart: dict[tuple[str, int], list[GraphNode]] = {}
    for node in notes.nodes.values():
        if node.is_view:
            continue
        if node.mark is not None and node.mark < len(notes.marked):
            ops[node.name] = by_node[notes.marked[node.mark]]
            continue
        lines = [frame for frame in node.frames if frame[0] in files]
        if not lines or node.is_backward:
            continue
        operator = operator_of(node.original_aten or node.target)
        at_line = [c for c in forward if (c.source_file, c.source_line) == lines[-1]]
        same = [c for c in at_line if operator_of(c.aten) == operator]
        if len(at_line) == 1:
            ops[node.name] = at_line[0].op
        elif len(same) == 1:
            ops[node.name] = same[0].op
        elif same and node.source is not None:
            # Several alike on one line: the n-th call in the code is the n-th op.
            order = sources.setdefault((lines[-1], operator), [])
            if node.source not in order:
                order.append(node.source)
            place = order.index(node.source)
            if place < len(same):
                ops[node.name] = same[place].op
        elif at_line and not same:
            taken_apart.setdefault(lines[-1], []).append(node)
    for line, nodes in taken_apart.items():
        at_line = [c for c in forward if (c.source_file, c.source_line) == line]
        ops.update(ops_of_repeats(nodes, at_line))
    lineless = (
        node
        for node in notes.nodes.values()
        if not (node.is_view or node.is_backward or node.name in ops)
        and not any(path in files for path, _ in node.frames)
    )
    ops.update(ops_by_module(lineless, forward))
    within = set(notes.marked) if notes.marked else set(by_node)
    could_be = captured if notes.marked else forward
    left = [c for c in could_be if c.node in within]
    ops.update(_ops_rewritten(notes, ops, left, files))
    return ops


def _ops_rewritten(
    notes: ModuleNotes,
    told: Mapping[str, str],
    captured: Sequence[CapturedNode],
    files: frozenset[str],
) -> dict[str, str]:
    """The op of nodes that a rewriting put in the place of others, without line or mark.

    Inductor does so with a factor before a softmax. Such a node is of the one op that runs its
    operator and has no node else; where several could be it, none is.
    """
    accounted = set(told.values())
    missing = [c for c in captured if c.op not in accounted]
    found = {}
    for node in notes.nodes.values():
        has_line = any(path in files for path, _ in node.frames)
        has_place = has_line or node.module is not None
        is_told = node.name in told or has_place or node.is_backward
        if is_told or node.is_view or node.original_aten is None:
            continue
        alike = [c.op for c in missing if packet_of(c.aten) == packet_of(node.original_aten)]
        if len(alike) == 1:
            found[node.name] = alike[0]
    return found


def _with_matmuls_of_sums(
    calls: Sequence[RecordedCall], origins: Sequence[CallOrigin], prepared: Prepared
) -> list[CallOrigin]:
    """A compiler adds within a matmul: the sum's operator carries out the matmul as well.

    That is one which no call carries out, and whose result the sum takes.
    """
    carried = {op for origin in origins for op in origin.ops}
    graph = prepared.graph
    left = [op for op in graph.ops if op.kind is OpKind.MATMUL and op.name not in carried]
    order = {op.name: place for place, op in enumerate(graph.ops)}
    found = []
    for call, origin in zip(calls, origins, strict=True):
        ops = set(origin.ops)
        if packet_of(call.name) in ADDING_MATMULS:
            taken = {name for op in graph.ops if op.name in ops for name in op.reads}
            ops |= {op.name for op in left if taken.intersection(op.writes)}
        found.append(replace(origin, ops=tuple(sorted(ops, key=lambda name: order[name]))))
    return found


def _with_fused_attention(
    calls: Sequence[RecordedCall], origins: Sequence[CallOrigin], prepared: Prepared
) -> list[CallOrigin]:
    """An operator that is attention as a whole carries out every op that no other call does.

    Its gradient is another operator, and alike for the ops of the backward pass. Where the code
    itself calls that operator, it is one of the ops.
    """
    operators = {each.op: operator_of(each.aten) for each in prepared.nodes}
    carried = {op for origin in origins for op in origin.ops}
    left: dict[bool, tuple[str, ...]] = {
        is_backward: tuple(
            op.name
            for op in prepared.graph.ops
            if op.is_backward is is_backward and op.name not in carried
        )
        for is_backward in (False, True)
    }
    return [
        CallOrigin(
            ops=left[call.is_backward],
            notes=origin.notes,
            nodes=origin.nodes,
            function=origin.function,
        )
        if call.kind is CallKind.ATEN
        and any(part in call.name for part in _FUSED_ATTENTION)
        and all(operators.get(op) != operator_of(call.name) for op in origin.ops)
        else origin
        for call, origin in zip(calls, origins, strict=True)
    ]
