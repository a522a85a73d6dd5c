"""A slim picture of the whole operator chain beside the part of it that is looked at."""

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from explorer.ui.graph_canvas import GraphCanvas
from explorer.ui.graph_draw import kind_color

WIDTH_PX = 20
INSET_PX = 4.0


class GraphOverview(QWidget):
    """Every box as a line in the colour of its kind, with what is in sight framed.

    Ops that run at the playhead are lit, fused ones have the colour of fusion at their left, and
    graph breaks are lines across. A click or a drag brings that place into the middle.

    Signals:
        place_chosen: Share of the graph's height, 0 to 1.
    """

    place_chosen = Signal(float)

    def __init__(self, canvas: GraphCanvas, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._canvas = canvas
        self._seen = (0.0, 1.0)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setToolTip("All of the graph: click or drag to go there")
        self.setAccessibleName("Overview of the operator chain")

    def show_seen(self, first: float, last: float) -> None:
        """Frame what is looked at, as shares of the graph's height."""
        if (first, last) != self._seen:
            self._seen = first, last
            self.update()

    @property
    def seen(self) -> tuple[float, float]:
        """What is framed."""
        return self._seen

    @override
    def sizeHint(self) -> QSize:
        return QSize(WIDTH_PX, 120)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        picture, theme = self._canvas.picture, self._canvas.theme
        if picture is None:
            return
        painter = QPainter(self)
        layout, share = self._canvas.layout_now(), self._share()
        left, width = INSET_PX, self.width() - 2 * INSET_PX

        def bar(first: int, last: int, left: float, width: float) -> QRectF:
            top = layout.op_rect(first).top() * share
            bottom = layout.op_rect(last).bottom() * share
            return QRectF(left, top, width, max(bottom - top, 1.0))

        for i, row in enumerate(picture.rows):
            is_active = any(op.name in self._canvas.active for op in row.ops)
            color = theme.color("compute") if is_active else kind_color(row.op.kind, theme)
            if row.folded and not is_active:
                color = theme.color("plain")
            painter.fillRect(bar(i, i, left, width), color)
        for first, last in picture.groups:
            painter.fillRect(bar(first, last, 0, 3), theme.color("fused"))
        for i, link in enumerate(picture.links):
            if link.graph_break is not None:
                y = layout.link_rect(i).center().y() * share
                painter.fillRect(QRectF(0, y - 1, self.width(), 2), theme.color("warning"))
        top, bottom = (each * self.height() for each in self._seen)
        frame = QRectF(1, top + 1, self.width() - 2, max(bottom - top - 2, 6.0))
        painter.setPen(QPen(theme.color("text"), 1.5))
        painter.setBrush(theme.color("text", 30))
        painter.drawRoundedRect(frame, 3, 3)
        painter.end()

    def _share(self) -> float:
        """Height here of one pixel of the layout."""
        return self.height() / max(self._canvas.full_height, 1)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._go(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._go(event)

    def _go(self, event: QMouseEvent) -> None:
        share = event.position().y() / max(self.height(), 1)
        self.place_chosen.emit(min(max(share, 0.0), 1.0))

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        self.update()
