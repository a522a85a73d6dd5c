"""Paints the operator chain: boxes from top to bottom, and on every link what it costs."""

import math
from dataclasses import dataclass, replace

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from explorer.model.opgraph import OpKind
from explorer.model.units import format_bytes
from explorer.ui.graph_layout import SPINE, Layout, Stop
from explorer.ui.graph_words import fold_notes
from explorer.ui.link_draw import FACE, Look, draw_link, draw_side_link, is_legible, side_reach
from explorer.ui.op_links import ChainPicture, SideInput, format_flops
from explorer.ui.painting import LEFT, RIGHT, blend, draw_text, text_width
from explorer.ui.theme import Theme, font

NAME_PX, NOTE_PX = 15.0, 12.5
"""Sizes of an op's name and of what stands beside it."""
PLAIN_ZOOM = 0.35
"""Below it boxes and links are plain rectangles: round corners could not be told from others."""
FRAME_X = 2.5
KIND_SHARE = {
    OpKind.MATMUL: 0.85,
    OpKind.REDUCTION: 0.6,
    OpKind.ELEMENTWISE: 0.35,
    OpKind.RANDOM: 0.35,
    OpKind.VIEW: 0.1,
    OpKind.OPAQUE: 0.1,
}
"""How strong a box's colour is where there is no room for words: the more arithmetic, the more."""
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
        zoom: How many pixels one of the layout has: words too small to read are left out.
    """

    active: frozenset[str] = frozenset()
    hovered: Stop | None = None
    preview: str = ""
    refused: Stop | None = None
    shift_px: float = 0.0
    zoom: float = 1.0

    def look(self, stop: Stop) -> Look:
        """How a link is to be drawn."""
        is_hovered, is_refused = stop == self.hovered, stop == self.refused
        return Look(
            is_hovered=is_hovered,
            is_refused=is_refused,
            preview=self.preview if is_hovered else "",
            shift_px=self.shift_px if is_refused else 0.0,
            zoom=self.zoom,
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
    places = layout.places_in(top - HULL_PX, bottom, len(picture.rows))
    _draw_frames(painter, layout, picture, theme)
    _draw_hulls(painter, layout, picture, theme, (top, bottom))
    if marks.zoom < PLAIN_ZOOM:
        _draw_plain(painter, layout, picture, theme, marks, places)
        return
    is_written = is_legible(FACE[0], marks.zoom)
    if picture.rows and is_written:
        _draw_end(painter, layout.op_rect(0), picture.rows[0].side_inputs, theme, "read")
        end = layout.op_rect(len(picture.rows) - 1)
        _draw_end(painter, end, picture.outputs, theme, "write")
    for k, side in enumerate(picture.side_links):
        if side.below < places.start or side.top >= places.stop:
            continue
        upper, lower = side_reach(layout, side)
        if lower < top or upper > bottom:
            continue
        draw_side_link(painter, layout, side, theme, memory, marks.look(Stop("side", k)))
    for i in places:
        if i < len(picture.links):
            sides = picture.rows[i + 1].side_inputs
            look = replace(marks.look(Stop("link", i)), has_words=bool(sides) and is_written)
            draw_link(painter, layout, i, picture.links[i], theme, memory, look)
            if look.has_words:
                _draw_side(painter, layout.link_rect(i), layout.pill(i), sides, theme)
    for i in places:
        _draw_box(painter, layout, picture, i, theme, marks)


def _draw_plain(
    painter: QPainter,
    layout: Layout,
    picture: ChainPicture,
    theme: Theme,
    marks: Marks,
    places: range,
) -> None:
    """A thousand ops at once: a rectangle for each box, a slimmer one for each link."""
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    faces = {kind: kind_color(kind, theme) for kind in OpKind}
    lit, folded = theme.color("compute"), theme.color("plain")
    broken, fused, apart = (theme.color(name) for name in ("warning", "fused", "line"))
    for i in places:
        row = picture.rows[i]
        is_active = any(op.name in marks.active for op in row.ops)
        is_lit = is_active or marks.hovered == Stop("op", i)
        face = folded if row.folded else faces[row.op.kind]
        painter.fillRect(layout.op_rect(i), lit if is_lit else face)
        if i < len(picture.links):
            link = picture.links[i]
            ink = broken if link.graph_break else fused if link.is_fused else apart
            painter.fillRect(layout.pill(i), ink)
    for side in picture.side_links:
        if side.below >= places.start and side.top < places.stop:
            start, end = layout.side_ends(side.top, side.below)
            x = layout.lane_x(side.lane)
            ink = fused if side.link.is_fused else apart
            painter.fillRect(QRectF(x - 2, start.y(), 4, end.y() - start.y()), ink)


def _draw_frames(painter: QPainter, layout: Layout, picture: ChainPicture, theme: Theme) -> None:
    """A stroke at the left of each open part, from its first op to its last."""
    painter.setPen(QPen(theme.color("faint"), 2))
    for first, last in picture.frames:
        upper, lower = layout.op_rect(first).top() + 3, layout.op_rect(last).bottom() - 3
        painter.drawLine(QPointF(FRAME_X, upper), QPointF(FRAME_X, lower))


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
    row = picture.rows[place]
    if row.folded:
        return fold_notes(row)
    # Own code has no words of ours: the line that an op comes from says most.
    flops = format_flops(row.op.flops) if row.op.flops else ""
    return row.op.detail or row.op.source_place or "", flops


def kind_color(kind: OpKind, theme: Theme) -> QColor:
    """The colour of a kind of op where there is no room for words."""
    return blend(theme.color("op"), theme.color("compute"), KIND_SHARE[kind])


def _draw_box(
    painter: QPainter,
    layout: Layout,
    picture: ChainPicture,
    place: int,
    theme: Theme,
    marks: Marks,
) -> None:
    """The box of an op or of a folded part."""
    row, rect = picture.rows[place], layout.op_rect(place)
    is_active = any(op.name in marks.active for op in row.ops)
    is_lit = is_active or marks.hovered == Stop("op", place)
    is_written = is_legible(NAME_PX, marks.zoom)
    painter.setPen(QPen(theme.color("compute", 255 if is_lit else 150), 2 if is_lit else 1.3))
    face = theme.color("raised") if row.folded else theme.color("op")
    if not is_written and not row.folded:
        face = kind_color(row.op.kind, theme)
    if row.folded:
        # Two edges below say that there is more under it.
        painter.setBrush(theme.color("sunken"))
        painter.drawRoundedRect(rect.adjusted(4, 4, -4, 4), 8, 8)
    painter.setBrush(face)
    painter.drawRoundedRect(rect, 8, 8)
    if not is_written:
        return
    inner = rect.adjusted(12, 0, -12, 0)
    if row.part is not None:
        _draw_triangle(painter, layout.fold_rect(place), theme, is_open=not row.folded)
        inner.setLeft(layout.fold_rect(place).right() + 1)
    notes = _op_notes(picture, place) if is_legible(NOTE_PX, marks.zoom) else ("", "")
    _write_box(painter, rect, inner, row.name, notes, theme)


def _draw_triangle(painter: QPainter, room: QRectF, theme: Theme, *, is_open: bool) -> None:
    """Points down where a part is open, to the right where it is folded."""
    middle = room.center() + QPointF(1, 0)
    corners = [(-4.5, -2.5), (4.5, -2.5), (0, 3.5)] if is_open else [(-2, -4.5), (-2, 4.5), (4, 0)]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("muted"))
    painter.drawPolygon([middle + QPointF(x, y) for x, y in corners])


def _write_box(
    painter: QPainter,
    rect: QRectF,
    inner: QRectF,
    name: str,
    notes: tuple[str, str],
    theme: Theme,
) -> None:
    """Name, details and arithmetic in one line, or in two where the box is high enough."""
    detail, flops = notes
    if rect.height() >= TWO_LINES_PX:
        half = rect.height() / 2
        upper = QRectF(inner.left(), rect.top() + 3, inner.width(), half - 1)
        lower = QRectF(inner.left(), rect.top() + half - 2, inner.width(), half - 1)
        used = draw_text(painter, upper, LEFT, name, font(NAME_PX, 600), theme.color("text"))
        upper.setLeft(upper.left() + used + 10)
        draw_text(painter, upper, RIGHT, detail, font(13), theme.color("muted"))
        draw_text(painter, lower, LEFT, flops, font(NOTE_PX), theme.color("muted"))
    else:
        used = draw_text(painter, inner, LEFT, name, font(NAME_PX, 600), theme.color("text"))
        rest = inner.adjusted(used + 10, 0, 0, 0)
        # Half a number says less than none.
        if text_width(flops, font(NOTE_PX)) <= rest.width():
            taken = draw_text(painter, rest, RIGHT, flops, font(NOTE_PX), theme.color("muted"))
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
    """Names and bytes, or as much of them as there is room for: a number stands whole or not."""
    n_bytes = format_bytes(sum(side.n_bytes for side in sides))
    forms = [f"{', '.join(side.name for side in sides)} · {n_bytes}"]
    if len(sides) > 1:
        forms.append(f"{len(sides)} inputs · {n_bytes}")
    forms.append(n_bytes)
    face = font(12.5, 600)
    return next((form for form in forms if text_width(form, face) <= width), "")
