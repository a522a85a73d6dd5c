"""The plot of a sweep, time over traffic. Imported when first shown, since pyqtgraph takes long."""

from itertools import pairwise, zip_longest
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from explorer.ui.painting import text_width
from explorer.ui.panel import wrapped
from explorer.ui.plot_base import AXIS_PX, StillPlot, dot_layer, labels_on_screen
from explorer.ui.roofline_labels import gather, leader, place_labels
from explorer.ui.sweep_looks import (
    BEYOND,
    EDGE,
    SYMBOLS,
    Axis,
    box_round,
    edge,
    face,
    label_font,
    label_text,
    rank,
    ring,
    shared_pen,
    tip,
)
from explorer.ui.sweep_picture import SweepMark, SweepPicture, neighbour
from explorer.ui.theme import Theme, font

SAME_MARK_PX = 6.0
"""Marks closer than this, at zoom 1, share a label."""
ROOMY_PX = 400
"""A plot that is less wide, at zoom 1, names one of the marks that share a label."""
MOST_OBSTACLES = 40
"""Marks without a label that labels keep clear of at most; those on each other count as one."""
_STEPS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Down: (0, -1),
    Qt.Key.Key_Up: (0, 1),
}


class SweepPlot(StillPlot):
    """A mark a plan, quartiles as bars, the front as a line, and what the plans are held against.

    Data comes in through :meth:`show_picture`. Arrow keys go from mark to mark, Enter and a click
    pick one. It knows no store.

    Signals:
        mark_picked: Number of a mark in the picture.
    """

    mark_picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        axes = {side: Axis(side) for side in ("bottom", "left")}
        super().__init__(axes, parent=parent)
        self._axes = axes
        self._picture: SweepPicture | None = None
        self._at = -1
        self._floor = pg.PlotCurveItem(antialias=True)
        self._front = pg.PlotCurveItem(antialias=True)
        self._reach = pg.PlotCurveItem(antialias=True, connect="pairs")
        self._bars = pg.PlotCurveItem(antialias=True, connect="pairs")
        self._leaders = pg.PlotCurveItem(antialias=True, connect="pairs")
        self._rings = dot_layer()
        self._marks = dot_layer(hoverable=True, tip=tip)
        self._focus = dot_layer()
        self._floor_label = pg.TextItem(anchor=(0, 0))
        self._labels: list[pg.TextItem] = []
        self.add_layers(
            (
                (-5, (self._floor, self._front, self._reach, self._leaders)),
                (0, (self._bars, self._rings)),
                (8, (self._marks,)),
                (10, (self._focus, self._floor_label)),
            )
        )
        self._marks.sigClicked.connect(self._on_clicked)
        self.getPlotItem().getViewBox().sigResized.connect(self._place_labels)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Time over traffic of every plan")

    @property
    def picture(self) -> SweepPicture | None:
        """What is shown."""
        return self._picture

    @property
    def at(self) -> int:
        """Number of the mark that the keyboard is on, -1 for none."""
        return self._at

    @property
    def labels(self) -> tuple[tuple[str, QRectF], ...]:
        """The labels on screen, and where each is."""
        return labels_on_screen(self._labels)

    def spot(self, number: int) -> QPointF:
        """Where a mark is, in the widget's pixels."""
        assert self._picture is not None, "only asked while there is a picture"
        x, y = self._place(self._picture, self._picture.marks[number])
        scene = self.getPlotItem().getViewBox().mapViewToScene(QPointF(x, y))
        return QPointF(self.mapFromScene(scene))

    def show_picture(self, picture: SweepPicture, theme: Theme, zoom: float) -> None:
        """Draw a picture; nothing is done where it is on screen already."""
        if picture is self._picture and (theme, zoom) == self._looks:
            return
        if self.wear(theme, zoom):
            self._dress(theme, zoom)
        kept = self._run_at()
        self._picture = picture
        self._at = next((i for i, mark in enumerate(picture.marks) if mark.run is kept), -1)
        self._scale_axes(picture, zoom)
        self._show_lines(picture)
        self._show_marks(picture, theme, zoom)
        self._show_focus()
        self._place_labels()

    def _run_at(self) -> object:
        on_mark = self._picture is not None and 0 <= self._at < len(self._picture.marks)
        return self._picture.marks[self._at].run if on_mark and self._picture else None

    def _dress(self, theme: Theme, zoom: float) -> None:
        """Colours and fonts that do not depend on the runs."""
        self._floor_label.setFont(font(AXIS_PX * zoom))
        self._floor_label.setColor(theme.color("muted"))
        for label in self._labels:
            label.setFont(label_font(zoom))
        dashed = Qt.PenStyle.DashLine
        self._floor.setPen(self.line_pen(theme.color("read"), 1.4, dashed))
        self._front.setPen(self.line_pen(theme.color("compute"), 1.8))
        dotted = Qt.PenStyle.DotLine
        self._reach.setPen(self.line_pen(theme.color("compute"), 1.2, dotted))
        self._bars.setPen(self.line_pen(theme.color("muted"), 1.6))
        self._leaders.setPen(self.line_pen(theme.color("faint"), 1))

    def _scale_axes(self, picture: SweepPicture, zoom: float) -> None:
        x_unit, y_unit = picture.x_unit[0], picture.y_unit[0]
        x_range = (picture.x_range[0] / x_unit, picture.x_range[1] / x_unit)
        y_range = (picture.y_range[0] / y_unit, picture.y_range[1] / y_unit)
        self.set_ranges(x_range, y_range)
        left, bottom = self._axes["left"], self._axes["bottom"]
        left.unit, bottom.unit = picture.y_unit[1], picture.x_unit[1]
        face = font(AXIS_PX * zoom)
        # pyqtgraph would find these out while painting, one picture too late.
        ticks = left.tickStrings([y_range[1], 0.25, 2.5], 1, 1)
        width = max(text_width(tick, face) for tick in ("88.8 ms", *ticks[1:]))
        left.setWidth(width + 10 * zoom)
        bottom.setHeight(21 * zoom)

    def _show_lines(self, picture: SweepPicture) -> None:
        x_unit, y_unit = picture.x_unit[0], picture.y_unit[0]
        ends = (*picture.front[:2], *picture.front[-2:])
        for line, points in (
            (self._floor, picture.floor),
            (self._front, picture.front[1:-1]),
            (self._reach, ends),
        ):
            line.setData([x / x_unit for x, _ in points], [y / y_unit for _, y in points])
        bars = [mark for mark in picture.marks if not picture.beyond(mark)]
        self._bars.setData(
            [mark.x / x_unit for mark in bars for _ in range(2)],
            [y / y_unit for mark in bars for y in (mark.low, mark.high)],
        )

    def _show_marks(self, picture: SweepPicture, theme: Theme, zoom: float) -> None:
        symbols, sizes, rings = [], [], []
        for mark in picture.marks:
            symbol, size = SYMBOLS[mark.kind]
            symbols.append(BEYOND.get(picture.beyond(mark), symbol))
            sizes.append((size + (3 if mark.shown else 0)) * zoom)
            if mark.ringed:
                pen = shared_pen(theme, "read", 2)
                rings.append(ring(self._place(picture, mark), 24 * zoom, pen))
            if mark.current:
                pen = pg.mkPen(theme.color("playhead"), width=1.6, style=Qt.PenStyle.DotLine)
                rings.append(ring(self._place(picture, mark), 29 * zoom, pen))
        places = [self._place(picture, mark) for mark in picture.marks]
        self._rings.setData(rings, brush=None)
        self._marks.setData(
            x=[x for x, _ in places],
            y=[y for _, y in places],
            symbol=symbols,
            size=sizes,
            pen=[edge(mark, theme) for mark in picture.marks],
            brush=[face(mark, theme) for mark in picture.marks],
            data=list(enumerate(picture.marks)),
            hoverPen=shared_pen(theme, "text", 2),
        )

    def _place(self, picture: SweepPicture, mark: SweepMark) -> tuple[float, float]:
        """In units of the axes; one beyond the range stands just inside of the edge."""
        low, high = picture.y_range
        y = {1: high - EDGE * (high - low), -1: low + EDGE * (high - low)}.get(
            picture.beyond(mark), mark.y
        )
        return mark.x / picture.x_unit[0], y / picture.y_unit[0]

    def _place_labels(self, *_: object) -> None:
        """Name what matters; marks on each other share a label, one without room is left out."""
        picture, looks = self._picture, self._looks
        if picture is None or looks is None:
            return
        theme, zoom = looks
        view = self.getPlotItem().getViewBox()
        inside = view.sceneBoundingRect()
        everywhere = [
            view.mapViewToScene(QPointF(*self._place(picture, mark))) for mark in picture.marks
        ]
        taken = self._along_the_lines(picture)
        taken += self._place_floor_label(picture, everywhere, zoom)
        taken += [
            box_round(spot, 11 * zoom)
            for spot, mark in zip(everywhere, picture.marks, strict=True)
            if mark.ringed or mark.current
        ]
        numbers = [i for i, mark in enumerate(picture.marks) if mark.label]
        numbers.sort(key=lambda i: rank(picture.marks[i]))
        groups = gather([everywhere[i] for i in numbers], SAME_MARK_PX * zoom)
        named = [[numbers[i] for i in group] for group in groups]
        while len(self._labels) < len(named):
            self._labels.append(self.add_label(label_font(zoom)))
        for label, group in zip_longest(self._labels, named):
            label.setVisible(group is not None)
            if group is not None:
                marks = [picture.marks[i] for i in group]
                if inside.width() < ROOMY_PX * zoom:
                    marks = marks[:1]
                label.setPlainText(" · ".join(label_text(picture, mark) for mark in marks))
                label.setColor(theme.color("text" if marks[0].shown else "muted"))
        spots = [everywhere[group[0]] for group in named]
        labelled = {i for group in named for i in group}
        others = [spot for i, spot in enumerate(everywhere) if i not in labelled]
        apart = [others[group[0]] for group in gather(others, SAME_MARK_PX * zoom)]
        taken += [box_round(spot, 6 * zoom) for spot in apart[:MOST_OBSTACLES]]
        labels = self._labels[: len(named)]
        sizes: list[QSizeF] = [label.boundingRect().size() for label in labels]
        boxes = place_labels(spots, sizes, inside, taken, zoom)
        ties: list[QPointF] = []
        for label, spot, box in zip(labels, spots, boxes, strict=True):
            label.setVisible(box is not None)
            if box is not None:
                label.setPos(view.mapSceneToView(box.topLeft()))
                ties += [view.mapSceneToView(end) for end in leader(spot, box, zoom) or ()]
        self._leaders.setData([end.x() for end in ties], [end.y() for end in ties])

    def _along_the_lines(self, picture: SweepPicture) -> list[QRectF]:
        """Small boxes on the front and on the floor, which no label should cover."""
        view = self.getPlotItem().getViewBox()
        boxes: list[QRectF] = []
        for points in (picture.front, picture.floor):
            spots = [
                view.mapViewToScene(QPointF(x / picture.x_unit[0], y / picture.y_unit[0]))
                for x, y in points
            ]
            for first, last in pairwise(spots):
                length = abs(last.x() - first.x()) + abs(last.y() - first.y())
                n_steps = max(min(round(length / 6), 80), 1)
                for step in range(n_steps + 1):
                    spot = first + (last - first) * (step / n_steps)
                    boxes.append(box_round(spot, 1.5))
        return boxes

    def _place_floor_label(
        self, picture: SweepPicture, marks: list[QPointF], zoom: float
    ) -> list[QRectF]:
        """Say what the floor is, beside it and clear of marks; returns what that covers."""
        self._floor_label.setVisible(bool(picture.floor))
        if not picture.floor:
            return []
        view = self.getPlotItem().getViewBox()
        self._floor_label.setPlainText(picture.floor_words)
        first, last = (
            view.mapViewToScene(QPointF(x / picture.x_unit[0], y / picture.y_unit[0]))
            for x, y in picture.floor
        )
        box = QRectF(QPointF(0, 0), self._floor_label.boundingRect().size())
        gap = 6 * zoom
        for share in (1.0, 0.85, 0.7, 0.55, 0.4, 0.25):
            spot = first + (last - first) * share
            # To the right the line rises away from it.
            box.moveTopLeft(spot + QPointF(gap, 0))
            around = box.adjusted(-gap, -gap, gap, gap)
            fits = view.sceneBoundingRect().contains(box)
            if fits and not any(map(around.contains, marks)):
                self._floor_label.setPos(view.mapSceneToView(box.topLeft()))
                return [box]
        # The line speaks for itself, and the caption of the plot names it.
        self._floor_label.setVisible(False)
        return []

    # The mouse and the keyboard.

    def _on_clicked(self, _item: object, points: Any, _event: object = None) -> None:
        if len(points):
            self.mark_picked.emit(points[-1].data()[0])

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        picture = self._picture
        step = _STEPS.get(Qt.Key(event.key()))
        if picture is not None and step is not None:
            start = next((i for i, mark in enumerate(picture.marks) if mark.shown), None)
            if self._at < 0:
                self._at = start if start is not None else len(picture.marks) - 1
            else:
                self._at = neighbour(picture, self._at, step)
            self._show_focus()
            self._tell_focus(picture)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._at >= 0:
            self.mark_picked.emit(self._at)
        else:
            super().keyPressEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._at = -1
        self._show_focus()

    def _show_focus(self) -> None:
        if self._picture is None or self._looks is None or self._at < 0:
            self._focus.setData([])
            return
        theme, zoom = self._looks
        place = self._place(self._picture, self._picture.marks[self._at])
        pen = pg.mkPen(theme.color("text"), width=2)
        self._focus.setData([ring(place, 19 * zoom, pen)], brush=None)

    def _tell_focus(self, picture: SweepPicture) -> None:
        text = "\n".join(picture.marks[self._at].words)
        self.setAccessibleDescription(text)
        QToolTip.showText(self.mapToGlobal(self.spot(self._at)).toPoint(), wrapped(text), self)
