"""The operator chain to look at and to work on: links are switched by mouse, stroke and keys."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import (
    QEasingCurve,
    QEvent,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QVariantAnimation,
    Signal,
)
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from explorer.model.units import format_bytes
from explorer.ui.controls import FocusRing, draw_focus
from explorer.ui.graph_draw import Marks, draw_chain
from explorer.ui.graph_layout import (
    Layout,
    Stop,
    breaks_of,
    least_height,
    link_at,
    stops,
    why_rect,
)
from explorer.ui.link_draw import side_pill
from explorer.ui.op_links import ChainPicture, Link, format_flops, link_sentence
from explorer.ui.panel import wrapped
from explorer.ui.theme import DARK, Theme, font
from explorer.ui.turns import Turns

REACH_PX = 6
"""How far round a pill a click still means it."""
SHAKE_MS, SHAKE_PX = 320, 5.0


@dataclass(frozen=True, slots=True)
class Preview:
    """What setting a link the other way would change.

    Attributes:
        short: In the pill: ``−2.15 GB · −1 launch``.
        sentence: At length.
    """

    short: str
    sentence: str


class GraphView(QWidget):
    """Draws a :class:`ChainPicture` from top to bottom.

    A hull in the colour of fusion holds the ops of one kernel; links inside it cost nothing, the
    others name the round trip through memory. The view knows no store: what is switched goes out
    through signals, and comes back as another picture.

    Signals:
        op_activated: Name of the op that was clicked, or Enter pressed on.
        stroke_begun: One or several links are going to be set, to be taken back together.
        link_set: Names of two ops, and whether they are to share a kernel.
        why_requested: Names of two ops: why are they apart?
        stop_changed: The keyboard went to another op or link, in this place of the view.
        active_moved: The op that runs at the playhead is in this place of the view.
    """

    op_activated = Signal(str)
    stroke_begun = Signal()
    link_set = Signal(str, str, bool)
    why_requested = Signal(str, str)
    stop_changed = Signal(QRect)
    active_moved = Signal(QRect)

    def __init__(self, parent: QWidget | None = None, *, turns: Turns | None = None) -> None:
        super().__init__(parent)
        self._turns = turns or Turns(self)
        self._ring = FocusRing(self)
        self._picture: ChainPicture | None = None
        self._memory = "memory"
        self._empty = ""
        self._theme = DARK
        self._active: frozenset[str] = frozenset()
        self._current = Stop("op", 0)
        self._hovered: Stop | None = None
        self._refused: Stop | None = None
        self._stroke: tuple[bool, float] | None = None
        self._previewer: Callable[[Link], Preview | None] | None = None
        self._previews: dict[Stop, Preview | None] = {}
        self._shake = QVariantAnimation(self, duration=SHAKE_MS, startValue=1.0, endValue=0.0)
        self._shake.setEasingCurve(QEasingCurve.Type.OutQuad)
        self._shake.valueChanged.connect(self.update)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Operator chain")

    # What is shown.

    def set_previewer(self, previewer: Callable[[Link], Preview | None]) -> None:
        """Let links be switched; the function says what that would change."""
        self._previewer = previewer

    def set_picture(self, picture: ChainPicture | None, memory: str, empty: str = "") -> None:
        """Show a chain.

        Args:
            picture: What to draw; None shows a sentence instead.
            memory: What the device's memory is called.
            empty: The sentence.
        """
        self._picture, self._memory, self._empty = picture, memory, empty
        self._previews.clear()
        n_ops = len(picture.rows) if picture else 0
        if picture is None or self._current not in stops(picture):
            self._current = Stop("op", 0)
        if self._hovered is not None and picture and self._hovered not in stops(picture):
            self._hovered = None
        self.setMinimumHeight(least_height(n_ops, len(breaks_of(picture))) if picture else 80)
        self._describe()
        if self._stroke is not None or self.hasFocus():
            # Somebody is switching links and looks here.
            self.update()
        else:
            self._turns.soon(self, self.update)

    def set_active(self, ops: tuple[str, ...]) -> None:
        """Mark the ops of the launch that runs at the playhead."""
        active = frozenset(ops)
        if active != self._active:
            self._active = active
            # Not in the turn in which the scene is repainted.
            self._turns.soon(self, self._show_active)

    def _show_active(self) -> None:
        """Repaint; whoever scrolls the view follows, unless somebody is at work in it."""
        self.update()
        rows = self._picture.rows if self._picture else ()
        places = [i for i, row in enumerate(rows) if row.op.name in self._active]
        if places and not self.hasFocus() and not self.underMouse():
            self.active_moved.emit(self.rect_of(Stop("op", places[0])).toAlignedRect())

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self._turns.soon(self, self.update)

    @property
    def current(self) -> Stop:
        """Where the keyboard is."""
        return self._current

    def refuse(self, first: str, second: str) -> QRect:
        """Show that a link cannot be switched on; returns where it lies."""
        stop = self._stop_of(first, second)
        if stop is None:
            return self.rect()
        self._refused = stop
        self._shake.start()
        return self.rect_of(stop).toAlignedRect()

    def forgive(self) -> None:
        """No link is refused any more."""
        if self._refused is not None:
            self._refused = None
            self._shake.stop()
            self.update()

    def rect_between(self, first: str, second: str) -> QRect:
        """Where the link between two ops lies."""
        stop = self._stop_of(first, second)
        return self.rect() if stop is None else self.rect_of(stop).toAlignedRect()

    # Painting.

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
            layout, seen = self.layout_now(), event.rect()
            draw_chain(
                painter,
                layout,
                self._picture,
                self._theme,
                self._memory,
                self._marks(),
                (seen.top(), seen.bottom()),
            )
            if self._ring.is_on:
                rect = self.rect_of(self._current).adjusted(-3, -3, 3, 3)
                radius = min(rect.width(), rect.height()) / 2
                draw_focus(painter, rect, self._theme.color("text"), min(radius, 12))
        painter.end()

    def _marks(self) -> Marks:
        is_shaking = self._shake.state() is QVariantAnimation.State.Running
        left = self._shake.currentValue() if is_shaking else 0.0
        strength = left if isinstance(left, float) else 0.0
        preview = self.preview_at(self._hovered)
        return Marks(
            active=self._active,
            hovered=self._hovered,
            preview=preview.short if preview and self._stroke is None else "",
            refused=self._refused,
            shift_px=SHAKE_PX * strength * math.sin(strength * 6 * math.pi),
        )

    def layout_now(self) -> Layout:
        """Where things lie at the widget's present size."""
        n_ops = len(self._picture.rows) if self._picture else 1
        lanes = self._picture.lanes if self._picture else 0
        breaks = breaks_of(self._picture) if self._picture else ()
        return Layout.fit(self.width(), self.height(), n_ops, lanes, breaks)

    def rect_of(self, stop: Stop) -> QRectF:
        """Where an op or the pill of a link lies."""
        layout = self.layout_now()
        if stop.kind == "op" or self._picture is None:
            return layout.op_rect(stop.place)
        if stop.kind == "link":
            return layout.pill(stop.place)
        return side_pill(layout, self._picture.side_links[stop.place], self._memory)

    # Pointing.

    def stop_at(self, point: QPointF) -> Stop | None:
        """The op or the link at a point."""
        if self._picture is None:
            return None
        for stop in stops(self._picture):
            reach = 0 if stop.kind == "op" else REACH_PX if stop.kind == "link" else 3
            if self.rect_of(stop).adjusted(-reach, -reach, reach, reach).contains(point):
                return stop
        return None

    def preview_at(self, stop: Stop | None) -> Preview | None:
        """What a click on a link would change; None where links cannot be switched."""
        if stop is None or self._picture is None or self._previewer is None:
            return None
        if stop not in self._previews:
            link = link_at(self._picture, stop)
            can_be_set = link is not None and link.graph_break is None
            self._previews[stop] = self._previewer(link) if link and can_be_set else None
        return self._previews[stop]

    def text_at(self, point: QPointF) -> str:
        """What the tooltip says at a point, empty where there is nothing."""
        if self._picture is None:
            return ""
        stop = self.stop_at(point)
        if stop is not None:
            return self._text_of(stop)
        layout = self.layout_now()
        for i in range(len(self._picture.links)):
            if layout.link_rect(i).contains(point):
                return _sides_sentence(self._picture, i + 1)
        return ""

    def _text_of(self, stop: Stop) -> str:
        assert self._picture is not None
        link = link_at(self._picture, stop)
        if link is None:
            return op_sentence(self._picture, stop.place)
        lines = [link_sentence(link, self._memory)]
        if link.refusal is not None:
            lines.append(f"Why apart: {link.refusal.sentence}")
        preview = self.preview_at(stop)
        if preview is not None:
            lines.append(preview.sentence)
        return "\n".join(lines)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            text = self.text_at(QPointF(event.pos()))
            if text:
                QToolTip.showText(event.globalPos(), wrapped(text), self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        stop = self.stop_at(event.position())
        if stop is None or self._picture is None or event.button() is not Qt.MouseButton.LeftButton:
            return
        self._current = stop
        link = link_at(self._picture, stop)
        if link is None:
            self.op_activated.emit(self._picture.rows[stop.place].op.name)
        elif link.graph_break is not None or (
            link.refusal and why_rect(self.rect_of(stop)).contains(event.position())
        ):
            self.why_requested.emit(link.first, link.second)
        elif self._previewer is not None:
            self._stroke = (not link.is_fused, event.position().y())
            self._begin(link)
        self._describe()
        self.update()

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._stroke is not None:
            self._paint_to(event.position())
        stop = self.stop_at(event.position())
        if stop != self._hovered:
            self._hovered = stop
            self._point(stop)
            self.update()

    def _paint_to(self, point: QPointF) -> None:
        """Set the links between the last place of the stroke and this one like the first."""
        assert self._stroke is not None
        fused, from_y = self._stroke
        self._stroke = (fused, point.y())
        low, high = sorted((from_y, point.y()))
        touched = self.stop_at(point)
        for place in range(len(self._picture.links) if self._picture else 0):
            middle = self.layout_now().pill(place).center().y()
            if low <= middle <= high or touched == Stop("link", place):
                self._set(Stop("link", place), fused)
        if touched is not None and touched.kind == "side":
            self._set(touched, fused)

    def _set(self, stop: Stop, fused: bool) -> None:
        link = link_at(self._picture, stop) if self._picture else None
        can_be_set = link is not None and link.graph_break is None
        if link is not None and can_be_set and link.is_fused is not fused:
            self.link_set.emit(link.first, link.second, fused)

    def _begin(self, link: Link) -> None:
        self.stroke_begun.emit()
        self.link_set.emit(link.first, link.second, not link.is_fused)

    def _point(self, stop: Stop | None) -> None:
        """The hand over what can be clicked."""
        if stop is None or (stop.kind != "op" and self._previewer is None):
            self.unsetCursor()
        else:
            self.setCursor(Qt.CursorShape.PointingHandCursor)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._stroke = None
        self.update()

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._hovered = None
        self.update()

    # Keys.

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        keys = Qt.Key
        if self._picture is None:
            super().keyPressEvent(event)
            return
        link = link_at(self._picture, self._current)
        if event.key() in (keys.Key_Up, keys.Key_Down):
            self._step(1 if event.key() == keys.Key_Down else -1)
        elif event.key() in (keys.Key_Home, keys.Key_End):
            self._step(-len(stops(self._picture)) if event.key() == keys.Key_Home else 10**6)
        elif event.key() in (keys.Key_Return, keys.Key_Enter, keys.Key_Space):
            if link is None:
                self.op_activated.emit(self._picture.rows[self._current.place].op.name)
            elif link.graph_break is not None:
                self.why_requested.emit(link.first, link.second)
            elif self._previewer is not None:
                self._begin(link)
        elif event.key() == keys.Key_W and link is not None and _has_reason(link):
            self.why_requested.emit(link.first, link.second)
        else:
            super().keyPressEvent(event)

    def _step(self, by: int) -> None:
        assert self._picture is not None
        every = stops(self._picture)
        place = min(max(every.index(self._current) + by, 0), len(every) - 1)
        self._current = every[place]
        self._ring.is_on = True
        self._describe()
        self.stop_changed.emit(self.rect_of(self._current).toAlignedRect())
        self.update()

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._describe()

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._describe()

    def _stop_of(self, first: str, second: str) -> Stop | None:
        if self._picture is None:
            return None
        for stop in stops(self._picture):
            link = link_at(self._picture, stop)
            if link is not None and (link.first, link.second) == (first, second):
                return stop
        return None

    def _describe(self) -> None:
        """Say where the keyboard is, or all of it while that is elsewhere."""
        name, words = "Operator chain", self._empty
        picture = self._picture
        if picture is not None and self.hasFocus():
            link = link_at(picture, self._current)
            words = self._text_of(self._current)
            if link is None:
                name = f"Operator chain: {picture.rows[self._current.place].op.name}"
            else:
                fused = "fused" if link.is_fused else "apart"
                name = f"Operator chain: link from {link.first} to {link.second}, {fused}"
        elif picture is not None:
            links = (*picture.links, *(side.link for side in picture.side_links))
            words = " ".join(link_sentence(link, self._memory) for link in links)
        self.setAccessibleName(name)
        self.setAccessibleDescription(words)


def _has_reason(link: Link) -> bool:
    """Whether somebody knows why its two ops are apart."""
    return link.refusal is not None or link.graph_break is not None


def op_sentence(picture: ChainPicture, place: int) -> str:
    """An op at length: ATen operator, arithmetic, what it reads from elsewhere, source line."""
    row = picture.rows[place]
    lines = [f"{row.op.name}: {row.op.aten}", format_flops(row.op.flops)]
    if row.side_inputs:
        lines.append(_sides_sentence(picture, place))
    if row.launches:
        numbers = ", ".join(str(i + 1) for i in row.launches)
        lines.append(f"carried out by launch{'es' if len(row.launches) > 1 else ''} {numbers}")
    source = (row.op.source_place, row.op.source_line)
    if any(source):
        lines.append(": ".join(part for part in source if part))
    return "\n".join(lines)


def _sides_sentence(picture: ChainPicture, place: int) -> str:
    return "\n".join(
        f"reads {side.name}: {format_bytes(side.n_bytes)} ({picture.pedigree.value})"
        for side in picture.rows[place].side_inputs
    )
