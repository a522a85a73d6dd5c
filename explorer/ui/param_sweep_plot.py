"""One plot of a parameter sweep. Imported when first shown, since pyqtgraph takes long."""

from itertools import groupby, pairwise, zip_longest
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from explorer.ui.near_labels import ANGLES, BESIDE, near_label
from explorer.ui.painting import text_width
from explorer.ui.panel import wrapped
from explorer.ui.param_sweep_picture import Dot, Line, ParamPicture, neighbour
from explorer.ui.plot_base import AXIS_PX, StillPlot, dot_layer, labels_on_screen
from explorer.ui.theme import Theme, font

LABEL_PX = 12.5
DOT_PX, FAILED_PX = 9.0, 12.0
EDGE = 0.05
"""How far above the lower edge failed points stand, as a share of the range; more for others."""
PAYS_COLOR = "text"
PAYS_SHARES = (0.9, 0.75, 0.6, 0.45, 0.3)
"""Heights at which a crossover may be named, as shares of the range."""
TICK_AIR_PX, LINE_PX = 14.0, 15.0
"""Between texts along the parameter; height of one up the measure."""
UNDER_LABEL = 190
"""How opaque a label's ground is: a stroke below it does not strike it through."""
STROKE_STEP_PX, MOST_BOXES = 6.0, 200
Place = tuple[float, float]
"""In the plot's coordinates."""
_STEPS = {
    Qt.Key.Key_Left: (-1, 0),
    Qt.Key.Key_Right: (1, 0),
    Qt.Key.Key_Down: (0, -1),
    Qt.Key.Key_Up: (0, 1),
}


class ParamSweepPlot(StillPlot):
    """A line a strategy over the parameter, quartiles as bars, failed points at the lower edge.

    Data comes in through :meth:`show_picture`. Arrow keys go from point to point, Enter and a
    click pick one. It knows no store.

    Signals:
        dot_picked: Number of a dot in the picture.
    """

    dot_picked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        axes = {side: pg.AxisItem(side) for side in ("bottom", "left")}
        for axis in axes.values():
            axis.enableAutoSIPrefix(False)
            axis.setStyle(tickLength=-4, autoExpandTextSpace=False)
        super().__init__(axes, parent=parent)
        self._picture: ParamPicture | None = None
        self._at = -1
        self._even = pg.PlotCurveItem(antialias=True)
        self._pays = pg.PlotCurveItem(antialias=True, connect="pairs")
        self._curves: list[pg.PlotCurveItem] = []
        self._bars: list[pg.PlotCurveItem] = []
        self._dots = dot_layer(hoverable=True, tip=_tip)
        self._focus = dot_layer()
        self._labels: list[pg.TextItem] = []
        self.add_layers(
            (
                (-5, (self._even, self._pays)),
                (8, (self._dots,)),
                (10, (self._focus,)),
            )
        )
        self._dots.sigClicked.connect(self._on_clicked)
        self.getPlotItem().getViewBox().sigResized.connect(self._on_resized)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def picture(self) -> ParamPicture | None:
        """What is shown."""
        return self._picture

    @property
    def at(self) -> int:
        """Number of the dot that the keyboard is on, -1 for none."""
        return self._at

    @property
    def labels(self) -> tuple[tuple[str, QRectF], ...]:
        """The labels on screen, and where each is."""
        return labels_on_screen(self._labels)

    def spot(self, number: int) -> QPointF:
        """Where a dot is, in the widget's pixels."""
        assert self._picture is not None, "only asked while there is a picture"
        place = QPointF(*self._place(self._picture, self._picture.dots[number]))
        return QPointF(self.mapFromScene(self.getPlotItem().getViewBox().mapViewToScene(place)))

    def show_picture(self, picture: ParamPicture, theme: Theme, zoom: float) -> None:
        """Draw a picture; nothing is done where it is on screen already."""
        if picture == self._picture and (theme, zoom) == self._looks:
            return
        self.wear(theme, zoom)
        kept = self._picture.dots[self._at].run if self._picture and self._at >= 0 else None
        self._picture = picture
        self._at = next((i for i, dot in enumerate(picture.dots) if dot.run is kept), -1)
        self.setAccessibleName(f"{picture.measure.value} over {picture.parameter}")
        self._scale_axes(picture, zoom)
        self._show_lines(picture, theme)
        self._show_dots(picture, theme, zoom)
        self._show_focus()
        self._on_resized()

    def _scale_axes(self, picture: ParamPicture, zoom: float) -> None:
        self.set_ranges(picture.x_range, picture.y_range)
        face = font(AXIS_PX * zoom)
        widest = max((text_width(text, face) for _, text in picture.y_ticks), default=0.0)
        self._axes["left"].setWidth(widest + 10 * zoom)
        self._axes["bottom"].setHeight(21 * zoom)

    def _thin_ticks(self) -> None:
        """As many ticks as there is room for: along the parameter the ends first, up from below."""
        picture, looks = self._picture, self._looks
        if picture is None or looks is None:
            return
        face, air = font(AXIS_PX * looks[1]), TICK_AIR_PX * looks[1]
        view = self.getPlotItem().getViewBox()
        taken: list[tuple[float, float]] = []
        kept = []
        for place, text in _ends_first(picture.ticks):
            x = view.mapViewToScene(QPointF(place, picture.y_range[0])).x()
            half = (text_width(text, face) + air) / 2
            if all(x + half <= left or right <= x - half for left, right in taken):
                taken.append((x - half, x + half))
                kept.append((place, text))
        self._axes["bottom"].setTicks([sorted(kept)])
        least, heights, upright = LINE_PX * looks[1], list[float](), []
        for place, text in picture.y_ticks:
            y = view.mapViewToScene(QPointF(picture.x_range[0], place)).y()
            if all(abs(y - other) >= least for other in heights):
                heights.append(y)
                upright.append((place, text))
        self._axes["left"].setTicks([upright])

    def _show_lines(self, picture: ParamPicture, theme: Theme) -> None:
        while len(self._curves) < len(picture.lines):
            self._curves.append(pg.PlotCurveItem(antialias=True, connect="finite"))
            self._bars.append(pg.PlotCurveItem(antialias=True, connect="pairs"))
            self.add_layers(((0, (self._curves[-1],)), (2, (self._bars[-1],))))
        for curve, bars, line in zip_longest(self._curves, self._bars, picture.lines):
            curve.setVisible(line is not None)
            bars.setVisible(line is not None)
            if line is None:
                continue
            style = Qt.PenStyle.SolidLine if picture.is_numeric else Qt.PenStyle.DotLine
            curve.setPen(self.line_pen(theme.color(line.color), 2, style))
            bars.setPen(self.line_pen(theme.color(line.color), 2.4))
            xs, ys = _joined(line)
            curve.setData(xs, ys)
            there = [dot for dot in line.dots if dot.y is not None]
            bars.setData(
                [dot.x for dot in there for _ in range(2)],
                [end for dot in there for end in (dot.low, dot.high)],
            )
        (left, right), (low, high) = picture.x_range, picture.y_range
        self._even.setVisible(picture.even is not None)
        self._even.setPen(self.line_pen(theme.color("muted"), 1.2, Qt.PenStyle.DashLine))
        even = picture.even or 0.0
        self._even.setData([left, right], [even, even])
        self._pays.setPen(self.line_pen(theme.color(PAYS_COLOR), 1.4, Qt.PenStyle.DotLine))
        self._pays.setData(
            [found.x for found in picture.pays for _ in range(2)],
            [end for _ in picture.pays for end in (low, high)],
        )

    def _show_dots(self, picture: ParamPicture, theme: Theme, zoom: float) -> None:
        dots = picture.dots
        places = [self._place(picture, dot) for dot in dots]
        text, panel = pg.mkPen(theme.color("text"), width=2), pg.mkPen(theme.color("panel"))
        warned = pg.mkPen(theme.color("warning"), width=2)
        lines = [picture.lines[dot.line] for dot in dots]
        crossed = [dot.y is None or dot.is_wrong for dot in dots]
        self._dots.setData(
            x=[x for x, _ in places],
            y=[y for _, y in places],
            symbol=[
                "x" if is_crossed else line.symbol
                for is_crossed, line in zip(crossed, lines, strict=True)
            ],
            size=[
                ((FAILED_PX if is_crossed else DOT_PX) + (4 if dot.is_shown else 0)) * zoom
                for is_crossed, dot in zip(crossed, dots, strict=True)
            ],
            pen=[
                text if dot.is_shown else warned if is_crossed else panel
                for is_crossed, dot in zip(crossed, dots, strict=True)
            ],
            brush=[
                pg.mkBrush(theme.color("warning" if is_crossed else line.color))
                for is_crossed, line in zip(crossed, lines, strict=True)
            ],
            data=list(enumerate(dots)),
            hoverPen=text,
        )

    def _place(self, picture: ParamPicture, dot: Dot) -> tuple[float, float]:
        """In the plot's coordinates; those that failed stand above each other at the edge."""
        if dot.y is not None:
            return dot.x, dot.y
        low, high = picture.y_range
        same = [other for other in picture.dots if other.x == dot.x and other.y is None]
        rank = next(i for i, other in enumerate(same) if other is dot)
        return dot.x, low + EDGE * (1 + 1.6 * rank) * (high - low)

    def _on_resized(self, *_: object) -> None:
        self._thin_ticks()
        self._place_labels()

    def _place_labels(self) -> None:
        """Name failures, lines and crossovers; what has no room is left to the tooltips."""
        picture, looks = self._picture, self._looks
        if picture is None or looks is None:
            return
        theme, zoom = looks
        view = self.getPlotItem().getViewBox()
        named = self._named(picture)
        while len(self._labels) < len(named):
            self._labels.append(self.add_label(font(LABEL_PX * zoom, 600)))
        for label, found in zip_longest(self._labels, named):
            label.setVisible(found is not None)
            if found is not None:
                label.setFont(font(LABEL_PX * zoom, 600))
                label.setPlainText(found[0])
                label.setColor(theme.color(found[2]))
                label.fill = pg.mkBrush(None)
        dots, strokes = self._taken(picture)
        placed: list[QRectF] = []
        for label, (_, places, color) in zip(self._labels, named, strict=False):
            spots = [view.mapViewToScene(QPointF(*place)) for place in places]
            size: QSizeF = label.boundingRect().size()
            angles = BESIDE if color == PAYS_COLOR else ANGLES
            inside, taken = view.sceneBoundingRect(), [*dots, *placed]
            box = near_label(spots, size, inside, [*taken, *strokes], zoom, angles)
            if box is None and color != PAYS_COLOR:
                # A line without a name would be worse than a stroke below a name.
                found = (
                    near_label([spot], size, inside, taken, zoom, [angle])
                    for spot in spots
                    for angle in angles
                )
                boxes = [each for each in found if each is not None]
                box = min(boxes, key=lambda each: sum(map(each.intersects, strokes)), default=None)
                label.fill = pg.mkBrush(theme.color("panel", UNDER_LABEL))
            label.setVisible(box is not None)
            if box is not None:
                label.setPos(view.mapSceneToView(box.topLeft()))
                placed.append(box)

    def _named(self, picture: ParamPicture) -> list[tuple[str, list[tuple[float, float]], str]]:
        """What has a label, where it may stand, and its colour: the most telling first."""
        named = []
        for line in picture.lines:
            failed = [dot for dot in line.dots if dot.y is None]
            for label, dots in groupby(failed, key=lambda dot: dot.label):
                named.append((label, [self._place(picture, next(dots))], "warning"))
        for line in picture.lines:
            there = [self._place(picture, dot) for dot in line.dots if dot.y is not None]
            if there:
                named.append((line.title, there[::-1], line.color))
        low, high = picture.y_range
        for found in picture.pays:
            along = [(found.x, low + share * (high - low)) for share in PAYS_SHARES]
            named.append((found.words, along, PAYS_COLOR))
        return named

    def _taken(self, picture: ParamPicture) -> tuple[list[QRectF], list[QRectF]]:
        """Small boxes round the dots and along all strokes, which no label should cover."""
        view = self.getPlotItem().getViewBox()
        places = [view.mapViewToScene(QPointF(*self._place(picture, d))) for d in picture.dots]
        boxes = [QRectF(spot.x() - 5, spot.y() - 5, 10, 10) for spot in places]
        strokes: list[QRectF] = []
        for first, last in _strokes(picture):
            ends = (view.mapViewToScene(QPointF(*first)), view.mapViewToScene(QPointF(*last)))
            strokes += _along(*ends)
        return boxes, strokes

    # The mouse and the keyboard.

    def _on_clicked(self, _item: object, points: Any, _event: object = None) -> None:
        if len(points):
            self.dot_picked.emit(points[-1].data()[0])

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        picture = self._picture
        step = _STEPS.get(Qt.Key(event.key()))
        if picture is not None and picture.dots and step is not None:
            if self._at < 0:
                shown = (i for i, dot in enumerate(picture.dots) if dot.is_shown)
                self._at = next(shown, 0)
            else:
                self._at = neighbour(picture, self._at, step)
            self._show_focus()
            self._tell_focus(picture)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._at >= 0:
            self.dot_picked.emit(self._at)
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
        place = self._place(self._picture, self._picture.dots[self._at])
        pen = pg.mkPen(theme.color("text"), width=2)
        ring = {"pos": place, "size": 19 * zoom, "symbol": "o", "pen": pen, "brush": None}
        self._focus.setData([ring], brush=None)

    def _tell_focus(self, picture: ParamPicture) -> None:
        text = "\n".join(picture.dots[self._at].words)
        self.setAccessibleDescription(text)
        QToolTip.showText(self.mapToGlobal(self.spot(self._at)).toPoint(), wrapped(text), self)


def _tip(x: float, y: float, data: tuple[int, Dot]) -> str:
    """What the tooltip of a dot says; pyqtgraph hands in what was given with it."""
    return "\n".join(data[1].words)


def _joined(line: Line) -> tuple[list[float], list[float]]:
    """The line through its dots, with a gap where one failed or must not be used."""
    usable = [(dot.x, dot.y if not dot.is_wrong else None) for dot in line.dots]
    return [x for x, _ in usable], [float("nan") if y is None else y for _, y in usable]


def _strokes(picture: ParamPicture) -> list[tuple[Place, Place]]:
    """Every straight stroke of a picture: between dots, their bars, and both thin lines."""
    found: list[tuple[Place, Place]] = []
    for line in picture.lines:
        there = [(dot, (dot.x, dot.y)) for dot in line.dots if dot.y is not None]
        found += pairwise(place for _, place in there)
        found += [((dot.x, dot.low), (dot.x, dot.high)) for dot, _ in there]
    (left, right), (low, high) = picture.x_range, picture.y_range
    if picture.even is not None:
        found.append(((left, picture.even), (right, picture.even)))
    return [*found, *(((pays.x, low), (pays.x, high)) for pays in picture.pays)]


def _along(first: QPointF, last: QPointF) -> list[QRectF]:
    """Small boxes along a stroke, close enough to each other for no letter to fit between."""
    way = last - first
    n_steps = max(min(round(max(abs(way.x()), abs(way.y())) / STROKE_STEP_PX), MOST_BOXES), 1)
    spots = (first + way * (step / n_steps) for step in range(n_steps + 1))
    return [QRectF(spot.x() - 2, spot.y() - 2, 4, 4) for spot in spots]


def _ends_first(ticks: tuple[tuple[float, str], ...]) -> list[tuple[float, str]]:
    """Both ends, then what is between from the left on."""
    return [*ticks[:1], *ticks[:0:-1][:1], *ticks[1:-1]]
