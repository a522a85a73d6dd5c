"""The operator chain as it is painted: its size at each zoom, what is folded, where things lie."""

import math
from collections.abc import Callable

from PySide6.QtCore import (
    QEasingCurve,
    QPointF,
    QRect,
    QRectF,
    QSize,
    Qt,
    QVariantAnimation,
    Signal,
)
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from explorer.ui.controls import FocusRing, draw_focus
from explorer.ui.graph_draw import Marks, draw_chain
from explorer.ui.graph_folds import Folding
from explorer.ui.graph_layout import (
    Layout,
    Stop,
    breaks_of,
    least_height,
    link_at,
    stops,
)
from explorer.ui.graph_words import Preview, can_be_set
from explorer.ui.link_draw import side_pill
from explorer.ui.op_links import ChainPicture, Link
from explorer.ui.theme import DARK, Theme, font
from explorer.ui.turns import Turns

REACH_PX, SIDE_REACH_PX = 6, 3
"""How far round a pill a click still means it, and round one at the side."""
SHAKE_MS, SHAKE_PX = 320, 5.0


class GraphCanvas(QWidget):
    """Draws a :class:`ChainPicture` from top to bottom, with its parts open or folded.

    At 100 % it fills the width that it has. Smaller, it still does, so that names keep their
    room and only heights shrink; larger, it grows both ways. Points and rectangles that go in and
    out are the widget's, those of :meth:`layout_now` are the layout's, at 100 %.

    Signals:
        active_moved: The op that runs at the playhead is in this place of the view.
        folds_changed: Other parts are folded, or another graph has other ones.
        repainted: What is drawn, lit or its colours are others.
    """

    active_moved = Signal(QRect)
    folds_changed = Signal()
    repainted = Signal()

    def __init__(self, parent: QWidget | None = None, *, turns: Turns | None = None) -> None:
        super().__init__(parent)
        self._turns = turns or Turns(self)
        self._ring = FocusRing(self)
        self._whole: ChainPicture | None = None
        self._picture: ChainPicture | None = None
        self._folding = Folding()
        self._zoom = 1.0
        self._page = QSize()
        self._memory = "memory"
        self._empty = ""
        self._theme = DARK
        self._active: frozenset[str] = frozenset()
        self._current = Stop("op", 0)
        self._hovered: Stop | None = None
        self._refused: tuple[str, str] | None = None
        self._is_stroking = False
        self._previewer: Callable[[Link], Preview | None] | None = None
        self._previews: dict[Stop, Preview | None] = {}
        self._shake = QVariantAnimation(self, duration=SHAKE_MS, startValue=1.0, endValue=0.0)
        self._shake.setEasingCurve(QEasingCurve.Type.OutQuad)
        self._shake.valueChanged.connect(self.update)

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
        before = self._folding.names, self._folding.closed
        self._whole, self._memory, self._empty = picture, memory, empty
        self._folding.take(picture)
        self._fold_again()
        if (self._folding.names, self._folding.closed) != before:
            self.folds_changed.emit()
        if self._is_stroking or self.hasFocus():
            # Somebody is switching links and looks here.
            self.update()
        else:
            self._turns.soon(self, self.update)

    def _fold_again(self) -> None:
        """Draw what the folds leave; the keyboard stays at its op, or comes to what hides it."""
        old = self._picture
        at = _names_at(old, self._current) if old is not None else ()
        whole = self._whole
        self._picture = None if whole is None else self._folding.folded(whole)
        self._previews.clear()
        self._hovered = self._current_of(old, self._hovered) if self._hovered else None
        self._current = self._find(at) or Stop("op", 0)
        self._take_size()
        self._describe()
        self.repainted.emit()

    def _current_of(self, old: ChainPicture | None, stop: Stop) -> Stop | None:
        """Where something of the last picture is in this one, None if it is hidden."""
        found = self._find(_names_at(old, stop)) if old is not None else None
        return found if found is not None and found.kind == stop.kind else None

    def _find(self, names: tuple[str, ...]) -> Stop | None:
        """An op by its name, a link by two; the box that hides it where it is folded away."""
        if self._picture is None or not names:
            return None
        if len(names) > 1:
            stop = self._stop_of(*names[:2])
            if stop is not None:
                return stop
        for i, row in enumerate(self._picture.rows):
            if any(op.name == names[0] for op in row.ops):
                return Stop("op", i)
        return None

    def _describe(self) -> None:
        """Say where the keyboard is: whoever takes keys does."""

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
        self.repainted.emit()
        rows = self._picture.rows if self._picture else ()
        places = [i for i, row in enumerate(rows) if any(op.name in self._active for op in row.ops)]
        if places and not self.hasFocus() and not self.underMouse():
            self.active_moved.emit(self.rect_of(Stop("op", places[0])).toAlignedRect())

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self._turns.soon(self, self.update)
        self.repainted.emit()

    @property
    def current(self) -> Stop:
        """Where the keyboard is."""
        return self._current

    @property
    def picture(self) -> ChainPicture | None:
        """What is drawn: a folded part is one box in it."""
        return self._picture

    @property
    def active(self) -> frozenset[str]:
        """Names of the ops that run at the playhead."""
        return self._active

    @property
    def theme(self) -> Theme:
        """The colours."""
        return self._theme

    # Folds.

    @property
    def folding(self) -> Folding:
        """What is folded; to change it use :meth:`fold`, :meth:`fold_all` or :meth:`reveal`."""
        return self._folding

    def fold(self, span: tuple[int, int], closed: bool) -> None:
        """Fold a part into one box, or open it."""
        self._folding.set_closed(span, closed)
        self._show_folds()

    def fold_all(self, closed: bool) -> None:
        """Fold every part, or open all."""
        self._folding.set_all(closed)
        self._show_folds()

    def reveal(self, *names: str) -> None:
        """Open what hides these ops."""
        if self._whole is not None and self._folding.reveal(self._whole, *names):
            self._show_folds()

    def _show_folds(self) -> None:
        self._fold_again()
        self.folds_changed.emit()
        self.update()

    # Size.

    @property
    def zoom(self) -> float:
        """How many pixels one of the layout has; 1 is 100 %."""
        return self._zoom

    def set_zoom(self, zoom: float) -> None:
        """Draw larger or smaller."""
        self._zoom = zoom
        self._take_size()
        self.update()

    def set_page(self, page: QSize) -> None:
        """Learn the size of what the view is looked at through."""
        if page != self._page:
            self._page = page
            self._take_size()

    @property
    def full_height(self) -> int:
        """Height at 100 %."""
        return max(self.lowest_height, self._page.height())

    @property
    def height_now(self) -> float:
        """Height at the present zoom."""
        return self.full_height * self._zoom

    @property
    def fitting_zoom(self) -> float:
        """At this zoom the whole graph is seen; never larger than 100 %."""
        return min(self._page.height() / max(self.full_height, 1), 1.0) or 1.0

    @property
    def lowest_height(self) -> int:
        """Height at 100 % with the least room for each op and link."""
        picture = self._picture
        return least_height(len(picture.rows), len(breaks_of(picture))) if picture else 80

    def _take_size(self) -> None:
        if self._zoom == 1 or self._picture is None:
            self.setMinimumSize(0, self.lowest_height)
        else:
            width = round(self._page.width() * self._zoom) if self._zoom > 1 else 0
            # Rounded down, or the whole graph would be a line higher than its page.
            self.setMinimumSize(width, math.floor(self.full_height * self._zoom + 1e-6))

    @override
    def sizeHint(self) -> QSize:
        return QSize(260, 420)

    # Refusals.

    def refuse(self, first: str, second: str) -> QRect:
        """Show that a link cannot be switched on; returns where it lies."""
        self.reveal(first, second)
        stop = self._stop_of(first, second)
        if stop is None:
            return self.rect()
        self._refused = (first, second)
        self._shake.start()
        return self.rect_of(stop).toAlignedRect()

    def forgive(self) -> None:
        """No link is refused any more."""
        if self._refused is not None:
            self._refused = None
            self._shake.stop()
            self.update()

    def rect_between(self, first: str, second: str) -> QRect:
        """Where the link between two ops lies, or the box that hides it."""
        stop = self._find((first, second))
        return self.rect() if stop is None else self.rect_of(stop).toAlignedRect()

    def _stop_of(self, first: str, second: str) -> Stop | None:
        if self._picture is None:
            return None
        for stop in stops(self._picture):
            link = link_at(self._picture, stop)
            if link is not None and (link.first, link.second) == (first, second):
                return stop
        return None

    # Painting.

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
            seen = (event.rect().top() / self._zoom, event.rect().bottom() / self._zoom)
            painter.save()
            painter.scale(self._zoom, self._zoom)
            layout, marks = self.layout_now(), self._marks()
            draw_chain(painter, layout, self._picture, self._theme, self._memory, marks, seen)
            painter.restore()
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
            preview=preview.short if preview and not self._is_stroking else "",
            refused=self._stop_of(*self._refused) if self._refused else None,
            shift_px=SHAKE_PX * strength * math.sin(strength * 6 * math.pi),
            zoom=self._zoom,
        )

    def preview_at(self, stop: Stop | None) -> Preview | None:
        """What a click on a link would change; None where links cannot be switched."""
        if stop is None or self._picture is None or self._previewer is None:
            return None
        if stop not in self._previews:
            link = link_at(self._picture, stop)
            is_switch = link is not None and can_be_set(link)
            self._previews[stop] = self._previewer(link) if link and is_switch else None
        return self._previews[stop]

    # Where things lie.

    def layout_now(self) -> Layout:
        """Where things lie at the widget's present size, at 100 %."""
        n_ops = len(self._picture.rows) if self._picture else 1
        lanes = self._picture.lanes if self._picture else 0
        breaks = breaks_of(self._picture) if self._picture else ()
        height = self.height() if self._zoom == 1 else self.full_height
        return Layout.fit(self.width() / self._zoom, height, n_ops, lanes, breaks)

    def rect_of(self, stop: Stop) -> QRectF:
        """Where an op or the pill of a link lies in the widget."""
        place = self._place_of(self.layout_now(), stop)
        return QRectF(place.topLeft() * self._zoom, place.size() * self._zoom)

    def _place_of(self, layout: Layout, stop: Stop) -> QRectF:
        if stop.kind == "op" or self._picture is None:
            return layout.op_rect(stop.place)
        if stop.kind == "link":
            return layout.pill(stop.place)
        return side_pill(layout, self._picture.side_links[stop.place], self._memory)

    def stop_at(self, point: QPointF) -> Stop | None:
        """The op or the link at a point of the widget."""
        if self._picture is None:
            return None
        layout, at = self.layout_now(), point / self._zoom
        near = layout.places_in(at.y(), at.y(), len(self._picture.rows))
        found = [(Stop("op", i), 0) for i in near]
        found += [(Stop("link", i), REACH_PX) for i in near if i < len(self._picture.links)]
        found += [
            (Stop("side", k), SIDE_REACH_PX)
            for k, side in enumerate(self._picture.side_links)
            if side.top < near.stop and side.below >= near.start
        ]
        for stop, reach in found:
            face = self._place_of(layout, stop).adjusted(-reach, -reach, reach, reach)
            if face.contains(at):
                return stop
        return None


def _names_at(picture: ChainPicture, stop: Stop) -> tuple[str, ...]:
    """The names of the op or of the link's two at a stop."""
    link = link_at(picture, stop)
    return (picture.rows[stop.place].op.name,) if link is None else (link.first, link.second)
