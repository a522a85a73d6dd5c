"""Where things lie in the timeline panel: time to pixel and back, lane to pixel and back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF

from explorer.model.comparison import headline
from explorer.model.run import Run
from explorer.model.timeline import TimeView
from explorer.ui.painting import text_width
from explorer.ui.plan_strip import PlanOps, plan_ops
from explorer.ui.run_names import title_among
from explorer.ui.theme import font
from explorer.ui.words import compared_words, end_label, verdict_color_name

if TYPE_CHECKING:
    from explorer.model.lanes import Lane, Row

MIN_LANE, MAX_LANE = 19.0, 58.0
TOP, AXIS_HEIGHT = 8.0, 26.0
SIDE = 6.0
"""Margin at the left and the right, at zoom 1."""
NEAR_PX = 3.0
"""A launch thinner than a pixel can be pointed at from so far away."""

NO_RUNS = "No runs yet: each will have a lane here, all on one time axis."


@dataclass(frozen=True, slots=True)
class Selected:
    """What is selected: a lane, and perhaps a launch in it.

    Attributes:
        run: Place in the list of runs; its lane has the playhead. -1 for none.
        launch: Index into that run's launches.
    """

    run: int = -1
    launch: int | None = None


_LANES: dict[int, "Lane"] = {}
_MOST_LANES = 64


def lane_of(run: Run) -> "Lane":
    """The lane of a run, laid out once: a million launches take a second."""
    lane = _LANES.get(id(run))
    # The lane keeps its run alive, so an id in the table cannot belong to another run.
    if lane is None:
        # Brings numpy, which an empty window comes up without.
        from explorer.model.lanes import make_lane

        lane = make_lane(run)
        while len(_LANES) >= _MOST_LANES:
            _LANES.pop(next(iter(_LANES)))
        _LANES[id(run)] = lane
    return lane


def whole_view(runs: Sequence[Run]) -> TimeView:
    """All of the time axis."""
    return TimeView(0.0, longest_us([lane_of(run) for run in runs]))


def longest_us(lanes: "Sequence[Lane]") -> float:
    """The whole time axis: the longest lane, 1 µs where there is none."""
    return max((lane.total_us for lane in lanes), default=0.0) or 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLabels:
    """The words of a lane, at the left and behind its bars, and a theme colour's name.

    A plan's run has its plan beside its title, which may be too long.
    """

    title: str
    time: str
    compared: str
    compared_color: str
    plan: PlanOps | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineLayout:
    """Geometry of one picture of the timeline.

    Attributes:
        rect: The whole picture.
        plot: Where bars are; its left edge is ``view.start_us``.
        lanes: Every lane, shown or not.
        labels: Their words.
        view: What is shown.
        lane_height: Pitch of the lanes.
        shown: How many lanes fit.
        zoom: Factor on fonts and margins.
    """

    rect: QRectF
    plot: QRectF
    lanes: "tuple[Lane, ...]"
    labels: tuple[LaneLabels, ...]
    view: TimeView
    lane_height: float
    shown: int
    zoom: float

    @property
    def pixels_per_us(self) -> float:
        """Scale of the time axis."""
        return self.plot.width() / self.view.span_us

    @property
    def visible_lanes(self) -> range:
        """Places of the lanes that are shown."""
        first = min(self.view.first_lane, max(len(self.lanes) - self.shown, 0))
        return range(first, min(first + self.shown, len(self.lanes)))

    def x(self, time_us: float) -> float:
        """Pixel of a time."""
        return self.plot.x() + (time_us - self.view.start_us) * self.pixels_per_us

    def time_us(self, x: float) -> float:
        """Time of a pixel."""
        return self.view.start_us + (x - self.plot.x()) / self.pixels_per_us

    def bar_band(self, place: int) -> QRectF:
        """Where the bars of a lane lie, from the plot's left edge to its right."""
        pad = min(4.0 * self.zoom, self.lane_height * 0.12)
        y = self.plot.y() + (place - self.visible_lanes.start) * self.lane_height
        return QRectF(self.plot.x(), y + pad, self.plot.width(), self.lane_height - 2 * pad)

    def row_band(self, place: int, row: int) -> QRectF:
        """Where one row of a lane lies."""
        band, n_rows = self.bar_band(place), max(len(self.lanes[place].rows), 1)
        height = band.height() / n_rows
        return QRectF(band.x(), band.y() + row * height, band.width(), height)

    def lane_at(self, y: float) -> int | None:
        """The lane at a height, or None."""
        if y < self.plot.y() or self.lane_height <= 0:
            return None
        place = self.visible_lanes.start + int((y - self.plot.y()) / self.lane_height)
        return place if place in self.visible_lanes else None

    def launch_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Lane and launch under a point, or None."""
        place = self.lane_at(y)
        if place is None or not self.plot.left() <= x <= self.plot.right():
            return None
        for number, row in enumerate(self.lanes[place].rows):
            if self.row_band(place, number).top() <= y <= self.row_band(place, number).bottom():
                index = row.at(self.time_us(x), NEAR_PX / self.pixels_per_us)
                return None if index is None else (place, index)
        return None

    def place_of(self, place: int, launch: int) -> "tuple[int, Row, int] | None":
        """Row number, row and place in the row of a launch; None if it has no bar."""
        if not 0 <= place < len(self.lanes):
            return None
        for number, row in enumerate(self.lanes[place].rows):
            found = (row.indices == launch).nonzero()[0]
            if len(found):
                return number, row, int(found[0])
        return None


def lay_out(
    rect: QRectF, runs: Sequence[Run], view: TimeView | None, zoom: float = 1.0
) -> TimelineLayout:
    """Divide the panel among labels, lanes, end labels and axis.

    Args:
        rect: The whole picture.
        runs: One lane each.
        view: What to show; None for all of it.
        zoom: Factor on fonts and margins.
    """
    lanes = tuple(lane_of(run) for run in runs)
    labels = tuple(_lane_labels(lane, runs) for lane in lanes)
    top, bottom = rect.top() + TOP * zoom, rect.bottom() - AXIS_HEIGHT * zoom
    height = max(bottom - top, 1.0)
    lane_height = min(max(height / max(len(lanes), 1), MIN_LANE * zoom), MAX_LANE * zoom)
    left = rect.left() + SIDE * zoom + _label_width(labels, rect, zoom) + 12 * zoom
    right = _plot_right(rect, left, lanes, labels, zoom)
    return TimelineLayout(
        rect=rect,
        plot=QRectF(left, top, max(right - left, 1.0), height),
        lanes=lanes,
        labels=labels,
        view=view or TimeView(0.0, longest_us(lanes)),
        lane_height=lane_height,
        shown=max(int(height / lane_height + 1e-6), 1),
        zoom=zoom,
    )


def _lane_labels(lane: "Lane", runs: Sequence[Run]) -> LaneLabels:
    time, found = end_label(lane.run, runs, lane.schedule)
    compared, verdict = compared_words(lane.run, found)
    return LaneLabels(
        title=title_among(lane.run, runs),
        time=time,
        compared=compared,
        compared_color=verdict_color_name(verdict),
        plan=None if lane.run.label else plan_ops(lane.run),
    )


def label_size(layout_height: float, zoom: float) -> float:
    """Font size of a lane's labels: smaller only where lanes are low."""
    return min(14.5 * zoom, max(layout_height * 0.62, 11.5 * zoom))


def _label_width(labels: Sequence[LaneLabels], rect: QRectF, zoom: float) -> float:
    face = font(14.5 * zoom, 600)
    widest = max((text_width(label.title, face) for label in labels), default=0.0)
    return min(max(widest, 60 * zoom), max(0.23 * rect.width(), 70 * zoom))


def _plot_right(
    rect: QRectF, left: float, lanes: "Sequence[Lane]", labels: Sequence[LaneLabels], zoom: float
) -> float:
    """As far right as leaves every end label room behind its lane's last bar."""
    face = font(14.5 * zoom, 700)
    edge = rect.right() - SIDE * zoom
    right, axis_us = edge - 30 * zoom, longest_us(lanes)
    for lane, label in zip(lanes, labels, strict=True):
        share = lane.total_us / axis_us
        width = text_width(label.time, face) + 10 * zoom
        if label.compared:
            width += text_width(label.compared, face) + 12 * zoom
        if share > 0:
            right = min(right, left + (edge - width - left) / share)
    return max(right, left + 0.4 * (edge - left))


def heading_hint(runs: Sequence[Run]) -> str:
    """What holds for every lane: the axis, and how its times were taken."""
    timed = [found for run in runs if (found := headline(run))]
    if not timed:
        return "one shared time axis"
    counts = [found.samples.n for found in timed]
    few, many = min(counts), max(counts)
    calls = f"{few:,}" if few == many else f"{few:,} to {many:,}"
    states = " / ".join(dict.fromkeys(found.condition.value for found in timed))
    # What is cut off first, where there is little room, is what can be seen.
    return f"median of {calls} calls, {states}  ·  one shared time axis"
