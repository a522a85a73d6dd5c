"""Draws the foot of a lane: the launches' true lengths on one line, and the running total."""

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPolygonF

from explorer.model.playback import Moment, Phase
from explorer.model.units import format_bytes, split_bytes
from explorer.ui.painting import RIGHT
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.layout import Lane
from explorer.ui.scene.numbers import out_of

_LEAST_SEGMENT = 1.2


def strip_x(lane: Lane, clock_us: float, t_us: float) -> float:
    """Where a moment lies on the strip."""
    share = t_us / clock_us if clock_us else 0.0
    return lane.strip.x() + lane.strip.width() * share


def draw_strip(canvas: Canvas, lane: Lane, moment: Moment, clock_us: float) -> None:
    """Every launch at its true place and length; what is empty is idle."""
    strip, u = lane.strip, canvas.u
    middle = strip.center().y()
    end = strip_x(lane, clock_us, lane.schedule.total_us)
    canvas.line(QPointF(strip.x(), middle), QPointF(end, middle), canvas.color("faint", 120), 1)
    for slot, phase in zip(lane.schedule.slots, moment.phases, strict=True):
        left = strip_x(lane, clock_us, slot.start_us)
        width = strip_x(lane, clock_us, slot.end_us) - left
        # A hair of ground between neighbours that follow each other at once.
        width = max(width - 0.8 * u, _LEAST_SEGMENT * u)
        rect = QRectF(left, strip.y(), width, strip.height())
        alpha = {Phase.BEFORE: 90, Phase.DURING: 255, Phase.AFTER: 190}[phase]
        color = "fused" if slot.launch.is_fused else "plain"
        canvas.box(rect, 1.5, fill=canvas.color(color, alpha))
        if phase is Phase.DURING:
            canvas.box(rect, 1.5, line=canvas.color("compute"), width=1.5)
    if not lane.page.is_whole:
        _frame_page(canvas, lane, clock_us)


def _frame_page(canvas: Canvas, lane: Lane, clock_us: float) -> None:
    """Which launches of the strip are in view above."""
    slots, u = lane.schedule.slots[lane.page.first : lane.page.end], canvas.u
    left = strip_x(lane, clock_us, slots[0].start_us) - 2 * u
    right = strip_x(lane, clock_us, slots[-1].end_us) + 2 * u
    rect = QRectF(left, lane.strip.y() - 2.5 * u, right - left, lane.strip.height() + 5 * u)
    canvas.box(rect, 3, line=canvas.color("muted"), width=1.2)


def draw_playhead(canvas: Canvas, lane: Lane, clock_us: float, t_us: float) -> None:
    """The moment shown, on the strip."""
    strip, u = lane.strip, canvas.u
    x = strip_x(lane, clock_us, min(t_us, lane.schedule.total_us))
    top, bottom = QPointF(x, strip.y() - 3 * u), QPointF(x, strip.bottom() + 3 * u)
    canvas.line(top, bottom, canvas.color("playhead"), 2)
    canvas.painter.setPen(canvas.color("playhead", 0))
    canvas.painter.setBrush(canvas.color("playhead"))
    canvas.painter.drawPolygon(
        QPolygonF(
            [
                QPointF(x - 4 * u, strip.y() - 6 * u),
                QPointF(x + 4 * u, strip.y() - 6 * u),
                QPointF(x, strip.y() - 0.5 * u),
            ]
        )
    )


def draw_total(canvas: Canvas, lane: Lane, moment: Moment) -> None:
    """The bytes moved so far out of all, split into read and written."""
    made, rect, u = lane.schedule, lane.bar, canvas.u
    is_wide = rect.width() > 560 * u
    name = made.run.device.memory_name + (" traffic" if is_wide else "")
    whole = made.read_bytes + made.written_bytes
    done = moment.read_bytes + moment.written_bytes
    name_width = canvas.text(rect, name, 14, "muted")
    total_width = canvas.text_width(_out_of(whole, whole), 16, 700, tabular=True)
    words = _out_of(done, whole)
    canvas.text(rect, words, 16, "text", weight=700, align=RIGHT, tabular=True)
    left, right = rect.x() + name_width + 12 * u, rect.right() - total_width - 14 * u
    if is_wide:
        split = QRectF(right - 188 * u, rect.y(), 188 * u, rect.height())
        for words, color in (
            (f"W {format_bytes(moment.written_bytes)}", "write"),
            (f"R {format_bytes(moment.read_bytes)}", "read"),
        ):
            canvas.text(split, words, 13.5, color, weight=600, align=RIGHT, tabular=True)
            split.setRight(split.right() - 94 * u)
        right -= 194 * u
    bar = QRectF(left, rect.center().y() - 5 * u, right - left, 10 * u)
    canvas.box(bar, 5, fill=canvas.color("line"))
    if whole:
        _fill_bar(canvas, bar, moment.read_bytes / whole, moment.written_bytes / whole)


def _fill_bar(canvas: Canvas, bar: QRectF, read: float, written: float) -> None:
    """Read from the left, written after it, both within one rounded bar."""
    painter = canvas.painter
    width = bar.width() * (read + written)
    if width <= 0:
        return
    painter.save()
    painter.setClipRect(QRectF(bar.x(), bar.y(), bar.width() * read, bar.height()))
    whole = QRectF(bar.x(), bar.y(), max(width, bar.height()), bar.height())
    canvas.box(whole, 5, fill=canvas.color("read"))
    painter.setClipRect(
        QRectF(bar.x() + bar.width() * read, bar.y(), bar.width(), bar.height())
    )  # fmt: skip
    canvas.box(whole, 5, fill=canvas.color("write"))
    painter.restore()


def _out_of(done: int, whole: int) -> str:
    """``4.21 / 12.4 GB``, both in the unit of the whole."""
    number, unit = split_bytes(whole)
    factor = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[unit]
    return out_of(done / factor, number, unit)
