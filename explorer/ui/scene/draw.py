"""The traffic scene as a pure function of runs and a moment.

The same arguments give the same picture on screen, in a file and in a test, whichever moment was
drawn before. What is kept between frames are results of pure functions: the runs' schedules, the
geometry, and, if a :class:`SceneCache` is given, the part of the picture that stands still.
"""

from collections import OrderedDict
from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from explorer.model.playback import Playback, play
from explorer.model.run import Run
from explorer.ui.painting import antialias
from explorer.ui.scene.cache import SceneCache
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.layout import Frame, Layout, lay_out, pages_at
from explorer.ui.scene.moving import draw_moving
from explorer.ui.scene.options import SceneOptions
from explorer.ui.scene.still import draw_nothing, draw_still
from explorer.ui.scene.still_picture import StillPicture
from explorer.ui.theme import Theme

__all__ = ["SceneCache", "SceneOptions", "draw", "layout_of", "playback_of", "still_picture"]

PLAIN = SceneOptions()
LEAST_PX = 24.0
"""Below this width or height there is nothing to see but the ground."""
_REMEMBERED = 16

_playbacks: OrderedDict[tuple[int, ...], tuple[tuple[Run, ...], Playback]] = OrderedDict()


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


def layout_of(playback: Playback, rect: QRectF, t_us: float, framed: bool = True) -> Layout:
    """Where everything lies at a moment: pages turn with it, sizes do not."""
    frame = Frame(
        x=rect.x(),
        y=rect.y(),
        width=rect.width(),
        height=rect.height(),
        has_face=framed,
        has_titles=framed or len(playback.lanes) > 1,
    )
    return lay_out(playback, frame, pages_at(playback, frame, t_us))


def draw(
    painter: QPainter,
    rect: QRectF,
    runs: Sequence[Run],
    t_us: float,
    theme: Theme,
    options: SceneOptions = PLAIN,
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
    if min(rect.width(), rect.height()) < LEAST_PX:
        painter.fillRect(rect, theme.color("panel"))
        return
    if not runs:
        draw_nothing(Canvas(painter, theme, 1.0), rect, options.framed)
        return
    playback = playback_of(runs)
    layout = layout_of(playback, rect, t_us, options.framed)
    moments = tuple(lane.at(t_us) for lane in playback.lanes)
    canvas = Canvas(painter, theme, layout.u)
    if cache is None:
        draw_still(canvas, layout, playback, moments, options)
    else:
        # The transform, not the device: an export scales the painter instead of the image.
        ratio = painter.deviceTransform().m11()
        still = StillPicture(layout, playback, moments, theme, options, ratio)
        painter.drawImage(rect.topLeft(), _finished(still, cache))
    draw_moving(canvas, layout, playback, moments, t_us, options)


def still_picture(
    rect: QRectF,
    runs: Sequence[Run],
    t_us: float,
    theme: Theme,
    options: SceneOptions,
    ratio: float,
) -> StillPicture:
    """What :func:`draw` will keep of a moment, to be drawn ahead of it; nothing is drawn yet.

    Args:
        rect: As for :func:`draw`.
        runs: At least one.
        t_us: The moment.
        theme: Colours.
        options: What else the picture says.
        ratio: Pixels of the device to one of ``rect``.
    """
    playback = playback_of(runs)
    layout = layout_of(playback, rect, t_us, options.framed)
    moments = tuple(lane.at(t_us) for lane in playback.lanes)
    return StillPicture(layout, playback, moments, theme, options, ratio)


def _finished(still: StillPicture, cache: SceneCache) -> QImage:
    image = cache.get(still.key)
    if image is None:
        image = still.finish()
        cache.put(still.key, image)
    return image
