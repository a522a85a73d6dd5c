"""What lies between neighbouring ops: on chip, or through memory and with how many bytes. No Qt.

Before a run each op is its own kernel and the bytes are ``planned``; after one they are what its
launches' arguments say (``modelled``), since a counter knows launches but no tensors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.model.opgraph import Op, OpGraph
from explorer.model.run import Launch, Pedigree, Run
from explorer.model.tensor import TensorRole
from explorer.model.units import format_bytes, three_digits


class LinkState(StrEnum):
    """How a value gets from one op to the next."""

    ON_CHIP = "on chip"
    THROUGH_MEMORY = "through memory"
    KEPT = "kept in memory too"
    """In one kernel, yet it is written: something later reads it."""
    DOUBTED = "doubted"
    """No launch names it, yet the counters saw about as many bytes more, both ways."""
    REWRITTEN = "rewritten"
    """The strategy computes it in another way: no launch passes that value on."""
    NO_DATA = "no data"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Between an op and the next.

    Attributes:
        first: Name of the op above.
        second: Name of the op below.
        tensors: Names of what the second reads of the first.
        state: How it gets there.
        bytes_written: To memory.
        bytes_read: Back from memory by the second op's kernel.
        pedigree: Of these bytes.
    """

    first: str
    second: str
    tensors: tuple[str, ...]
    state: LinkState
    bytes_written: int = 0
    bytes_read: int = 0
    pedigree: Pedigree = Pedigree.PLANNED

    @property
    def n_bytes(self) -> int:
        """The round trip."""
        return self.bytes_written + self.bytes_read


@dataclass(frozen=True, slots=True, kw_only=True)
class SideInput:
    """What an op reads that the op above did not make; bytes by the model or the plan."""

    name: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """An op with what stands round it.

    Attributes:
        op: The op.
        launches: Indices of the launches that carry it out, helpers apart; empty before a run.
        side_inputs: What else it reads, in argument order.
    """

    op: Op
    launches: tuple[int, ...]
    side_inputs: tuple[SideInput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPicture:
    """The op graph as the panel draws it.

    Attributes:
        rows: The ops in order.
        links: Between each op and the next; one less than the rows.
        groups: First and last row of each kernel that carries several neighbours.
        outputs: What the chain hands out.
        pedigree: Of all bytes in the picture.
    """

    rows: tuple[OpRow, ...]
    links: tuple[Link, ...]
    groups: tuple[tuple[int, int], ...]
    outputs: tuple[SideInput, ...]
    pedigree: Pedigree


def chain_picture(graph: OpGraph, run: Run | None) -> ChainPicture:
    """Lay the chain out for a run, or as planned if there is none."""
    launches = run.launches if run else ()
    carriers = [_carriers(op, launches) for op in graph.ops]
    sides = _SideInputs(graph, launches)
    rows = tuple(
        OpRow(op=op, launches=carriers[i], side_inputs=sides.of(i, carriers[i]))
        for i, op in enumerate(graph.ops)
    )
    links = tuple(_link(graph, rows[i], rows[i + 1], launches) for i in range(len(graph.ops) - 1))
    outputs = tuple(
        SideInput(name=tensor.name, n_bytes=tensor.n_bytes)
        for tensor in graph.tensors
        if tensor.role is TensorRole.OUTPUT
    )
    pedigree = Pedigree.MODELLED if launches else Pedigree.PLANNED
    return ChainPicture(
        rows=rows, links=links, groups=_groups(carriers), outputs=outputs, pedigree=pedigree
    )


def link_text(link: Link, memory: str) -> str:
    """The words on a link; ``memory`` is what the device's memory is called."""
    if link.state is LinkState.ON_CHIP:
        return "fused · 0 B"
    if link.state is LinkState.THROUGH_MEMORY:
        return f"via {memory} · {format_bytes(link.n_bytes)}"
    if link.state is LinkState.KEPT:
        return f"fused · {format_bytes(link.n_bytes)}"
    return {
        LinkState.DOUBTED: "fused · doubted",
        LinkState.REWRITTEN: "rewritten",
        LinkState.NO_DATA: "no data",
    }.get(link.state, "not known")


def link_sentence(link: Link, memory: str) -> str:
    """The same at length, with pedigree, for a tooltip and a screen reader."""
    what = f"{' and '.join(link.tensors) or 'nothing'} between {link.first} and {link.second}"
    told = f"{format_bytes(link.bytes_written)} written, {format_bytes(link.bytes_read)} read back"
    return {
        LinkState.ON_CHIP: f"{what}: one kernel carries out both; 0 bytes, it stays on chip "
        f"(no launch has it as an argument).",
        LinkState.THROUGH_MEMORY: f"{what}: through {memory}, {told} ({link.pedigree.value}).",
        LinkState.KEPT: f"{what}: one kernel carries out both, but it is kept in {memory} as "
        f"well: {told} ({link.pedigree.value}).",
        LinkState.DOUBTED: f"{what}: no launch has it as an argument, but the counters saw that "
        f"much more traffic both ways; it may have been spilled to {memory}.",
        LinkState.REWRITTEN: f"{what}: this strategy computes it in another way; no launch passes "
        "that value on.",
        LinkState.NO_DATA: f"{link.second} reads nothing that {link.first} makes.",
        LinkState.UNKNOWN: f"{what}: the launches of this run do not say which ops they carry out.",
    }[link.state]


def format_flops(flops: int) -> str:
    """``68_719_476_736`` -> ``"68.7 GFLOP"``."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if flops >= factor:
            return f"{three_digits(flops / factor)} {prefix}FLOP"
    return f"{flops} FLOP"


def _carriers(op: Op, launches: Sequence[Launch]) -> tuple[int, ...]:
    """The launches that carry the op out, in order; helpers only where there is nothing else."""
    found = [i for i, launch in enumerate(launches) if op.name in launch.ops]
    own = [i for i in found if not launches[i].is_helper]
    return tuple(own or found)


class _SideInputs:
    """Finds what an op reads besides the value from the op above."""

    def __init__(self, graph: OpGraph, launches: Sequence[Launch]) -> None:
        self._graph = graph
        self._launches = launches

    def of(self, place: int, carriers: tuple[int, ...]) -> tuple[SideInput, ...]:
        """The side inputs of the op at a place, carried out by those launches."""
        op = self._graph.ops[place]
        above = set(self._graph.ops[place - 1].writes) if place else set()
        found = []
        for tensor_id in dict.fromkeys(op.reads):
            if tensor_id in above:
                continue
            tensor = self._graph.tensor(tensor_id)
            n_bytes = self._read_bytes(tensor_id, carriers)
            if n_bytes is None:
                n_bytes = tensor.n_bytes
            found.append(SideInput(name=tensor.name, n_bytes=n_bytes))
        return tuple(found)

    def _read_bytes(self, tensor_id: str, carriers: tuple[int, ...]) -> int | None:
        """What the launches read of a tensor; None if they do not name it."""
        named = [
            access.bytes_read
            for i in carriers
            for access in self._launches[i].accesses
            if access.tensor == tensor_id
        ]
        return sum(named) if named else None


def _link(graph: OpGraph, above: OpRow, below: OpRow, launches: Sequence[Launch]) -> Link:
    passed = [t for t in dict.fromkeys(below.op.reads) if t in above.op.writes]
    names = tuple(graph.tensor(t).name for t in passed)
    size = sum(graph.tensor(t).n_bytes for t in passed)

    def made(state: LinkState, written: int = 0, read: int = 0) -> Link:
        return Link(
            first=above.op.name,
            second=below.op.name,
            tensors=names,
            state=state,
            bytes_written=written,
            bytes_read=read,
            pedigree=Pedigree.MODELLED if launches else Pedigree.PLANNED,
        )

    if not passed:
        return made(LinkState.NO_DATA)
    if not launches:
        return made(LinkState.THROUGH_MEMORY, size, size)
    if not above.launches or not below.launches:
        return made(LinkState.UNKNOWN)
    first = [launches[i] for i in above.launches]
    second = [launches[i] for i in below.launches]
    written = sum(a.bytes_written for each in first for a in each.accesses if a.tensor in passed)
    read = sum(a.bytes_read for each in second for a in each.accesses if a.tensor in passed)
    shared = set(above.launches) & set(below.launches)
    if not shared:
        is_passed = bool(written or read)
        return made(LinkState.THROUGH_MEMORY if is_passed else LinkState.REWRITTEN, written, read)
    if written or read:
        return made(LinkState.KEPT, written, read)
    is_doubted = any(_is_doubted(launches[i], size) for i in shared)
    return made(LinkState.DOUBTED if is_doubted else LinkState.ON_CHIP)


def _is_doubted(launch: Launch, size: int) -> bool:
    """Whether counters saw so much more both ways that a value of that size may have spilled."""
    excess = []
    for n_bytes in (launch.bytes_read, launch.bytes_written):
        if n_bytes.counted is None or n_bytes.modelled is None:
            return False
        excess.append(n_bytes.counted - n_bytes.modelled)
    return size > 0 and 2 * min(excess) >= size


def _groups(carriers: Sequence[tuple[int, ...]]) -> tuple[tuple[int, int], ...]:
    """First and last of each stretch of neighbours that share a launch."""
    groups = []
    start = 0
    for i in range(1, len(carriers) + 1):
        if i < len(carriers) and set(carriers[i]) & set(carriers[i - 1]):
            continue
        if i - 1 > start:
            groups.append((start, i - 1))
        start = i
    return tuple(groups)
