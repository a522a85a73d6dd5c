"""What became of a fusion plan's groups, and why other neighbours were not fused, as text."""

from explorer.cli.table import Column, render, shortened
from explorer.cli.terminal import paragraphs
from explorer.model.fusion import WITHIN
from explorer.model.outcome import GroupOutcome, outcomes
from explorer.model.run import FusionRefusal, Pedigree, RefusalReason, Run
from explorer.model.units import format_bytes, three_digits

OPS_WIDTH = 40
NOTHING = "–"
_PEDIGREES = (Pedigree.PLANNED, Pedigree.MODELLED, Pedigree.COUNTED)


def group_lines(run: Run) -> list[str]:
    """A heading with the whole plan, and a row a group; empty for a run of no plan.

    Kernels are named by their numbers in the table of launches.
    """
    if run.strategy.plan is None:
        return []
    preset = "" if run.strategy.option == run.strategy.plan else f" ({run.strategy.spec})"
    heading = f"The plan {run.strategy.plan}{preset}"
    if not run.groups:
        return [heading]
    found = outcomes(run)
    shown = [each for each in _PEDIGREES if any(o.total(each) is not None for o in found)]
    columns = [
        Column(title="group", is_text=True),
        Column(title="kernels"),
        Column(title="launches", is_text=True),
        *[Column(title=each.value, group="read + written") for each in shown],
        Column(title="compiled"),
    ]
    return [heading, *render(columns, [_row(outcome, shown) for outcome in found])]


def refusals_of(run: Run) -> list[FusionRefusal]:
    """What is told of a run: a boundary that the plan itself has needs no reason."""
    found = run.compile.refusals if run.compile is not None else ()
    return [refusal for refusal in found if refusal.reason is not RefusalReason.DRAWN]


def refusal_lines(run: Run, *, raw: bool) -> list[str]:
    """Why neighbours do not share a kernel.

    Args:
        run: Of ``compile`` or of a plan.
        raw: Whether the compiler's own words follow each sentence.
    """
    lines = []
    for refusal in refusals_of(run):
        sentence = f"not fused: {_between(refusal)}: {refusal.sentence}"
        lines += paragraphs([f"{run.strategy.spec}: {sentence}"], "  ")
        if raw and refusal.raw:
            lines += [f"      {line}" for line in refusal.raw.splitlines()]
    return lines


def _between(refusal: FusionRefusal) -> str:
    """An op that became several loop nests or kernels is apart from itself."""
    if refusal.first == refusal.second:
        return f"parts of {refusal.first}"
    return f"{refusal.first} and {refusal.second}"


def _row(outcome: GroupOutcome, shown: list[Pedigree]) -> list[str]:
    moved = (outcome.total(pedigree) for pedigree in shown)
    return [
        shortened(WITHIN.join(outcome.ops) or "of no group", OPS_WIDTH),
        str(outcome.kernels),
        ", ".join(str(place + 1) for place in outcome.launches) or NOTHING,
        *[NOTHING if n_bytes is None else format_bytes(n_bytes) for n_bytes in moved],
        _compiled(outcome),
    ]


def _compiled(outcome: GroupOutcome) -> str:
    if outcome.from_cache:
        return "from cache"
    return NOTHING if outcome.compile_s is None else f"{three_digits(outcome.compile_s)} s"
