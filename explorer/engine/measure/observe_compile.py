"""Watches Inductor generate code, so that each kernel's ops are known and not guessed from names.

The engine wraps a strategy's ``build`` (the first call, which compiles)::

    with observing_compilation() as observation:
        built = strategy.build(prepared)
    record_launches(built.call, ..., observation=observation)

Code generation has to run for anything to be seen: Inductor's graph caches must be off meanwhile
(:func:`code_generation_runs` does that; its caches of compiled kernels may stay on). Nothing that
is generated changes but for one comment a kernel call, ``[Provenance debug handles] name:number``.
"""

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import torch

from explorer.engine.internals import (
    InternalMovedError,
    internal,
    patch_point,
    settings,
)
from explorer.engine.measure.fusion_log import FusionNotes, fusion_notes, listening
from explorer.engine.module_paths import module_path
from explorer.engine.op_facts import is_view
from explorer.engine.piece_builder import MARK

_logger = logging.getLogger(__name__)

_PROVENANCE = "torch._inductor.debug:_inductor_triton_kernel_to_post_grad_node_info"
_CPP = "torch._inductor.codegen.cpp"
_FRAME = re.compile(r'File "(?P<file>.+)", line (?P<line>\d+), in ')
_ADDS_GRADIENTS = "Gradient addition node"
"""What AOTAutograd writes above the lines of a node that adds up gradients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """A node of the graph that code was generated from.

    Attributes:
        name: Unique within the graph.
        target: What it calls, e.g. ``aten.amax.default``.
        original_aten: The operator that it was decomposed from, None if unknown.
        frames: Where the user's code called it, outermost first: file and line.
        source: Name of the call in the user's code that it stems from, one a call.
        inputs: Names of the nodes it takes.
        users: Names of the nodes that take it.
        is_view: Whether it only looks at its input's memory in another way.
        mark: Its place among the nodes of the piece that was compiled, None where it has none.
        is_backward: Of a training graph: it belongs to the backward pass. What is computed anew
            there belongs to the forward pass.
        sequence: Autograd's number of the forward operator that it is, or whose gradient it helps
            to make; None if unknown.
        module: Path of the module that it is in, from the outermost; None if it is in none.
        adds_gradients: It adds up gradients of a value that several operators took.
    """

    name: str
    target: str
    original_aten: str | None
    frames: tuple[tuple[str, int], ...]
    source: str | None
    inputs: tuple[str, ...]
    users: tuple[str, ...]
    is_view: bool
    mark: int | None = None
    is_backward: bool = False
    sequence: int | None = None
    module: str | None = None
    adds_gradients: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NestNotes:
    """One loop nest of a C++ function: the nodes it computes, and bytes by buffer name.

    ``bytes_read`` leaves out what the nest itself makes; both hold buffers in memory only.
    ``loops`` are the sizes of those that compute a buffer, as the compiler spells them.
    """

    nodes: tuple[str, ...]
    bytes_read: dict[str, int]
    bytes_written: dict[str, int]
    loops: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionNotes:
    """One call of a C++ function: its loop nests, and which pointer holds which buffers."""

    nests: tuple[NestNotes, ...]
    pointers: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Helper:
    """A buffer that holds no node's value: what a reduction leaves half way through."""

    nodes: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleNotes:
    """What is known of one generated module.

    Attributes:
        key: Inductor's key of the module.
        nodes: By name, in the graph's order.
        kernels: Node names by debug handle (``name:number``).
        buffers: By buffer name, the node whose value it holds.
        helpers: By buffer name, what else a buffer is: the nodes that it helps to compute, in the
            graph's order, and how, e.g. ``sum``.
        functions: C++ functions by name, one entry a call in call order.
        fusion: What the scheduler decided, None where it could not be seen.
        marked: Of a piece of a captured graph: the names of the captured nodes, by mark.
        defined: Node names by kernel name, where one Triton kernel is defined by that name for
            one set of nodes.
    """

    key: str
    nodes: dict[str, GraphNode]
    kernels: dict[str, tuple[str, ...]]
    buffers: dict[str, str]
    functions: dict[str, list[FunctionNotes]]
    fusion: FusionNotes | None = None
    helpers: dict[str, Helper] = field(default_factory=dict)
    marked: tuple[str, ...] = ()
    defined: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def of_piece(self, place: int, marked: Sequence[str]) -> "ModuleNotes":
        """The notes as those of one piece of a plan; others may run the same module.

        Args:
            place: Of the piece in the plan.
            marked: Names of the captured nodes, by mark.
        """
        return replace(self, key=f"{self.key} of piece {place}", marked=tuple(marked))


@dataclass(slots=True)
class CompileObservation:
    """Filled while code is generated; empty where nothing was compiled."""

    modules: dict[str, ModuleNotes] = field(default_factory=dict)
    _nests: dict[int, list[NestNotes]] = field(default_factory=dict)
    _functions: dict[int, dict[str, list[FunctionNotes]]] = field(default_factory=dict)
    _lines: dict[int, list[str]] = field(default_factory=dict)
    _fusion: dict[int, FusionNotes] = field(default_factory=dict)
    _defined: dict[int, dict[str, set[tuple[str, ...]]]] = field(default_factory=dict)

    def add_nest(self, group: Any, nodes: list[Any]) -> None:
        """Note the scheduler's nodes that became one loop nest of a C++ function."""
        self._nests.setdefault(id(group), []).append(_nest(nodes))

    def add_function(self, graph: Any, group: Any, name: str) -> None:
        """Note that a C++ function is complete: only now it is known what lies in memory."""
        pointers = _pointers(group.args)
        nests = tuple(_in_memory(nest, pointers) for nest in self._nests.pop(id(group), []))
        calls = self._functions.setdefault(id(graph), {}).setdefault(name, [])
        calls.append(FunctionNotes(nests=nests, pointers=pointers))

    def add_kernel(self, graph: Any, name: str, schedule: list[Any]) -> None:
        """Note the scheduler's nodes that a Triton kernel is defined for."""
        origins: dict[str, None] = {}
        for entry in schedule:
            for part in entry.get_nodes() if hasattr(entry, "get_nodes") else ():
                if part.node is not None:
                    origins.update(dict.fromkeys(origin.name for origin in part.node.origins))
        self._defined.setdefault(id(graph), {}).setdefault(name, set()).add(tuple(origins))

    def add_line(self, graph: Any, line: str) -> None:
        """Note what the scheduler said against fusing two of a graph's nodes."""
        self._lines.setdefault(id(graph), []).append(line)

    def add_fusion(self, graph: Any) -> None:
        """Note what became of the nodes of a graph whose code is complete."""
        self._fusion[id(graph)] = fusion_notes(graph, self._lines.pop(id(graph), []))

    def add_module(self, graph: Any) -> None:
        """Note a graph whose code is complete."""
        provenance = internal(_PROVENANCE)
        nodes = {node.name: _graph_node(node) for node in graph.module.graph.nodes}
        origins = ((buffer.name, buffer.get_origin_node()) for buffer in _named(graph))
        self.modules[graph.cache_key] = ModuleNotes(
            key=graph.cache_key,
            nodes=nodes,
            kernels={handle: tuple(names) for handle, names in provenance.items()},
            buffers={name: node.name for name, node in origins if node is not None},
            helpers=_helpers(graph, tuple(nodes)),
            functions=self._functions.pop(id(graph), {}),
            fusion=self._fusion.pop(id(graph), None),
            defined={
                name: next(iter(sets))
                for name, sets in self._defined.pop(id(graph), {}).items()
                if len(sets) == 1
            },
        )


@contextmanager
def code_generation_runs() -> Iterator[None]:
    """Switch off the caches that would skip code generation, which has to be observed.

    What is generated is compiled through caches all the same: the same source is not built twice.
    """
    with (
        warnings.catch_warnings(),
        settings("torch._inductor.config", fx_graph_cache=False),
        settings("torch._functorch.config", enable_autograd_cache=False),
    ):
        # The compiler warns of its own use of what torch has deprecated, and of settings that a
        # user of the explorer cannot change.
        warnings.simplefilter("ignore")
        yield


@contextmanager
def observing_compilation() -> Iterator[CompileObservation]:
    """Watch what Inductor generates inside the ``with`` block; wrap the compiling call in it.

    A torch that cannot be watched still compiles: the observation is then empty, or lacks what
    could not be seen.
    """
    observation = CompileObservation()
    with ExitStack() as stack:
        level = {"trace.provenance_tracking_level": 1}
        stack.enter_context(settings("torch._inductor.config", **level))
        try:
            for owner, name, hook in _hooks(observation):
                stack.enter_context(patch.object(owner, name, hook))
        except InternalMovedError as error:
            _logger.warning("the compilation is not observed: %s", error)
        try:
            stack.enter_context(_hearing(observation))
        except InternalMovedError as error:
            _logger.warning("the compiler's reasons are not heard: %s", error)
        yield observation


def _hearing(observation: CompileObservation) -> AbstractContextManager[None]:
    """Hear what the scheduler says against fusions."""
    graphs = internal("torch._inductor.virtualized:V")
    return listening(lambda line: _noting(observation.add_line, graphs.graph, line))


def _hooks(observation: CompileObservation) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """What takes the place of which method, and notes beside what the method does.

    Raises:
        InternalMovedError: A method is not there.
    """
    graphs = internal("torch._inductor.virtualized:V")
    internal(_PROVENANCE)
    groups, finalize_name, finalize = patch_point(f"{_CPP}:KernelGroup.finalize_kernel")
    _, call_name, call_kernel = patch_point(f"{_CPP}:KernelGroup.call_kernel")
    lowerings, to_module_name, to_module = patch_point(
        "torch._inductor.graph:GraphLowering.compile_to_module"
    )

    scheduling, define_name, define = patch_point(
        "torch._inductor.codegen.triton:TritonScheduling.define_kernel"
    )

    def define_and_note(scheduler: Any, source: str, schedule: list[Any], kernel: Any) -> Any:
        name = define(scheduler, source, schedule, kernel)
        _noting(observation.add_kernel, graphs.graph, name, schedule)
        return name

    def finalize_and_note(group: Any, kernel: Any, nodes: list[Any]) -> Any:
        _noting(observation.add_nest, group, nodes)
        return finalize(group, kernel, nodes)

    def call_and_note(group: Any, wrapper: Any, kernel_name: str) -> Any:
        _noting(observation.add_function, graphs.graph, group, kernel_name)
        return call_kernel(group, wrapper, kernel_name)

    def to_module_and_note(graph: Any) -> Any:
        module = to_module(graph)
        _noting(observation.add_fusion, graph)
        _noting(observation.add_module, graph)
        return module

    yield groups, finalize_name, finalize_and_note
    yield groups, call_name, call_and_note
    yield lowerings, to_module_name, to_module_and_note
    yield scheduling, define_name, define_and_note


def _noting(note: Callable[..., None], *arguments: Any) -> None:
    """Note something; the compiler goes on even if it looks other than it is known to."""
    try:
        note(*arguments)
    except Exception:
        _logger.exception("the compiler looks other than what is known of it")


def _nest(nodes: list[Any]) -> NestNotes:
    real_names = nodes[0].scheduler.mutation_real_name if nodes else {}
    made = {name for node in nodes for name in node.get_buffer_names()}
    read: dict[str, int] = {}
    written: dict[str, int] = {}
    loops: dict[str, str] = {}
    origins: dict[str, None] = {}
    for node in nodes:
        reads = node.get_read_write_buffer_accesses(include_reads=True, include_writes=False)
        writes = node.get_read_write_buffer_accesses(include_reads=False, include_writes=True)
        for name, n_bytes in reads.items():
            if name not in made:
                real = real_names.get(name, name)
                read[real] = max(read.get(real, 0), int(n_bytes))
        for name, n_bytes in writes.items():
            real = real_names.get(name, name)
            written[real] = max(written.get(real, 0), int(n_bytes))
            loops[real] = str(node.group[1])
        if node.node is not None:
            origins.update(dict.fromkeys(origin.name for origin in node.node.origins))
    return NestNotes(nodes=tuple(origins), bytes_read=read, bytes_written=written, loops=loops)


def _pointers(arguments: Any) -> dict[str, str]:
    """Pointer by buffer; a buffer that the code keeps in registers or caches has none."""
    pointers: dict[str, str] = {}
    for table in (arguments.input_buffers, arguments.output_buffers, arguments.inplace_buffers):
        for buffer, pointer in table.items():
            name = getattr(pointer, "inner_name", pointer)
            if isinstance(name, str):
                pointers[buffer] = name
    return pointers


def _in_memory(nest: NestNotes, pointers: dict[str, str]) -> NestNotes:
    """The nest with what it moves.

    A value that another one takes the place of within the same loops never leaves registers.
    """
    last = {(pointers.get(name), nest.loops.get(name)): name for name in nest.bytes_written}
    return NestNotes(
        nodes=nest.nodes,
        bytes_read={name: n for name, n in nest.bytes_read.items() if name in pointers},
        bytes_written={
            name: n
            for name, n in nest.bytes_written.items()
            if name in pointers and last[pointers[name], nest.loops.get(name)] == name
        },
        loops=nest.loops,
    )


def _named(graph: Any) -> Iterator[Any]:
    """The buffers of a graph; what a template computes within itself has no name."""
    return (buffer for buffer in graph.buffers if buffer.name is not None)


def _helpers(graph: Any, order: tuple[str, ...]) -> dict[str, Helper]:
    """The buffers of a graph that stem from nodes, but are the value of none."""
    place = {name: i for i, name in enumerate(order)}
    found: dict[str, Helper] = {}
    for buffer in _named(graph):
        how = getattr(getattr(buffer, "data", None), "reduction_type", None)
        if buffer.get_origin_node() is None and isinstance(how, str):
            names = (node.name for node in buffer.origins if node.name in place)
            nodes = tuple(sorted(names, key=place.__getitem__))
            found[buffer.get_name()] = Helper(nodes=nodes, how=how)
    return found


def _graph_node(node: torch.fx.Node) -> GraphNode:
    mark = (node.meta.get("custom") or {}).get(MARK)
    original = node.meta.get("original_aten")
    stack = node.meta.get("stack_trace") or ""
    sequence = node.meta.get("seq_nr")
    return GraphNode(
        name=node.name,
        target=str(node.target),
        original_aten=None if original is None else str(original),
        frames=tuple((match["file"], int(match["line"])) for match in _FRAME.finditer(stack)),
        source=_source(node.meta.get("from_node") or []),
        inputs=tuple(value.name for value in node.all_input_nodes),
        users=tuple(user.name for user in node.users),
        is_view=node.op == "call_function" and is_view(node.target),
        mark=mark if isinstance(mark, int) else None,
        is_backward=node.meta.get("partitioner_tag") == "is_backward",
        sequence=sequence if isinstance(sequence, int) else None,
        module=module_path(node),
        adds_gradients=_ADDS_GRADIENTS in stack,
    )


def _source(links: list[Any]) -> str | None:
    """The far end of the chain of graphs that a node came through, where a link has a name."""
    for link in reversed(links):
        name = _source(link.from_node or []) or link.name
        if name:
            return str(name)
    return None
