"""Kernels whose DRAM bytes are known beforehand, to check the counters by.

A kernel of many times the L2's size must read and write its tensors once. Two things blur that and
are kept out. Lines that earlier work left dirty in the L2 would be written back during the kernel:
so the L2 is filled beforehand by *reading* twice its size (filling it by writing would leave it
dirty again). And what the kernel itself leaves dirty is written after its end: so the same read
follows, and the written bytes are those of both together, *settled*. The bytes read are the
kernel's own, without those of the flush behind it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from explorer.engine.cupti.counters import DramCounters
from explorer.model.errors import ExplorerError

SIZE_IN_L2 = 16
FLUSH_IN_L2 = 2
TOLERANCE = 0.01
_ITEM_BYTES = 4  # fp32


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBytesCheck:
    """One kernel: what it must move and what was counted.

    Attributes:
        name: ``copy``, ``fill`` or ``read``.
        expected_read: Bytes.
        expected_written: Bytes.
        counted_read: Bytes read from DRAM by the kernel.
        counted_written: Bytes written to DRAM by the kernel and by the flush behind it.
    """

    name: str
    expected_read: int
    expected_written: int
    counted_read: int
    counted_written: int

    @property
    def relative_error(self) -> float:
        """The larger of both differences, as a share of all bytes the kernel must move."""
        worst = max(
            abs(self.counted_read - self.expected_read),
            abs(self.counted_written - self.expected_written),
        )
        return worst / (self.expected_read + self.expected_written)

    @property
    def agrees(self) -> bool:
        """Whether it is within the tolerance of 1 %."""
        return self.relative_error <= TOLERANCE


def check_known_bytes(
    device_index: int = 0, *, counters: DramCounters | None = None
) -> list[KnownBytesCheck]:
    """Count a copy, a fill and a read of 16 times the L2.

    Args:
        device_index: The CUDA device, as torch counts.
        counters: Opened counters of that device; opened and closed here when None.

    Returns:
        One check a kernel.

    Raises:
        CounterRefused: The counters cannot be read.
        ExplorerError: Too little memory is free on the device.
    """
    if counters is None:
        with DramCounters(device_index) as opened:
            return check_known_bytes(device_index, counters=opened)
    device = torch.device("cuda", device_index)
    l2_bytes = int(torch.cuda.get_device_properties(device).L2_cache_size)
    tensor_bytes = SIZE_IN_L2 * l2_bytes
    flush_bytes = FLUSH_IN_L2 * l2_bytes
    _check_free(device, 2 * tensor_bytes + 2 * flush_bytes)
    with torch.no_grad(), torch.cuda.device(device):
        source = torch.rand(tensor_bytes // _ITEM_BYTES, device=device)
        target = torch.empty_like(source)
        # Two of them: one still in the L2 from before the kernel would not be read after it.
        flushes = [torch.rand(flush_bytes // _ITEM_BYTES, device=device) for _ in range(2)]
        kernels = (
            _Kernel("copy", lambda: torch.neg(source, out=target), reads=1, writes=1),
            _Kernel("fill", lambda: target.fill_(1.0), reads=0, writes=1),
            _Kernel("read", source.sum, reads=1, writes=0),
        )
        return [_check(counters, kernel, flushes, source.nbytes) for kernel in kernels]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel that reads and writes whole tensors of one size, so many times each."""

    name: str
    launch: Callable[[], object]
    reads: int
    writes: int


def _check(
    counters: DramCounters, kernel: _Kernel, flushes: list[torch.Tensor], tensor_bytes: int
) -> KnownBytesCheck:
    sections: list[Callable[[], object]] = [flushes[0].sum, kernel.launch, flushes[1].sum]
    for section in sections:
        section()  # loads the kernel's code, which is no traffic of its own
    _, inside, behind = counters.measure_sections(sections).ranges
    return KnownBytesCheck(
        name=kernel.name,
        expected_read=kernel.reads * tensor_bytes,
        expected_written=kernel.writes * tensor_bytes,
        counted_read=inside.bytes_read,
        counted_written=inside.bytes_written + behind.bytes_written,
    )


def _check_free(device: torch.device, needed_bytes: int) -> None:
    free_bytes, _ = torch.cuda.mem_get_info(device)
    if free_bytes < needed_bytes:
        raise ExplorerError(
            f"The counters cannot be checked: it takes {needed_bytes / 1e9:.1f} GB of GPU memory "
            f"and {free_bytes / 1e9:.1f} GB are free; close what else uses the GPU."
        )
