"""The operator chain: ops in order, and on every link what it costs or saves."""

from PySide6.QtCore import QEvent, QPointF, QSize, Qt, Signal
from PySide6.QtGui import (
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QScrollArea, QToolTip, QWidget
from typing_extensions import override

from explorer.model.units import format_bytes
from explorer.ui.controls import FocusRing, draw_focus
from explorer.ui.graph_draw import Layout, draw_chain, least_height
from explorer.ui.op_links import (
    ChainPicture,
    chain_picture,
    format_flops,
    link_sentence,
)
from explorer.ui.panel import Panel
from explorer.ui.state import State
from explorer.ui.store import Store
from explorer.ui.theme import DARK, Theme, font
from explorer.ui.turns import Turns


class GraphView(QWidget):
    """Draws a :class:`ChainPicture` from top to bottom.

    A hull in the colour of fusion holds the ops of one kernel; links inside it cost nothing, the
    others name the round trip through memory. The view knows no store.

    Signals:
        op_activated: Name of the op that was clicked, or Enter pressed on.
    """

    op_activated = Signal(str)

    def __init__(self, parent: QWidget | None = None, *, turns: Turns | None = None) -> None:
        super().__init__(parent)
        self._turns = turns or Turns(self)
        self._ring = FocusRing(self)
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
        self._update_soon()

    def set_active(self, ops: tuple[str, ...]) -> None:
        """Mark the ops of the launch that runs at the playhead."""
        active = " ".join(ops)
        if active != self._active:
            self._active = active
            self._update_soon()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self._update_soon()

    def _update_soon(self) -> None:
        """Repaint, but not in the turn in which the scene does."""
        self._turns.soon(self, self.update)

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
                self.layout_now(),
                self._picture,
                self._theme,
                self._memory,
                set((self._active or "").split()),
            )
            if self._ring.is_on:
                rect = self.layout_now().op_rect(self._current)
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
        layout = self.layout_now()
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
        layout = self.layout_now()
        n_ops = len(self._picture.rows) if self._picture else 0
        return next((i for i in range(n_ops) if layout.op_rect(i).contains(point)), None)

    def layout_now(self) -> Layout:
        """Where things lie at the widget's present size."""
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
    if row.launches:
        numbers = ", ".join(str(i + 1) for i in row.launches)
        lines.append(f"carried out by launch{'es' if len(row.launches) > 1 else ''} {numbers}")
    if row.op.source_line:
        lines.append(row.op.source_line)
    return "\n".join(lines)


class GraphPanel(Panel):
    """The panel round :class:`GraphView`, fed from the store.

    It shows the shown run's graph with that run's links; with no run the captured graph as
    planned, one kernel an op.

    Signals:
        op_activated: Name of an op that the user picked.
    """

    op_activated = Signal(str)

    def __init__(
        self, store: Store, turns: Turns | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__("Operator chain", parent=parent)
        self._store = store
        self.view = GraphView(turns=turns)
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
        ops = " → ".join(op.name for op in chain.ops(self._store.state.parameters.values))
        return f"{chain.formula}\n\n{ops}\n\nIts graph is drawn once the worker captured it."


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
