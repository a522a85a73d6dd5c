"""A run set against the same run measured again: what got worse, and by how much.

Only like is compared with like: bytes of one pedigree, counted ones on the same device only; times
on the same device, taken in one condition, and only where their quartile ranges are apart.
"""

import math
from dataclasses import dataclass

from explorer.model.comparison import Condition, distrust, ranges_overlap
from explorer.model.run import Pedigree, Run, Samples
from explorer.model.traffic import run_traffic
from explorer.model.units import format_bytes, format_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much worse a run may be, as shares: 0.01 is one per cent."""

    n_bytes: float
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesChange:
    """Bytes read and written together, before and now, of one pedigree."""

    pedigree: Pedigree
    before: int
    now: int

    @property
    def share(self) -> float:
        """How much more it is now: 0.01 is one per cent; infinite if there were none before."""
        return _share(self.before, self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeChange:
    """Median times in microseconds, before and now, taken in one condition.

    Attributes:
        before_us: As recorded.
        now_us: As measured again.
        condition: Of both.
        is_clear: The quartile ranges are apart.
    """

    before_us: float
    now_us: float
    condition: Condition
    is_clear: bool

    @property
    def share(self) -> float:
        """How much longer it takes now: 0.01 is one per cent."""
        return _share(self.before_us, self.now_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worsening:
    """What became of a run.

    Attributes:
        before: The recorded run.
        now: The same, measured again.
        n_bytes: Its traffic, None where the two cannot be compared.
        time: Its time, None alike.
        faults: What is worse than the limits allow, a sentence each; empty if nothing is.
        notes: What could not be compared and why, a sentence each.
    """

    before: Run
    now: Run
    n_bytes: BytesChange | None
    time: TimeChange | None
    faults: tuple[str, ...]
    notes: tuple[str, ...]


def compare(before: Run, now: Run, limits: Limits) -> Worsening:
    """Set a recorded run against the same measured again."""
    if now.error is not None:
        return Worsening(
            before=before, now=now, n_bytes=None, time=None,
            faults=(f"It could not be measured again: {now.error}",), notes=(),
        )  # fmt: skip
    n_bytes, bytes_note = _bytes(before, now)
    time, time_note = _time(before, now)
    faults = [
        *_bytes_faults(n_bytes, limits.n_bytes),
        *_time_faults(time, limits.time),
        *_accuracy_faults(now),
    ]
    notes = [note for note in (bytes_note, time_note) if note]
    if now.accuracy is None:
        notes.append("Its values could not be compared with the reference.")
    return Worsening(
        before=before, now=now, n_bytes=n_bytes, time=time, faults=tuple(faults),
        notes=tuple(notes),
    )  # fmt: skip


def _share(before: float, now: float) -> float:
    if before:
        return now / before - 1
    return float("inf") if now else 0.0


def _bytes(before: Run, now: Run) -> tuple[BytesChange | None, str]:
    if before.device.kind is not now.device.kind:
        return None, (
            f"Bytes are not comparable: recorded on {before.device.name}, now on "
            f"{now.device.name}, whose kernels are others."
        )
    then, after = run_traffic(before), run_traffic(now)
    same_device = before.device.name == now.device.name
    for pedigree in (Pedigree.COUNTED, Pedigree.MODELLED):
        if pedigree is Pedigree.COUNTED and not same_device:
            # What its cache spares a device is the device's own.
            continue
        old, new = then.of(pedigree), after.of(pedigree)
        if old is not None and new is not None:
            return BytesChange(pedigree=pedigree, before=sum(old), now=sum(new)), ""
    return None, "Bytes are not comparable: the two runs have none of one pedigree."


def _time(before: Run, now: Run) -> tuple[TimeChange | None, str]:
    if before.device.name != now.device.name:
        return None, (
            f"Times are not comparable: recorded on {before.device.name}, now on {now.device.name}."
        )
    for condition in Condition:
        old, new = _samples(before, condition), _samples(now, condition)
        if old is not None and new is not None and old.clock is new.clock:
            change = TimeChange(
                before_us=old.median_us, now_us=new.median_us, condition=condition,
                is_clear=not ranges_overlap(old, new),
            )  # fmt: skip
            return change, ""
    return None, "Times are not comparable: the two runs were not timed in one condition."


def _samples(run: Run, condition: Condition) -> Samples | None:
    timing = run.timing
    if timing is None:
        return None
    by_condition = {
        Condition.COLD: timing.cold, Condition.WARM: timing.warm, Condition.GRAPH: timing.graph,
    }  # fmt: skip
    return by_condition[condition]


def _bytes_faults(change: BytesChange | None, limit: float) -> list[str]:
    if change is None or change.share <= limit:
        return []
    before, now = format_bytes(change.before), format_bytes(change.now)
    return [
        f"It reads and writes {_more(change.share)}: {now} instead of {before} "
        f"({change.pedigree.value}); at most {_percent(limit)} more is allowed."
    ]


def _time_faults(change: TimeChange | None, limit: float) -> list[str]:
    if change is None or not change.is_clear or change.share <= limit:
        return []
    return [
        f"It takes {_percent(change.share)} longer: {format_us(change.now_us)} instead of "
        f"{format_us(change.before_us)} ({change.condition.value}); at most {_percent(limit)} "
        "longer is allowed."
    ]


def _accuracy_faults(now: Run) -> list[str]:
    doubt = distrust(now)
    return [doubt] if doubt else []


def _more(share: float) -> str:
    return f"{_percent(share)} more" if math.isfinite(share) else "something where it was nothing"


def _percent(share: float) -> str:
    percent = share * 100
    # Three digits, but no power of ten.
    return f"{percent:.3g}%" if percent < 999 else f"{percent:,.0f}%"
