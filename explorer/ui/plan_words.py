"""What the op graph's panel says of a plan: headings, previews, accounts of what became of it."""

from explorer.model.fusion import FusionPlan
from explorer.model.legality import Illegal
from explorer.model.opgraph import OpGraph
from explorer.model.run import Pedigree, Run
from explorer.model.traffic import run_traffic
from explorer.model.units import format_bytes, split_bytes
from explorer.ui.graph_words import Preview
from explorer.ui.plan_edit import Change, PlanTotals, as_written, totals
from explorer.ui.words import signed_percent

MINUS = "−"


def count(n: int, word: str) -> str:
    """``3 launches``, ``1 kernel``."""
    plural = "es" if word.endswith("ch") else "s"
    return f"{n:,} {word}{plural if n != 1 else ''}"


def planned_words(found: PlanTotals) -> str:
    """``3 launches · 4.29 GB planned``."""
    return f"{count(found.launches, 'launch')} · {format_bytes(found.n_bytes)} planned"


def row_words(plan: FusionPlan) -> str:
    """``2 launches planned · qk|scale+mask``, for the row of a plan that was not run."""
    return f"{count(len(plan.groups), 'launch')} planned · {plan.text}"


def saving(graph: OpGraph, found: PlanTotals) -> tuple[str, str]:
    """A plan against one op a kernel: ``−62 %``, and at length."""
    base = totals(graph, as_written(graph))
    told = (
        f"One op a kernel: {count(base.launches, 'launch')} and {format_bytes(base.n_bytes)}; "
        f"this plan: {count(found.launches, 'launch')} and {format_bytes(found.n_bytes)} "
        "(planned: every group one kernel)."
    )
    share = signed_percent(found.n_bytes / base.n_bytes - 1) if base.n_bytes else ""
    return share if share[:1] in (MINUS, "+", "×") else "", told


def made_words(run: Run) -> tuple[str, str]:
    """What a run made: ``5.37 GB modelled``; of a plan beside what was planned. And at length."""
    kernels = sum(not launch.is_helper for launch in run.launches)
    made = run_traffic(run).of(Pedigree.MODELLED)
    counted = run_traffic(run).of(Pedigree.COUNTED)
    if made is None:
        return count(kernels, "kernel"), "The launches of this run name no bytes."
    parts = [f"{count(kernels, 'kernel')}; {format_bytes(sum(made))} modelled from their arguments"]
    if counted is not None:
        parts.append(f"{format_bytes(sum(counted))} counted")
    if not run.groups:
        return f"{format_bytes(sum(made))} modelled", _sentence(parts)
    planned = sum(group.bytes_read + group.bytes_written for group in run.groups)
    told = f"planned {format_bytes(planned)} in {count(len(run.groups), 'launch')}"
    share = sum(made) / planned - 1 if planned else 0.0
    if abs(share) >= 0.0005:
        parts.append(f"{signed_percent(share)} of what was planned")
    number, unit = split_bytes(planned)
    made_number, made_unit = split_bytes(sum(made))
    told_planned = number if unit == made_unit else f"{number} {unit}"
    short = f"{made_number} {made_unit} modelled, plan {told_planned}"
    return short, _sentence([told, *parts])


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + "."


def preview_of(change: Change | Illegal, *, is_fused: bool) -> Preview:
    """What setting a link the other way would change, short and at length."""
    if isinstance(change, Illegal):
        return Preview(short="not by itself", sentence=change.sentence)
    bytes_told = _signed(change.n_bytes, format_bytes(abs(change.n_bytes)))
    launches_told = _signed(change.launches, count(abs(change.launches), "launch"))
    verb = "part them" if is_fused else "fuse them"
    return Preview(
        short=f"{bytes_told} · {launches_told}" if change.n_bytes else launches_told,
        sentence=f"Click or press Space to {verb}: {bytes_told} and {launches_told} (planned).",
    )


def _signed(value: int, size: str) -> str:
    return f"{MINUS if value < 0 else '+' if value > 0 else '±'}{size}"
