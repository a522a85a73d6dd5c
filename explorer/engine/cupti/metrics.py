"""Which of a chip's metrics count DRAM bytes: the names differ from chip to chip."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.cupti.host import Host
from explorer.engine.cupti.library import CuptiLibrary

# Read and written, the first pair the chip lists. The second is that of the RTX 50 series.
_DRAM_PAIRS = (
    ("dram__bytes_read", "dram__bytes_write"),
    ("dram__bytes_op_read", "dram__bytes_op_write"),
)
# What the multiprocessors ask for. lts__t_bytes would also count what passes between the two halves
# of a large L2: on an H200 a copy then seems to request 1.55 times its bytes.
_REQUESTED = "lts__t_sectors_srcunit_tex"
SECTOR_BYTES = 32
_DURATION = "gpu__time_duration"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChoice:
    """The metrics to collect on a chip, as full names; None where one would cost a pass.

    Attributes:
        read: Bytes from DRAM.
        written: Bytes to DRAM.
        requested: Sectors of 32 bytes the multiprocessors request of the L2, hits and misses.
        duration: GPU time in nanoseconds.
        passes: How often the work runs for all of them.
    """

    read: str
    written: str
    requested: str | None
    duration: str | None
    passes: int

    @property
    def names(self) -> tuple[str, ...]:
        """All that are collected, in the order above."""
        optional = (self.requested, self.duration)
        return (self.read, self.written, *(name for name in optional if name))


def choose_metrics(
    available: Collection[str], pass_count: Callable[[Sequence[str]], int], chip: str
) -> MetricChoice:
    """Pick the DRAM metrics, and beside them what they can be collected with at no extra pass.

    Args:
        available: The chip's base metrics, without roll-up.
        pass_count: How many passes a set of full names takes on the chip.
        chip: Its name, for the message.

    Raises:
        CounterRefused: The chip lists no DRAM byte counters.
    """
    pair = next((pair for pair in _DRAM_PAIRS if set(pair) <= set(available)), None)
    if pair is None:
        raise CounterRefused(
            f"DRAM bytes are not counted: the GPU's chip ({chip}) has no counter for bytes read "
            "and written, so rely on the modelled bytes."
        )
    read, written = (f"{name}.sum" for name in pair)
    requested = f"{_REQUESTED}.sum" if _REQUESTED in available else None
    duration = f"{_DURATION}.sum" if _DURATION in available else None
    least = pass_count((read, written))
    for extras in ((requested, duration), (None, duration), (requested, None)):
        names = [read, written, *(name for name in extras if name)]
        if pass_count(names) <= least:
            return MetricChoice(
                read=read, written=written, requested=extras[0], duration=extras[1], passes=least
            )
    return MetricChoice(read=read, written=written, requested=None, duration=None, passes=least)


def choose_for_chip(library: CuptiLibrary, chip: str) -> MetricChoice:
    """:func:`choose_metrics` with CUPTI's own tables.

    Raises:
        CounterRefused: CUPTI does not know the chip, or the chip has no DRAM counters.
    """

    def pass_count(names: Sequence[str]) -> int:
        with Host(library, chip, names) as host:
            return host.pass_count(host.config_image())

    with Host(library, chip) as host:
        available = host.counter_names()
    return choose_metrics(available, pass_count, chip)
