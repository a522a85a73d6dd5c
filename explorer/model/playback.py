"""What happens at which moment of a run: pure arithmetic, the same for any order of moments.

Times are microseconds of the measured run. Durations come from the trace; the gaps between the
launches are scaled so that the total equals the time measured without a profiler. While a launch
runs, its streams flow evenly and together, since kernels are pipelined.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from explorer.model.run import Launch, Pedigree, Run
from explorer.model.spans import lay_out
from explorer.model.streams import LaunchTraffic, Way, split_traffic
from explorer.model.tensor import Tensor, TensorRole

MOST_DOTS = 1_500
"""Dots of memory traffic in the largest run in view: more are fog, and fewer look random."""
MOST_DOTS_WITH_L2 = 4_000
TRAVEL_SHARE = 0.06
"""Time a dot is under way, as a share of the longest run in view; one pace for all streams."""


class Phase(IntEnum):
    """Where something stands in its life."""

    BEFORE = 0
    DURING = 1
    AFTER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A launch on the clock.

    Attributes:
        index: Its number in the run, from 0.
        launch: The launch itself.
        start_us: When it starts.
        end_us: When it ends.
        traffic: Its streams.
    """

    index: int
    launch: Launch
    start_us: float
    end_us: float
    traffic: LaunchTraffic

    def progress(self, t_us: float) -> float:
        """The share of it that is done, 0 to 1."""
        if t_us >= self.end_us:
            return 1.0
        if t_us <= self.start_us:
            return 0.0
        return (t_us - self.start_us) / (self.end_us - self.start_us)

    def phase(self, t_us: float) -> Phase:
        """Before, during or after it."""
        if t_us >= self.end_us:
            return Phase.AFTER
        return Phase.DURING if t_us >= self.start_us else Phase.BEFORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """When a tensor holds memory, and which launches write it.

    Attributes:
        tensor: The tensor.
        from_us: From then on its memory is in use; 0 for what was there before.
        until_us: The end of its last use; infinity for inputs and outputs, which stay.
        writers: Slot number and bytes by the model, of each launch that writes it.
        there_before: Whether it is full from the start.
    """

    tensor: Tensor
    from_us: float
    until_us: float
    writers: tuple[tuple[int, int], ...]
    there_before: bool

    def phase(self, t_us: float) -> Phase:
        """Not yet there, in memory, or freed."""
        if t_us < self.from_us:
            return Phase.BEFORE
        return Phase.DURING if t_us < self.until_us else Phase.AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A run at one moment.

    Attributes:
        t_us: The moment, within the run.
        phases: Of each launch.
        active: Numbers of the launches under way.
        read_bytes: Read from memory so far.
        written_bytes: Written to memory so far.
        levels: How full each tensor is, 0 to 1.
        lives: Whether each tensor holds memory.
        in_use_bytes: Bytes of the tensors that do.
        gap: Start and end of the span without any launch that the moment lies in, else None.
    """

    t_us: float
    phases: tuple[Phase, ...]
    active: tuple[int, ...]
    read_bytes: int
    written_bytes: int
    levels: dict[str, float]
    lives: dict[str, Phase]
    in_use_bytes: int
    gap: tuple[float, float] | None

    @property
    def is_idle(self) -> bool:
        """Whether no launch runs and the run is not over."""
        return self.gap is not None


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """A run laid out on its clock; compared by identity, so that it can be a key.

    Attributes:
        run: The run.
        slots: Its launches, in the order of their numbers.
        lives: Its tensors that a launch touches.
        total_us: Length of the clock.
        trace_total_us: The same under the profiler, None if not traced.
        is_timed: False if the run holds no times: then only the order means something.
        duration_scale: 1, or less where the traced durations exceed the measured total.
        tail_us: Time at the end that is in no traced launch.
        sentence: Why there is nothing to play; empty if there is.
    """

    run: Run
    slots: tuple[Slot, ...]
    lives: tuple[Life, ...]
    total_us: float
    trace_total_us: float | None
    is_timed: bool
    duration_scale: float
    tail_us: float = 0.0
    sentence: str = ""

    @cached_property
    def read_bytes(self) -> int:
        """Bytes read by all launches together."""
        return sum(slot.traffic.read.n_bytes for slot in self.slots)

    @cached_property
    def written_bytes(self) -> int:
        """Bytes written by all launches together."""
        return sum(slot.traffic.written.n_bytes for slot in self.slots)

    @cached_property
    def l2_bytes(self) -> int:
        """Bytes that L2 served."""
        return sum(slot.traffic.l2_bytes for slot in self.slots)

    @cached_property
    def pedigrees(self) -> tuple[Pedigree, ...]:
        """The pedigrees among the printed bytes, strongest first."""
        found = {
            amount.pedigree
            for slot in self.slots
            for amount in (slot.traffic.read, slot.traffic.written)
        }
        strongest_first = reversed(list(Pedigree))
        return tuple(pedigree for pedigree in strongest_first if pedigree in found)

    @cached_property
    def idle_us(self) -> float:
        """Time in which no launch runs."""
        return sum(end - start for start, end in self.gaps)

    @cached_property
    def gaps(self) -> tuple[tuple[float, float], ...]:
        """Start and end of every span in which no launch runs."""
        found, busy_until = [], 0.0
        # Rounding leaves differences of the last bits, which are no gaps.
        least_us = 1e-9 * self.total_us
        for slot in sorted(self.slots, key=lambda slot: slot.start_us):
            if slot.start_us > busy_until + least_us:
                found.append((busy_until, slot.start_us))
            busy_until = max(busy_until, slot.end_us)
        if self.slots and self.total_us > busy_until + least_us:
            found.append((busy_until, self.total_us))
        return tuple(found)

    @cached_property
    def peak_in_use_bytes(self) -> int:
        """The most memory that the tensors hold at once."""
        return max((self.at(life.from_us).in_use_bytes for life in self.lives), default=0)

    def at(self, t_us: float) -> Moment:
        """The run at a moment; moments outside it are its start and its end."""
        t_us = min(max(t_us, 0.0), self.total_us)
        phases = tuple(slot.phase(t_us) for slot in self.slots)
        lives = {life.tensor.id: life.phase(t_us) for life in self.lives}
        done = [slot.progress(t_us) for slot in self.slots]
        return Moment(
            t_us=t_us,
            phases=phases,
            active=tuple(i for i, phase in enumerate(phases) if phase is Phase.DURING),
            read_bytes=self._bytes_done(Way.READ, done),
            written_bytes=self._bytes_done(Way.WRITE, done),
            levels={life.tensor.id: self._level(life, done) for life in self.lives},
            lives=lives,
            in_use_bytes=sum(
                life.tensor.n_bytes for life in self.lives if lives[life.tensor.id] is Phase.DURING
            ),
            gap=next((gap for gap in self.gaps if gap[0] <= t_us < gap[1]), None),
        )

    def change_times(self) -> tuple[float, ...]:
        """Every moment at which a launch starts or ends, in order, without repeats."""
        times = {slot.start_us for slot in self.slots} | {slot.end_us for slot in self.slots}
        return tuple(sorted(times))

    def _bytes_done(self, way: Way, done: Sequence[float]) -> int:
        return sum(
            int(stream.n_bytes * share)
            for slot, share in zip(self.slots, done, strict=True)
            if share > 0
            for stream in slot.traffic.streams
            if stream.way is way and stream.is_memory_traffic
        )

    def _level(self, life: Life, done: Sequence[float]) -> float:
        if life.there_before:
            return 1.0
        if life.tensor.n_bytes == 0:
            return 0.0
        written = sum(n_bytes * done[number] for number, n_bytes in life.writers)
        return min(1.0, written / life.tensor.n_bytes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Playback:
    """One or more runs on one clock and one dot scale.

    Attributes:
        lanes: A schedule a run, in the order given.
        total_us: Length of the clock: that of the longest.
        dot_bytes: Bytes that one dot stands for.
        travel_us: Time a dot is under way.
    """

    lanes: tuple[Schedule, ...]
    total_us: float
    dot_bytes: int
    travel_us: float


def play(runs: Sequence[Run]) -> Playback:
    """Lay runs out on one clock."""
    lanes = tuple(schedule(run) for run in runs)
    total_us = max((lane.total_us for lane in lanes), default=0.0)
    return Playback(
        lanes=lanes,
        total_us=total_us,
        dot_bytes=dot_size(lanes),
        travel_us=TRAVEL_SHARE * total_us,
    )


def dot_size(lanes: Sequence[Schedule]) -> int:
    """Bytes of one dot: the least 1, 2 or 5 times a power of ten that keeps the dots few enough."""
    traffic = max((lane.read_bytes + lane.written_bytes for lane in lanes), default=0)
    everything = max(
        (lane.read_bytes + lane.written_bytes + lane.l2_bytes for lane in lanes), default=0
    )
    power = 1
    while True:
        for step in (1, 2, 5):
            size = step * power
            if traffic <= MOST_DOTS * size and everything <= MOST_DOTS_WITH_L2 * size:
                return size
        power *= 10


def schedule(run: Run) -> Schedule:
    """Lay one run out on its clock; a run without launches gives an empty one with a sentence."""
    if not run.launches:
        sentence = run.error or "This run holds no launches."
        return Schedule(
            run=run, slots=(), lives=(), total_us=0.0, trace_total_us=None, is_timed=False,
            duration_scale=1.0, sentence=sentence,
        )  # fmt: skip
    sizes = {tensor.id: tensor.n_bytes for tensor in run.tensors}
    traffic = split_traffic(run.launches, sizes, run.device.l2_bytes)
    clock = lay_out(run, traffic)
    slots = tuple(
        Slot(index=i, launch=launch, start_us=start, end_us=end, traffic=streams)
        for i, (launch, (start, end), streams) in enumerate(
            zip(run.launches, clock.spans, traffic, strict=True)
        )
    )
    return Schedule(
        run=run,
        slots=slots,
        lives=_lives(run, slots),
        total_us=clock.total_us,
        trace_total_us=clock.trace_total_us,
        is_timed=clock.is_timed,
        duration_scale=clock.duration_scale,
        tail_us=clock.tail_us,
    )


def _lives(run: Run, slots: Sequence[Slot]) -> tuple[Life, ...]:
    lives = []
    for tensor in run.tensors:
        users = [
            (slot, access)
            for slot in slots
            for access in slot.launch.accesses
            if access.tensor == tensor.id
        ]
        if not users:
            continue
        writers = tuple(
            (slot.index, access.bytes_written) for slot, access in users if access.bytes_written
        )
        there_before = tensor.role is TensorRole.INPUT or not writers
        stays = tensor.role in (TensorRole.INPUT, TensorRole.OUTPUT) or there_before
        first_us = min(slot.start_us for slot, _ in users)
        last_us = max(slot.end_us for slot, _ in users)
        lives.append(
            Life(
                tensor=tensor,
                from_us=0.0 if there_before else first_us,
                until_us=math.inf if stays else last_us,
                writers=writers,
                there_before=there_before,
            )
        )
    return tuple(lives)
