"""Paints the operator chain: boxes from top to bottom, and on every link what it costs."""

import math
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from explorer.model.units import format_bytes
from explorer.ui.graph_layout import SPINE, Layout, Stop
from explorer.ui.link_draw import Look, draw_link, draw_side_link, side_reach
from explorer.ui.op_links import ChainPicture, SideInput, format_flops
from explorer.ui.painting import LEFT, RIGHT, draw_text, text_width
from explorer.ui.theme import Theme, font

TWO_LINES_PX = 40.0
"""From this height on a box has a second line."""
HULL_PX = 5.0
"""How far a hull stands out over the boxes that share a kernel."""
BEYOND_PX = 30.0
"""How far a hull that is cut goes on beyond what is seen."""
PARTED_PX = 3.0
"""How far a group's hull stands out over those of the launches that it became."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What the pointer and the last click leave in the picture.

    Attributes:
        active: Names of the ops that run at the playhead.
        hovered: What the pointer is over.
        preview: What a click there would change, in the words of the pill.
        refused: A link that could not be switched on.
        shift_px: How far that is pushed aside just now.
    """

    active: frozenset[str] = frozenset()
    hovered: Stop | None = None
    preview: str = ""
    refused: Stop | None = None
    shift_px: float = 0.0

    def look(self, stop: Stop) -> Look:
        """How a link is to be drawn."""
        is_hovered, is_refused = stop == self.hovered, stop == self.refused
        return Look(
            is_hovered=is_hovered,
            is_refused=is_refused,
            preview=self.preview if is_hovered else "",
            shift_px=self.shift_px if is_refused else 0.0,
        )


NO_MARKS = Marks()


def draw_chain(
    painter: QPainter,
    layout: Layout,
    picture: ChainPicture,
    theme: Theme,
    memory: str,
    marks: Marks = NO_MARKS,
    seen: tuple[float, float] | None = None,
) -> None:
    """Draw the chain; a pure function of its arguments.

    Args:
        painter: Where to.
        layout: Where things lie.
        picture: What there is.
        theme: Colours.
        memory: What the device's memory is called.
        marks: What is pointed at, runs, or was refused.
        seen: Top and bottom of what is looked at; ops and links beyond are left out. None for all.
    """
    top, bottom = seen or (-math.inf, math.inf)
    _draw_hulls(painter, layout, picture, theme, (top, bottom))
    if picture.rows:
        _draw_end(painter, layout.op_rect(0), picture.rows[0].side_inputs, theme, "read")
        end = layout.op_rect(len(picture.rows) - 1)
        _draw_end(painter, end, picture.outputs, theme, "write")
    for k, side in enumerate(picture.side_links):
        upper, lower = side_reach(layout, side)
        if lower < top or upper > bottom:
            continue
        draw_side_link(painter, layout, side, theme, memory, marks.look(Stop("side", k)))
    for i, link in enumerate(picture.links):
        if layout.link_rect(i).bottom() < top - HULL_PX or layout.link_rect(i).top() > bottom:
            continue
        sides = picture.rows[i + 1].side_inputs
        look = replace(marks.look(Stop("link", i)), has_words=bool(sides))
        draw_link(painter, layout, i, link, theme, memory, look)
        if sides:
            _draw_side(painter, layout.link_rect(i), layout.pill(i), sides, theme)
    for i, row in enumerate(picture.rows):
        if layout.op_rect(i).bottom() < top or layout.op_rect(i).top() > bottom:
            continue
        is_lit = row.op.name in marks.active or marks.hovered == Stop("op", i)
        _draw_op(painter, layout.op_rect(i), row.op.name, _op_notes(picture, i), theme, is_lit)


def _draw_hulls(
    painter: QPainter,
    layout: Layout,
    picture: ChainPicture,
    theme: Theme,
    seen: tuple[float, float],
) -> None:
    """The faces of kernels, and dashed those of a plan's groups that became several."""
    top, bottom = seen
    for first, last in picture.parted:
        hull = layout.op_rect(first).united(layout.op_rect(last))
        out = HULL_PX + PARTED_PX
        hull.adjust(-7 - PARTED_PX, -out, 7 + PARTED_PX, out)
        painter.setPen(QPen(theme.color("fused", 200), 1.5, Qt.PenStyle.DashLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(hull, 13, 13)
    for first, last in picture.groups:
        hull = layout.op_rect(first).united(layout.op_rect(last))
        hull.adjust(-7, -HULL_PX, 7, HULL_PX)
        # Filling what nobody sees takes long; the corners stay out of sight.
        hull.setTop(max(hull.top(), top - BEYOND_PX))
        hull.setBottom(min(hull.bottom(), bottom + BEYOND_PX))
        if hull.height() <= 0:
            continue
        painter.setPen(QPen(theme.color("fused", 150), 1.5))
        painter.setBrush(theme.color("fused", 28))
        painter.drawRoundedRect(hull, 12, 12)
    painter.setPen(QPen(theme.color("fused", 200), 3))
    for above, below in picture.bridges:
        upper, lower = layout.op_rect(above), layout.op_rect(below)
        x = upper.left() - 6
        painter.drawLine(
            QPointF(x, upper.bottom() + HULL_PX - 8), QPointF(x, lower.top() - HULL_PX + 8)
        )


def _op_notes(picture: ChainPicture, place: int) -> tuple[str, str]:
    op = picture.rows[place].op
    # Own code has no words of ours: the line that an op comes from says most.
    return op.detail or op.source_place or "", format_flops(op.flops) if op.flops else ""


def _draw_op(
    painter: QPainter,
    rect: QRectF,
    name: str,
    notes: tuple[str, str],
    theme: Theme,
    is_lit: bool,
) -> None:
    painter.setPen(QPen(theme.color("compute", 255 if is_lit else 150), 2 if is_lit else 1.3))
    painter.setBrush(theme.color("op"))
    painter.drawRoundedRect(rect, 8, 8)
    detail, flops = notes
    inner = rect.adjusted(12, 0, -12, 0)
    if rect.height() >= TWO_LINES_PX:
        half = rect.height() / 2
        upper = QRectF(inner.left(), rect.top() + 3, inner.width(), half - 1)
        lower = QRectF(inner.left(), rect.top() + half - 2, inner.width(), half - 1)
        used = draw_text(painter, upper, LEFT, name, font(15, 600), theme.color("text"))
        upper.setLeft(upper.left() + used + 10)
        draw_text(painter, upper, RIGHT, detail, font(13), theme.color("muted"))
        draw_text(painter, lower, LEFT, flops, font(12.5), theme.color("muted"))
    else:
        used = draw_text(painter, inner, LEFT, name, font(15, 600), theme.color("text"))
        rest = inner.adjusted(used + 10, 0, 0, 0)
        taken = draw_text(painter, rest, RIGHT, flops, font(12.5), theme.color("muted"))
        rest.setRight(rest.right() - taken - 10)
        draw_text(painter, rest, LEFT, detail, font(13), theme.color("muted"))


def _draw_side(
    painter: QPainter, rect: QRectF, pill: QRectF, sides: tuple[SideInput, ...], theme: Theme
) -> None:
    """What comes in from the side, with a stroke into the box below."""
    room = QRectF(pill.right() + 8, pill.top(), rect.right() - 9 - pill.right() - 8, pill.height())
    draw_text(painter, room, RIGHT, _sides_text(sides, room.width()), font(12.5, 600),
              theme.color("read"))  # fmt: skip
    x = rect.right() - 2
    painter.setPen(QPen(theme.color("read"), 2))
    painter.drawLine(QPointF(x, pill.center().y() - 7), QPointF(x, rect.bottom()))


def _draw_end(
    painter: QPainter, box: QRectF, sides: tuple[SideInput, ...], theme: Theme, color: str
) -> None:
    if not sides:
        return
    is_top = color == "read"
    x = box.left() + box.width() * SPINE
    edge = box.top() if is_top else box.bottom()
    sign = -1 if is_top else 1
    painter.setPen(QPen(theme.color(color), 2))
    painter.drawLine(QPointF(x, edge), QPointF(x, edge + sign * 8))
    top = edge - 8 - 17 if is_top else edge + 8
    room = QRectF(box.left(), top, box.width(), 17)
    text = _sides_text(sides, room.width())
    width = text_width(text, font(13, 600))
    room.setLeft(max(box.left() + 4, x - width / 2))
    draw_text(painter, room, LEFT, text, font(13, 600), theme.color(color))


def _sides_text(sides: tuple[SideInput, ...], width: float) -> str:
    """Names and bytes, the bytes alone of many names where there is no room for all."""
    n_bytes = format_bytes(sum(side.n_bytes for side in sides))
    text = f"{', '.join(side.name for side in sides)} · {n_bytes}"
    if len(sides) > 1 and text_width(text, font(12.5, 600)) > width:
        return f"{len(sides)} inputs · {n_bytes}" if width > 90 else n_bytes
    return text
