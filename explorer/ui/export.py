"""Pictures of runs for a slide or a paper: any view, any size, with its source at the foot.

Works without a display. The same runs give the same pixels, whatever the desktop is set to.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QPoint, QRectF
from PySide6.QtGui import QGuiApplication, QImage, QImageWriter, QPainter
from PySide6.QtWidgets import QApplication, QWidget

from explorer.model.errors import ExplorerError, RecordingError, UsageError
from explorer.model.param_sweep import sweeps_in
from explorer.model.run import Run
from explorer.model.sweep import sweep_of
from explorer.model.units import format_us
from explorer.recording import write_atomically
from explorer.ui.export_views import (
    PAINTERS,
    Shot,
    choose_shown,
    lane_total_us,
    telling_moment_us,
)
from explorer.ui.line_widths import widened
from explorer.ui.painting import LEFT, antialias, draw_text, text_width
from explorer.ui.theme import THEMES, Theme, font, load_fonts
from explorer.ui.words import SEPARATOR, source_words

VIEWS = tuple(PAINTERS)
"""The views that can be drawn, the default first."""

LATER_VIEWS = ("heartbeat", "comparison")
"""Views that later releases draw."""

FOOT_LINE_PX, FOOT_FONT_PX, FOOT_MARGIN_PX = 18.0, 12.5, 14.0
LEAST_LAYOUT = (300.0, 200.0)
"""A smaller picture is a larger one scaled down: its foot alone would fill it otherwise."""

MOST_PIXELS = 200_000_000
"""A larger picture is refused: it would take a gigabyte, and few programs would open it."""

COMPRESSION = 90
"""Of 100: the last few percent of size would take as long again as all the rest."""

_application: list[QGuiApplication] = []


def export_png(
    runs: Sequence[Run],
    out_path: Path,
    *,
    view: str,
    size: tuple[int, int],
    scale: float,
    theme: str,
    at_us: float | None,
    recorded: bool = True,
) -> None:
    """Draw runs into a PNG file, which is written whole or not at all.

    Args:
        runs: What to draw, at least one.
        out_path: The file.
        view: One of :data:`VIEWS`.
        size: Width and height in units of the layout.
        scale: Pixels a unit, so that the picture has exactly ``size`` times ``scale`` pixels.
        theme: ``dark`` or ``light``.
        at_us: The moment of the shown run; None picks one in which its main launch runs.
        recorded: Whether the runs come from a file, which the picture then says.

    Raises:
        UsageError: The view, theme, size or moment does not exist.
        RecordingError: The file cannot be written.
    """
    looks = _check(runs, view, size, scale, theme)
    shown = choose_shown(runs)
    moment_us = _check_moment(runs, shown, at_us)
    ensure_application()
    image = _blank(size, scale, looks)
    shot = Shot(runs=tuple(runs), shown=shown, t_us=moment_us, theme=looks, recorded=recorded)
    painter = QPainter(image)
    try:
        _paint(painter, size, view, shot)
    finally:
        painter.end()
    write_png(image, out_path)


def _paint(painter: QPainter, size: tuple[int, int], view: str, shot: Shot) -> None:
    """Paint the view with its foot; what is smaller than can be read is laid out larger."""
    antialias(painter)
    factor = min(size[0] / LEAST_LAYOUT[0], size[1] / LEAST_LAYOUT[1], 1.0)
    painter.scale(factor, factor)
    whole = QRectF(0, 0, size[0] / factor, size[1] / factor)
    lines = _foot_lines(shot, whole.width())
    foot = QRectF(whole)
    foot.setTop(whole.bottom() - _foot_height(lines))
    PAINTERS[view](painter, whole.adjusted(0, 0, 0, -foot.height()), shot)
    _draw_foot(painter, foot, lines, shot)


def save_widget_png(
    widget: QWidget,
    out_path: Path,
    runs: Sequence[Run],
    *,
    theme: Theme,
    scale: float = 1.0,
    recorded: bool = False,
) -> None:
    """Write a widget as it is on screen, with the source of its runs added at the foot.

    Args:
        widget: Any, for example the window.
        out_path: The file.
        runs: Those that the widget shows.
        theme: Its theme.
        scale: Pixels a pixel of the widget.
        recorded: Whether the runs come from a file.

    Raises:
        RecordingError: The file cannot be written.
    """
    shot = Shot(runs=tuple(runs), shown=-1, t_us=None, theme=theme, recorded=recorded)
    lines = _foot_lines(shot, widget.width())
    foot_px = _foot_height(lines)
    size = (widget.width(), widget.height() + round(foot_px))
    image = _blank(size, scale, theme)
    painter = QPainter(image)
    try:
        with widened(widget, painter):
            widget.render(painter, QPoint(0, 0))
        _draw_foot(painter, QRectF(0, widget.height(), size[0], foot_px), lines, shot)
    finally:
        painter.end()
    write_png(image, out_path)


def write_png(image: QImage, out_path: Path) -> None:
    """Encode a picture and write it whole or not at all.

    Raises:
        RecordingError: It cannot be written; the sentence says why.
    """
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(b"png"))
    writer.setCompression(COMPRESSION)
    # Opaque to the corners: transparency would only make the file a tenth larger.
    if not writer.write(image.convertToFormat(QImage.Format.Format_RGB32)):
        raise RecordingError(f"{out_path} could not be written: the picture cannot be encoded.")
    try:
        write_atomically(out_path, bytes(data.data()))
    except OSError as error:
        reason = error.strerror or str(error)
        raise RecordingError(f"{out_path} could not be written: {reason}.") from error


def ensure_application() -> None:
    """Make a Qt application if there is none, off screen where there is no display.

    Raises:
        ExplorerError: There is one without widgets, in which nothing can be laid out.
    """
    running = QApplication.instance()
    if running is None:
        if sys.platform.startswith("linux") and not (
            os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        ):
            os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
        from explorer.ui.main_window import prepare_application

        made = QApplication(["kernel-explorer"])
        # Without this reference the application would end with the function.
        _application.append(made)
        prepare_application(made)
    elif not isinstance(running, QApplication):
        raise ExplorerError("Pictures need a QApplication, and this process has another kind.")
    load_fonts()


def _check(
    runs: Sequence[Run], view: str, size: tuple[int, int], scale: float, theme: str
) -> Theme:
    """Refuse what cannot be drawn; returns the theme."""
    if view in LATER_VIEWS:
        raise UsageError(f"The view {view!r} is not yet built; there are {', '.join(VIEWS)}.")
    if view not in PAINTERS:
        raise UsageError(f"There is no view {view!r}; there are {', '.join(VIEWS)}.")
    if theme not in THEMES:
        raise UsageError(f"There is no theme {theme!r}; there are {', '.join(THEMES)}.")
    if min(size) < 1 or scale <= 0:
        raise UsageError("The picture's size and scale have to be above zero.")
    if round(size[0] * scale) * round(size[1] * scale) > MOST_PIXELS:
        raise UsageError(
            f"{size[0]}x{size[1]} at scale {scale:g} is more than {MOST_PIXELS // 10**6} million "
            "pixels; take a smaller size or scale."
        )
    if not runs:
        raise UsageError("There is no run to draw.")
    if view == "sweep" and sweep_of(runs) is None and not sweeps_in(runs):
        raise UsageError(
            "None of these runs is of a fusion plan or of a swept parameter: there is no sweep to "
            "draw."
        )
    return THEMES[theme]


def _check_moment(runs: Sequence[Run], shown: int, at_us: float | None) -> float | None:
    """The moment to draw, refused where the shown run is over by then."""
    if shown < 0:
        return None
    if at_us is None:
        return telling_moment_us(runs[shown])
    total_us = lane_total_us(runs[shown])
    if not 0 <= at_us <= total_us:
        raise UsageError(
            f"The moment {format_us(at_us)} is outside the run, which takes {format_us(total_us)}."
        )
    return at_us


def _blank(size: tuple[int, int], scale: float, theme: Theme) -> QImage:
    width, height = (max(round(side * scale), 1) for side in size)
    image = QImage(width, height, QImage.Format.Format_ARGB32_Premultiplied)
    image.setDevicePixelRatio(scale)
    image.fill(theme.color("bg"))
    return image


def _foot_lines(shot: Shot, width: float) -> list[str]:
    """The source of the numbers on as many lines as the width asks for."""
    lines: list[str] = []
    for part in source_words(shot.runs, recorded=shot.recorded).split(SEPARATOR):
        longer = f"{lines[-1]}{SEPARATOR}{part}" if lines else part
        if lines and text_width(longer, font(FOOT_FONT_PX)) <= width - 2 * FOOT_MARGIN_PX - 8:
            lines[-1] = longer
        else:
            lines.append(part)
    return lines


def _foot_height(lines: Sequence[str]) -> float:
    return FOOT_LINE_PX * len(lines) + 8


def _draw_foot(painter: QPainter, rect: QRectF, lines: Sequence[str], shot: Shot) -> None:
    """Where the numbers come from, a recording said first and in colour."""
    theme = shot.theme
    painter.fillRect(rect, theme.color("bg"))
    line = QRectF(rect.x() + FOOT_MARGIN_PX, rect.y() + 3, rect.width(), FOOT_LINE_PX)
    line.setRight(rect.right() - FOOT_MARGIN_PX)
    for i, words in enumerate(lines):
        rest, whole = words, QRectF(line)
        if shot.recorded and i == 0:
            head, dot, tail = words.partition(SEPARATOR)
            bold = font(FOOT_FONT_PX, 700)
            used = draw_text(painter, whole, LEFT, head, bold, theme.color("write"))
            whole.setLeft(whole.left() + used)
            rest = dot + tail
        draw_text(painter, whole, LEFT, rest, font(FOOT_FONT_PX), theme.color("muted"))
        line.translate(0, FOOT_LINE_PX)
