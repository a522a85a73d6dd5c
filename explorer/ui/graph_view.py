"""The operator chain to work on: links are switched, parts folded by mouse, stroke and keys."""

from PySide6.QtCore import QEvent, QPointF, QRect, Qt, Signal
from PySide6.QtGui import QFocusEvent, QHelpEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from explorer.ui.graph_canvas import GraphCanvas
from explorer.ui.graph_layout import Stop, link_at, stops, why_rect
from explorer.ui.graph_parts import Part
from explorer.ui.graph_words import (
    can_be_set,
    has_reason,
    link_lines,
    op_sentence,
    sides_sentence,
)
from explorer.ui.op_links import Link, link_sentence
from explorer.ui.panel import wrapped
from explorer.ui.turns import Turns


class GraphView(GraphCanvas):
    """The canvas with everything that can be done on it.

    A hull in the colour of fusion holds the ops of one kernel; links inside it cost nothing, the
    others name the round trip through memory. The view knows no store: what is switched goes out
    through signals, and comes back as another picture.

    Signals:
        op_activated: Name of the op that was clicked, or Enter pressed on.
        stroke_begun: One or several links are going to be set, to be taken back together.
        link_set: Names of two ops, and whether they are to share a kernel.
        why_requested: Names of two ops: why are they apart?
        stop_changed: The keyboard went to another op or link, in this place of the view.
        panned: The picture is dragged by so many pixels with the middle button.
    """

    op_activated = Signal(str)
    stroke_begun = Signal()
    link_set = Signal(str, str, bool)
    why_requested = Signal(str, str)
    stop_changed = Signal(QRect)
    panned = Signal(QPointF)

    def __init__(self, parent: QWidget | None = None, *, turns: Turns | None = None) -> None:
        super().__init__(parent, turns=turns)
        self._stroke: tuple[bool, float] | None = None
        self._dragged_from: QPointF | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Operator chain")

    # Pointing.

    def text_at(self, point: QPointF) -> str:
        """What the tooltip says at a point, empty where there is nothing."""
        if self._picture is None:
            return ""
        stop = self.stop_at(point)
        if stop is not None:
            return self._text_of(stop)
        layout, at = self.layout_now(), point / self.zoom
        for i in layout.places_in(at.y(), at.y(), len(self._picture.links)):
            if layout.link_rect(i).contains(at):
                return sides_sentence(self._picture, i + 1)
        return ""

    def _text_of(self, stop: Stop) -> str:
        assert self._picture is not None
        link = link_at(self._picture, stop)
        if link is None:
            return op_sentence(self._picture, stop.place)
        return link_lines(link, self._memory, self.preview_at(stop))

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
        if event.button() is Qt.MouseButton.MiddleButton:
            self._dragged_from = event.globalPosition()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            return
        stop = self.stop_at(event.position())
        if stop is None or self._picture is None or event.button() is not Qt.MouseButton.LeftButton:
            return
        self._current = stop
        link = link_at(self._picture, stop)
        if link is None:
            self._press_box(stop.place, event.position() / self.zoom)
        elif link.graph_break is not None or (
            link.refusal and self._is_at_why(stop, event.position() / self.zoom)
        ):
            self.why_requested.emit(link.first, link.second)
        elif link.bundle:
            self.reveal(link.first, link.second)
        elif self._previewer is not None:
            self._stroke = (not link.is_fused, event.position().y())
            self._is_stroking = True
            self._begin(link)
        self._describe()
        self.update()

    def _press_box(self, place: int, at: QPointF) -> None:
        """Open or fold a part, or go to the op's launch."""
        assert self._picture is not None
        row = self._picture.rows[place]
        on_triangle = self.layout_now().fold_rect(place).contains(at)
        if row.part is not None and (row.folded or on_triangle):
            self.fold(row.part.span, closed=not row.folded)
        else:
            self.op_activated.emit(row.op.name)

    def _is_at_why(self, stop: Stop, at: QPointF) -> bool:
        return why_rect(self._place_of(self.layout_now(), stop)).contains(at)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged_from is not None:
            self.panned.emit(event.globalPosition() - self._dragged_from)
            self._dragged_from = event.globalPosition()
            return
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
        touched, layout = self.stop_at(point), self.layout_now()
        low, high = low / self.zoom, high / self.zoom
        for place in range(len(self._picture.links) if self._picture else 0):
            middle = layout.pill(place).center().y()
            if low <= middle <= high or touched == Stop("link", place):
                self._set(Stop("link", place), fused)
        if touched is not None and touched.kind == "side":
            self._set(touched, fused)

    def _set(self, stop: Stop, fused: bool) -> None:
        link = link_at(self._picture, stop) if self._picture else None
        if link is not None and can_be_set(link) and link.is_fused is not fused:
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
        self._stroke, self._is_stroking = None, False
        if event.button() is Qt.MouseButton.MiddleButton:
            self._dragged_from = None
            self._point(self._hovered)
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
                self._enter_box()
            elif link.bundle:
                self.reveal(link.first, link.second)
            elif link.graph_break is not None:
                self.why_requested.emit(link.first, link.second)
            elif self._previewer is not None:
                self._begin(link)
        elif event.key() == keys.Key_W and link is not None and has_reason(link):
            self.why_requested.emit(link.first, link.second)
        elif event.key() in (keys.Key_Left, keys.Key_Right) and not event.modifiers():
            if not self._fold_here(closed=event.key() == keys.Key_Left):
                super().keyPressEvent(event)
        else:
            super().keyPressEvent(event)

    def _enter_box(self) -> None:
        assert self._picture is not None
        row = self._picture.rows[self._current.place]
        if not self._fold_here(closed=False):
            self.op_activated.emit(row.op.name)

    def _fold_here(self, *, closed: bool) -> bool:
        """Open the box that the keyboard is at, or fold what is round it; False if nothing is."""
        assert self._picture is not None
        if not closed:
            is_op = self._current.kind == "op"
            row = self._picture.rows[self._current.place] if is_op else None
            part = row.part if row and row.folded else None
        else:
            part = self._part_round()
        if part is None:
            return False
        self.fold(part.span, closed=closed)
        self._ring.is_on = True
        self.stop_changed.emit(self.rect_of(self._current).toAlignedRect())
        return True

    def _part_round(self) -> Part | None:
        """The innermost open part round the op, or round both ops of the link, at the keyboard."""
        assert self._picture is not None
        assert self._whole is not None
        link = link_at(self._picture, self._current)
        row = self._picture.rows[self._current.place] if link is None else None
        names = {row.op.name} if row else {link.first, link.second} if link else set()
        places = [i for i, each in enumerate(self._whole.rows) if each.op.name in names]
        inside = row.part.span if row and row.part and row.folded else None
        return self.folding.around(min(places), max(places), inside)

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

    @override
    def _describe(self) -> None:
        """Say where the keyboard is, or all of it while that is elsewhere."""
        name, words = "Operator chain", self._empty
        picture = self._picture
        if picture is not None and self.hasFocus():
            link = link_at(picture, self._current)
            words = self._text_of(self._current)
            if link is None:
                row = picture.rows[self._current.place]
                name = f"Operator chain: {row.name}{', folded' if row.folded else ''}"
            else:
                fused = "fused" if link.is_fused else "apart"
                name = f"Operator chain: link from {link.first} to {link.second}, {fused}"
        elif picture is not None:
            links = (*picture.links, *(side.link for side in picture.side_links))
            words = " ".join(link_sentence(link, self._memory) for link in links)
        self.setAccessibleName(name)
        self.setAccessibleDescription(words)
