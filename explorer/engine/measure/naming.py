"""Gives every value that lies in memory an id and a name a person can read.

A tensor here is a value, not an address: memory that a later launch fills anew holds another
tensor from then on, because Inductor reuses buffers and the allocator does too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from explorer.engine.measure.calls import CallKind, RecordedCall, TensorUse, Touch, use_of
from explorer.engine.measure.observe_compile import FunctionNotes, GraphNode, ModuleNotes
from explorer.engine.measure.provenance import (
    CallOrigin,
    Origins,
    computing_node,
    joining_node,
    leaves_its_op,
)
from explorer.engine.prepared import Prepared
from explorer.engine.regions import Regions
from explorer.model.opgraph import Op
from explorer.model.run import Access, LoopNest
from explorer.model.tensor import Tensor, TensorRole

_RANDOM_NUMBERS = {"prims.inductor_random.default", "aten.rand.default", "aten.bernoulli_.float"}
_RANDOM_SEEDS = {"prims.inductor_seeds.default", "prims.inductor_seed.default"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCall:
    """A call with named tensors.

    Attributes:
        accesses: Bytes by tensor, in the order of first use.
        stays_on_chip: Ids of the graph's tensors made and used inside, never in memory.
        loop_nests: The parts of a C++ function.
    """

    accesses: tuple[Access, ...] = ()
    stays_on_chip: tuple[str, ...] = ()
    loop_nests: tuple[LoopNest, ...] = ()


@dataclass(frozen=True, slots=True)
class Named:
    """Every call with its tensors, and the tensors."""

    calls: tuple[NamedCall, ...]
    tensors: tuple[Tensor, ...]


def name_tensors(calls: Sequence[RecordedCall], origins: Origins, prepared: Prepared) -> Named:
    """Name the tensors that the calls read and write.

    Args:
        calls: As recorded, in order.
        origins: Where each comes from.
        prepared: The chain, its inputs and its graph.
    """
    namer = _Namer(prepared=prepared, origins=origins)
    namer.add_inputs()
    last = {op: place for place, origin in enumerate(origins.calls) for op in origin.ops}
    accesses = []
    for place, (call, origin) in enumerate(zip(calls, origins.calls, strict=True)):
        finished = {op for op in origin.ops if last[op] == place}
        accesses.append(namer.accesses(call, origin, finished))
    named = [
        NamedCall(
            accesses=touched,
            stays_on_chip=_inside(origin, prepared, namer.written),
            loop_nests=_loop_nests(origin, origins, prepared),
        )
        for touched, origin in zip(accesses, origins.calls, strict=True)
    ]
    return Named(calls=tuple(named), tensors=tuple(namer.tensors.values()))


@dataclass(slots=True)
class _Namer:
    """Knows which tensor each piece of memory holds at the moment."""

    prepared: Prepared
    origins: Origins
    tensors: dict[str, Tensor] = field(default_factory=dict)
    held: dict[int, str] = field(default_factory=dict)
    """Tensor id by region."""
    inputs: set[int] = field(default_factory=set)
    """The regions that the inputs lie in."""
    regions: Regions = field(default_factory=Regions)
    written: set[str] = field(default_factory=set)
    """The graph's tensors that some launch has written to memory."""

    def add_inputs(self) -> None:
        for name, value in self.prepared.inputs_in_place().items():
            use = use_of(value)
            known = (t for t in self.prepared.graph.tensors if t.name == name)
            tensor = next((t for t in known if t.role is TensorRole.INPUT), None)
            if tensor is None:
                tensor = _tensor(name, name, use, TensorRole.INPUT)
            self.tensors[tensor.id] = tensor
            region = self.regions.add(use.storage, use.address)
            self.held[region] = tensor.id
            self.inputs.add(region)

    def _region(self, touch: Touch) -> int:
        return self.regions.of(touch.use.storage, touch.use.address)

    def accesses(
        self, call: RecordedCall, origin: CallOrigin, finished: set[str]
    ) -> tuple[Access, ...]:
        """Name what a call touches, in order, and add up its bytes by tensor."""
        read: dict[str, int] = {}
        written: dict[str, int] = {}
        touches = call.touches
        if origin.function is not None:
            touches = _by_nest(touches, origin.function)
        for storage in call.allocated:
            self.held.pop(storage, None)
        for touch in touches:
            if self._reads_nothing(touch):
                continue
            if touch.is_write:
                tensor = self._written_tensor(touch, call, origin, finished)
                written[tensor] = written.get(tensor, 0) + touch.bytes_moved
            else:
                tensor = self._read_tensor(touch)
                read[tensor] = read.get(tensor, 0) + touch.bytes_moved
        return tuple(
            Access(
                tensor=tensor,
                bytes_read=read.get(tensor, 0),
                bytes_written=written.get(tensor, 0),
            )
            for tensor in dict.fromkeys((*read, *written))
        )

    def _reads_nothing(self, touch: Touch) -> bool:
        """Whether a kernel only seems to read: memory that it both writes and reads, still empty.

        Inductor calls a pointer ``in_out`` too when the kernel itself made what it reads there.
        """
        is_both = touch.argument is not None and touch.argument.startswith("in_out_ptr")
        return is_both and not touch.is_write and self._region(touch) not in self.held

    def _read_tensor(self, touch: Touch) -> str:
        region = self._region(touch)
        tensor = self.held.get(region)
        if tensor is None:
            tensor = self._add("other", touch.use, TensorRole.WORKSPACE)
            self.held[region] = tensor
        return tensor

    def _written_tensor(
        self, touch: Touch, call: RecordedCall, origin: CallOrigin, finished: set[str]
    ) -> str:
        region = self._region(touch)
        updated = self.held.get(region)
        if updated is not None and (not touch.is_fresh or region in self.inputs):
            return updated
        tensor = self._new_value(touch, call, origin, finished)
        self.held[region] = tensor
        return tensor

    def _new_value(
        self, touch: Touch, call: RecordedCall, origin: CallOrigin, finished: set[str]
    ) -> str:
        node = self._node_of(touch, call, origin)
        helper = self._helper_name(touch, origin)
        if helper is not None:
            return self._add(helper, touch.use, TensorRole.WORKSPACE)
        if node is None:
            for op in self._ops(finished):
                found = self._graph_tensor(op, touch.use)
                if found is not None:
                    return found
            joined = self._joined(touch.use, finished)
            if joined is not None:
                return joined
            return self._add(_description(touch, call, origin), touch.use, TensorRole.WORKSPACE)
        notes = origin.notes
        joined = None if notes is None else self._joined_by(joining_node(notes, node), notes, touch)
        if joined is not None:
            return joined
        name = None if notes is None else self.origins.op_of(notes, node.name)
        if notes is not None and name is not None and leaves_its_op(notes, node, self.origins):
            for op in self._ops({name}):
                found = self._graph_tensor(op, touch.use)
                if found is not None:
                    return found
        return self._add(_value_name(node, name), touch.use, TensorRole.WORKSPACE)

    def _node_of(self, touch: Touch, call: RecordedCall, origin: CallOrigin) -> GraphNode | None:
        """The node whose value a compiled call writes there."""
        notes = origin.notes
        if notes is None:
            return None
        if call.kind is CallKind.ATEN:
            return notes.nodes.get(origin.nodes[0]) if len(origin.nodes) == 1 else None
        buffer = notes.buffers.get(touch.variable or "")
        return None if buffer is None else computing_node(notes, buffer)

    def _helper_name(self, touch: Touch, origin: CallOrigin) -> str | None:
        """What a person calls a buffer that holds no op's value: ``mean: sum``."""
        notes = origin.notes
        helper = None if notes is None else notes.helpers.get(touch.variable or "")
        if notes is None or helper is None:
            return None
        how = helper.how.replace("_", " ")
        ops = [op for op in (self.origins.op_of(notes, node) for node in helper.nodes) if op]
        return f"{ops[-1]}: {how}" if ops else how

    def _ops(self, names: set[str]) -> list[Op]:
        """Last first: what a call leaves behind is most likely the result of its last op."""
        return [op for op in reversed(self.prepared.graph.ops) if op.name in names]

    def _graph_tensor(self, op: Op, use: TensorUse) -> str | None:
        """A tensor of the op that this may be, by size and dtype, which no launch wrote yet."""
        for tensor_id in op.writes:
            tensor = self.prepared.graph.tensor(tensor_id)
            alike = _count(tensor.shape) == _count(use.shape) and tensor.dtype == use.dtype
            if alike and tensor_id not in self.written:
                self.tensors[tensor_id] = tensor
                self.written.add(tensor_id)
                return tensor_id
        return None

    def _joined(self, use: TensorUse, finished: set[str]) -> str | None:
        """A concatenation that is written part by part into its own memory, if this is a part."""
        for op in self._ops(finished):
            tensor = self.prepared.graph.tensor(op.writes[0])
            alike = tensor.n_bytes == use.storage_bytes and tensor.dtype == use.dtype
            if op.aten == "aten.cat.default" and alike and tensor.id not in self.written:
                self.tensors[tensor.id] = tensor
                self.written.add(tensor.id)
                return tensor.id
        return None

    def _joined_by(self, node: GraphNode | None, notes: ModuleNotes, touch: Touch) -> str | None:
        """What a concatenation makes, if the memory written to is a part of it."""
        name = None if node is None else self.origins.op_of(notes, node.name)
        for op in self._ops({name} if name else set()):
            tensor = self.prepared.graph.tensor(op.writes[0])
            if tensor.n_bytes == touch.use.storage_bytes and tensor.dtype == touch.use.dtype:
                self.tensors[tensor.id] = tensor
                self.written.add(tensor.id)
                return tensor.id
        return None

    def _add(self, name: str, use: TensorUse, role: TensorRole) -> str:
        """A tensor that the graph does not name."""
        tensor_id, number = name, 2
        taken = {tensor.id for tensor in self.prepared.graph.tensors}
        while tensor_id in self.tensors or tensor_id in taken:
            tensor_id = f"{name} ({number})"
            number += 1
        self.tensors[tensor_id] = _tensor(tensor_id, name, use, role)
        return tensor_id


def _tensor(tensor_id: str, name: str, use: TensorUse, role: TensorRole) -> Tensor:
    return Tensor(
        id=tensor_id, name=name, shape=use.shape, dtype=use.dtype, n_bytes=use.n_bytes, role=role
    )


def _count(shape: tuple[int, ...]) -> int:
    elements = 1
    for size in shape:
        elements *= size
    return elements


def _value_name(node: GraphNode, op: str | None) -> str:
    """What a person calls a value inside an op: ``softmax: amax``."""
    if node.target in _RANDOM_NUMBERS:
        return "random numbers"
    if node.target in _RANDOM_SEEDS:
        return "random seeds"
    parts = node.target.split(".")
    short = parts[1] if len(parts) > 1 else node.target
    return short if op is None else f"{op}: {short}"


def _description(touch: Touch, call: RecordedCall, origin: CallOrigin) -> str:
    """What a person calls a value of which only the call is known."""
    if call.name in _RANDOM_NUMBERS:
        return "random numbers"
    if call.kind is not CallKind.ATEN:
        return "scratch"
    if touch.argument is not None:
        return touch.argument.replace("_", " ")
    short = call.name.split(".")[1].strip("_")
    return f"{origin.ops[0]}: {short}" if origin.ops else short


def _by_nest(touches: tuple[Touch, ...], function: FunctionNotes) -> tuple[Touch, ...]:
    """What each loop nest of a C++ function reads and writes, nest by nest.

    Between nests memory is read again, which the function's arguments alone do not tell. Where the
    nests do not account for an argument, the arguments stand.
    """
    uses = {touch.argument: touch.use for touch in touches}
    split: list[Touch] = []
    for nest in function.nests:
        for is_write, sizes in ((False, nest.bytes_read), (True, nest.bytes_written)):
            for buffer, n_bytes in sizes.items():
                pointer = function.pointers.get(buffer)
                if pointer in uses:
                    split.append(
                        Touch(
                            use=uses[pointer],
                            is_write=is_write,
                            is_fresh=is_write,
                            argument=pointer,
                            variable=buffer,
                            n_bytes=n_bytes,
                        )
                    )
    told = {touch.argument for touch in touches}
    return tuple(split) if told <= {touch.argument for touch in split} else touches


def loop_nests(
    function: FunctionNotes, ops_of: Callable[[Sequence[str]], tuple[str, ...]]
) -> tuple[LoopNest, ...]:
    """The parts of a C++ function.

    Args:
        function: What was seen of it.
        ops_of: Names of the ops that some nodes of its graph belong to, in the chain's order.
    """
    return tuple(
        LoopNest(
            name=f"loop nest {number}",
            ops=ops_of(nest.nodes),
            bytes_read=sum(nest.bytes_read.values()),
            bytes_written=sum(nest.bytes_written.values()),
        )
        for number, nest in enumerate(function.nests, start=1)
    )


def _loop_nests(origin: CallOrigin, origins: Origins, prepared: Prepared) -> tuple[LoopNest, ...]:
    notes, function = origin.notes, origin.function
    if notes is None or function is None:
        return ()

    def ops_of(nodes: Sequence[str]) -> tuple[str, ...]:
        inside = {origins.op_of(notes, node) for node in nodes}
        return tuple(op.name for op in prepared.graph.ops if op.name in inside)

    return loop_nests(function, ops_of)


def _inside(origin: CallOrigin, prepared: Prepared, written: set[str]) -> tuple[str, ...]:
    """The graph's tensors that go from op to op inside one launch and never to memory.

    What is updated in place lies in memory: it is an input.
    """
    ops = [op for op in prepared.graph.ops if op.name in origin.ops]
    read = {tensor for op in ops for tensor in op.reads}
    made = dict.fromkeys(tensor for op in ops for tensor in op.writes)
    in_memory = written | {t.id for t in prepared.graph.tensors if t.role is TensorRole.INPUT}
    return tuple(tensor for tensor in made if tensor in read and tensor not in in_memory)
