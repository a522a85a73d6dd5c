"""The operator chain: ops in order, and on every link what it costs or saves."""

from dataclasses import dataclass

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QScrollArea, QToolTip, QWidget
from typing_extensions import override

from explorer.model.units import format_bytes
from explorer.ui.controls import draw_focus, draw_text
from explorer.ui.op_links import (
    ChainPicture,
    Link,
    LinkState,
    SideInput,
    chain_picture,
    format_flops,
    link_sentence,
    link_text,
)
from explorer.ui.panel import Panel
from explorer.ui.state import State
from explorer.ui.store import Store
from explorer.ui.theme import DARK, Theme, font

BOX_PX = (28.0, 50.0)
"""Least and greatest height of an op's box."""
LINK_PX = (26.0, 56.0)
"""Least and greatest height of the room between two boxes."""
END_PX = 30.0
"""Room for what goes into and comes out of the chain."""
MARGIN_PX = 12.0
TWO_LINES_PX = 40.0
"""From this height on a box has a second line."""
PILL_PX = 22.0


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things lie, from the size of the widget alone."""

    width: float
    box: float
    gap: float

    @classmethod
    def fit(cls, width: float, height: float, n_ops: int) -> "Layout":
        """Share the height out: boxes and links grow together up to their greatest."""
        room = height - 2 * END_PX - 8
        least = n_ops * BOX_PX[0] + (n_ops - 1) * LINK_PX[0]
        most = n_ops * BOX_PX[1] + (n_ops - 1) * LINK_PX[1]
        share = min(max((room - least) / max(most - least, 1.0), 0.0), 1.0)
        return cls(
            width,
            BOX_PX[0] + share * (BOX_PX[1] - BOX_PX[0]),
            LINK_PX[0] + share * (LINK_PX[1] - LINK_PX[0]),
        )

    def op_rect(self, place: int) -> QRectF:
        """The box of the op at a place."""
        top = END_PX + 4 + place * (self.box + self.gap)
        return QRectF(MARGIN_PX, top, self.width - 2 * MARGIN_PX, self.box)

    def link_rect(self, place: int) -> QRectF:
        """The room below the op at a place."""
        above = self.op_rect(place)
        return QRectF(above.left(), above.bottom(), above.width(), self.gap)


def least_height(n_ops: int) -> int:
    """Below this height the graph is scrolled."""
    return int(n_ops * BOX_PX[0] + max(n_ops - 1, 0) * LINK_PX[0] + 2 * END_PX + 8)


class GraphView(QWidget):
    """Draws a :class:`ChainPicture` from top to bottom.

    A hull in the colour of fusion holds the ops of one kernel; links inside it cost nothing, the
    others name the round trip through memory. The view knows no store.

    Signals:
        op_activated: Name of the op that was clicked, or Enter pressed on.
    """

    op_activated = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._picture: ChainPicture | None = None
        self._memory = "memory"
        self._empty = ""
        self._theme = DARK
        self._active: str | None = None
        self._current = 0
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Operator chain")

    def set_picture(self, picture: ChainPicture | None, memory: str, empty: str = "") -> None:
        """Show a chain.

        Args:
            picture: What to draw; None shows a sentence instead.
            memory: What the device's memory is called.
            empty: The sentence.
        """
        self._picture, self._memory, self._empty = picture, memory, empty
        n_ops = len(picture.rows) if picture else 0
        self._current = min(self._current, max(n_ops - 1, 0))
        self.setMinimumHeight(least_height(n_ops) if picture else 80)
        self.setAccessibleDescription(self._description())
        self.update()

    def set_active(self, ops: tuple[str, ...]) -> None:
        """Mark the ops of the launch that runs at the playhead."""
        active = " ".join(ops)
        if active != self._active:
            self._active = active
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(260, 420)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._picture is None:
            painter.setFont(font(13))
            painter.setPen(self._theme.color("muted"))
            words = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(16, 8, -16, -8), words, self._empty)
        else:
            draw_chain(
                painter,
                self._layout(),
                self._picture,
                self._theme,
                self._memory,
                set((self._active or "").split()),
            )
            if self.hasFocus():
                rect = self._layout().op_rect(self._current)
                draw_focus(painter, rect.adjusted(-2, -2, 2, 2), self._theme.color("text"), 9)
        painter.end()

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            text = self.text_at(QPointF(event.pos()))
            if text:
                QToolTip.showText(event.globalPos(), text, self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    def text_at(self, point: QPointF) -> str:
        """What the tooltip says at a point, empty where there is nothing."""
        if self._picture is None:
            return ""
        layout = self._layout()
        for i in range(len(self._picture.rows)):
            if layout.op_rect(i).contains(point):
                return op_sentence(self._picture, i)
            if i < len(self._picture.links) and layout.link_rect(i).contains(point):
                return link_sentence(self._picture.links[i], self._memory)
        return ""

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self._place_at(event.position())
        if place is not None and self._picture is not None:
            self._current = place
            self.update()
            self.op_activated.emit(self._picture.rows[place].op.name)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        last = len(self._picture.rows) - 1 if self._picture else 0
        if event.key() in (keys.Key_Up, keys.Key_Down):
            step = 1 if event.key() == keys.Key_Down else -1
            self._current = min(max(self._current + step, 0), last)
            self.update()
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space) and self._picture:
            self.op_activated.emit(self._picture.rows[self._current].op.name)
        else:
            super().keyPressEvent(event)

    def _place_at(self, point: QPointF) -> int | None:
        layout = self._layout()
        n_ops = len(self._picture.rows) if self._picture else 0
        return next((i for i in range(n_ops) if layout.op_rect(i).contains(point)), None)

    def _layout(self) -> Layout:
        n_ops = len(self._picture.rows) if self._picture else 1
        return Layout.fit(self.width(), self.height(), n_ops)

    def _description(self) -> str:
        if self._picture is None:
            return self._empty
        return " ".join(link_sentence(link, self._memory) for link in self._picture.links)


def op_sentence(picture: ChainPicture, place: int) -> str:
    """An op at length: ATen operator, arithmetic, what it reads from elsewhere, source line."""
    row = picture.rows[place]
    lines = [f"{row.op.name}: {row.op.aten}", format_flops(row.op.flops)]
    lines += [
        f"reads {side.name}: {format_bytes(side.n_bytes)} ({picture.pedigree.value})"
        for side in row.side_inputs
    ]
    if row.launch is not None:
        lines.append(f"carried out by launch {row.launch + 1}")
    if row.op.source_line:
        lines.append(row.op.source_line)
    return "\n".join(lines)


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
        hull = layout.op_rect(first).united(layout.op_rect(last)).adjusted(-7, -6, 7, 6)
        painter.setPen(QPen(theme.color("fused", 150), 1.5))
        painter.setBrush(theme.color("fused", 28))
        painter.drawRoundedRect(hull, 12, 12)
    if picture.rows:
        _draw_end(painter, layout.op_rect(0), picture.rows[0].side_inputs, theme, "read")
        end = layout.op_rect(len(picture.rows) - 1)
        _draw_end(painter, end, picture.outputs, theme, "write")
    for i, link in enumerate(picture.links):
        _draw_link(painter, layout.link_rect(i), link, theme, memory)
        sides = picture.rows[i + 1].side_inputs
        if sides:
            _draw_side(painter, layout.link_rect(i), sides, theme)
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
    right = Qt.AlignmentFlag.AlignRight
    if rect.height() >= TWO_LINES_PX:
        half = rect.height() / 2
        upper = QRectF(inner.left(), rect.top() + 3, inner.width(), half - 1)
        lower = QRectF(inner.left(), rect.top() + half - 2, inner.width(), half - 1)
        draw_text(painter, upper, name, font(15, 600), theme.color("text"))
        draw_text(painter, upper, detail, font(13), theme.color("muted"), right)
        draw_text(painter, lower, flops, font(12.5), theme.color("muted"))
    else:
        used = draw_text(painter, inner, name, font(15, 600), theme.color("text"))
        rest = inner.adjusted(used + 10, 0, 0, 0)
        taken = draw_text(painter, rest, flops, font(12.5), theme.color("muted"), right)
        draw_text(
            painter, rest.adjusted(0, 0, -taken - 10, 0), detail, font(13), theme.color("muted")
        )


def _draw_link(painter: QPainter, rect: QRectF, link: Link, theme: Theme, memory: str) -> None:
    is_fused = link.state in (LinkState.ON_CHIP, LinkState.KEPT, LinkState.DOUBTED)
    text, made = link_text(link, memory), font(12.5, 600)
    width = min(QFontMetricsF(made).horizontalAdvance(text) + 24, rect.width() * 0.62)
    middle = rect.left() + rect.width() * 0.31
    pill = QRectF(middle - width / 2, rect.center().y() - PILL_PX / 2, width, PILL_PX)
    pill.moveLeft(max(pill.left(), rect.left() + 6))
    color = theme.color("fused" if is_fused else "write", 255 if is_fused else 190)
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
        ink = theme.color("fused" if is_fused else "write")
    painter.drawRoundedRect(pill, PILL_PX / 2, PILL_PX / 2)
    draw_text(painter, pill.adjusted(8, 0, -8, 0), text, made, ink, Qt.AlignmentFlag.AlignHCenter)


def _draw_side(painter: QPainter, rect: QRectF, sides: tuple[SideInput, ...], theme: Theme) -> None:
    """What comes in from the side, with a stroke into the box below."""
    text = _sides_text(sides)
    room = QRectF(rect.left() + rect.width() * 0.64, rect.top(), rect.width() * 0.36 - 8, PILL_PX)
    room.moveTop(rect.center().y() - PILL_PX / 2)
    right = Qt.AlignmentFlag.AlignRight
    draw_text(painter, room, text, font(12.5, 600), theme.color("read"), right)
    x = rect.right() - 2
    painter.setPen(QPen(theme.color("read"), 2))
    painter.drawLine(QPointF(x, rect.center().y() - 7), QPointF(x, rect.bottom()))


def _draw_end(
    painter: QPainter, box: QRectF, sides: tuple[SideInput, ...], theme: Theme, color: str
) -> None:
    if not sides:
        return
    is_top = color == "read"
    x = box.left() + box.width() * 0.31
    edge = box.top() if is_top else box.bottom()
    sign = -1 if is_top else 1
    painter.setPen(QPen(theme.color(color), 2))
    painter.drawLine(QPointF(x, edge), QPointF(x, edge + sign * 10))
    top = edge - 10 - 18 if is_top else edge + 10
    room = QRectF(box.left(), top, box.width(), 18)
    text = _sides_text(sides)
    width = QFontMetricsF(font(13, 600)).horizontalAdvance(text)
    room.setLeft(max(box.left() + 4, x - width / 2))
    draw_text(painter, room, text, font(13, 600), theme.color(color))


def _sides_text(sides: tuple[SideInput, ...]) -> str:
    names = ", ".join(side.name for side in sides)
    return f"{names} · {format_bytes(sum(side.n_bytes for side in sides))}"


class GraphPanel(Panel):
    """The panel round :class:`GraphView`, fed from the store.

    It shows the shown run's graph with that run's links; with no run the captured graph as
    planned, one kernel an op.

    Signals:
        op_activated: Name of an op that the user picked.
    """

    op_activated = Signal(str)

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__("Operator chain", parent=parent)
        self._store = store
        self.view = GraphView()
        self.view.set_theme(store.theme)
        self.view.op_activated.connect(self.op_activated)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(self.view)
        scroll.viewport().setAutoFillBackground(False)
        self.view.setAutoFillBackground(False)
        self.body.setContentsMargins(4, 0, 4, 6)
        self.body.addWidget(scroll)
        for signal in (store.shown_changed, store.captured_changed, store.worker_changed):
            signal.connect(self._refresh)
        store.theme_changed.connect(self.view.set_theme)
        self._refresh()

    def _refresh(self) -> None:
        picture, memory = picture_of(self._store.state)
        self.view.set_picture(picture, memory, self._empty_sentence())
        tip = "planned: one kernel an op, before any run; modelled: from the kernels' arguments"
        self.set_hint(f"{picture.pedigree.value} bytes" if picture else "", tip)

    def _empty_sentence(self) -> str:
        chain = self._store.state.chain_descriptor
        ops = ", ".join(op.name for op in chain.ops(self._store.state.parameters.values))
        return f"{chain.formula}\n\nThe worker captures its ops when it is up:\n{ops}"


def picture_of(state: State) -> tuple[ChainPicture | None, str]:
    """The chain to draw, and what the memory of its device is called."""
    shown = state.shown_run
    if shown is not None:
        return chain_picture(shown.run.graph, shown.run), shown.run.device.memory_name
    device = state.chosen_device
    memory = device.memory_name if device else "memory"
    if state.captured is None:
        return None, memory
    return chain_picture(state.captured.graph, None), memory
