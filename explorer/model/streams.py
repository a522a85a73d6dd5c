"""Each launch's traffic as streams: which bytes go between which tensor and the kernel.

The streams of a launch add up to the number printed for it, to the byte. Where a counter saw more
than the model accounts for, the rest is a stream of its own with a name; where it saw less, the
tensors' streams shrink in proportion, since the counter does not say whose bytes L2 held.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.model.run import Bytes, Launch, Pedigree

SETTLED_BELOW_L2 = 8
"""Below this many times the L2's size a kernel's writes mostly drain after it has ended."""


class Way(StrEnum):
    """Which way bytes go, seen from the kernel."""

    READ = "read"
    WRITE = "write"


class StreamKind(StrEnum):
    """What a stream's bytes are; the value is the word shown."""

    TENSOR = "tensor"
    REREAD = "re-read"
    SPILLED = "spilled"
    WRITE_BACK = "write-back"
    HELPER = "helper"
    UNEXPLAINED = "unexplained"
    L2 = "from L2"


KIND_SENTENCES: dict[StreamKind, str] = {
    StreamKind.TENSOR: "bytes of one tensor",
    StreamKind.REREAD: "counted beyond the model: tensors that the kernel asked for more than once",
    StreamKind.SPILLED: "counted beyond the model: registers spilled to memory",
    StreamKind.WRITE_BACK: "an earlier launch's data, written back from L2 during this one",
    StreamKind.HELPER: "moved by a copy or fill that the chain does not ask for",
    StreamKind.UNEXPLAINED: "counted beyond the model, cause not known",
    StreamKind.L2: "requests that L2 served: asked of L2 minus what went to or came from memory",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Bytes that flow one way during one launch.

    Attributes:
        way: Read or written, seen from the kernel.
        kind: A tensor's own bytes, or what else they are.
        n_bytes: How many; never 0.
        tensor: Id of the tensor, None for streams that are no tensor's.
        modelled_bytes: What the model says, for a tensor's stream.
    """

    way: Way
    kind: StreamKind
    n_bytes: int
    tensor: str | None = None
    modelled_bytes: int | None = None

    @property
    def is_memory_traffic(self) -> bool:
        """Whether the bytes cross the memory's pins; what L2 served does not."""
        return self.kind is not StreamKind.L2


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """The number printed for one way of a launch.

    Attributes:
        n_bytes: Bytes.
        pedigree: Where the number comes from, None if nothing is known.
        settled: Whether the write-back after the launch is included.
    """

    n_bytes: int
    pedigree: Pedigree | None
    settled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTraffic:
    """The traffic of one launch.

    Attributes:
        read: The number printed for reads.
        written: The number printed for writes.
        streams: They add up to ``read`` and ``written``; L2's stream comes on top.
    """

    read: Amount
    written: Amount
    streams: tuple[Stream, ...]

    @property
    def l2_bytes(self) -> int:
        """Bytes that L2 served."""
        return sum(s.n_bytes for s in self.streams if not s.is_memory_traffic)


def printed_amount(quantity: Bytes, l2_bytes: int) -> Amount:
    """The number to print: settled where a launch is small against L2, else the best there is."""
    best = quantity.best()
    if best is None:
        return Amount(n_bytes=0, pedigree=None)
    value, pedigree = best
    is_small = pedigree is Pedigree.COUNTED and value < SETTLED_BELOW_L2 * l2_bytes
    if is_small and quantity.settled is not None:
        return Amount(n_bytes=quantity.settled, pedigree=pedigree, settled=True)
    return Amount(n_bytes=value, pedigree=pedigree)


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """Split ``total`` in proportion to ``weights``; the parts add up to it exactly.

    The units that rounding leaves over go to the parts that lost most by it.
    """
    whole = sum(weights)
    if whole == 0:
        return [0] * len(weights)
    parts = [total * weight // whole for weight in weights]
    lost = sorted(range(len(weights)), key=lambda i: -(total * weights[i] % whole))
    for i in lost[: total - sum(parts)]:
        parts[i] += 1
    return parts


def split_traffic(
    launches: Sequence[Launch], tensor_bytes: Mapping[str, int], l2_bytes: int
) -> tuple[LaunchTraffic, ...]:
    """Split the traffic of every launch of a run into streams.

    Args:
        launches: In the order in which they ran.
        tensor_bytes: Sizes by tensor id.
        l2_bytes: Size of the last-level cache.
    """
    # Bytes that earlier launches wrote by the model and that no counter has seen leave L2 yet.
    waiting = 0
    split = []
    for launch in launches:
        read = printed_amount(launch.bytes_read, l2_bytes)
        written = printed_amount(launch.bytes_written, l2_bytes)
        reads, excess_read = _tensor_streams(launch, Way.READ, read.n_bytes)
        writes, excess_written = _tensor_streams(launch, Way.WRITE, written.n_bytes)
        write_kind = _write_excess_kind(launch)
        # What a copy or fill writes is first of all its own.
        is_own = write_kind is StreamKind.HELPER
        written_back = 0 if is_own else min(excess_written, waiting, l2_bytes)
        modelled_written = sum(access.bytes_written for access in launch.accesses)
        waiting = max(0, waiting + modelled_written - written.n_bytes)
        streams = [
            *reads,
            *_extra(Way.READ, _read_excess_kind(launch, excess_read, tensor_bytes), excess_read),
            *writes,
            *_extra(Way.WRITE, StreamKind.WRITE_BACK, written_back),
            *_extra(Way.WRITE, write_kind, excess_written - written_back),
            *_extra(Way.READ, StreamKind.L2, _served_by_l2(launch)),
        ]
        split.append(LaunchTraffic(read=read, written=written, streams=tuple(streams)))
    return tuple(split)


def _tensor_streams(launch: Launch, way: Way, printed: int) -> tuple[list[Stream], int]:
    """The tensors' streams of one way, and the printed bytes that no tensor accounts for."""
    modelled: dict[str, int] = {}
    for access in launch.accesses:
        n_bytes = access.bytes_read if way is Way.READ else access.bytes_written
        modelled[access.tensor] = modelled.get(access.tensor, 0) + n_bytes
    whole = sum(modelled.values())
    shown = min(printed, whole)
    parts = share_out(shown, list(modelled.values()))
    streams = [
        Stream(
            way=way, kind=StreamKind.TENSOR, n_bytes=part, tensor=tensor,
            modelled_bytes=modelled[tensor],
        )
        for tensor, part in zip(modelled, parts, strict=True)
        if part > 0
    ]  # fmt: skip
    return streams, printed - shown


def _extra(way: Way, kind: StreamKind, n_bytes: int) -> list[Stream]:
    return [Stream(way=way, kind=kind, n_bytes=n_bytes)] if n_bytes > 0 else []


def _read_excess_kind(launch: Launch, excess: int, tensor_bytes: Mapping[str, int]) -> StreamKind:
    """Name what was read beyond the model, as far as the launch itself allows to tell.

    Re-read, if a tensor smaller than the largest one touched (a broadcast one) can account for
    it, or if the kernel asked L2 for that much more than the model has it read once.
    """
    if launch.spills:
        return StreamKind.SPILLED
    if launch.is_helper and not launch.accesses:
        return StreamKind.HELPER
    read = [access for access in launch.accesses if access.bytes_read > 0]
    if not read:
        return StreamKind.UNEXPLAINED
    largest = max(tensor_bytes.get(access.tensor, 0) for access in launch.accesses)
    broadcast = sum(max(0, largest - tensor_bytes.get(access.tensor, largest)) for access in read)
    if 0 < excess <= broadcast:
        return StreamKind.REREAD
    asked_again = (launch.l2_bytes_requested or 0) - sum(
        access.bytes_read + access.bytes_written for access in launch.accesses
    )
    return StreamKind.REREAD if asked_again >= excess else StreamKind.UNEXPLAINED


def _write_excess_kind(launch: Launch) -> StreamKind:
    if launch.spills:
        return StreamKind.SPILLED
    is_helper = launch.is_helper and not launch.accesses
    return StreamKind.HELPER if is_helper else StreamKind.UNEXPLAINED


def _served_by_l2(launch: Launch) -> int:
    """Bytes asked of L2 that memory did not move; 0 where either was not counted."""
    read, written = launch.bytes_read.counted, launch.bytes_written.counted
    if read is None or written is None:
        return 0
    return max(0, (launch.l2_bytes_requested or 0) - read - written)
