"""A plan as a strip: a cell an op in the chain's order, ops that share a kernel in one pill.

It stands where a plan's text would have to be cut: cells of two strips of one width lie below each
other, so that plans can be compared at a glance where their texts look alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from explorer.model.fusion import FusionPlan, parse_plan
from explorer.model.run import Run
from explorer.ui.painting import CENTER, antialias, text_width
from explorer.ui.theme import Theme, font

LEAST_WIDTH = 60.0
"""Narrower than this, at zoom 1, a strip is not worth drawing."""
MOST_CELL, CELL_HEIGHT = 58.0, 15.0
"""Sizes of a cell at most, at zoom 1."""
TIE_STEP = 3.0
"""From the cells to the line that ties parts of a group, and from one such line to the next."""
TEXT_PX = 12.0


@dataclass(frozen=True, slots=True)
class PlanOps:
    """A plan with what a strip needs besides.

    Attributes:
        plan: It.
        ops: Names of the chain's ops, in its order.
    """

    plan: FusionPlan
    ops: tuple[str, ...]


def plan_ops(run: Run) -> PlanOps | None:
    """The plan that a run was made by; None for a run of another strategy."""
    if not run.strategy.plan:
        return None
    ops = tuple(op.name for op in run.graph.ops)
    return PlanOps(parse_plan(run.strategy.plan, ops, run.chain.name), ops)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pill:
    """Neighbouring ops of one group.

    Attributes:
        group: Number of the group in the plan.
        places: Of the ops in the chain's order.
        rect: Where it lies.
        is_fused: The group has further ops, here or in another pill.
    """

    group: int
    places: range
    rect: QRectF
    is_fused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """The line below a group that others part.

    Attributes:
        group: Number of the group in the plan.
        y: Of the line.
        ends: Where it rises to the group's pills, from left to right.
    """

    group: int
    y: float
    ends: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StripLayout:
    """Where everything in a strip lies.

    Attributes:
        pills: From left to right.
        ties: One for each group that is in several pills.
        cell: Width of a cell.
    """

    pills: tuple[Pill, ...]
    ties: tuple[Tie, ...]
    cell: float


def strip_layout(
    rect: QRectF, plan: FusionPlan, ops: Sequence[str], zoom: float = 1
) -> StripLayout:
    """Lay a strip out at the left of a rectangle, in the middle of its height.

    Args:
        rect: What nothing may leave.
        plan: Has exactly these ops.
        ops: In the chain's order.
        zoom: Factor on sizes.
    """
    cell = min(rect.width() / max(len(ops), 1), MOST_CELL * zoom)
    gap = min(3.0 * zoom, 0.3 * cell)
    number = {op: i for i, group in enumerate(plan.groups) for op in group}
    runs = _runs([number[op] for op in ops])
    levels = _levels(runs)
    below = TIE_STEP * zoom * (max(levels.values(), default=-1) + 1)
    height = max(min(CELL_HEIGHT * zoom, rect.height() - 4 - below), 2.0)
    top = rect.center().y() - (height + below) / 2
    pills = tuple(
        Pill(
            group=group,
            places=places,
            rect=QRectF(
                rect.left() + places.start * cell + gap / 2, top, len(places) * cell - gap, height
            ),
            is_fused=len(plan.groups[group]) > 1,
        )
        for group, places in runs
    )
    ties = tuple(
        Tie(
            group=group,
            y=top + height + TIE_STEP * zoom * (level + 0.8),
            ends=tuple(pill.rect.center().x() for pill in pills if pill.group == group),
        )
        for group, level in levels.items()
    )
    return StripLayout(pills=pills, ties=ties, cell=cell)


def draw_strip(
    painter: QPainter,
    rect: QRectF,
    shown: PlanOps,
    theme: Theme,
    zoom: float = 1,
    ring: QColor | None = None,
) -> None:
    """Paint a plan as a strip; a pure function of its arguments.

    Args:
        painter: Where to.
        rect: What it may take; it lies at the left.
        shown: The plan.
        theme: Colours.
        zoom: Factor on sizes.
        ring: Draw a line of this colour round it, for a plan that stands out.
    """
    plan, ops = shown.plan, shown.ops
    laid = strip_layout(rect, plan, ops, zoom)
    painter.save()
    antialias(painter)
    for pill in laid.pills:
        radius = min(pill.rect.height() / 2, pill.rect.width() / 2, 5.0 * zoom)
        line = theme.color("fused") if pill.is_fused else theme.color("faint")
        painter.setPen(QPen(line, zoom))
        painter.setBrush(theme.color("fused", 70) if pill.is_fused else theme.color("raised"))
        painter.drawRoundedRect(pill.rect, radius, radius)
    painter.setPen(QPen(theme.color("fused"), 1.4 * zoom))
    for tie in laid.ties:
        painter.drawLine(QLineF(tie.ends[0], tie.y, tie.ends[-1], tie.y))
        bottom = laid.pills[0].rect.bottom()
        painter.drawLines([QLineF(x, bottom, x, tie.y) for x in tie.ends])
    _draw_names(painter, laid, ops, theme, zoom)
    if ring is not None and laid.pills:
        painter.setPen(QPen(ring, 1.4 * zoom))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        whole = laid.pills[0].rect.united(laid.pills[-1].rect)
        painter.drawRoundedRect(whole.adjusted(-2, -2, 2, 2), 6 * zoom, 6 * zoom)
    painter.restore()


def letters(ops: Sequence[str], cell: float, zoom: float = 1) -> int:
    """How many letters of every op's name fit in its cell; 0 where not even one does."""
    face, room = font(TEXT_PX * zoom, 500), cell - 5 * zoom
    longest = max(map(len, ops), default=0)
    fitting = (
        n for n in range(longest, 0, -1) if all(text_width(op[:n], face) <= room for op in ops)
    )
    return next(fitting, 0)


def order_words(ops: Sequence[str]) -> str:
    """What the cells of a strip are, for a tooltip."""
    return f"A cell an op, joined where they share a kernel: {', '.join(ops)}."


def _draw_names(
    painter: QPainter, laid: StripLayout, ops: Sequence[str], theme: Theme, zoom: float
) -> None:
    """The first letters of every op where there is room, else a line between cells of a pill."""
    n_letters = letters(ops, laid.cell, zoom)
    painter.setFont(font(TEXT_PX * zoom, 500))
    for pill in laid.pills:
        rect = pill.rect
        left = rect.left() + rect.width() / 2 - len(pill.places) * laid.cell / 2
        painter.setPen(theme.color("text" if pill.is_fused else "muted"))
        for i, place in enumerate(pill.places if n_letters else ()):
            cell = QRectF(left + i * laid.cell, rect.top(), laid.cell, rect.height())
            flags = int(CENTER) | int(Qt.TextFlag.TextDontClip)
            painter.drawText(cell, flags, ops[place][:n_letters])
        painter.setPen(QPen(theme.color("fused", 120), zoom))
        for i in range(1, len(pill.places)):
            x = left + i * laid.cell
            painter.drawLine(QPointF(x, rect.top() + 1), QPointF(x, rect.bottom() - 1))


def _runs(groups: Sequence[int]) -> list[tuple[int, range]]:
    """Neighbours of one group: its number and their places."""
    borders = [i for i in range(1, len(groups)) if groups[i] != groups[i - 1]]
    edges = [0, *borders, len(groups)] if groups else []
    return [(groups[start], range(start, end)) for start, end in pairwise(edges)]


def _levels(runs: Sequence[tuple[int, range]]) -> dict[int, int]:
    """How far below the cells the line of each parted group runs, so that none lies on another."""
    spans: dict[int, tuple[int, int]] = {}
    counts: dict[int, int] = {}
    for group, places in runs:
        counts[group] = counts.get(group, 0) + 1
        spans[group] = (spans.get(group, (places.start, 0))[0], places.stop - 1)
    levels: dict[int, int] = {}
    ends: list[int] = []
    for group, (first, last) in spans.items():
        if counts[group] < 2:
            continue
        level = next((i for i, end in enumerate(ends) if end < first), len(ends))
        ends[level : level + 1] = [last]
        levels[group] = level
    return levels
