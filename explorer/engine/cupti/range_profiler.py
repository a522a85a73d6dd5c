"""One profiling session on a context: enabled, run, decoded, disabled."""

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType

from explorer.engine.cupti import structs
from explorer.engine.cupti.driver import PrimaryContext
from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.cupti.host import Host, Image
from explorer.engine.cupti.library import CuptiLibrary

Work = Callable[[], object]

# A user range is run again for each pass; a chip that asks for more than this does not converge.
_MOST_PASSES = 32


@dataclass(frozen=True, slots=True)
class Decoded:
    """What one session gave.

    Attributes:
        values: Per range, the metrics' values in the host's order.
        dropped: Ranges that found no room.
        run_calls: How often the work was called.
        set_up_s: From enabling until the counters ran.
        run_s: From there until the values were there.
    """

    values: tuple[tuple[float, ...], ...]
    dropped: int
    run_calls: int
    set_up_s: float
    run_s: float


class RangeProfiler:
    """An enabled range profiler; a context manager, since the counters are exclusive.

    While one is enabled no other collector gets the hardware, so it is disabled on every way out.
    """

    def __init__(
        self, library: CuptiLibrary, context: PrimaryContext, host: Host, config: Image
    ) -> None:
        """Describe the session; nothing happens before ``with``.

        Args:
            library: The opened and initialized CUPTI.
            context: Where the work will run; it must be the thread's current one.
            host: The chip with its metrics.
            config: ``host``'s configuration image.
        """
        self._library = library
        self._context = context
        self._host = host
        self._config = config
        self._profiler: int | None = None
        self._data: Image | None = None
        self._is_started = False
        self._entered_s = 0.0
        self._armed_s: float | None = None

    def __enter__(self) -> "RangeProfiler":
        self._entered_s = time.perf_counter()
        block = structs.RangeEnable(context=self._context.handle)
        self._profiler = self._library.call("cuptiRangeProfilerEnable", block).profiler
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_started:
            self._library.result(
                "cuptiRangeProfilerStop", structs.RangeStop(profiler=self._profiler)
            )
            self._is_started = False
        block = structs.RangeObject(profiler=self._profiler)
        if error is None:
            self._library.call("cuptiRangeProfilerDisable", block)
        else:
            # The error under way says more than a failure to tidy up after it.
            self._library.result("cuptiRangeProfilerDisable", block)

    def prepare(self, *, by_launch: bool, max_ranges: int, replay_kernels: bool = False) -> None:
        """Make room for the counters and tell CUPTI how to use it.

        Args:
            by_launch: One range a launch, made by CUPTI; otherwise the ranges are pushed.
            max_ranges: How many ranges there is room for.
            replay_kernels: CUPTI runs each launch once a pass, with memory put back in between.
                Otherwise the work as a whole is run once a pass.

        Raises:
            CounterRefused: CUPTI refuses.
        """
        library, metrics = self._library, self._host.metrics
        size = library.call(
            "cuptiRangeProfilerGetCounterDataSize",
            structs.RangeDataSize(
                profiler=self._profiler,
                metric_names=metrics.address,
                metric_count=len(metrics),
                max_ranges=max_ranges,
                max_tree_nodes=max_ranges,
            ),
        ).data_image_size
        data: Image = (ctypes.c_uint8 * int(size))()
        library.call(
            "cuptiRangeProfilerCounterDataImageInitialize",
            structs.RangeDataInitialize(
                profiler=self._profiler, data_image_size=size, data_image=ctypes.addressof(data)
            ),
        )
        library.call(
            "cuptiRangeProfilerSetConfig",
            structs.RangeConfig(
                profiler=self._profiler,
                config_size=len(self._config),
                config=ctypes.addressof(self._config),
                data_image_size=size,
                data_image=ctypes.addressof(data),
                range_mode=structs.AUTO_RANGE if by_launch else structs.USER_RANGE,
                replay_mode=structs.KERNEL_REPLAY if replay_kernels else structs.USER_REPLAY,
                max_ranges_per_pass=max_ranges,
                nesting_levels=1,
                min_nesting_level=1,
                target_nesting_level=0 if by_launch else 1,
            ),
        )
        # CUPTI writes into the image until the session is decoded, so it must stay alive.
        self._data = data

    def count_launches(self, work: Work) -> Decoded:
        """Run the work and count each of its launches.

        Raises:
            CounterRefused: CUPTI refuses, or the passes do not end.
        """

        def run() -> None:
            work()
            self._context.synchronize()

        return self._count(run)

    def count_sections(self, sections: Sequence[Work]) -> Decoded:
        """Run pieces of work one after the other and count each as a whole.

        Raises:
            CounterRefused: CUPTI refuses, or the passes do not end.
        """

        def run() -> None:
            for number, work in enumerate(sections):
                # Of equal width, so that any order CUPTI keeps them in is this one.
                self._library.call(
                    "cuptiRangeProfilerPushRange",
                    structs.RangePush(profiler=self._profiler, range_name=b"%06d" % number),
                )
                work()
                self._context.synchronize()
                self._library.call(
                    "cuptiRangeProfilerPopRange", structs.RangeObject(profiler=self._profiler)
                )

        return self._count(run)

    def _count(self, run: Callable[[], None]) -> Decoded:
        for run_calls in range(1, _MOST_PASSES + 1):
            self._start()
            run()
            if self._stop():
                return self._decode(run_calls=run_calls)
        raise CounterRefused(
            f"DRAM bytes are not counted: CUPTI still asked for another run after {_MOST_PASSES}; "
            "use a newer torch, whose CUPTI knows this GPU better."
        )

    def _start(self) -> None:
        self._context.synchronize()
        self._library.call("cuptiRangeProfilerStart", structs.RangeObject(profiler=self._profiler))
        self._is_started = True
        if self._armed_s is None:
            self._armed_s = time.perf_counter()

    def _stop(self) -> bool:
        self._is_started = False
        block = structs.RangeStop(profiler=self._profiler)
        return bool(self._library.call("cuptiRangeProfilerStop", block).all_passes_submitted)

    def _decode(self, *, run_calls: int) -> Decoded:
        if self._data is None or self._armed_s is None:
            raise RuntimeError("prepare() comes before counting")
        library = self._library
        dropped = library.call(
            "cuptiRangeProfilerDecodeData", structs.RangeDecode(profiler=self._profiler)
        ).dropped_ranges
        count = library.call(
            "cuptiRangeProfilerGetCounterDataInfo",
            structs.RangeDataInfo(
                data_image=ctypes.addressof(self._data), data_image_size=len(self._data)
            ),
        ).range_count
        values = tuple(self._host.values(self._data, index) for index in range(count))
        return Decoded(
            values=values,
            dropped=int(dropped),
            run_calls=run_calls,
            set_up_s=self._armed_s - self._entered_s,
            run_s=time.perf_counter() - self._armed_s,
        )
