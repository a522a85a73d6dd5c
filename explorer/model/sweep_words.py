"""What a sweep shows, in sentences and labels: for the window, the command line and a picture."""

from explorer.model.contrast import why_not_fastest
from explorer.model.run import Pedigree
from explorer.model.sweep import Sweep, SweepPoint, as_fast, rank_correlation
from explorer.model.units import format_bytes, format_ratio, format_us

WEAK_CORRELATION = 0.7
"""Below this rank correlation the order of the times is not that of the traffic."""
EXCESS_FACTOR = 1.25
"""From here on bytes beyond the plan's are worth a word."""


def findings(sweep: Sweep) -> tuple[str, ...]:
    """What the plans together say, the most telling first; empty where nothing was timed."""
    found = (
        _most_fused(sweep),
        _why_not_fastest(sweep),
        _traffic_order(sweep),
        _inductors_choice(sweep),
        _compiled_whole(sweep),
        _failures(sweep),
        _cut_short(sweep),
    )
    return tuple(sentence for sentence in found if sentence)


def short_finding(sweep: Sweep) -> str:
    """The most telling finding without the plans' names, for where there is one line."""
    fused, fastest = sweep.most_fused, sweep.fastest
    if fastest is None:
        return next(iter(findings(sweep)), "")
    time = format_us(fastest.median_us)
    if fused is None or len(sweep.usable) < 2:
        return f"Fastest so far: {kernels_words(fastest)} in {time}."
    if fused is fastest:
        return f"The most fused plan is the fastest: {time}."
    if as_fast(fused, fastest):
        return "The most fused plan is as fast as any within noise."
    return (
        f"The most fused plan is not the fastest: {kernels_words(fused)} in "
        f"{format_us(fused.median_us)}, {kernels_words(fastest)} in {time}."
    )


def tags(sweep: Sweep, point: SweepPoint) -> tuple[str, ...]:
    """What a point is the best or the choice of: ``("fastest", "Inductor's choice")``."""
    named = (
        (sweep.fastest, "fastest"),
        (sweep.leanest, "least traffic"),
        (sweep.most_fused, "most fused"),
        (sweep.inductor_point, "Inductor's choice"),
    )
    found = [word for best, word in named if best is point]
    if len(sweep.front) > 1 and any(other is point for other in sweep.front):
        found.append("on the front")
    return tuple(found)


def kernels_words(point: SweepPoint) -> str:
    """``1 kernel``, ``3 kernels``."""
    return f"{point.launches} kernel{'' if point.launches == 1 else 's'}"


def point_words(sweep: Sweep, point: SweepPoint) -> tuple[str, ...]:
    """All that is known of a point, a line each: its plan, then the numbers with pedigrees."""
    lines = [point.text]
    if point.run.error is not None:
        return (*lines, point.run.error)
    if point.distrust:
        lines.append(point.distrust)
    time = point.time
    if time is not None and sweep.condition is not None:
        lines.append(
            f"{format_us(time.median_us)}, half of {time.n} calls between {format_us(time.q1_us)} "
            f"and {format_us(time.q3_us)}, {sweep.condition.value}"
        )
    else:
        lines.append("not timed like the others")
    if point.bytes_read is not None and point.bytes_written is not None and sweep.pedigree:
        lines.append(
            f"{format_bytes(point.bytes_read)} read, {format_bytes(point.bytes_written)} written, "
            f"{sweep.pedigree.value}"
        )
    else:
        lines.append("traffic not known like that of the others")
    peak = "" if point.peak_bytes is None else f", peak {format_bytes(point.peak_bytes)}"
    lines.append(f"{kernels_words(point)}{peak}")
    marks = tags(sweep, point)
    return (*lines, ", ".join(marks)) if marks else tuple(lines)


def pedigree_words(sweep: Sweep) -> str:
    """Where the bytes come from, and why not from counters: for a heading."""
    if sweep.pedigree is None:
        return "bytes not known alike for every plan"
    counted = [p for p in sweep.points if p.run.counters is not None and p.run.counters.joined]
    if sweep.pedigree is Pedigree.COUNTED or not counted:
        return f"bytes {sweep.pedigree.value}"
    return f"bytes {sweep.pedigree.value}, as not every plan's were counted"


def _most_fused(sweep: Sweep) -> str:
    fused, fastest = sweep.most_fused, sweep.fastest
    if fused is None or fastest is None or len(sweep.usable) < 2:
        return ""
    if fused is fastest:
        return (
            f"The most fused plan is the fastest: {fused.text} in {kernels_words(fused)}, "
            f"{format_us(fused.median_us)}."
        )
    if as_fast(fused, fastest):
        return f"The most fused plan, {fused.text}, is as fast as any within noise."
    return (
        f"The most fused plan is not the fastest: {fastest.text} in {kernels_words(fastest)} "
        f"takes {format_us(fastest.median_us)}; {fused.text} in {kernels_words(fused)} takes "
        f"{format_us(fused.median_us)}{_excess(fused)}."
    )


def _why_not_fastest(sweep: Sweep) -> str:
    """Where the most fused plan loses its time, by its launches against the fastest plan's."""
    fused, fastest = sweep.most_fused, sweep.fastest
    if fused is None or fastest is None or fused is fastest:
        return ""
    return why_not_fastest(fused.run, fastest.run)


def _excess(point: SweepPoint) -> str:
    """What a plan writes beyond what its groups as one kernel each would, where it is much."""
    planned = sum(group.bytes_written for group in point.run.groups)
    written = point.bytes_written
    if not planned or written is None or written < EXCESS_FACTOR * planned:
        return ""
    return f" and writes {format_bytes(written)} where the plan needs {format_bytes(planned)}"


def _traffic_order(sweep: Sweep) -> str:
    share = rank_correlation(sweep.points)
    lean, fastest = sweep.leanest, sweep.fastest
    if share is None or share >= WEAK_CORRELATION or lean is None or fastest is None:
        return ""
    if lean is fastest:
        return f"Times do not follow traffic: their rank correlation is {share:.2f}."
    return (
        f"Times do not follow traffic: {lean.text} moves least, "
        f"{format_bytes(lean.traffic or 0)}, and {fastest.text}, the fastest, moves "
        f"{format_bytes(fastest.traffic or 0)} (rank correlation {share:.2f})."
    )


def _inductors_choice(sweep: Sweep) -> str:
    chosen, fastest = sweep.inductor_point, sweep.fastest
    if chosen is None or fastest is None or not chosen.usable:
        return ""
    if chosen is fastest:
        return f"Inductor's own choice, {chosen.text}, is the fastest."
    if as_fast(chosen, fastest):
        return f"Inductor's own choice, {chosen.text}, is as fast as any within noise."
    ratio = chosen.median_us / fastest.median_us
    words = f"takes {format_ratio(ratio)} the time of the fastest"
    return f"Inductor's own choice, {chosen.text}, {words}."


def _compiled_whole(sweep: Sweep) -> str:
    """Why torch.compile may take another time than the plan with the same groups."""
    chosen, whole = sweep.inductor_point, sweep.compiled
    if chosen is None or whole is None or not (chosen.usable and whole.usable):
        return ""
    if sorted(_kernels(chosen)) == sorted(_kernels(whole)) or as_fast(chosen, whole):
        return ""
    return (
        f"torch.compile groups the ops alike, yet takes {format_us(whole.median_us)} where this "
        f"plan takes {format_us(chosen.median_us)}, in other kernels: it also rewrites patterns "
        "that it finds in the chain as a whole, which plans leave off."
    )


def _kernels(point: SweepPoint) -> list[str]:
    """The generated code of each launch, or its name where it has none."""
    return [
        point.run.code.get(launch.code or "", launch.kernel)
        for launch in point.run.launches
        if not launch.is_helper
    ]


def _failures(sweep: Sweep) -> str:
    failed = [point for point in sweep.points if point.distrust]
    if not failed:
        return ""
    if len(failed) == 1:
        return f"The time of {failed[0].text} is not used: {failed[0].distrust}"
    return f"The times of {len(failed)} plans are not used: their runs or checks failed."


def _cut_short(sweep: Sweep) -> str:
    if sweep.possible is None or sweep.done >= sweep.possible:
        return ""
    return f"{sweep.done} of {sweep.possible} plans done."
