"""Paints the operator chain: boxes from top to bottom, and on every link what it costs."""

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen

from explorer.model.units import format_bytes
from explorer.ui.op_links import (
    ChainPicture,
    Link,
    LinkState,
    SideInput,
    format_flops,
    link_text,
)
from explorer.ui.painting import CENTER, LEFT, RIGHT, draw_text, text_width
from explorer.ui.theme import Theme, font

SHARES_PX = ((22.0, 22.0), (28.0, 34.0), (50.0, 56.0))
"""Heights of an op's box and of the room below it: at least, with air round the tags, at most."""
END_PX = 27.0
"""Room for what goes into and comes out of the chain."""
MARGIN_PX = 12.0
TWO_LINES_PX = 40.0
"""From this height on a box has a second line."""
PILL_PX = 22.0
HULL_PX = 5.0
"""How far a hull stands out over the boxes that share a kernel."""
SPINE = 0.29
"""Where the line through the ops runs, as a share of a box's width."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things lie, from the size of the widget alone."""

    width: float
    box: float
    gap: float

    @classmethod
    def fit(cls, width: float, height: float, n_ops: int) -> "Layout":
        """Share the height out: first the links get air, then boxes and links grow together."""
        room = height - 2 * END_PX - 8
        (box, gap), *larger = SHARES_PX
        for next_box, next_gap in larger:
            used = n_ops * box + (n_ops - 1) * gap
            more = n_ops * (next_box - box) + (n_ops - 1) * (next_gap - gap)
            share = min(max((room - used) / max(more, 1.0), 0.0), 1.0)
            box += share * (next_box - box)
            gap += share * (next_gap - gap)
        return cls(width, box, gap)

    def op_rect(self, place: int) -> QRectF:
        """The box of the op at a place."""
        top = END_PX + 4 + place * (self.box + self.gap)
        return QRectF(MARGIN_PX, top, self.width - 2 * MARGIN_PX, self.box)

    @property
    def spine_x(self) -> float:
        """Where the line through the ops runs."""
        return self.op_rect(0).left() + self.op_rect(0).width() * SPINE

    def link_rect(self, place: int) -> QRectF:
        """The room below the op at a place."""
        above = self.op_rect(place)
        return QRectF(above.left(), above.bottom(), above.width(), self.gap)


def least_height(n_ops: int) -> int:
    """Below this height the graph is scrolled."""
    box, gap = SHARES_PX[0]
    return int(n_ops * box + max(n_ops - 1, 0) * gap + 2 * END_PX + 8)


def draw_chain(
    painter: QPainter,
    layout: Layout,
    picture: ChainPicture,
    theme: Theme,
    memory: str,
    active: set[str],
) -> None:
    """Draw the whole chain; a pure function of its arguments."""
    for first, last in picture.groups:
        hull = layout.op_rect(first).united(layout.op_rect(last))
        hull.adjust(-7, -HULL_PX, 7, HULL_PX)
        painter.setPen(QPen(theme.color("fused", 150), 1.5))
        painter.setBrush(theme.color("fused", 28))
        painter.drawRoundedRect(hull, 12, 12)
    if picture.rows:
        _draw_end(painter, layout.op_rect(0), picture.rows[0].side_inputs, theme, "read")
        end = layout.op_rect(len(picture.rows) - 1)
        _draw_end(painter, end, picture.outputs, theme, "write")
    ends = {last for _, last in picture.groups}
    starts = {first for first, _ in picture.groups}
    for i, link in enumerate(picture.links):
        gap = layout.link_rect(i)
        # What is free of it: a hull reaches into the room above and below its boxes.
        free = gap.adjusted(0, HULL_PX * (i in ends), 0, -HULL_PX * (i + 1 in starts))
        _draw_link(painter, gap, free, link, theme, memory)
        sides = picture.rows[i + 1].side_inputs
        if sides:
            _draw_side(painter, gap, free, sides, theme)
    for i, row in enumerate(picture.rows):
        _draw_op(painter, layout.op_rect(i), row.op.name, _op_notes(picture, i), theme,
                 row.op.name in active)  # fmt: skip


def _op_notes(picture: ChainPicture, place: int) -> tuple[str, str]:
    op = picture.rows[place].op
    return op.detail, format_flops(op.flops) if op.flops else ""


def _draw_op(
    painter: QPainter,
    rect: QRectF,
    name: str,
    notes: tuple[str, str],
    theme: Theme,
    is_active: bool,
) -> None:
    painter.setPen(QPen(theme.color("compute", 255 if is_active else 150), 2 if is_active else 1.3))
    painter.setBrush(theme.color("op"))
    painter.drawRoundedRect(rect, 8, 8)
    detail, flops = notes
    inner = rect.adjusted(12, 0, -12, 0)
    if rect.height() >= TWO_LINES_PX:
        half = rect.height() / 2
        upper = QRectF(inner.left(), rect.top() + 3, inner.width(), half - 1)
        lower = QRectF(inner.left(), rect.top() + half - 2, inner.width(), half - 1)
        draw_text(painter, upper, LEFT, name, font(15, 600), theme.color("text"))
        draw_text(painter, upper, RIGHT, detail, font(13), theme.color("muted"))
        draw_text(painter, lower, LEFT, flops, font(12.5), theme.color("muted"))
    else:
        used = draw_text(painter, inner, LEFT, name, font(15, 600), theme.color("text"))
        rest = inner.adjusted(used + 10, 0, 0, 0)
        taken = draw_text(painter, rest, RIGHT, flops, font(12.5), theme.color("muted"))
        draw_text(
            painter,
            rest.adjusted(0, 0, -taken - 10, 0),
            LEFT,
            detail,
            font(13),
            theme.color("muted"),
        )


def _draw_link(
    painter: QPainter, rect: QRectF, free: QRectF, link: Link, theme: Theme, memory: str
) -> None:
    is_fused = link.state in (LinkState.ON_CHIP, LinkState.KEPT, LinkState.DOUBTED)
    text, made = link_text(link, memory), font(12.5, 600)
    width = min(text_width(text, made) + 24, rect.width() * 0.54)
    middle = rect.left() + rect.width() * SPINE
    height = min(PILL_PX, free.height() - 2)
    pill = QRectF(middle - width / 2, free.center().y() - height / 2, width, height)
    pill.moveLeft(max(pill.left(), rect.left() + 6))
    is_memory = link.state is LinkState.THROUGH_MEMORY
    color_name = "fused" if is_fused else "write" if is_memory else "muted"
    color = theme.color(color_name, 255 if is_fused else 190)
    style = Qt.PenStyle.SolidLine if is_fused else Qt.PenStyle.DashLine
    painter.setPen(QPen(color, 3 if is_fused else 2, style))
    painter.drawLine(QPointF(middle, rect.top()), QPointF(middle, rect.bottom()))
    if link.state is LinkState.ON_CHIP:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("fused"))
        ink = theme.color("on_accent")
    else:
        painter.setPen(QPen(color, 1.3, style))
        painter.setBrush(theme.color("sunken"))
        ink = theme.color(color_name)
    painter.drawRoundedRect(pill, height / 2, height / 2)
    draw_text(painter, pill.adjusted(8, 0, -8, 0), CENTER, text, made, ink)


def _draw_side(
    painter: QPainter, rect: QRectF, free: QRectF, sides: tuple[SideInput, ...], theme: Theme
) -> None:
    """What comes in from the side, with a stroke into the box below."""
    text = _sides_text(sides)
    room = QRectF(rect.left() + rect.width() * 0.56, rect.top(), rect.width() * 0.44 - 9, PILL_PX)
    room.moveTop(free.center().y() - PILL_PX / 2)
    draw_text(painter, room, RIGHT, text, font(12.5, 600), theme.color("read"))
    x = rect.right() - 2
    painter.setPen(QPen(theme.color("read"), 2))
    painter.drawLine(QPointF(x, free.center().y() - 7), QPointF(x, rect.bottom()))


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
    top = edge - 8 - 18 if is_top else edge + 8
    room = QRectF(box.left(), top, box.width(), 18)
    text = _sides_text(sides)
    width = text_width(text, font(13, 600))
    room.setLeft(max(box.left() + 4, x - width / 2))
    draw_text(painter, room, LEFT, text, font(13, 600), theme.color(color))


def _sides_text(sides: tuple[SideInput, ...]) -> str:
    names = ", ".join(side.name for side in sides)
    return f"{names} · {format_bytes(sum(side.n_bytes for side in sides))}"
