"""Paints one link of the operator chain: a line and on it a pill that can be switched."""

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen

from explorer.model.opgraph import GraphBreak
from explorer.model.units import format_bytes
from explorer.ui.graph_layout import Layout, why_rect
from explorer.ui.op_links import Link, LinkState, SideLink, link_text
from explorer.ui.painting import CENTER, LEFT, draw_text, text_width
from explorer.ui.theme import Theme, font

FACE = (12.5, 600)
"""Size and weight of a pill's words."""
LEAST_TEXT_PX = 9.0
"""Words that would be smaller are left out."""
BREAK_OUT_PX = 8.0
"""How far the line at a graph break stands out over the boxes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a link looks besides what it says.

    Attributes:
        is_hovered: The pointer is over it.
        is_refused: It could not be switched on.
        preview: What a click would change; stands in the place of the words.
        shift_px: How far it is pushed aside.
        has_words: Something is written at its right.
        zoom: How many pixels one of the layout has.
    """

    is_hovered: bool = False
    is_refused: bool = False
    preview: str = ""
    shift_px: float = 0.0
    has_words: bool = False
    zoom: float = 1.0

    @property
    def is_written(self) -> bool:
        """Whether the words on a link would be large enough to be read."""
        return is_legible(FACE[0], self.zoom)


def is_legible(size_px: float, zoom: float) -> bool:
    """Whether words of that size can be read at a zoom; smaller ones are left out."""
    return size_px * zoom >= LEAST_TEXT_PX


def draw_link(
    painter: QPainter,
    layout: Layout,
    place: int,
    link: Link,
    theme: Theme,
    memory: str,
    look: Look,
) -> None:
    """The link between an op and the next."""
    room, pill = layout.link_rect(place), layout.pill(place)
    pill.translate(look.shift_px, 0)
    if link.graph_break is not None:
        right = pill.right() if look.has_words else room.right() + BREAK_OUT_PX
        _draw_break(painter, room, pill, right, link.graph_break, theme, look)
        _draw_pill(painter, pill, link, theme, memory, look)
        return
    color, style = _ink(link, theme)
    painter.setPen(QPen(color, 3 if link.is_fused else 2, style))
    if link.tensors or link.is_fused:
        x = layout.spine_x
        painter.drawLine(QPointF(x, room.top()), QPointF(x, room.bottom()))
    _draw_pill(painter, pill, link, theme, memory, look)


def _draw_break(
    painter: QPainter,
    room: QRectF,
    pill: QRectF,
    right: float,
    found: GraphBreak,
    theme: Theme,
    look: Look,
) -> None:
    """The gap between two pieces: a line across up to ``right``, below it where it is and why."""
    y = pill.center().y()
    painter.setPen(QPen(theme.color("warning", 200), 1.5, Qt.PenStyle.DashLine))
    painter.drawLine(QPointF(room.left() - BREAK_OUT_PX, y), QPointF(pill.left(), y))
    if right > pill.right():
        painter.drawLine(QPointF(pill.right(), y), QPointF(right, y))
    if not look.is_written:
        return
    words = QRectF(room.left() + 4, pill.bottom() + 1, room.width() - 14, 0)
    words.setBottom(room.bottom())
    text = f"{found.place}: {found.reason}" if found.place else found.reason
    draw_text(painter, words, LEFT, text, font(12), theme.color("warning"))


def draw_side_link(
    painter: QPainter, layout: Layout, side: SideLink, theme: Theme, memory: str, look: Look
) -> None:
    """A link past other ops: a slim line at the side, its pill upright.

    Of one from far above only the end is drawn, which says where it comes from.
    """
    link = side.link
    start, end = layout.side_ends(side.top, side.below)
    x = layout.lane_x(side.lane)
    color, style = _ink(link, theme)
    bend = min(12.0, (end.y() - start.y()) / 2)
    path = QPainterPath(QPointF(x, start.y()) if side.is_cut else start)
    if not side.is_cut:
        path.cubicTo(QPointF(x, start.y()), QPointF(x, start.y()), QPointF(x, start.y() + bend))
    path.lineTo(x, end.y() - bend)
    path.cubicTo(QPointF(x, end.y()), QPointF(x, end.y()), end)
    painter.setPen(QPen(color, 2.5 if link.is_fused else 1.6, style))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(path)
    pill = side_pill(layout, side, memory)
    upright = QRectF(-pill.height() / 2, -pill.width() / 2, pill.height(), pill.width())
    painter.save()
    painter.translate(pill.center().x() + look.shift_px, pill.center().y())
    painter.rotate(90)
    words = f"from {link.first}" if side.is_cut and not link.bundle else ""
    name = "" if side.is_cut or link.bundle else ", ".join(link.tensors)
    _draw_pill(painter, upright, link, theme, memory, look, name, words)
    painter.restore()


def side_pill(layout: Layout, side: SideLink, memory: str) -> QRectF:
    """The face of a link past other ops, as long as its words want."""
    told = link_text(side.link, memory)
    words = told if side.link.bundle else f"{', '.join(side.link.tensors)} · {told}"
    length = text_width(words, font(*FACE)) + 26 + (18 if side.link.refusal else 0)
    return layout.side_pill(side.top, side.below, side.lane, length)


def side_reach(layout: Layout, side: SideLink) -> tuple[float, float]:
    """From where to where a link past other ops is drawn."""
    start, end = layout.side_ends(side.top, side.below)
    return start.y(), end.y()


def _ink(link: Link, theme: Theme) -> tuple[QColor, Qt.PenStyle]:
    name = _color_name(link)
    color = theme.color(name, 255 if link.is_fused else 190)
    return color, Qt.PenStyle.SolidLine if link.is_fused else Qt.PenStyle.DashLine


def _color_name(link: Link) -> str:
    if link.graph_break is not None:
        return "warning"
    if link.is_fused:
        return "fused"
    return "write" if link.state is LinkState.THROUGH_MEMORY else "muted"


def _draw_pill(
    painter: QPainter,
    pill: QRectF,
    link: Link,
    theme: Theme,
    memory: str,
    look: Look,
    name: str = "",
    short: str = "",
) -> None:
    """A link's face.

    Args:
        painter: Where to.
        pill: Its place.
        link: What it says.
        theme: Colours.
        memory: What the device's memory is called.
        look: Whether it is pointed at or was refused.
        name: Comes before what the link costs.
        short: All that is said instead; tooltips tell the rest.
    """
    radius = min(pill.height(), pill.width()) / 2
    color, style = _ink(link, theme)
    # What a click leads to gives the frame its colour.
    other = theme.color("write" if link.is_fused else "fused")
    if link.state in (LinkState.ON_CHIP, LinkState.TOGETHER):
        painter.setPen(QPen(other, 2) if look.is_hovered else Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("fused"))
        ink = theme.color("on_accent")
    else:
        pen = QPen(other, 2) if look.is_hovered else QPen(color, 1.3, style)
        painter.setPen(pen)
        painter.setBrush(theme.color("sunken"))
        ink = theme.color("text" if look.is_hovered else _color_name(link))
    if look.is_refused:
        painter.setPen(QPen(theme.color("warning"), 2.5))
    painter.drawRoundedRect(pill, radius, radius)
    if not look.is_written:
        return
    room = pill.adjusted(7, 0, -7, 0)
    if link.refusal is not None:
        mark = why_rect(pill)
        room.setRight(mark.left() - 1)
        _draw_why(painter, mark, theme)
    text = _fitting(look.preview, room.width()) if look.preview else ""
    if not text:
        words = short or link_text(link, memory)
        if short or link.graph_break is not None:
            text = _fitting(words, room.width())
        else:
            text = _fitting(f"{name} · {words}" if name else words, room.width(), link)
    draw_text(painter, room, CENTER, text, font(*FACE), ink)


def _draw_why(painter: QPainter, room: QRectF, theme: Theme) -> None:
    """A question mark in a ring: somebody knows why these two are apart."""
    ring = QRectF(0, 0, 14, 14)
    ring.moveCenter(room.center() + QPointF(-2, 0))
    painter.setPen(QPen(theme.color("write"), 1.2))
    painter.setBrush(theme.color("panel"))
    painter.drawEllipse(ring)
    draw_text(painter, ring, CENTER, "?", font(12, 700), theme.color("write"))


def _fitting(text: str, width: float, link: Link | None = None) -> str:
    """As much of the words as fits, rather without their beginning than without the bytes.

    Nothing where the bytes would be cut.
    """
    face = font(*FACE)
    parts = text.split(" · ")
    forms = [text, " · ".join(parts[1:]) if len(parts) > 2 else "", parts[-1]]
    if link is None:
        forms = [text, parts[0]]
    elif link.state is LinkState.THROUGH_MEMORY:
        forms[1] = f"{parts[0]} · {format_bytes(link.n_bytes)}" if len(parts) > 2 else ""
    elif link.is_fused and len(parts) == 2:
        forms[-1] = parts[0]
    is_number = link is not None and link.state is LinkState.THROUGH_MEMORY
    least = "" if is_number else forms[-1]
    return next((form for form in forms if form and text_width(form, face) <= width), least)
