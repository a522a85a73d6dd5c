"""Sums of bytes over the launches of a run, with the pedigrees kept apart.

A sum has a pedigree only where every launch that moves the chain's data has it: a total that is
counted for five kernels and modelled for the sixth would be neither. Helpers (copies, fills and
seeds that the chain does not ask for) may lack bytes, since counters see kernels only; they are
then left out of the sum and their number is told.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from explorer.model.run import Bytes, Launch, Pedigree, Run
from explorer.model.same import Same

NEGLIGIBLE_SHARE = 1e-4
"""A helper that moves less than this share of a sum may be missing from it unsaid."""

_PEDIGREES = (Pedigree.COUNTED, Pedigree.SAMPLED, Pedigree.MODELLED, Pedigree.PLANNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes read from and written to device memory, by pedigree.

    Attributes:
        bytes_read: Read.
        bytes_written: Written.
        launches_left_out: Helpers without bytes in the strongest pedigree, which the sums lack;
            those apart of which the model knows that they do not matter.
    """

    bytes_read: Bytes
    bytes_written: Bytes
    launches_left_out: int = 0

    @property
    def pedigree(self) -> Pedigree | None:
        """The strongest pedigree that both directions have, or None."""
        for pedigree in _PEDIGREES:
            if value_of(self.bytes_read, pedigree) is not None and (
                value_of(self.bytes_written, pedigree) is not None
            ):
                return pedigree
        return None

    def of(self, pedigree: Pedigree) -> tuple[int, int] | None:
        """Read and written bytes of one pedigree, None unless both are there."""
        read = value_of(self.bytes_read, pedigree)
        written = value_of(self.bytes_written, pedigree)
        return None if read is None or written is None else (read, written)

    @property
    def best(self) -> tuple[int, int, Pedigree] | None:
        """Read and written bytes in the strongest pedigree that both have, with it."""
        pedigree = self.pedigree
        values = self.of(pedigree) if pedigree else None
        return None if pedigree is None or values is None else (*values, pedigree)

    @property
    def both(self) -> Bytes:
        """Read plus written, by pedigree."""
        return added(self.bytes_read, self.bytes_written)


def value_of(n_bytes: Bytes, pedigree: Pedigree) -> int | None:
    """The bytes of one pedigree, None if they were not taken."""
    value: int | None = getattr(n_bytes, pedigree.value)
    return value


def added(first: Bytes, second: Bytes) -> Bytes:
    """Add two quantities; a pedigree that one of them lacks the sum lacks too."""
    return Bytes(
        **{
            name: None if a is None or b is None else a + b
            for name in ("planned", "modelled", "counted", "sampled", "settled")
            for a, b in ((getattr(first, name), getattr(second, name)),)
        }
    )


def launch_traffic(launch: Launch) -> Traffic:
    """What one launch moved."""
    return Traffic(bytes_read=launch.bytes_read, bytes_written=launch.bytes_written)


def run_traffic(run: Run) -> Traffic:
    """What all launches of a run moved.

    Where the launches have no counted bytes but the call as a whole has (a CUDA graph), the
    counted total is the call's.
    """
    return _run_traffic(Same(run))


# A sweep's plot, table and words ask for the same of hundreds of runs whenever one is added.
@lru_cache(maxsize=384)
def _run_traffic(key: Same[Run]) -> Traffic:
    run = key.it
    read = _summed((launch.is_helper, launch.bytes_read) for launch in run.launches)
    written = _summed((launch.is_helper, launch.bytes_written) for launch in run.launches)
    if run.counters is not None:
        if read.counted is None:
            read = replace(read, counted=run.counters.total_bytes_read)
        if written.counted is None:
            written = replace(written, counted=run.counters.total_bytes_written)
    traffic = Traffic(bytes_read=read, bytes_written=written)
    return replace(traffic, launches_left_out=_left_out(run.launches, traffic))


def _summed(items: Iterable[tuple[bool, Bytes]]) -> Bytes:
    parts = tuple(items)
    sums: dict[str, int | None] = {}
    for name in ("planned", "modelled", "counted", "sampled", "settled"):
        values = [(is_helper, getattr(n_bytes, name)) for is_helper, n_bytes in parts]
        known = [value for _, value in values if value is not None]
        has_gap = any(value is None and not is_helper for is_helper, value in values)
        sums[name] = sum(known) if known and not has_gap else None
    return Bytes(**sums)


def _left_out(launches: Iterable[Launch], traffic: Traffic) -> int:
    if traffic.best is None:
        return 0
    read, written, pedigree = traffic.best
    least = NEGLIGIBLE_SHARE * (read + written)
    count = 0
    for launch in launches:
        of_launch = launch_traffic(launch)
        if launch.is_helper and of_launch.of(pedigree) is None:
            modelled = of_launch.of(Pedigree.MODELLED)
            count += modelled is None or sum(modelled) > least
    return count


def achieved_bytes_per_s(launch: Launch) -> tuple[float, Pedigree] | None:
    """Traffic of a launch over its duration, with the pedigree of its bytes.

    Returns:
        Bytes a second, or None where the duration or the bytes are unknown.
    """
    best = launch_traffic(launch).best
    if best is None or not launch.duration_us:
        return None
    read, written, pedigree = best
    return (read + written) / (launch.duration_us * 1e-6), pedigree


def model_difference(n_bytes: Bytes) -> float | None:
    """How much more was counted than modelled, as a share of the model: 0.25 is a quarter more.

    Returns:
        None unless both are there and the model is not zero.
    """
    if n_bytes.counted is None or not n_bytes.modelled:
        return None
    return n_bytes.counted / n_bytes.modelled - 1


def peak_bytes(run: Run) -> int | None:
    """Highest memory over the inputs in one call, the private pool of a CUDA graph included."""
    if run.memory is None:
        return None
    return max(run.memory.peak_bytes, run.memory.graph_pool_bytes or 0)


def round_trips(launches: Iterable[Launch]) -> tuple[str, ...]:
    """Tensors that one launch writes and a later one reads back, by the model, in order written.

    Returns:
        Ids of the run's tensors.
    """
    written: dict[str, None] = {}
    found: dict[str, None] = {}
    for launch in launches:
        for access in launch.accesses:
            if access.bytes_read and access.tensor in written:
                found[access.tensor] = None
        for access in launch.accesses:
            if access.bytes_written:
                written[access.tensor] = None
    return tuple(tensor for tensor in written if tensor in found)
