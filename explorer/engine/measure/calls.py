"""What one call of an operator or kernel does to memory, as its arguments tell.

The model of bytes: each tensor outside is read once, at the size its strides can reach (an axis of
stride 0 once), and each result is written once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from explorer.engine.chain_functions.base import DTYPE_NAMES
from explorer.engine.measure.generated import Pointer
from explorer.engine.measure.triton_code import PointerUse
from explorer.engine.op_facts import allocates, is_view, picks, puts, takes_shape_only

_OVERWRITING = {
    "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_", "log_normal_",
    "normal_", "random_", "uniform_", "zero_",
}  # fmt: skip
"""Operators in place that do not read what they overwrite."""

_SPARED = {("_fused_adam_", "grads"), ("_fused_adamw_", "grads")}
"""Arguments declared as written that are only read: gradients are written back where a scale is
taken out of them, which no optimizer here asks for; counters saw no such bytes on an H200."""

_SAME_OPERATOR = {"_safe_softmax": "_softmax"}
_NOT_OPERATORS = {"profiler", "prim", "prims"}


class CallKind(StrEnum):
    """Who made the code that is called."""

    ATEN = "aten"
    TRITON = "triton"
    CPP = "cpp"
    LIBRARY = "library"
    """A Triton kernel that somebody wrote, launched by Triton itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorUse:
    """A tensor as a call sees it, without holding it alive.

    Attributes:
        storage: Address of its memory.
        address: Where in it the view begins.
        shape: Sizes of the view that the call is given.
        dtype: By the name used on screen.
        n_bytes: Bytes its strides can reach.
        storage_bytes: Bytes of that memory, 0 if unknown; a view has fewer.
    """

    storage: int
    address: int
    shape: tuple[int, ...]
    dtype: str
    n_bytes: int
    storage_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One thing a call does to one tensor; a call's touches are in order.

    Attributes:
        use: The tensor.
        is_write: Written, else read.
        is_fresh: Of a write: what was there before is gone. An update in place is not fresh.
        argument: The kernel's name for it (``in_ptr0``), or an operator's for its result
            (``logsumexp``), if it has one.
        variable: The generated code's name for it (``buf3``), if it has one.
        n_bytes: Bytes moved where they are not simply ``use.n_bytes``.
    """

    use: TensorUse
    is_write: bool
    is_fresh: bool = False
    argument: str | None = None
    variable: str | None = None
    n_bytes: int | None = None

    @property
    def bytes_moved(self) -> int:
        """Bytes read or written."""
        return self.use.n_bytes if self.n_bytes is None else self.n_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call of an operator or a kernel.

    Attributes:
        kind: ATen, Triton or C++.
        name: The overload (``aten.mul.Tensor``) or the generated kernel's name.
        touches: What it does to memory.
        source_line: Where the chain's code called it, None if it was not seen to.
        source_file: The file of that line.
        module: Path of the generated module that called it.
        module_key: Inductor's key of that module.
        module_line: Line there.
        spills: Register spills, as Triton reports them.
        allocated: Memory that generated code took since the call before; it holds nothing yet.
        graph: Which of the compiled graphs that ran one after the other made the call.
        is_backward: Autograd made it, in the backward pass.
    """

    kind: CallKind
    name: str
    touches: tuple[Touch, ...]
    source_line: int | None = None
    source_file: str | None = None
    module: str | None = None
    module_key: str | None = None
    module_line: int | None = None
    spills: int | None = None
    allocated: frozenset[int] = frozenset()
    graph: int | None = None
    is_backward: bool = False


def packet_of(overload: str) -> str:
    """``aten.mul.Tensor`` -> ``aten.mul``: overloads of one operator are alike."""
    parts = overload.split(".")
    if len(parts) < 2:
        return overload
    return f"{parts[0]}.{_SAME_OPERATOR.get(parts[1], parts[1])}"


def computes(operator: torch._ops.OpOverload) -> bool:
    """Whether an operator moves data: views, allocations and checks do not."""
    if operator.namespace in _NOT_OPERATORS or is_view(operator) or allocates(operator):
        return False
    arguments = operator._schema.arguments
    writes = any(a.alias_info is not None and a.alias_info.is_write for a in arguments)
    return writes or any("Tensor" in str(result.type) for result in operator._schema.returns)


def use_of(tensor: torch.Tensor) -> TensorUse:
    """Describe a tensor."""
    return TensorUse(
        storage=tensor.untyped_storage().data_ptr(),
        address=tensor.data_ptr(),
        shape=tuple(tensor.shape),
        dtype=DTYPE_NAMES.get(tensor.dtype, str(tensor.dtype).removeprefix("torch.")),
        n_bytes=reachable_bytes(tensor),
        storage_bytes=tensor.untyped_storage().nbytes(),
    )


def reachable_bytes(tensor: torch.Tensor) -> int:
    """Bytes of memory that a tensor's elements lie in, each counted once.

    An axis of stride 0 counts once; windows that overlap count no more than they span.
    """
    if tensor.numel() == 0:
        return 0
    axes = [(n, step) for n, step in zip(tensor.shape, tensor.stride(), strict=True) if step]
    elements, span = 1, 1
    for n, step in axes:
        elements *= n
        span += (n - 1) * abs(step)
    return min(elements, span) * tensor.element_size()


def aten_touches(
    operator: torch._ops.OpOverload,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
    result: Any,
    device_type: str,
) -> tuple[Touch, ...]:
    """What an operator did, from its schema, its arguments and its result."""
    name = operator._schema.name.rpartition("::")[2]
    reads: list[Touch] = []
    writes: list[Touch] = []
    seen: set[tuple[int, int, tuple[int, ...], tuple[int, ...]]] = set()
    for place, declared in enumerate(operator._schema.arguments):
        given = arguments[place] if place < len(arguments) else keywords.get(declared.name)
        is_written = declared.alias_info is not None and declared.alias_info.is_write
        is_written = is_written and (name, declared.name) not in _SPARED
        is_out = is_written and declared.kwarg_only
        overwrites = is_out or (is_written and name in _OVERWRITING)
        for tensor in _tensors(given, device_type):
            use = use_of(tensor)
            n_bytes = _part_reached(operator, arguments, result, use) if place == 0 else None
            identity = (use.storage, use.address, use.shape, tuple(tensor.stride()))
            unread = overwrites or takes_shape_only(operator, declared.name)
            if not (unread or identity in seen):
                seen.add(identity)
                reads.append(Touch(use=use, is_write=False, n_bytes=n_bytes))
            if is_written:
                writes.append(Touch(use=use, is_write=True, is_fresh=overwrites, n_bytes=n_bytes))
    known = {touch.use.storage for touch in (*reads, *writes)}
    results = result if isinstance(result, tuple) else (result,)
    for value, declared_result in zip(results, operator._schema.returns, strict=False):
        for tensor in _tensors(value, device_type):
            use = use_of(tensor)
            if use.storage not in known and use.n_bytes:
                known.add(use.storage)
                argument = declared_result.name or None
                writes.append(Touch(use=use, is_write=True, is_fresh=True, argument=argument))
    return (*_without_wholes(reads), *writes)


def triton_touches(
    names: Sequence[str], arguments: Sequence[Any], mutated: Iterable[str]
) -> tuple[Touch, ...]:
    """What a generated Triton kernel does, from its arguments' names.

    Args:
        names: In the kernel's signature: ``in_ptr0``, ``out_ptr0``, ``in_out_ptr0``, ...
        arguments: As passed.
        mutated: Names of arguments that are written without being named so.
    """
    reads: list[Touch] = []
    writes: list[Touch] = []
    changed = set(mutated)
    written: set[int] = set()
    for name, value in zip(names, arguments, strict=False):
        if not isinstance(value, torch.Tensor):
            continue
        use = use_of(value)
        both = name.startswith("in_out_ptr")
        only_written = name.startswith("out_ptr")
        if not only_written:
            reads.append(Touch(use=use, is_write=False, argument=name))
        is_written = both or only_written or name in changed
        # A kernel that updates its input has it twice: as what it reads, and as what it writes.
        if is_written and value.data_ptr() not in written:
            written.add(value.data_ptr())
            fresh = both or only_written
            writes.append(Touch(use=use, is_write=True, is_fresh=fresh, argument=name))
    return (*reads, *writes)


def cpp_touches(declared: Sequence[Pointer | None], arguments: Sequence[Any]) -> tuple[Touch, ...]:
    """What a generated C++ function does, from its signature: what is not const is written."""
    reads: list[Touch] = []
    writes: list[Touch] = []
    for pointer, value in zip(declared, arguments, strict=False):
        if pointer is None or not isinstance(value, torch.Tensor):
            continue
        use = use_of(value)
        if pointer.is_const or pointer.name.startswith("in_out_ptr"):
            reads.append(Touch(use=use, is_write=False, argument=pointer.name))
        if not pointer.is_const:
            writes.append(Touch(use=use, is_write=True, is_fresh=True, argument=pointer.name))
    return (*reads, *writes)


def library_touches(
    names: Sequence[str], arguments: Sequence[Any], uses: Sequence[PointerUse]
) -> tuple[Touch, ...]:
    """What a Triton kernel that somebody wrote does.

    Args:
        names: In the kernel's signature.
        arguments: As passed, in that order.
        uses: Of the tensors among them, in that order. Where it does not fit them, they are taken
            to be read.
    """
    tensors = [
        (name, value)
        for name, value in zip(names, arguments, strict=True)
        if isinstance(value, torch.Tensor)
    ]
    if len(uses) != len(tensors):
        uses = [PointerUse(is_read=True, is_written=False)] * len(tensors)
    reads = [
        Touch(use=use_of(value), is_write=False, argument=name)
        for (name, value), use in zip(tensors, uses, strict=True)
        if use.is_read
    ]
    read = {touch.use.storage for touch in reads}
    writes = [
        Touch(
            use=(written := use_of(value)),
            is_write=True,
            is_fresh=written.storage not in read,
            argument=name,
        )
        for (name, value), use in zip(tensors, uses, strict=True)
        if use.is_written
    ]
    return (*reads, *writes)


def _without_wholes(reads: Sequence[Touch]) -> Iterator[Touch]:
    """The reads without those of a buffer that is made up of others.

    cuDNN is given the weights of an RNN one by one, and the buffer in which they lie.
    """
    together: dict[int, list[TensorUse]] = {}
    for use in sorted((touch.use for touch in reads), key=lambda use: use.address):
        together.setdefault(use.storage, []).append(use)
    for touch in reads:
        whole, reached = touch.use, touch.use.address
        for part in together[whole.storage]:
            if part.n_bytes < whole.n_bytes and part.address == reached:
                reached += part.n_bytes
        if reached != whole.address + whole.n_bytes or not whole.n_bytes:
            yield touch


def _part_reached(
    operator: torch._ops.OpOverload, arguments: Sequence[Any], result: Any, first: TensorUse
) -> int | None:
    """Bytes of its first tensor that an operator reaches, None for all of them."""
    elements = puts(operator, arguments)
    if elements is not None:
        each: int = arguments[0].element_size()
        return min(first.n_bytes, elements * each)
    if picks(operator) and isinstance(result, torch.Tensor):
        return min(first.n_bytes, reachable_bytes(result))
    return None


def _tensors(value: Any, device_type: str) -> Iterator[torch.Tensor]:
    """The tensors in an argument or result that lie on the device; a scalar's tensor does not."""
    if isinstance(value, torch.Tensor):
        if value.device.type == device_type and value.layout is torch.strided:
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item, device_type)
