"""Counting DRAM bytes per launch or per piece of work: what the rest of the engine uses."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType

from explorer.engine.cupti import structs
from explorer.engine.cupti.driver import PrimaryContext
from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.cupti.host import Host, device_chip
from explorer.engine.cupti.library import CuptiLibrary, find_libcupti
from explorer.engine.cupti.metrics import SECTOR_BYTES, MetricChoice, choose_for_chip
from explorer.engine.cupti.range_profiler import Decoded, RangeProfiler, Work
from explorer.engine.cupti.support import check_support

_USUAL_LAUNCHES = 63
_MOST_ROOM = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeBytes:
    """What the counters saw during one launch, or one section of work.

    Attributes:
        bytes_read: From DRAM into the L2.
        bytes_written: From the L2 to DRAM while it ran; what it leaves dirty is written later.
        bytes_requested: What the multiprocessors asked of the L2, hits and misses, both ways; None
            where not collected.
        duration_us: GPU time of a launch under the profiler. None for a section, round which it
            would count the profiler's own work.
    """

    bytes_read: int
    bytes_written: int
    bytes_requested: int | None = None
    duration_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterReading:
    """A reading with its pedigree.

    Attributes:
        ranges: One a launch in launch order, or one a section.
        by_launch: Which of the two.
        chip: The chip's name, e.g. ``GH100``.
        cupti_release: E.g. ``13.0``.
        metric_names: The counters read.
        passes: How many runs the hardware needs for these counters.
        run_calls: How often the caller's work was called.
        set_up_s: Time to arm the counters.
        run_s: Time of the work under them, with decoding; both times are the last session's.
        cache_policy: ``none``: caches are as the launch before left them.
    """

    ranges: tuple[RangeBytes, ...]
    by_launch: bool
    chip: str
    cupti_release: str
    metric_names: tuple[str, ...]
    passes: int
    run_calls: int
    set_up_s: float
    run_s: float
    cache_policy: str = "none"

    @property
    def bytes_read(self) -> int:
        """Of all ranges together."""
        return sum(item.bytes_read for item in self.ranges)

    @property
    def bytes_written(self) -> int:
        """Of all ranges together."""
        return sum(item.bytes_written for item in self.ranges)


class DramCounters:
    """The DRAM counters of one CUDA device; opened once, read as often as wanted."""

    def __init__(
        self,
        device_index: int = 0,
        *,
        library: CuptiLibrary | None = None,
        replay_kernels: bool | None = None,
    ) -> None:
        """Find out what the chip can count; the hardware itself is taken only while measuring.

        Args:
            device_index: As torch counts devices. Work to be measured must run on it.
            library: A CUPTI other than the one torch has loaded.
            replay_kernels: Let CUPTI repeat each launch for each pass (12 to 23 ms a launch on an
                H200, measured) instead of running the work once a pass. None: only where there is
                more than one pass, since then it spares the caller a repeatable work.

        Raises:
            CounterRefused: There is no driver, no CUPTI, or no counter on this chip.
        """
        with ExitStack() as opened:
            # The driver first: some releases of CUPTI crash when there is none.
            self._context = PrimaryContext(device_index)
            opened.callback(self._context.close)
            self._library = library or CuptiLibrary(find_libcupti())
            with self._context.current():
                self._library.call("cuptiProfilerInitialize", structs.Initialize())
                check_support(self._library, self._context.device)
                self.chip = device_chip(self._library, device_index)
            self.metrics: MetricChoice = choose_for_chip(self._library, self.chip)
            self._host = Host(self._library, self.chip, self.metrics.names)
            opened.callback(self._host.close)
            self._config = self._host.config_image()
            self.passes = self._host.pass_count(self._config)
            self._opened = opened.pop_all()
        self._replay_kernels = self.passes > 1 if replay_kernels is None else replay_kernels

    def __enter__(self) -> "DramCounters":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def cupti_release(self) -> str:
        """The release of CUPTI in use, e.g. ``13.0``."""
        return self._library.release_text

    def close(self) -> None:
        """Give everything back. Closing twice does no harm."""
        self._opened.close()

    def measure(self, work: Work, *, expected_launches: int = _USUAL_LAUNCHES) -> CounterReading:
        """Count each launch of the work, in launch order.

        Args:
            work: Launches kernels on the device; warmed up, and fit to be called again.
            expected_launches: How many there will be, if known. Arming the counters takes longer
                the more there is room for (0.8 ms a launch on an H200, measured), and work with
                more launches than that is run again with more room.

        Raises:
            CounterRefused: CUPTI refuses; nothing of it is left enabled.
        """
        # One more than expected: CUPTI 13.0 reports no drop where an image of 2 got 6 launches, so
        # a full one counts as one that has lost some.
        room = expected_launches + 1
        run_calls = 0
        while room <= _MOST_ROOM:
            decoded = self._session(
                lambda profiler: profiler.count_launches(work), by_launch=True, room=room
            )
            run_calls += decoded.run_calls
            if not decoded.dropped and len(decoded.values) < room:
                return self._reading(decoded, by_launch=True, run_calls=run_calls)
            room *= 4
        raise CounterRefused(
            f"DRAM bytes are not counted: the work has too many launches (room for {_MOST_ROOM}); "
            "measure a smaller part of it."
        )

    def measure_total(self, work: Work) -> CounterReading:
        """Count the work as a whole, its copies and fills and graph replays included.

        Returns:
            A reading of one range.

        Raises:
            CounterRefused: CUPTI refuses; nothing of it is left enabled.
        """
        return self.measure_sections([work])

    def measure_sections(self, sections: Sequence[Work]) -> CounterReading:
        """Count several pieces of work, run one after the other, each as a whole.

        Returns:
            A reading of one range a section.

        Raises:
            CounterRefused: CUPTI refuses; nothing of it is left enabled.
        """
        if not sections:
            raise ValueError("there is no section to count")
        decoded = self._session(
            lambda profiler: profiler.count_sections(sections), by_launch=False, room=len(sections)
        )
        if len(decoded.values) != len(sections):
            raise CounterRefused(
                f"DRAM bytes are not counted: CUPTI {self.cupti_release} gave "
                f"{len(decoded.values)} ranges for {len(sections)}; use a torch that brings "
                "another CUPTI."
            )
        return self._reading(decoded, by_launch=False, run_calls=decoded.run_calls)

    def _session(
        self, count: Callable[[RangeProfiler], Decoded], *, by_launch: bool, room: int
    ) -> Decoded:
        with (
            self._context.current(),
            RangeProfiler(self._library, self._context, self._host, self._config) as profiler,
        ):
            profiler.prepare(
                by_launch=by_launch,
                max_ranges=room,
                replay_kernels=by_launch and self._replay_kernels,
            )
            return count(profiler)

    def _reading(self, decoded: Decoded, *, by_launch: bool, run_calls: int) -> CounterReading:
        return CounterReading(
            ranges=tuple(self._range_bytes(values, by_launch) for values in decoded.values),
            by_launch=by_launch,
            chip=self.chip,
            cupti_release=self.cupti_release,
            metric_names=self.metrics.names,
            passes=self.passes,
            run_calls=run_calls,
            set_up_s=decoded.set_up_s,
            run_s=decoded.run_s,
        )

    def _range_bytes(self, values: tuple[float, ...], by_launch: bool) -> RangeBytes:
        value = dict(zip(self.metrics.names, values, strict=True))
        requested, duration = self.metrics.requested, self.metrics.duration
        return RangeBytes(
            bytes_read=round(value[self.metrics.read]),
            bytes_written=round(value[self.metrics.written]),
            bytes_requested=round(value[requested]) * SECTOR_BYTES if requested else None,
            duration_us=value[duration] / 1000.0 if duration and by_launch else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterAbility:
    """Whether a device's DRAM bytes can be counted here.

    Attributes:
        available: Whether an empty reading went through.
        sentence: How they are counted, or why not and what to do about it.
        code: CUPTI's result code of a refusal.
        chip: The chip's name, where it came to that.
        cupti_release: The release of CUPTI, where it came to that.
        metric_names: What would be collected.
    """

    available: bool
    sentence: str
    code: int | None = None
    chip: str | None = None
    cupti_release: str | None = None
    metric_names: tuple[str, ...] = ()


def counter_ability(device_index: int = 0) -> CounterAbility:
    """Try the counters out on nothing, which tells a missing privilege apart from all else."""
    try:
        with DramCounters(device_index) as counters:
            reading = counters.measure_total(lambda: None)
    except CounterRefused as refused:
        return CounterAbility(available=False, sentence=refused.sentence, code=refused.code)
    passes = "one pass" if reading.passes == 1 else f"{reading.passes} passes"
    return CounterAbility(
        available=True,
        sentence=f"DRAM bytes are counted per launch on {reading.chip} through CUPTI "
        f"{reading.cupti_release} in {passes}, caches left as they are.",
        chip=reading.chip,
        cupti_release=reading.cupti_release,
        metric_names=reading.metric_names,
    )
