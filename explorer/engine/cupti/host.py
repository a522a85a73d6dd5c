"""CUPTI's host side: a chip's metrics, how they are scheduled, and values out of raw counters.

Nothing here touches a GPU; releases before 13.2 answer without a driver too.
"""

import ctypes
from collections.abc import Sequence
from types import TracebackType

from explorer.engine.cupti import structs
from explorer.engine.cupti.library import CuptiLibrary

Image = ctypes.Array[ctypes.c_uint8]


class MetricNames:
    """Metric names as the C calls want them; they must outlive the call, so keep this object."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._array = (ctypes.c_char_p * len(names))(*(name.encode() for name in names))

    def __len__(self) -> int:
        return len(self.names)

    @property
    def address(self) -> int | None:
        """Where the array of pointers lies."""
        return ctypes.cast(self._array, ctypes.c_void_p).value


class Host:
    """CUPTI's model of one chip, with the metrics to be collected on it."""

    def __init__(self, library: CuptiLibrary, chip: str, metric_names: Sequence[str] = ()) -> None:
        """Make the model and schedule the metrics.

        Args:
            library: The opened CUPTI.
            chip: The chip's name, e.g. ``GH100``.
            metric_names: Full names, with their roll-up (``dram__bytes_read.sum``).

        Raises:
            CounterRefused: The chip or one of the metrics is not known.
        """
        self._library = library
        self.metrics = MetricNames(metric_names)
        block = structs.HostInitialize(
            profiler_type=structs.RANGE_PROFILER, chip_name=chip.encode()
        )
        self._host = library.call("cuptiProfilerHostInitialize", block).host
        if not metric_names:
            return
        try:
            library.call(
                "cuptiProfilerHostConfigAddMetrics",
                structs.AddMetrics(
                    host=self._host,
                    metric_names=self.metrics.address,
                    metric_count=len(self.metrics),
                ),
            )
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Host":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the model back."""
        if self._host is not None:
            self._library.result(
                "cuptiProfilerHostDeinitialize", structs.HostDeinitialize(host=self._host)
            )
            self._host = None

    def counter_names(self) -> frozenset[str]:
        """The chip's countable base metrics, without roll-up (``dram__bytes_read``)."""
        block = self._library.call(
            "cuptiProfilerHostGetBaseMetrics",
            structs.BaseMetrics(host=self._host, metric_type=structs.COUNTER_METRICS),
        )
        return frozenset(block.metric_names[i].decode() for i in range(block.metric_count))

    def config_image(self) -> Image:
        """What the hardware has to be told to collect the metrics."""
        size = self._library.call(
            "cuptiProfilerHostGetConfigImageSize", structs.ConfigImageSize(host=self._host)
        ).image_size
        image: Image = (ctypes.c_uint8 * int(size))()
        self._library.call(
            "cuptiProfilerHostGetConfigImage",
            structs.ConfigImage(host=self._host, image_size=size, image=ctypes.addressof(image)),
        )
        return image

    def pass_count(self, config: Image) -> int:
        """How often the work must run for all metrics of a configuration."""
        block = structs.PassCount(image_size=len(config), image=ctypes.addressof(config))
        return int(self._library.call("cuptiProfilerHostGetNumOfPasses", block).pass_count)

    def values(self, data: Image, range_index: int) -> tuple[float, ...]:
        """The metrics' values in one range, in the order of the names.

        Args:
            data: A decoded counter-data image.
            range_index: Which of its ranges.
        """
        values = (ctypes.c_double * len(self.metrics))()
        self._library.call(
            "cuptiProfilerHostEvaluateToGpuValues",
            structs.Evaluate(
                host=self._host,
                data_image=ctypes.addressof(data),
                data_image_size=len(data),
                range_index=range_index,
                metric_names=self.metrics.address,
                metric_count=len(self.metrics),
                values=values,
            ),
        )
        return tuple(values)


def supported_chips(library: CuptiLibrary) -> tuple[str, ...]:
    """Names of the chips that this CUPTI has tables for."""
    block = library.call("cuptiProfilerHostGetSupportedChips", structs.SupportedChips())
    return tuple(block.chip_names[i].decode() for i in range(block.chip_count))


def device_chip(library: CuptiLibrary, device_index: int) -> str:
    """The chip's name of a device, e.g. ``GH100`` for an H200."""
    block = library.call("cuptiDeviceGetChipName", structs.ChipName(device_index=device_index))
    name = block.chip_name
    return name.decode() if name else ""
