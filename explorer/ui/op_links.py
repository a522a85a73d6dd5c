"""What lies between two ops: on chip, or through memory and with how many bytes. No Qt.

Before a run the bytes are ``planned``: every group of the plan one kernel. After one they are what
its launches' arguments say (``modelled``), since a counter knows launches but no tensors.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from explorer.model.legality import break_sentence
from explorer.model.opgraph import GraphBreak, Op
from explorer.model.run import FusionRefusal, Pedigree
from explorer.model.units import format_bytes, three_digits
from explorer.ui.graph_parts import Part


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
    TOGETHER = "together"
    """In one kernel, though neither reads what the other makes."""
    NO_DATA = "no data"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Between an op and the next, or one further down that reads what it makes.

    Attributes:
        first: Name of the op above.
        second: Name of the op below.
        tensors: Names of what the second reads of the first.
        state: How it gets there.
        bytes_written: To memory.
        bytes_read: Back from memory by the second op's kernel.
        pedigree: Of these bytes.
        shared: Names of what both read, where nothing passes between them.
        shared_bytes: Read twice while they are apart.
        refusal: Why the compiler did not fuse them, where it said so.
        graph_break: Lies between them: nothing can fuse them.
        bundle: The links that this one stands for, into or out of a folded part.
    """

    first: str
    second: str
    tensors: tuple[str, ...]
    state: LinkState
    bytes_written: int = 0
    bytes_read: int = 0
    pedigree: Pedigree = Pedigree.PLANNED
    shared: tuple[str, ...] = ()
    shared_bytes: int = 0
    refusal: FusionRefusal | None = None
    graph_break: GraphBreak | None = None
    bundle: tuple["Link", ...] = ()

    @property
    def n_bytes(self) -> int:
        """The round trip."""
        return self.bytes_written + self.bytes_read

    @property
    def is_fused(self) -> bool:
        """Whether one kernel carries out both."""
        return self.state in _FUSED


_FUSED = (LinkState.ON_CHIP, LinkState.KEPT, LinkState.DOUBTED, LinkState.TOGETHER)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideInput:
    """What an op reads that the op above did not make; bytes by the model or the plan."""

    name: str
    n_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRow:
    """An op with what stands round it, or a folded part in its place.

    Attributes:
        op: The op; of a folded part its first one.
        launches: Indices of the launches that carry it out, helpers apart; empty before a run.
        side_inputs: What else it reads, in argument order.
        n_bytes: What the kernels read and write whose first op it is.
        part: The part that is folded into this box; else the innermost one that begins here.
        folded: The ops in the box, none where it stands for one op.
    """

    op: Op
    launches: tuple[int, ...]
    side_inputs: tuple[SideInput, ...]
    n_bytes: int = 0
    part: Part | None = None
    folded: tuple[Op, ...] = ()

    @property
    def name(self) -> str:
        """What the box says: the op's name or the part's."""
        return self.part.title if self.part and self.folded else self.op.name

    @property
    def ops(self) -> tuple[Op, ...]:
        """Every op in the box."""
        return self.folded or (self.op,)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideLink:
    """A link past the ops between, drawn beside them.

    Attributes:
        link: What it says.
        above: Row of its first op.
        below: Row of its second op.
        lane: Which of the lanes beside the ops it takes, 0 the nearest.
        top: Row where its line begins: that of its first op, or one shortly above the second,
            where the first is so far away that a line would only be in the way.
    """

    link: Link
    above: int
    below: int
    lane: int
    top: int

    @property
    def is_cut(self) -> bool:
        """Whether only its end is drawn."""
        return self.top > self.above


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPicture:
    """The op graph as the panel draws it.

    Attributes:
        rows: The ops in order.
        links: Between each op and the next; one less than the rows.
        side_links: Data that goes past the next op.
        groups: First and last row of each stretch of ops that share a kernel.
        bridges: Last row of a stretch and first row of the next of the same kernel.
        parted: First and last row of a plan's group that became several launches.
        frames: First and last row of each open part that no other one is round.
        outputs: What the chain hands out.
        pedigree: Of all bytes in the picture.
    """

    rows: tuple[OpRow, ...]
    links: tuple[Link, ...]
    groups: tuple[tuple[int, int], ...]
    outputs: tuple[SideInput, ...]
    pedigree: Pedigree
    side_links: tuple[SideLink, ...] = ()
    bridges: tuple[tuple[int, int], ...] = ()
    parted: tuple[tuple[int, int], ...] = ()
    frames: tuple[tuple[int, int], ...] = ()

    @property
    def lanes(self) -> int:
        """How many lanes the side links take."""
        return max((side.lane + 1 for side in self.side_links), default=0)


def link_text(link: Link, memory: str) -> str:
    """The words on a link; ``memory`` is what the device's memory is called."""
    if link.graph_break is not None:
        return f"graph break · {format_bytes(link.n_bytes)}" if link.n_bytes else "graph break"
    if link.bundle:
        return f"{len(link.bundle)} links · {format_bytes(link.n_bytes)}"
    if link.state is LinkState.ON_CHIP:
        return "fused · 0 B"
    if link.state is LinkState.THROUGH_MEMORY:
        return f"via {memory} · {format_bytes(link.n_bytes)}"
    if link.state is LinkState.KEPT:
        return f"fused · {format_bytes(link.n_bytes)}"
    both = ", ".join(link.shared)
    if link.state is LinkState.TOGETHER:
        return f"fused · {both} read once" if both else "fused · no data"
    if link.state is LinkState.NO_DATA and both:
        return f"both read {both}"
    return {
        LinkState.DOUBTED: "fused · doubted",
        LinkState.REWRITTEN: "rewritten",
        LinkState.NO_DATA: "no data",
    }.get(link.state, "not known")


def link_sentence(link: Link, memory: str) -> str:
    """The same at length, with pedigree, for a tooltip and a screen reader."""
    if link.graph_break is not None:
        whole = replace(link, graph_break=None)
        told = break_sentence(link.first, link.second, link.graph_break)
        return f"{told} {link_sentence(whole, memory)}"
    if link.bundle:
        return (
            f"{len(link.bundle)} links into or out of a folded part, "
            f"{format_bytes(link.n_bytes)} written and read ({link.pedigree.value}). "
            "Open the part to see each and to switch it."
        )
    what = f"{' and '.join(link.tensors) or 'nothing'} between {link.first} and {link.second}"
    both = " and ".join(link.shared)
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
        LinkState.TOGETHER: f"One kernel carries out {link.first} and {link.second}, which pass "
        "nothing on to each other" + (f"; it reads {both} once for both." if both else "."),
        LinkState.NO_DATA: f"{link.second} reads nothing that {link.first} makes"
        + (f"; both read {both}, {format_bytes(link.shared_bytes)} each." if both else "."),
        LinkState.UNKNOWN: f"{what}: the launches of this run do not say which ops they carry out.",
    }[link.state]


def format_flops(flops: int) -> str:
    """``68_719_476_736`` -> ``"68.7 GFLOP"``."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if flops >= factor:
            return f"{three_digits(flops / factor)} {prefix}FLOP"
    return f"{flops} FLOP"
