"""The part of the scene that changes only when a launch starts or ends."""

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QRectF

from explorer.model.playback import Moment, Phase, Playback
from explorer.ui.painting import CENTER, PANEL_RADIUS, draw_sentence
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.foot import draw_strip
from explorer.ui.scene.head import draw_legend, draw_title
from explorer.ui.scene.kernels import draw_card
from explorer.ui.scene.layout import Lane, Layout
from explorer.ui.scene.memory import (
    being_written,
    draw_band,
    draw_l2,
    draw_others,
    draw_rail,
    draw_tensors,
    write_l2,
)
from explorer.ui.scene.options import SceneOptions
from explorer.ui.scene.streams import draw_line, draw_tag

HEADING = "Memory traffic"
NO_RUN = (
    "No run to show yet. Tick strategies at the left and press Run to measure them here, or open "
    "a recording."
)


def draw_face(canvas: Canvas, rect: QRectF, framed: bool) -> None:
    """The ground, opaque to the corners: what lies below must not matter."""
    if not framed:
        canvas.painter.fillRect(rect, canvas.color("panel"))
        return
    canvas.painter.fillRect(rect, canvas.color("bg"))
    inner = rect.adjusted(0.5, 0.5, -0.5, -0.5)
    radius = PANEL_RADIUS / canvas.u
    canvas.box(
        inner, radius, fill=canvas.color("panel"), line=canvas.color("line"), width=1 / canvas.u
    )


def draw_nothing(canvas: Canvas, rect: QRectF, framed: bool) -> None:
    """The face without a run: what will be here, and what brings it."""
    draw_face(canvas, rect, framed)
    if framed:
        canvas.text(QRectF(rect.x() + 16, rect.y() + 10, 300, 24), HEADING, 15, "text", weight=600)
    first, rest = NO_RUN.split(". ", 1)
    middle = QRectF(rect.x() + 40, rect.center().y() - 34, rect.width() - 80, 28)
    canvas.text(middle, first, 18, "text", weight=600, align=CENTER)
    below = QRectF(middle.x(), middle.bottom() + 4, middle.width(), 44)
    draw_sentence(canvas.painter, below, rest, canvas.theme)


def draw_still(
    canvas: Canvas,
    layout: Layout,
    playback: Playback,
    moments: Sequence[Moment],
    options: SceneOptions,
) -> None:
    """Everything that changes only when a launch starts or ends."""
    for _ in still_steps(canvas, layout, playback, moments, options):
        pass


def still_steps(
    canvas: Canvas,
    layout: Layout,
    playback: Playback,
    moments: Sequence[Moment],
    options: SceneOptions,
) -> Iterator[None]:
    """The same piece by piece, so that it can be spread over turns of an event loop.

    The painter's state is as it was at every step: between two of them it may end and begin anew.
    """
    draw_face(canvas, layout.frame.rect, options.framed)
    if playback.total_us:
        draw_legend(canvas, layout, playback)
    runs = [lane.schedule.run for lane in layout.lanes]
    for number, (lane, moment) in enumerate(zip(layout.lanes, moments, strict=True)):
        if layout.frame.has_titles:
            draw_title(canvas, lane, options.is_badged(number), runs)
        if not lane.schedule.slots:
            _draw_reason(canvas, lane)
            continue
        yield
        draw_band(canvas, lane, moment)
        draw_l2(canvas, lane)
        yield
        _draw_still_tensors(canvas, lane, moment)
        yield
        yield from _stream_steps(canvas, lane, moment)
        write_l2(canvas, lane)
        # The active card last: its glow lies over its neighbours.
        for card in sorted(
            lane.cards, key=lambda card: moment.phases[card.slot.index] is Phase.DURING
        ):
            draw_card(canvas, card, lane.schedule.run, moment.phases[card.slot.index])
            yield
        draw_strip(canvas, lane, moment, playback.total_us)


def _stream_steps(canvas: Canvas, lane: Lane, moment: Moment) -> Iterator[None]:
    """Lines, those of launches under way above the others, and the tags of the others."""
    resting = [r for r in lane.routes if moment.phases[r.slot.index] is not Phase.DURING]
    for route in resting:
        if route.is_prominent:
            draw_line(canvas, route, active=False)
            yield
    if _has_room(lane):
        for route in resting:
            draw_tag(canvas, route, active=False)
            yield
    for route in lane.routes:
        if moment.phases[route.slot.index] is Phase.DURING:
            draw_line(canvas, route, active=route.is_prominent)
            yield


def _has_room(lane: Lane) -> bool:
    """Whether tags of launches that are not under way would only crowd the picture."""
    return len(lane.cards) <= 4 and all(not card.is_narrow for card in lane.cards)


def _draw_reason(canvas: Canvas, lane: Lane) -> None:
    """In the place of everything: why there is nothing to play."""
    u, rect = canvas.u, lane.rect
    width = min(560 * u, rect.width() - 24 * u)
    box = QRectF(rect.center().x() - width / 2, rect.center().y() - 88 * u, width, 132 * u)
    canvas.box(box, 10, fill=canvas.color("raised"), line=canvas.color("warning"), width=1.3)
    head = QRectF(box.x(), box.y() + 14 * u, box.width(), 24 * u)
    failed = lane.schedule.run.error is not None
    words = "This run failed" if failed else "Nothing to play"
    canvas.text(head, words, 16, "warning", weight=700, align=CENTER)
    room = box.adjusted(24 * u, 42 * u, -24 * u, -16 * u)
    draw_sentence(canvas.painter, room, lane.schedule.sentence, canvas.theme, u)


def _draw_still_tensors(canvas: Canvas, lane: Lane, moment: Moment) -> None:
    draw_others(canvas, lane, moment)
    for box in lane.boxes.values():
        draw_rail(canvas, box, lane)
    draw_tensors(canvas, lane, moment, set(lane.boxes) - being_written(lane, moment))
