"""Two runs of the same work held against each other: where the time and the bytes of one go."""

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.comparison import headline, ranges_overlap
from explorer.model.finding import Finding, FindingKind
from explorer.model.findings import plan_findings
from explorer.model.run import Launch, Pedigree, Run
from explorer.model.traffic import launch_traffic
from explorer.model.units import format_bytes, format_us

SAME_SHARE = 0.01
"""Traffic that differs by less counts as equal."""
CAUSE_SHARE = 0.5
MEMORY_SHARE = 0.7
"""Below this share of the time at the measured ceiling, memory alone does not set the pace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run's launches for some ops.

    Attributes:
        kernels: The ops of each.
        time_us: Traced durations together.
        n_bytes: Read plus written, of the pedigree that both sides have; None without one.
        least_us: What those bytes take at the measured ceiling of their mix, None without one.
    """

    kernels: tuple[tuple[str, ...], ...]
    time_us: float
    n_bytes: int | None
    least_us: float | None

    @property
    def plan(self) -> str:
        """The kernels as a plan writes them: ``softmax|dropout``."""
        return "|".join("+".join(ops) for ops in self.kernels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Ops that both runs carry out in launches of their own, and what each run takes for them.

    Attributes:
        ops: The ops.
        slower: Of the run that was thought to be the faster one.
        faster: Of the other.
        pedigree: Of the bytes, None without any common to both.
    """

    ops: tuple[str, ...]
    slower: Side
    faster: Side
    pedigree: Pedigree | None

    @property
    def extra_us(self) -> float:
        """How much longer the one takes."""
        return self.slower.time_us - self.faster.time_us


def contrasts(slower: Run, faster: Run) -> tuple[Contrast, ...]:
    """Both runs cut at the boundaries that they share, the part with most extra time first.

    Empty where a launch has no duration.
    """
    mine, theirs = _kernels(slower), _kernels(faster)
    if any(launch.duration_us is None for launch in (*mine, *theirs)):
        return ()
    made = []
    for ops in _parts((*mine, *theirs)):
        own = [launch for launch in mine if set(launch.ops) & set(ops)]
        other = [launch for launch in theirs if set(launch.ops) & set(ops)]
        pedigree = _common((*own, *other))
        made.append(
            Contrast(
                ops=ops,
                slower=_side(slower, own, pedigree),
                faster=_side(faster, other, pedigree),
                pedigree=pedigree,
            )
        )
    return tuple(sorted(made, key=lambda each: -each.extra_us))


def why_not_fastest(most_fused: Run, faster: Run) -> str:
    """Why a plan of fewer kernels takes longer, in two or three sentences.

    Empty where the times are equal within noise, or where the traces do not tell.
    """
    slow, fast = headline(most_fused), headline(faster)
    if (
        slow
        and fast
        and (
            slow.samples.median_us <= fast.samples.median_us
            or ranges_overlap(slow.samples, fast.samples)
        )
    ):
        return ""
    found = contrasts(most_fused, faster)
    if not found or found[0].extra_us <= 0:
        return ""
    worst = found[0]
    words = (_times(worst), _bytes(most_fused, faster, worst), _pace(worst))
    return " ".join(filter(None, words))


def _times(worst: Contrast) -> str:
    verb = "takes" if len(worst.ops) == 1 else "take"
    return (
        f"{' + '.join(worst.ops)} {verb} {format_us(worst.slower.time_us)} in "
        f"{_count(worst.slower)} and {format_us(worst.faster.time_us)} in "
        f"{_count(worst.faster)} ({worst.faster.plan})."
    )


def _bytes(run: Run, other: Run, worst: Contrast) -> str:
    mine, theirs = worst.slower.n_bytes, worst.faster.n_bytes
    if mine is None or theirs is None or worst.pedigree is None:
        return ""
    is_same = abs(mine - theirs) <= SAME_SHARE * max(mine, theirs)
    if is_same:
        words = f"Both move as much, {format_bytes(mine)} {worst.pedigree.value}"
    else:
        word = "more" if mine > theirs else "less"
        words = (
            f"The first moves {format_bytes(abs(mine - theirs))} {word}, "
            f"{format_bytes(mine)} against {format_bytes(theirs)} {worst.pedigree.value}"
        )
    extra = _own_extras(run, other, worst.ops)
    # A cause is named only if it is the better half of the difference.
    is_cause = bool(extra) and extra[0].n_bytes >= CAUSE_SHARE * (mine - theirs)
    if not is_cause or (mine < theirs and not is_same):
        return f"{words}."
    return f"{words}, since {' + '.join(extra[0].ops)} {extra[0].short}."


def _own_extras(run: Run, other: Run, ops: Sequence[str]) -> list[Finding]:
    """What the one run moves beyond its plan and the other does not, most bytes first."""
    theirs = {finding.short for finding in plan_findings(other)}
    found = [
        finding
        for finding in plan_findings(run)
        if finding.kind in (FindingKind.EXTRA_BUFFER, FindingKind.SPLIT_GROUP)
        and set(finding.ops) & set(ops)
        and finding.short not in theirs
    ]
    return sorted(found, key=lambda finding: -finding.n_bytes)


def _pace(worst: Contrast) -> str:
    """Whether memory can be what sets the pace of the slower side."""
    least = worst.slower.least_us
    if least is None or least >= MEMORY_SHARE * worst.slower.time_us:
        return ""
    return (
        f"At the measured ceiling these bytes take {format_us(least)}, "
        f"{least / worst.slower.time_us * 100:.0f} % of the time: memory alone does not set "
        "the pace."
    )


def _count(side: Side) -> str:
    return "1 kernel" if len(side.kernels) == 1 else f"{len(side.kernels)} kernels"


def _kernels(run: Run) -> tuple[Launch, ...]:
    return tuple(launch for launch in run.launches if launch.ops and not launch.is_helper)


def _parts(launches: Sequence[Launch]) -> tuple[tuple[str, ...], ...]:
    """The finest cut of the ops that leaves every launch whole."""
    parts: list[dict[str, None]] = []
    for launch in launches:
        touched = [part for part in parts if part.keys() & set(launch.ops)]
        merged: dict[str, None] = {}
        for part in touched:
            merged |= part
        merged |= dict.fromkeys(launch.ops)
        place = parts.index(touched[0]) if touched else len(parts)
        parts = [part for part in parts if part not in touched]
        parts.insert(place, merged)
    return tuple(tuple(part) for part in parts)


def _common(launches: Sequence[Launch]) -> Pedigree | None:
    for pedigree in (Pedigree.COUNTED, Pedigree.MODELLED):
        if all(launch_traffic(launch).of(pedigree) is not None for launch in launches):
            return pedigree
    return None


def _side(run: Run, launches: Sequence[Launch], pedigree: Pedigree | None) -> Side:
    read = written = 0
    for launch in launches:
        moved = launch_traffic(launch).of(pedigree) if pedigree else None
        if moved is not None:
            read, written = read + moved[0], written + moved[1]
    ceilings = run.device.ceilings
    rate = ceilings.bytes_per_s(read, written) if ceilings and pedigree else 0.0
    return Side(
        kernels=tuple(launch.ops for launch in launches),
        time_us=sum(launch.duration_us or 0.0 for launch in launches),
        n_bytes=read + written if pedigree else None,
        least_us=(read + written) / rate * 1e6 if rate > 0 else None,
    )
