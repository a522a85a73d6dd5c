"""The part of the scene that changes from frame to frame."""

from collections.abc import Sequence

import numpy as np

from explorer.model.dots import dots_at
from explorer.model.playback import Moment, Playback
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.dots import draw_dots, place_dots
from explorer.ui.scene.foot import draw_playhead, draw_total
from explorer.ui.scene.head import draw_details
from explorer.ui.scene.kernels import draw_hover, draw_idle, draw_progress
from explorer.ui.scene.layout import Lane, Layout
from explorer.ui.scene.memory import being_written, draw_tensors
from explorer.ui.scene.options import SceneOptions
from explorer.ui.scene.streams import draw_tag, stream_color


def draw_moving(
    canvas: Canvas,
    layout: Layout,
    playback: Playback,
    moments: Sequence[Moment],
    t_us: float,
    options: SceneOptions,
) -> None:
    """Everything that changes from frame to frame."""
    if playback.total_us:
        draw_details(canvas, layout, playback, t_us, options.slowdown)
    for number, (lane, moment) in enumerate(zip(layout.lanes, moments, strict=True)):
        if not lane.schedule.slots:
            continue
        draw_tensors(canvas, lane, moment, being_written(lane, moment))
        _draw_lane_dots(canvas, lane, moment, playback)
        for route in lane.routes:
            if route.slot.index in moment.active:
                draw_tag(canvas, route, active=True)
        for card in lane.cards:
            if card.slot.index in moment.active:
                draw_progress(canvas, card, card.slot.progress(moment.t_us))
            elif options.hovered == (number, card.slot.index):
                draw_hover(canvas, card)
        draw_idle(canvas, lane, moment)
        draw_playhead(canvas, lane, playback.total_us, moment.t_us)
        draw_total(canvas, lane, moment)


def _draw_lane_dots(canvas: Canvas, lane: Lane, moment: Moment, playback: Playback) -> None:
    """The dots under way, those of one colour together."""
    places: dict[str, list[np.ndarray]] = {}
    fills: dict[str, list[np.ndarray]] = {}
    for route in lane.routes:
        if route.slot.index not in moment.active:
            continue
        dots = dots_at(route.slot, route.stream, playback, moment.t_us)
        color = stream_color(route.stream)
        places.setdefault(color, []).append(place_dots(route, dots, canvas.u))
        fills.setdefault(color, []).append(dots.fill)
    for color in ("cache", "read", "write"):
        if color in places:
            draw_dots(canvas, np.vstack(places[color]), np.concatenate(fills[color]), color)
