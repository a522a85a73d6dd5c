"""A CUPTI and a driver in plain Python, with the habits of the real ones seen on an H200."""

from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char_p
from pathlib import Path

from explorer.engine.cupti import structs
from explorer.engine.cupti.driver import PrimaryContext
from explorer.engine.cupti.library import CuptiLibrary
from explorer.engine.cupti.structs import Block

METRICS = (
    b"dram__bytes_read",
    b"dram__bytes_write",
    b"lts__t_sectors_srcunit_tex",
    b"gpu__time_duration",
)


class FakeContext(PrimaryContext):
    """A context of a device that does nothing."""

    def __init__(self, device_index: int = 0) -> None:
        self.device = device_index
        self.handle = 0xC0DE
        self.is_closed = False
        self.synchronized = 0

    @contextmanager
    def current(self) -> Iterator[None]:
        yield

    def synchronize(self) -> None:
        self.synchronized += 1

    def close(self) -> None:
        self.is_closed = True


class FakeCupti(CuptiLibrary):
    """Counts what :meth:`launch` is told, keeps to the room it was given and reports no drops.

    Attributes:
        calls: Every function called, in order.
        refuse: Result code by function name.
        passes: How many runs a session asks for.
        drops: What the next sessions report as dropped, whatever their room.
        lost_ranges: How many ranges every session keeps to itself.
    """

    def __init__(self) -> None:
        self.path = Path("libcupti.so.13")
        self.api_version = 130001
        self.release = (13, 0)
        self.calls: list[str] = []
        self.refuse: dict[str, int] = {}
        self.passes = 1
        self.drops: list[int] = []
        self.lost_ranges = 0
        self.modes: tuple[int, int] = (0, 0)
        self._room = 0
        self._seen: list[tuple[float, ...]] = []
        self._starts = 0
        self._open_range: list[tuple[float, ...]] | None = None
        # c_char_p arrays that CUPTI would own
        self._names = (c_char_p * len(METRICS))(*METRICS)

    def launch(self, *values: float) -> None:
        """One launch: bytes read, bytes written, sectors, nanoseconds."""
        (self._seen if self._open_range is None else self._open_range).append(values)

    @property
    def holds_counters(self) -> bool:
        """Whether a profiler is enabled now."""
        enabled = self.calls.count("cuptiRangeProfilerEnable")
        return enabled > self.calls.count("cuptiRangeProfilerDisable")

    def result(self, function: str, block: Block) -> int:
        self.calls.append(function)
        if function in self.refuse:
            return self.refuse[function]
        handler = getattr(self, "_" + function, None)
        if handler is not None:
            handler(block)
        return 0

    def _cuptiDeviceGetChipName(self, block: structs.ChipName) -> None:  # noqa: N802
        block.chip_name = b"GH100"

    def _cuptiProfilerDeviceSupported(self, block: structs.DeviceSupported) -> None:  # noqa: N802
        for name, _ in structs.DeviceSupported._fields_[1:-2]:
            setattr(block, name, 3)

    def _cuptiProfilerHostInitialize(self, block: structs.HostInitialize) -> None:  # noqa: N802
        block.host = 0x4057

    def _cuptiProfilerHostGetBaseMetrics(self, block: structs.BaseMetrics) -> None:  # noqa: N802
        block.metric_names = self._names
        block.metric_count = len(METRICS)

    def _cuptiProfilerHostGetConfigImageSize(  # noqa: N802
        self, block: structs.ConfigImageSize
    ) -> None:
        block.image_size = 8

    def _cuptiProfilerHostGetNumOfPasses(self, block: structs.PassCount) -> None:  # noqa: N802
        block.pass_count = self.passes

    def _cuptiRangeProfilerGetCounterDataSize(  # noqa: N802
        self, block: structs.RangeDataSize
    ) -> None:
        block.data_image_size = 16

    def _cuptiRangeProfilerSetConfig(self, block: structs.RangeConfig) -> None:  # noqa: N802
        self._room = block.max_ranges_per_pass
        self.modes = (block.range_mode, block.replay_mode)
        self._starts = 0

    def _cuptiRangeProfilerStart(self, block: structs.RangeObject) -> None:  # noqa: N802
        self._seen.clear()
        self._starts += 1

    def _cuptiRangeProfilerPushRange(self, block: structs.RangePush) -> None:  # noqa: N802
        self._open_range = []

    def _cuptiRangeProfilerPopRange(self, block: structs.RangeObject) -> None:  # noqa: N802
        launches, self._open_range = self._open_range or [], None
        total = tuple(sum(column) for column in zip(*launches, strict=True)) or (0.0,) * 4
        self._seen.append(total)

    def _cuptiRangeProfilerStop(self, block: structs.RangeStop) -> None:  # noqa: N802
        by_kernel = self.modes[1] == structs.KERNEL_REPLAY
        block.all_passes_submitted = int(by_kernel or self._starts >= self.passes)

    def _cuptiRangeProfilerDecodeData(self, block: structs.RangeDecode) -> None:  # noqa: N802
        block.dropped_ranges = self.drops.pop() if self.drops else 0

    def _cuptiRangeProfilerGetCounterDataInfo(  # noqa: N802
        self, block: structs.RangeDataInfo
    ) -> None:
        block.range_count = min(len(self._seen), self._room) - self.lost_ranges

    def _cuptiProfilerHostEvaluateToGpuValues(self, block: structs.Evaluate) -> None:  # noqa: N802
        for place in range(block.metric_count):
            block.values[place] = self._seen[block.range_index][place]
