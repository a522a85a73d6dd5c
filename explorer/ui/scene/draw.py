"""The traffic scene as a pure function of runs and a moment.

The same arguments give the same picture on screen, in a file and in a test, whichever moment was
drawn before. What is kept between frames are results of pure functions: the runs' schedules, the
geometry, and, if a :class:`SceneCache` is given, the part of the picture that stands still.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from explorer.model.dots import dots_at
from explorer.model.playback import Moment, Phase, Playback, play
from explorer.model.run import Run
from explorer.ui.painting import PANEL_RADIUS, antialias, draw_sentence
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.dots import draw_dots, place_dots
from explorer.ui.scene.foot import draw_playhead, draw_strip, draw_total
from explorer.ui.scene.head import draw_details, draw_legend, draw_title
from explorer.ui.scene.kernels import draw_card, draw_idle, draw_progress
from explorer.ui.scene.layout import Lane, Layout, lay_out, pages_at
from explorer.ui.scene.memory import draw_band, draw_l2, draw_others, draw_rail, draw_tensor
from explorer.ui.scene.streams import draw_line, draw_tag, stream_color
from explorer.ui.theme import Theme

NO_RUN = "No run to show yet. Pick strategies and press Run, or open a recording."
_REMEMBERED = 16

_playbacks: OrderedDict[tuple[int, ...], tuple[tuple[Run, ...], Playback]] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneOptions:
    """What a picture says beside the runs.

    Attributes:
        recorded: The runs were made elsewhere or earlier: badge them with device and date.
        slowdown: How much slower than measured they are shown; None for a still picture.
        hovered: Lane and launch under the pointer.
    """

    recorded: bool = False
    slowdown: float | None = None
    hovered: tuple[int, int] | None = None


def playback_of(runs: Sequence[Run]) -> Playback:
    """The runs on one clock; the last few are remembered, since a run never changes."""
    key = tuple(id(run) for run in runs)
    found = _playbacks.get(key)
    if found is None:
        # The runs are kept beside, so that their ids stay theirs.
        found = (tuple(runs), play(runs))
        _playbacks[key] = found
        if len(_playbacks) > _REMEMBERED:
            _playbacks.popitem(last=False)
    return found[1]


def layout_of(playback: Playback, rect: QRectF, t_us: float) -> Layout:
    """Where everything lies at a moment: pages turn with it, sizes do not."""
    pages = pages_at(playback, rect.width(), rect.height(), t_us)
    return lay_out(playback, rect.x(), rect.y(), rect.width(), rect.height(), pages)


class SceneCache:
    """Pictures of what stands still between two changes of state, for one view on screen."""

    def __init__(self, most: int = 3) -> None:
        """Args: most: Pictures kept; a full-screen one takes 8 MB."""
        self._most = most
        self._images: OrderedDict[tuple[object, ...], QImage] = OrderedDict()

    def get(self, key: tuple[object, ...]) -> QImage | None:
        """The picture of a state, if it was drawn."""
        return self._images.get(key)

    def put(self, key: tuple[object, ...], image: QImage) -> None:
        """Keep a picture, and drop the oldest if there are too many."""
        self._images[key] = image
        while len(self._images) > self._most:
            self._images.popitem(last=False)


def draw(
    painter: QPainter,
    rect: QRectF,
    runs: Sequence[Run],
    t_us: float,
    theme: Theme,
    options: SceneOptions = SceneOptions(),
    cache: SceneCache | None = None,
) -> None:
    """Paint the scene.

    Args:
        painter: On any device.
        rect: Where; everything scales with it.
        runs: One, or several side by side on one clock and one dot scale.
        t_us: The moment, in microseconds of the measured run.
        theme: Colours.
        options: What else the picture says.
        cache: Keeps what stands still; the pixels are the same without it.
    """
    antialias(painter)
    if not runs:
        _draw_face(Canvas(painter, theme, 1.0), rect)
        draw_sentence(painter, rect.adjusted(40, 0, -40, 0), NO_RUN, theme)
        return
    playback = playback_of(runs)
    layout = layout_of(playback, rect, t_us)
    moments = tuple(lane.at(t_us) for lane in playback.lanes)
    canvas = Canvas(painter, theme, layout.u)
    if cache is None:
        _draw_still(canvas, layout, playback, moments, options)
    else:
        _draw_cached(canvas, layout, playback, moments, options, cache)
    _draw_moving(canvas, layout, playback, moments, t_us, options)


def _draw_cached(
    canvas: Canvas,
    layout: Layout,
    playback: Playback,
    moments: tuple[Moment, ...],
    options: SceneOptions,
    cache: SceneCache,
) -> None:
    ratio = canvas.painter.device().devicePixelRatioF()
    phases = tuple(moment.phases for moment in moments)
    key = (layout, canvas.theme.name, phases, options.recorded, options.hovered, ratio)
    image = cache.get(key)
    if image is None:
        rect = layout.rect
        image = QImage(
            round(rect.width() * ratio),
            round(rect.height() * ratio),
            QImage.Format.Format_ARGB32_Premultiplied,
        )
        image.setDevicePixelRatio(ratio)
        image.fill(canvas.color("bg"))
        painter = QPainter(image)
        antialias(painter)
        painter.translate(-rect.topLeft())
        still = Canvas(painter, canvas.theme, canvas.u)
        _draw_still(still, layout, playback, moments, options)
        painter.end()
        cache.put(key, image)
    canvas.painter.drawImage(layout.rect.topLeft(), image)


def _draw_face(canvas: Canvas, rect: QRectF) -> None:
    """The ground, opaque to the corners: what lies below must not matter."""
    canvas.painter.fillRect(rect, canvas.color("bg"))
    inner = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    radius = PANEL_RADIUS / canvas.u
    canvas.box(
        inner, radius, fill=canvas.color("panel"), line=canvas.color("line"), width=1 / canvas.u
    )


def _draw_still(
    canvas: Canvas,
    layout: Layout,
    playback: Playback,
    moments: Sequence[Moment],
    options: SceneOptions,
) -> None:
    """Everything that changes only when a launch starts or ends."""
    _draw_face(canvas, layout.rect)
    draw_legend(canvas, layout, playback)
    alone = len(layout.lanes) == 1
    for number, (lane, moment) in enumerate(zip(layout.lanes, moments, strict=True)):
        draw_title(canvas, lane, options.recorded, alone)
        draw_band(canvas, lane, moment)
        if not lane.schedule.slots:
            _draw_reason(canvas, lane)
            continue
        draw_l2(canvas, lane)
        _draw_still_tensors(canvas, lane, moment)
        _draw_still_streams(canvas, lane, moment)
        # The active card last: its glow lies over its neighbours.
        for card in sorted(
            lane.cards, key=lambda card: moment.phases[card.slot.index] is Phase.DURING
        ):
            index = card.slot.index
            hovered = options.hovered == (number, index)
            draw_card(canvas, card, lane.schedule.run, moment.phases[index], hovered)
        draw_strip(canvas, lane, moment, playback.total_us)


def _draw_still_streams(canvas: Canvas, lane: Lane, moment: Moment) -> None:
    """Lines, those of launches under way above the others, and the tags of the others."""
    resting = [r for r in lane.routes if moment.phases[r.slot.index] is not Phase.DURING]
    for route in resting:
        if route.is_prominent:
            draw_line(canvas, route, active=False)
    if _has_room(lane):
        for route in resting:
            draw_tag(canvas, route, active=False)
    for route in lane.routes:
        if moment.phases[route.slot.index] is Phase.DURING:
            draw_line(canvas, route, active=True)


def _has_room(lane: Lane) -> bool:
    """Whether tags of launches that are not under way would only crowd the picture."""
    return len(lane.cards) <= 4 and all(not card.is_narrow for card in lane.cards)


def _draw_reason(canvas: Canvas, lane: Lane) -> None:
    """In the place of kernels: why there are none."""
    room = QRectF(lane.rect)
    room.setTop(lane.band.bottom())
    room.adjust(40 * canvas.u, 0, -40 * canvas.u, 0)
    draw_sentence(canvas.painter, room, lane.schedule.sentence, canvas.theme, canvas.u)


def _being_written(lane: Lane, moment: Moment) -> set[str]:
    """Tensors whose level changes now."""
    return {
        life.tensor.id
        for life in lane.schedule.lives
        if not life.there_before
        and any(moment.phases[number] is Phase.DURING for number, _ in life.writers)
    }


def _in_traffic(lane: Lane, moment: Moment) -> set[str]:
    """Tensors that a launch under way reads or writes."""
    return {
        access.tensor
        for number in moment.active
        for access in lane.schedule.slots[number].launch.accesses
    }


def _draw_still_tensors(canvas: Canvas, lane: Lane, moment: Moment) -> None:
    draw_others(canvas, lane, moment)
    for box in lane.boxes.values():
        draw_rail(canvas, box, lane)
    _draw_tensors(canvas, lane, moment, set(lane.boxes) - _being_written(lane, moment))


def _draw_tensors(canvas: Canvas, lane: Lane, moment: Moment, wanted: set[str]) -> None:
    active = _in_traffic(lane, moment)
    there_before = {life.tensor.id: life.there_before for life in lane.schedule.lives}
    for key, box in lane.boxes.items():
        if key in wanted:
            draw_tensor(
                canvas, box, moment.lives[key], moment.levels[key], there_before[key],
                key in active,
            )  # fmt: skip


def _draw_moving(
    canvas: Canvas,
    layout: Layout,
    playback: Playback,
    moments: Sequence[Moment],
    t_us: float,
    options: SceneOptions,
) -> None:
    """Everything that changes from frame to frame."""
    draw_details(canvas, layout, playback, t_us, options.slowdown)
    for lane, moment in zip(layout.lanes, moments, strict=True):
        if not lane.schedule.slots:
            continue
        _draw_tensors(canvas, lane, moment, _being_written(lane, moment))
        _draw_lane_dots(canvas, lane, moment, playback)
        for route in lane.routes:
            if route.slot.index in moment.active:
                draw_tag(canvas, route, active=True)
        for card in lane.cards:
            if card.slot.index in moment.active:
                draw_progress(canvas, card, card.slot.progress(moment.t_us))
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
