"""The timeline as a pure function of runs, view and playhead: screen and export share it."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen, QPolygonF

from explorer.model.lanes import Category
from explorer.model.run import Run
from explorer.model.timeline import TimeView, nice_ticks
from explorer.ui.painting import (
    CENTER,
    LEFT,
    antialias,
    draw_sentence,
    draw_text,
    elided_inside,
    text_width,
)
from explorer.ui.plan_strip import LEAST_WIDTH, draw_strip
from explorer.ui.theme import Theme, font
from explorer.ui.timeline_bars import (
    bar_rect,
    draw_bar,
    draw_bar_label,
    draw_lane_bars,
    draw_outline,
)
from explorer.ui.timeline_layout import (
    NO_RUNS,
    SIDE,
    Selected,
    TimelineLayout,
    label_size,
    lay_out,
)
from explorer.ui.words import short_title


def draw_timeline(
    painter: QPainter,
    rect: QRectF,
    runs: Sequence[Run],
    selected: Selected,
    t_us: float | None,
    view: TimeView | None,
    theme: Theme,
    zoom: float = 1.0,
) -> None:
    """Paint the timelines of all runs on one axis.

    Args:
        painter: Where to.
        rect: The picture, heading and frame not included.
        runs: One lane each, in this order.
        selected: The lane with the playhead, and the framed launch.
        t_us: The playhead in the selected run's time; None leaves it out.
        view: The stretch shown; None for all of it.
        theme: Colours.
        zoom: Factor on fonts and margins.
    """
    layout = draw_lanes(painter, rect, runs, selected, view, theme, zoom)
    if layout is not None:
        draw_playhead(painter, layout, selected, t_us, theme)


def draw_lanes(
    painter: QPainter,
    rect: QRectF,
    runs: Sequence[Run],
    selected: Selected,
    view: TimeView | None,
    theme: Theme,
    zoom: float = 1.0,
) -> TimelineLayout | None:
    """Paint everything that does not move with the playhead; returns where it lies."""
    if not runs:
        draw_sentence(painter, rect.adjusted(20, 0, -20, 0), NO_RUNS, theme, zoom)
        return None
    layout = lay_out(rect, runs, view, zoom)
    if any(lane.schedule for lane in layout.lanes):
        _draw_axis(painter, layout, theme)
    for place in layout.visible_lanes:
        is_selected = place == selected.run
        _draw_lane_title(painter, layout, place, theme, is_selected)
        if runs[place].error or layout.lanes[place].schedule is None:
            _draw_reason(painter, layout, place, theme)
            continue
        _draw_idle_line(painter, layout, place, theme)
        painter.save()
        painter.setClipRect(layout.bar_band(place).adjusted(-1, -1, 1, 1))
        draw_lane_bars(painter, layout, place, theme, is_selected)
        painter.restore()
        _draw_end_label(painter, layout, place, theme)
    _draw_hidden_count(painter, layout, theme)
    _frame_launch(painter, layout, selected, theme)
    return layout


def draw_playhead(
    painter: QPainter,
    layout: TimelineLayout,
    selected: Selected,
    t_us: float | None,
    theme: Theme,
) -> None:
    """Paint the playhead in the selected lane, and frame the launch that runs then."""
    if t_us is None or selected.run not in layout.visible_lanes:
        return
    lane, zoom = layout.lanes[selected.run], layout.zoom
    if lane.schedule is None:
        return
    x = layout.x(t_us)
    for number, row in enumerate(lane.rows):
        index = row.at(t_us)
        if index is None:
            continue
        place = int((row.indices == index).nonzero()[0][0])
        bar = bar_rect(layout, row, place, layout.row_band(selected.run, number))
        if bar.right() < layout.plot.left() or bar.width() < 3:
            continue
        draw_bar(painter, bar, Category(int(row.categories[place])), theme, zoom, True)
        label = QRectF(bar)
        if bar.right() - x > x - bar.left():
            label.setLeft(max(x + 4 * zoom, bar.left()))
        else:
            label.setRight(min(x - 4 * zoom, bar.right()))
        draw_bar_label(painter, label, lane, index, theme, zoom)
        draw_outline(painter, bar, theme.color("text"), zoom, 2)
    if layout.plot.left() - 0.5 <= x <= layout.plot.right() + 0.5:
        _draw_pointer(painter, layout.bar_band(selected.run), x, theme, zoom)


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Tick values in the unit that suits their step; the last one names it."""
    if not ticks:
        return []
    step = ticks[1] - ticks[0] if len(ticks) > 1 else max(ticks[0], 1.0)
    factor, unit = (1e6, "s") if step >= 1e5 else (1e3, "ms") if step >= 100 else (1.0, "µs")
    if step < 0.01:
        factor, unit = 1e-3, "ns"
    digits = 0
    while digits < 6 and abs(step / factor * 10**digits % 1 - 0.5) < 0.5 - 1e-6:
        digits += 1
    labels = [f"{tick / factor:,.{digits}f}" for tick in ticks]
    labels[-1] += f" {unit}"
    return labels


def _draw_axis(painter: QPainter, layout: TimelineLayout, theme: Theme) -> None:
    plot, zoom = layout.plot, layout.zoom
    face = font(12.5 * zoom)
    most = max(int(plot.width() / (84 * zoom)), 1)
    ticks = nice_ticks(layout.view.start_us, layout.view.end_us, most)
    bottom = plot.y() + layout.lane_height * len(layout.visible_lanes)
    for tick, label in zip(ticks, tick_labels(ticks), strict=True):
        x = layout.x(tick)
        painter.setPen(QPen(theme.color("line"), 1))
        painter.drawLine(QPointF(x, plot.y() - 2 * zoom), QPointF(x, bottom + 2 * zoom))
        text_rect = QRectF(x - 50 * zoom, bottom + 3 * zoom, 100 * zoom, 19 * zoom)
        draw_text(painter, text_rect, CENTER, label, face, theme.color("muted"))


def _draw_lane_title(
    painter: QPainter, layout: TimelineLayout, place: int, theme: Theme, selected: bool
) -> None:
    zoom, band = layout.zoom, layout.bar_band(place)
    left = layout.rect.left() + SIDE * zoom
    rect = QRectF(left, band.y(), layout.plot.left() - 12 * zoom - left, band.height())
    face = font(label_size(band.height(), zoom), 600)
    color = theme.color("text" if selected else "muted")
    title, plan = layout.labels[place].title, layout.labels[place].plan
    if text_width(title, face) > rect.width():
        if plan is not None and rect.width() >= LEAST_WIDTH * zoom:
            draw_strip(painter, rect, plan, theme, zoom, color if selected else None)
            return
        # What tells two lanes apart is the end of their titles.
        title = elided_inside(short_title(title), face, rect.width())
    draw_text(painter, rect, LEFT, title, face, color)


def _draw_idle_line(painter: QPainter, layout: TimelineLayout, place: int, theme: Theme) -> None:
    """A thin line as long as the call, with an end stop: what no bar covers is idle time."""
    band = layout.bar_band(place)
    end = layout.x(layout.lanes[place].total_us)
    right = min(end, band.right())
    if right <= band.left():
        return
    middle, half = band.center().y(), band.height() * 0.22
    painter.setPen(QPen(theme.color("faint"), 1))
    painter.drawLine(QPointF(band.left(), middle), QPointF(right, middle))
    if end <= band.right() + 1:
        painter.drawLine(QPointF(right, middle - half), QPointF(right, middle + half))


def _draw_reason(painter: QPainter, layout: TimelineLayout, place: int, theme: Theme) -> None:
    """Instead of bars: why there are none."""
    run, band = layout.lanes[place].run, layout.bar_band(place)
    right = layout.rect.right() - SIDE * layout.zoom
    face = font(min(label_size(band.height(), layout.zoom), 13 * layout.zoom))
    reason = run.error or f"{layout.labels[place].time}  ·  no launch of it was traced"
    color = theme.color("warning" if run.error else "muted")
    rect = QRectF(band.x() + 4, band.y(), right - band.x() - 4, band.height())
    draw_text(painter, rect, LEFT, reason.strip(" ·"), face, color)


def _draw_end_label(painter: QPainter, layout: TimelineLayout, place: int, theme: Theme) -> None:
    zoom, band, label = layout.zoom, layout.bar_band(place), layout.labels[place]
    face = font(label_size(band.height(), zoom), 700)
    end = layout.x(layout.lanes[place].total_us)
    edge = layout.rect.right() - SIDE * zoom
    if end > layout.plot.right() + 1:
        # The end is out of sight; what fits in the margin still tells how long the lane is.
        end = layout.plot.right()
    x = max(end + 10 * zoom, layout.plot.left() + 8 * zoom)
    rect = QRectF(x, band.y(), max(edge - x, 0.0), band.height())
    used = draw_text(painter, rect, LEFT, label.time, face, theme.color("text"))
    rect.setLeft(x + used + 12 * zoom)
    if label.compared and rect.width() >= text_width(label.compared, face) - 0.5:
        draw_text(painter, rect, LEFT, label.compared, face, theme.color(label.compared_color))


def _draw_hidden_count(painter: QPainter, layout: TimelineLayout, theme: Theme) -> None:
    hidden = len(layout.lanes) - len(layout.visible_lanes)
    if not hidden:
        return
    zoom = layout.zoom
    rect = QRectF(
        layout.rect.left() + SIDE * zoom,
        layout.plot.y() + layout.lane_height * len(layout.visible_lanes) + 3 * zoom,
        layout.plot.left() - layout.rect.left() - 20 * zoom,
        19 * zoom,
    )
    above = layout.visible_lanes.start
    words = f"{above} above, {hidden - above} below" if above else f"{hidden} more below"
    draw_text(painter, rect, LEFT, words, font(12 * zoom), theme.color("muted"))


def _frame_launch(
    painter: QPainter, layout: TimelineLayout, selected: Selected, theme: Theme
) -> None:
    if selected.launch is None or selected.run not in layout.visible_lanes:
        return
    found = layout.place_of(selected.run, selected.launch)
    if found is None:
        return
    number, row, i = found
    bar = bar_rect(layout, row, i, layout.row_band(selected.run, number))
    if layout.plot.left() <= bar.right() and bar.left() <= layout.plot.right():
        outer = bar.adjusted(-2, -2, 2, 2)
        draw_outline(painter, outer, theme.color("compute"), layout.zoom, 2)


def _draw_pointer(painter: QPainter, band: QRectF, x: float, theme: Theme, zoom: float) -> None:
    antialias(painter)
    color = theme.color("playhead")
    painter.setPen(QPen(color, 2.5 * zoom, Qt.PenStyle.SolidLine, Qt.PenCapStyle.FlatCap))
    painter.drawLine(QPointF(x, band.top() - 3 * zoom), QPointF(x, band.bottom() + 3 * zoom))
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    half = 6 * zoom
    top = band.top() - 6 * zoom
    painter.drawPolygon(
        QPolygonF([QPointF(x - half, top), QPointF(x + half, top), QPointF(x, top + 8 * zoom)])
    )
