"""What the tab "Fusion" says, as rows: groups with their bytes, what differs and why. No Qt.

Below a group stand its findings and the reasons why its ops do not share a kernel with others;
below each of those the whole sentence and what it rests on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.model.finding import EXPLAINED_SHARE, Evidence, Finding, FindingKind
from explorer.model.findings import findings, group_findings
from explorer.model.fusion import FusionPlan
from explorer.model.opgraph import OpGraph
from explorer.model.outcome import GroupOutcome, outcomes, promised
from explorer.model.refusals import REASON_WORDS
from explorer.model.run import FusionRefusal, Pedigree, Run
from explorer.model.units import format_bytes, format_us, three_digits
from explorer.ui.words import DASH, signed_percent

COLUMNS = (
    "Group",
    "Kernels",
    "Planned",
    "Modelled",
    "differs",
    "Counted",
    "differs",
    "Time",
    "Compiled",
)
"""Titles; all but the first are numbers."""

COLUMN_TIPS = (
    "Ops that share a kernel, by the plan or as the launches show it",
    "Launches that carry the group out, helpers left out",
    "Read and written if the group were exactly one kernel",
    "Read and written by the arguments of the kernels made",
    "Modelled against planned",
    "Read and written by hardware counter",
    "Counted against modelled",
    "Durations of its launches, as traced",
    "Seconds to compile the group for this run",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a group: what is shown, in which colour, and why."""

    text: str
    color: str = "text"
    tip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row and what unfolds below it.

    Attributes:
        cells: One a column for a group; a single one across all columns for everything else.
        launch: Index of the launch that picking it picks, None for none.
        is_code: Shown in the monospaced font.
        is_open: Unfolded from the start.
        children: Rows below it.
    """

    cells: tuple[Cell, ...]
    launch: int | None = None
    is_code: bool = False
    is_open: bool = False
    children: tuple["Row", ...] = ()

    @property
    def is_group(self) -> bool:
        """Whether it has a cell a column."""
        return len(self.cells) > 1

    def lines(self, depth: int = 0) -> Iterator[str]:
        """It and all below as text, for copying."""
        yield "  " * depth + "\t".join(cell.text for cell in self.cells)
        for child in self.children:
            yield from child.lines(depth + 1)


def run_rows(run: Run) -> tuple[Row, ...]:
    """A run's groups in the order in which they ran."""
    found = findings(run)
    refusals = run.compile.refusals if run.compile else ()
    return tuple(_group_row(run, outcome, found, refusals) for outcome in outcomes(run))


def plan_rows(graph: OpGraph, plan: FusionPlan) -> tuple[Row, ...]:
    """The groups of a plan that has not run: what it promises."""
    blank = Cell("")
    return tuple(
        Row(
            cells=(
                _name_cell(outcome),
                Cell("1", "muted", "If the group becomes exactly one kernel"),
                _bytes_cell(outcome, Pedigree.PLANNED),
                *[blank] * 6,
            )
        )
        for outcome in promised(graph, plan)
    )


def plan_hint(graph: OpGraph, plan: FusionPlan) -> str:
    """Kernels and bytes that a plan promises."""
    made = promised(graph, plan)
    total = sum(outcome.total(Pedigree.PLANNED) or 0 for outcome in made)
    kernels = "1 kernel" if len(made) == 1 else f"{len(made)} kernels"
    return f"{kernels}  ·  {format_bytes(total)} planned"


def run_hint(run: Run) -> str:
    """What was planned of all groups, and what came of it by the strongest pedigree known."""
    made = [outcome for outcome in outcomes(run) if outcome.ops]
    parts = []
    for pedigree in (Pedigree.PLANNED, Pedigree.MODELLED, Pedigree.COUNTED):
        totals = [outcome.total(pedigree) for outcome in made]
        known = [total for total in totals if total is not None]
        if known and len(known) == len(totals):
            parts.append(f"{pedigree.value} {format_bytes(sum(known))}")
    return "  →  ".join(dict.fromkeys((*parts[:1], *parts[-1:])))


def _group_row(
    run: Run,
    outcome: GroupOutcome,
    found: Sequence[Finding],
    refusals: Sequence[FusionRefusal],
) -> Row:
    own = group_findings(found, outcome)
    children = [_finding_row(finding) for finding in own]
    children += [_refusal_row(each) for each in refusals if each.first in outcome.ops]
    launches = [i for i in outcome.launches if not run.launches[i].is_helper] or outcome.launches
    return Row(
        cells=(
            _name_cell(outcome),
            _kernels_cell(run, outcome),
            _bytes_cell(outcome, Pedigree.PLANNED),
            _bytes_cell(outcome, Pedigree.MODELLED),
            _difference_cell(outcome, Pedigree.PLANNED, Pedigree.MODELLED, own),
            _bytes_cell(outcome, Pedigree.COUNTED),
            _difference_cell(outcome, Pedigree.MODELLED, Pedigree.COUNTED, own),
            Cell(DASH, "faint", "The trace says nothing of it")
            if outcome.time_us is None
            else Cell(format_us(outcome.time_us)),
            _compiled_cell(run, outcome),
        ),
        launch=launches[0] if launches else None,
        is_open=True,
        children=tuple(children),
    )


def _name_cell(outcome: GroupOutcome) -> Cell:
    if outcome.ops:
        name = " + ".join(outcome.ops)
        return Cell(name, "fused" if len(outcome.ops) > 1 else "text", name)
    n_launches = len(outcome.launches)
    return Cell(
        f"{n_launches} other launch{'es' if n_launches != 1 else ''}",
        "muted",
        "Copies, fills and seeds that belong to no group",
    )


def _kernels_cell(run: Run, outcome: GroupOutcome) -> Cell:
    names = "\n".join(run.launches[i].kernel for i in outcome.launches)
    if not outcome.ops:
        return Cell(DASH, "faint", names)
    if outcome.kernels == 1:
        return Cell("1", "text", names)
    if outcome.kernels == 0:
        return Cell("0", "warning", "No launch was found for it")
    return Cell(f"{outcome.kernels}", "warning", f"The group became several kernels:\n{names}")


def _bytes_cell(outcome: GroupOutcome, pedigree: Pedigree) -> Cell:
    value: tuple[int, int] | None = getattr(outcome, pedigree.value)
    if value is None:
        why = {
            Pedigree.PLANNED: "It belongs to no group of the chain",
            Pedigree.MODELLED: "The arguments of its launches are not known",
        }.get(pedigree, "Its bytes were not counted")
        return Cell(DASH, "faint", why)
    tip = f"read {format_bytes(value[0])}, written {format_bytes(value[1])}"
    return Cell(format_bytes(sum(value)), "text" if outcome.ops else "muted", tip)


def _difference_cell(
    outcome: GroupOutcome, before: Pedigree, after: Pedigree, own: Sequence[Finding]
) -> Cell:
    first, second = outcome.total(before), outcome.total(after)
    if not first or second is None or not outcome.ops:
        return Cell(DASH, "faint", "There is nothing to compare")
    share = second / first - 1
    tip = f"{before.value} {format_bytes(first)}, {after.value} {format_bytes(second)}"
    if abs(second - first) <= EXPLAINED_SHARE * max(first, second):
        return Cell(signed_percent(share), "muted", f"{tip}: they agree within 5 %")
    step = f"{before.value} → {after.value}"
    causes = [each for each in own if each.step.value == step]
    known = [each for each in causes if each.kind is not FindingKind.UNEXPLAINED]
    reasons = "\n".join(each.short for each in causes)
    return Cell(signed_percent(share), "write" if known else "warning", f"{tip}\n{reasons}".strip())


def _compiled_cell(run: Run, outcome: GroupOutcome) -> Cell:
    if outcome.from_cache:
        return Cell("cached", "compute", "Its kernels were there from an earlier run")
    if outcome.compile_s is not None:
        return Cell(f"{three_digits(outcome.compile_s)} s")
    if run.compile is not None:
        seconds = three_digits(run.compile.first_call_s)
        return Cell(DASH, "faint", f"Not timed by group; the run's first call took {seconds} s")
    return Cell(DASH, "faint", "Nothing was compiled")


def _finding_row(finding: Finding) -> Row:
    color = "warning" if finding.kind is FindingKind.UNEXPLAINED else "write"
    details = [Row(cells=(Cell(part),)) for part in _sentences(finding.sentence)]
    details += [_evidence_row(each) for each in finding.evidence]
    return Row(
        cells=(Cell(f"{finding.kind.value}  ·  {finding.short}", color, finding.sentence),),
        launch=finding.launch,
        children=tuple(details),
    )


def _sentences(text: str) -> list[str]:
    parts = text.split(". ")
    return [part if part.endswith(".") else f"{part}." for part in parts]


def _evidence_row(evidence: Evidence) -> Row:
    text = f"{evidence.what}:  {evidence.text}"
    return Row(cells=(Cell(text, "muted"),), is_code=evidence.is_code)


def _refusal_row(refusal: FusionRefusal) -> Row:
    words = REASON_WORDS[refusal.reason]
    details = [Row(cells=(Cell(text),)) for text in (refusal.sentence, words.meaning) if text]
    if refusal.raw:
        raw = f"the compiler:  {refusal.raw}"
        details.append(Row(cells=(Cell(raw, "muted"),), is_code=True))
    between = f"{refusal.first} with {refusal.second}"
    # An op that the compiler took apart and could not put together again.
    about = between if refusal.first != refusal.second else f"parts of {refusal.first}"
    return Row(
        cells=(Cell(f"not fused  ·  {about}: {words.title}", "muted", refusal.sentence),),
        children=tuple(details),
    )
