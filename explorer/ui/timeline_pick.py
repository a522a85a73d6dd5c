"""What a key or a pick in the timeline leads to, and the picture in words: pure functions."""

from collections.abc import Sequence

from explorer.model.run import Run
from explorer.model.timeline import TimeView
from explorer.ui.timeline_layout import Selected, TimelineLayout, lane_of
from explorer.ui.words import compared_words, end_label, run_title


def scrolled(view: TimeView, layout: TimelineLayout, by: int) -> TimeView:
    """The view some lanes further down, as far as there are hidden ones."""
    hidden = max(len(layout.lanes) - layout.shown, 0)
    return TimeView(view.start_us, view.end_us, min(max(view.first_lane + by, 0), hidden))


def neighbour(run: Run, launch: int | None, by: int) -> int | None:
    """The launch some places on in time from one, or an end's if there is none.

    Returns:
        None where the run has no bars.
    """
    lane = lane_of(run)
    if lane.schedule is None:
        return None
    order = [span.index for span in lane.schedule.spans]
    if launch in order:
        return order[min(max(order.index(launch) + by, 0), len(order) - 1)]
    return order[0 if by > 0 else -1]


def bar_span_us(layout: TimelineLayout, selected: Selected) -> tuple[float, float] | None:
    """Start and end of the picked launch's bar; None if there is none."""
    launch = -1 if selected.launch is None else selected.launch
    found = layout.place_of(selected.run, launch)
    if found is None:
        return None
    _, row, i = found
    return float(row.starts[i]), float(row.ends[i])


def revealed(
    view: TimeView, layout: TimelineLayout, selected: Selected, limit_us: float
) -> TimeView:
    """The view scrolled to the picked launch where zooming or many lanes hide it."""
    place, shown = selected.run, layout.shown
    if 0 <= place < view.first_lane or place >= view.first_lane + shown:
        view = TimeView(view.start_us, view.end_us, max(place - shown + 1, 0))
    span = bar_span_us(layout, selected)
    if span is not None and (span[1] < view.start_us or span[0] > view.end_us):
        view = view.panned((sum(span) - view.start_us - view.end_us) / 2, limit_us)
    return view


def described(runs: Sequence[Run], selected: Selected) -> str:
    """What the picture tells the eye, for a screen reader."""
    lines = []
    for run in runs:
        time, found = end_label(run, runs, lane_of(run).schedule)
        words = ", ".join(filter(None, (time, compared_words(run, found)[0])))
        lines.append(f"{run_title(run)}: {run.error or words or 'not timed'}")
    if 0 <= selected.run < len(runs):
        run = runs[selected.run]
        lines.append(f"Selected: {run_title(run)}")
        if selected.launch is not None:
            lines[-1] += f", launch {run.launches[selected.launch].title}"
    return "; ".join(lines) or "No runs yet"
