"""What the cards say about a run: pure functions of the runs, no painting.

Every card names where its number comes from. Where there is no number there is a dash, and a
sentence that says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from explorer.model.comparison import (
    EQUAL_WORDS,
    NOT_CHECKED_WORDS,
    WITHHELD_WORDS,
    Condition,
    SpeedUp,
    Verdict,
    distrust,
    find_baseline,
    headline,
    is_comparable,
    speed_up,
)
from explorer.model.device import Device, DeviceKind
from explorer.model.roofline import floor
from explorer.model.run import Direction, Run
from explorer.model.traffic import peak_bytes, run_traffic
from explorer.model.units import (
    format_bytes,
    format_ratio,
    format_us,
    split_bytes,
    split_us,
    three_digits,
)
from explorer.ui.accuracy_words import accuracy_sentence, kept_words
from explorer.ui.words import (
    DASH,
    direction_words,
    percent,
    ratio_words,
    run_title,
    signed_percent,
    timing_sentence,
)

BASELINE = "eager"
BEST_SINGLE = "sdpa"
"""The strategy family that is one operator of torch's own for the whole chain."""


class Tone(StrEnum):
    """How a line is meant, which sets its colour."""

    GOOD = "good"
    BAD = "bad"
    NEUTRAL = "neutral"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card's words.

    Attributes:
        key: Which card it is.
        label: What the number is.
        value: The number, or a dash.
        unit: Its unit, set smaller.
        detail: A second line of small words.
        split: Instead of the detail, read and written, each in its colour.
        delta: Against the baseline, empty if there is nothing to say.
        tone: Of the delta, and of a speed-up's value.
        note: Where the number comes from, in a word.
        sentence: The whole story, for the tooltip and the screen reader.
    """

    key: str
    label: str
    value: str
    unit: str = ""
    detail: str = ""
    split: tuple[str, str] | None = None
    delta: str = ""
    tone: Tone = Tone.NEUTRAL
    note: str = ""
    sentence: str = ""

    @property
    def spoken(self) -> str:
        """For a screen reader: label, number with unit, delta and note."""
        number = "no value" if self.value == DASH else f"{self.value} {self.unit}".strip()
        parts = [f"{self.label}: {number}", self.delta, self.detail, self.note]
        return ", ".join(part for part in parts if part)


CARD_KEYS = ("speed-up", "time", "traffic", "launches", "memory")


def cards_of(
    run: Run | None, runs: Sequence[Run], chosen: Device | None = None
) -> tuple[Card, ...]:
    """The five cards of a run, in the order of :data:`CARD_KEYS`.

    Args:
        run: The run shown; None if there is none.
        runs: All runs beside it, among which the baseline is looked for.
        chosen: The device of the next run, whose words are used while no run is shown.
    """
    if run is None or run.error:
        reason = "No run is shown." if run is None else (run.error or "")
        device = chosen if run is None else run.device
        named = (
            (_time_label(device), _traffic_label(device)) if device else ("Time", "Memory traffic")
        )
        labels = ("Speed-up over eager", *named, "Launches", "Peak memory")
        short = "no run is shown" if run is None else "the run failed"
        return tuple(
            Card(
                key=key,
                label=label,
                value=DASH,
                sentence=reason,
                delta=short if key == "speed-up" else "",
                tone=Tone.BAD if run is not None else Tone.NEUTRAL,
            )
            for key, label in zip(CARD_KEYS, labels, strict=True)
        )
    base = find_baseline(run, runs)
    return (
        _speed_up_card(run, base, runs),
        _time_card(run, base),
        _traffic_card(run, base),
        _launches_card(run, base),
        _memory_card(run, base),
    )


def _speed_up_card(run: Run, base: Run | None, runs: Sequence[Run]) -> Card:
    is_forward = run.chain.direction is Direction.FORWARD
    over = " over eager" if is_forward else f", {direction_words(run.chain.direction)}"
    label = f"Speed-up{over}"
    note, floor_words = _over_best_single(run, runs) or kept_words(run), _floor_words(run)
    found = speed_up(run, base) if base else None
    doubt = distrust(run) or (found.reason if found else "")
    if doubt:
        return Card(
            key="speed-up", label="Check failed: speed-up withheld", value=WITHHELD_WORDS,
            delta=doubt, tone=Tone.WRONG, sentence=f"{doubt} {timing_sentence(run)}",
        )  # fmt: skip
    if found is None or found.ratio is None or base is None:
        reason = _no_speed_up_reason(run, base)
        return Card(
            key="speed-up", label=label, value=DASH, delta=reason, note=note, detail=floor_words,
            sentence=f"No speed-up: {reason}. {timing_sentence(run)} {accuracy_sentence(run)}",
        )  # fmt: skip
    sentence = " ".join(f"{run_title(each)}: {timing_sentence(each)}" for each in (base, run))
    sentence = f"{sentence} {accuracy_sentence(run)}"
    unchecked = "" if found.is_checked else NOT_CHECKED_WORDS
    detail = " · ".join(filter(None, (unchecked, found.condition.value, floor_words)))
    if found.verdict is Verdict.EQUAL:
        return Card(
            key="speed-up", label=label, value="≈", delta=EQUAL_WORDS, note=note, detail=detail,
            sentence=f"The ranges from lower to upper quartile overlap. {sentence}",
        )  # fmt: skip
    is_faster = found.verdict is Verdict.FASTER
    return Card(
        key="speed-up", label=label if is_faster else f"Slower{over.replace(' over', ' than')}",
        value=format_ratio(found.ratio if is_faster else 1 / found.ratio),
        note=note, detail=detail,
        delta=" → ".join(_median(each, found.condition) for each in (base, run)),
        tone=Tone.GOOD if is_faster else Tone.BAD, sentence=sentence,
    )  # fmt: skip


def _median(run: Run, condition: Condition) -> str:
    samples = getattr(run.timing, condition.name.lower(), None)
    return format_us(samples.median_us) if samples else DASH


def _no_speed_up_reason(run: Run, base: Run | None) -> str:
    if run.strategy.spec == BASELINE:
        return "this is the baseline"
    if base is None:
        return "eager was not run beside it"
    return "not both were timed alike"


def _over_best_single(run: Run, runs: Sequence[Run]) -> str:
    """How the run compares with the fastest of torch's own single operators, if one was run."""
    if run.strategy.name == BEST_SINGLE:
        return ""
    rivals = [
        (timed.samples.median_us, other)
        for other in runs
        if other.strategy.name == BEST_SINGLE and other.error is None and not distrust(other)
        if is_comparable(run, other)
        if (timed := headline(other))
    ]
    if not rivals:
        return ""
    best = min(rivals, key=lambda rival: rival[0])[1]
    found = speed_up(run, best)
    if found is None:
        return ""
    link = "with" if found.verdict is Verdict.EQUAL else "than"
    # Broken before the name, never within it.
    name = run_title(best).replace(" ", "\u00a0")
    return f"{ratio_words(found)} {link} {name}"


def _floor_words(run: Run) -> str:
    least, timed = floor(run), headline(run)
    if least is None or timed is None:
        return ""
    share = least.time_us / timed.samples.median_us
    if share > 1:
        return "under the floor: measure the ceilings again"
    return f"{least.bound.value} floor {format_us(least.time_us)}, {percent(share)} of this"


def _time_label(device: Device) -> str:
    return "GPU time" if device.kind is DeviceKind.CUDA else "CPU time"


def _time_card(run: Run, base: Run | None) -> Card:
    timed = headline(run)
    if timed is None:
        return Card(
            key="time", label=_time_label(run.device), value=DASH, sentence="The run was not timed."
        )
    value, unit = split_us(timed.samples.median_us)
    found = speed_up(run, base) if base else None
    delta, tone = _time_delta(found)
    return Card(
        key="time", label=_time_label(run.device), value=value, unit=unit, delta=delta, tone=tone,
        detail=f"{timed.condition.value}, n = {timed.samples.n:,}", note=timed.samples.clock.value,
        sentence=timing_sentence(run),
    )  # fmt: skip


def _time_delta(found: SpeedUp | None) -> tuple[str, Tone]:
    if found is None:
        return "", Tone.NEUTRAL
    if found.ratio is None:
        return found.text, Tone.WRONG
    if found.verdict is Verdict.EQUAL:
        return "≈ eager", Tone.NEUTRAL
    return _delta(1 / found.ratio)


def _delta(ratio: float) -> tuple[str, Tone]:
    """Words and tone for a number that is ``ratio`` times the baseline's; less is better."""
    if abs(ratio - 1) < 5e-4:
        return "±0 %", Tone.NEUTRAL
    return signed_percent(ratio - 1), Tone.GOOD if ratio < 1 else Tone.BAD


def _traffic_label(device: Device) -> str:
    return f"{device.memory_name} traffic"


def _traffic_card(run: Run, base: Run | None) -> Card:
    moved = run_traffic(run)
    if moved.best is None:
        return Card(
            key="traffic", label=_traffic_label(run.device), value=DASH,
            sentence="The bytes are not known for every launch.",
        )  # fmt: skip
    read, written, pedigree = moved.best
    value, unit = split_bytes(read + written)
    theirs = run_traffic(base).of(pedigree) if base else None
    delta, tone = _delta((read + written) / sum(theirs)) if theirs else ("", Tone.NEUTRAL)
    sentence = f"Read {format_bytes(read)}, written {format_bytes(written)}, {pedigree.value}."
    if moved.launches_left_out:
        sentence += f" {moved.launches_left_out} helper launches without bytes are left out."
    modelled = moved.both.modelled
    if moved.both.counted is not None and modelled:
        difference = signed_percent(moved.both.counted / modelled - 1)
        sentence += f" The model says {format_bytes(modelled)}: counted against it {difference}."
    if run.counters and run.counters.cache_policy and pedigree == "counted":
        sentence += f" Caches at each launch: {run.counters.cache_policy}."
    if base and theirs is None:
        sentence += f" No delta: eager's bytes are not {pedigree.value}."
    return Card(
        key="traffic", label=_traffic_label(run.device), value=value, unit=unit, delta=delta,
        tone=tone, note=pedigree.value, split=_split_words(read, written), sentence=sentence,
    )  # fmt: skip


def _split_words(read: int, written: int) -> tuple[str, str]:
    """Read and written in the unit of their sum, so that the three can be compared at a glance."""
    _, unit = split_bytes(read + written)
    factor = {"TB": 1e12, "GB": 1e9, "MB": 1e6, "kB": 1e3}.get(unit, 1.0)
    return f"R {three_digits(read / factor)}", f"W {three_digits(written / factor)}"


def _launches_card(run: Run, base: Run | None) -> Card:
    n_launches = len(run.launches)
    n_helpers = sum(launch.is_helper for launch in run.launches)
    if not n_launches:
        return Card(key="launches", label="Launches", value=DASH, sentence="No launch was traced.")
    delta, tone = "", Tone.NEUTRAL
    if base and base.launches:
        more = n_launches - len(base.launches)
        delta = "±0" if more == 0 else f"{'+' if more > 0 else '−'}{abs(more)}"
        tone = Tone.GOOD if more < 0 else Tone.BAD if more > 0 else Tone.NEUTRAL
    helpers = f"{n_helpers} helper{'s' if n_helpers > 1 else ''}" if n_helpers else ""
    return Card(
        key="launches", label="Launches", value=f"{n_launches:,}", delta=delta, tone=tone,
        detail=helpers, note="traced",
        sentence=f"{n_launches - n_helpers} launches carry out ops"
        + (f"; {helpers}: copies, fills or seeds." if helpers else "."),
    )  # fmt: skip


def _memory_card(run: Run, base: Run | None) -> Card:
    peak = peak_bytes(run)
    if peak is None or run.memory is None:
        return Card(
            key="memory", label="Peak memory", value=DASH, sentence="Memory was not measured."
        )
    value, unit = split_bytes(peak)
    theirs = peak_bytes(base) if base else None
    delta, tone = _delta(peak / theirs) if theirs else ("", Tone.NEUTRAL)
    sentence = (
        f"{format_bytes(peak)} at the peak over the {format_bytes(run.memory.inputs_bytes)} that "
        f"the inputs hold; {run.memory.intermediates} intermediates of "
        f"{format_bytes(run.memory.intermediate_bytes)} in all."
    )
    return Card(
        key="memory", label="Peak memory", value=value, unit=unit, delta=delta, tone=tone,
        detail="over the inputs", note="allocator", sentence=sentence,
    )  # fmt: skip
