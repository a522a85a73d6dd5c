"""Draws the memory: its band, the tensors in it, and the L2 below."""

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QBrush, QLinearGradient

from explorer.model.device import DeviceKind
from explorer.model.playback import Moment, Phase
from explorer.model.tensor import Tensor
from explorer.model.units import format_bytes, format_rate, split_bytes
from explorer.ui.painting import CENTER, RIGHT
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.layout import MOST_NAME_WIDTH, Lane
from explorer.ui.scene.tensor_layout import TensorBox

LEAST_TEXT = 13.0
"""The smallest font of the scene, in units."""
_FILL_ALPHA = {Phase.BEFORE: 0, Phase.DURING: 150, Phase.AFTER: 34}


def draw_band(canvas: Canvas, lane: Lane, moment: Moment) -> None:
    """The memory itself, with its measured speed and what the tensors in it hold."""
    band, u = lane.band, canvas.u
    shade = QLinearGradient(band.topLeft(), band.bottomLeft())
    shade.setColorAt(0, canvas.color("memory_top"))
    shade.setColorAt(1, canvas.color("memory_bottom"))
    canvas.box(band, 10, fill=QBrush(shade), line=canvas.color("memory_line"), width=1.2)
    head = QRectF(band.x() + 13 * u, band.y() + 3 * u, band.width() - 26 * u, 25 * u)
    device = lane.schedule.run.device
    name_width = canvas.text(head, device.memory_name, 17, "text", weight=700)
    if lane.schedule.slots:
        in_use = format_bytes(moment.in_use_bytes)
        used = canvas.text(head, in_use, 13, "text", weight=600, align=RIGHT)
        head.setRight(head.right() - used - 5 * u)
        used = canvas.text(head, "tensors in use", 13, "muted", align=RIGHT)
        head.setRight(head.right() - used - 10 * u)
    head.setLeft(head.left() + name_width + 9 * u)
    canvas.text(head, _speed(lane), 13, "muted")


def _speed(lane: Lane) -> str:
    device = lane.schedule.run.device
    if lane.other_lives and lane.others is None:
        return f"+ {len(lane.other_lives)} tensors"
    kind = "global memory" if device.kind is DeviceKind.CUDA else "main memory"
    if device.ceilings is None:
        return kind
    return f"{kind}  ·  measured {format_rate(device.ceilings.memory_bytes_per_s)}"


def draw_l2(canvas: Canvas, lane: Lane) -> None:
    """The L2, through which everything passes."""
    rect = lane.l2
    canvas.box(rect, 5, fill=canvas.color("cache", 20), line=canvas.color("cache", 70), width=1.0)


def write_l2(canvas: Canvas, lane: Lane) -> None:
    """Name and size of the L2, over the streams that pass there."""
    rect, u, device = lane.l2, canvas.u, lane.schedule.run.device
    name = "L2" if device.kind is DeviceKind.CUDA else "cache"
    words = f"{name}  {format_bytes(device.l2_bytes)}"
    width = canvas.text_width(words, LEAST_TEXT, 500)
    plate = QRectF(rect.x() + 5 * u, rect.y() + 1.5 * u, width + 8 * u, rect.height() - 3 * u)
    canvas.box(plate, 4, fill=canvas.color("panel", 215))
    canvas.text(rect.adjusted(9 * u, 0, 0, 0), words, LEAST_TEXT, "cache", weight=500, alpha=210)


def being_written(lane: Lane, moment: Moment) -> set[str]:
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


def draw_tensors(canvas: Canvas, lane: Lane, moment: Moment, wanted: set[str]) -> None:
    """The tensors in view whose ids are in ``wanted``."""
    active = _in_traffic(lane, moment)
    there_before = {life.tensor.id: life.there_before for life in lane.schedule.lives}
    for key, box in lane.boxes.items():
        if key in wanted:
            draw_tensor(
                canvas, box, moment.lives[key], moment.levels[key], there_before[key],
                key in active,
            )  # fmt: skip


def draw_tensor(
    canvas: Canvas, box: TensorBox, phase: Phase, level: float, there_before: bool, active: bool
) -> None:
    """A tensor: filled as far as it is written, dashed before it is there, dimmed when freed.

    Args:
        canvas: Where to.
        box: Its place.
        phase: Before, in memory, or freed.
        level: How full, 0 to 1.
        there_before: Whether it was there before the first launch.
        active: Whether a launch under way reads or writes it.
    """
    block, u = box.block, canvas.u
    radius = min(6.0, block.width() / u / 4)
    canvas.box(block, radius, fill=canvas.color("sunken"))
    color = "tensor_input" if there_before else "tensor_made"
    alpha = 238 if active else _FILL_ALPHA[phase]
    if level > 0 and alpha:
        painter = canvas.painter
        painter.save()
        painter.setClipRect(block.adjusted(0, block.height() * (1 - level), 0, 0))
        canvas.box(block, radius, fill=canvas.color(color, alpha))
        painter.restore()
    is_there = phase is Phase.DURING
    canvas.box(
        block,
        radius,
        line=canvas.color("text", 215) if active else canvas.color("memory_line"),
        width=1.8 if active else 1.2,
        dashed=not is_there,
    )
    if box.label is not None:
        _write_beside(canvas, box, box.label, is_there)
    else:
        _write_inside(canvas, box, phase, level)


def _write_beside(canvas: Canvas, box: TensorBox, label: QRectF, is_there: bool) -> None:
    color = "text" if is_there else "muted"
    name = QRectF(label)
    name.setWidth(min(name.width(), MOST_NAME_WIDTH * canvas.u))
    used = canvas.text(name, box.tensor.name, 13.5, color, weight=600)
    rest = label.adjusted(used + 6 * canvas.u, 0, 2 * canvas.u, 0)
    if rest.width() > 20 * canvas.u:
        canvas.text(rest, format_bytes(box.tensor.n_bytes), 13, "muted")


def _write_inside(canvas: Canvas, box: TensorBox, phase: Phase, level: float) -> None:
    """Name and size in the middle of a block, upright where the block is too narrow."""
    block, u = box.block, canvas.u
    is_there = phase is Phase.DURING
    color = "tensor_text" if is_there and level >= 1 else "text" if is_there else "muted"
    name, n_bytes = box.tensor.name, format_bytes(box.tensor.n_bytes)
    room = block.width() - 6 * u
    names = _name_lines(canvas, name, room)
    is_filling = 0 < level < 1
    sizes = size_lines(canvas, box.tensor, room)
    # A unit without its number would be worse than both from bottom to top.
    if not names or not sizes:
        _write_upright(canvas, block, (name, n_bytes), color, is_filling)
        return
    size = min(_fitting_size(canvas, words, room) for words in names)
    lines = [(words, size, 600, (size + 5) * u) for words in names]
    if block.height() < sum(line_height for *_, line_height in lines) + 17 * u:
        _write_in_a_line(canvas, block, (name, n_bytes), color, is_filling)
        return
    lines += [(words, LEAST_TEXT, 400, 17 * u) for words in sizes]
    if phase is Phase.AFTER and block.height() > (24 + 17 * len(lines)) * u:
        lines.append(("freed", LEAST_TEXT, 400, 17 * u))
    height = sum(line_height for *_, line_height in lines)
    row = QRectF(block.x(), block.center().y() - height / 2, block.width(), height)
    if is_filling:
        widest = max(canvas.text_width(words, px, weight) for words, px, weight, _ in lines)
        _draw_plate(canvas, QRectF(row.center().x() - widest / 2, row.y(), widest, height))
    for words, px, weight, line_height in lines:
        row.setHeight(line_height)
        canvas.text(row, words, px, color, weight=weight, align=CENTER)
        row.translate(0, line_height)


def _write_in_a_line(
    canvas: Canvas, block: QRectF, words: tuple[str, str], color: str, is_filling: bool
) -> None:
    """In a low block: name and size beside each other, or the name alone, cut where it must be."""
    u, gap = canvas.u, 6 * canvas.u
    room = block.width() - 6 * u
    sizes = [canvas.text_width(words[0], LEAST_TEXT, 600), canvas.text_width(words[1], LEAST_TEXT)]
    shown = list(zip(words, sizes, (600, 400), strict=True))
    if sum(sizes) + gap > room:
        shown = shown[:1]
    width = min(sum(size for _, size, _ in shown) + gap * (len(shown) - 1), room)
    row = QRectF(block.center().x() - width / 2, block.center().y() - 8.5 * u, width, 17 * u)
    if is_filling:
        _draw_plate(canvas, row)
    for text, _, weight in shown:
        used = canvas.text(row, text, LEAST_TEXT, color, weight=weight)
        row.setLeft(row.left() + used + gap)


def _name_lines(canvas: Canvas, name: str, room: float) -> list[str]:
    """A name on one line, or a word a line; empty if it fits neither way."""
    for words in ([name], name.split(" ")):
        if all(canvas.text_width(word, LEAST_TEXT, 600) <= room for word in words):
            return words
    return []


def _write_upright(
    canvas: Canvas, block: QRectF, words: tuple[str, str], color: str, is_filling: bool
) -> None:
    """Name and size from bottom to top, side by side, one after the other, or the name alone."""
    u, (name, n_bytes) = canvas.u, words
    line = 16 * u
    if block.width() < line:
        return
    widths = [canvas.text_width(name, LEAST_TEXT, 600), canvas.text_width(n_bytes, LEAST_TEXT)]
    room, gap = block.height() - 8 * u, 6 * u
    if room < 0.6 * widths[0]:
        # A letter or two tell nothing; the tooltip does.
        return
    painter = canvas.painter
    painter.save()
    painter.translate(block.center())
    painter.rotate(-90)
    if is_filling:
        wide = min(max(widths), room)
        _draw_plate(canvas, QRectF(-wide / 2, -line / 2, wide, line))
    if block.width() >= 2 * line:
        first = QRectF(-room / 2, -line, room, line)
        canvas.text(first, name, LEAST_TEXT, color, weight=600, align=CENTER)
        canvas.text(first.translated(0, line), n_bytes, LEAST_TEXT, color, align=CENTER)
    elif sum(widths) + gap <= room:
        first = QRectF(-(sum(widths) + gap) / 2, -line / 2, widths[0] + 1, line)
        canvas.text(first, name, LEAST_TEXT, color, weight=600)
        rest = QRectF(first.right() + gap, first.y(), widths[1] + 1, line)
        canvas.text(rest, n_bytes, LEAST_TEXT, color)
    else:
        whole = QRectF(-room / 2, -line / 2, room, line)
        canvas.text(whole, name, LEAST_TEXT, color, weight=600, align=CENTER)
    painter.restore()


def _draw_plate(canvas: Canvas, words: QRectF) -> None:
    """Under words that the edge of a filling tensor passes, so that they stay readable."""
    u = canvas.u
    canvas.box(words.adjusted(-6 * u, -1 * u, 6 * u, 2 * u), 5, fill=canvas.color("sunken", 170))


def _fitting_size(canvas: Canvas, name: str, width: float) -> float:
    """A large name where there is room, down to the least size that is read."""
    sizes = (17.0, 15.0, 13.5)
    fitting = (size for size in sizes if canvas.text_width(name, size, 600) <= width)
    return next(fitting, LEAST_TEXT)


def size_lines(canvas: Canvas, tensor: Tensor, width: float) -> list[str]:
    """The tensor's bytes on one line, or number and unit on two; empty if they fit neither way."""
    for lines in ([format_bytes(tensor.n_bytes)], list(split_bytes(tensor.n_bytes))):
        if all(canvas.text_width(words, LEAST_TEXT) <= width for words in lines):
            return lines
    return []


def draw_others(canvas: Canvas, lane: Lane, moment: Moment) -> None:
    """The tensors that are not in view, summed up, so that none is ever removed."""
    if lane.others is None:
        return
    rect, u = lane.others, canvas.u
    in_use = sum(
        life.tensor.n_bytes
        for life in lane.other_lives
        if moment.lives[life.tensor.id] is Phase.DURING
    )
    canvas.box(rect, 6, line=canvas.color("memory_line"), width=1.2, dashed=True)
    middle = rect.center().y()
    for dy, words, color in (
        (-19, f"{len(lane.other_lives)} more", "text"),
        (0, "in use", "muted"),
        (17, format_bytes(in_use), "muted"),
    ):
        row = QRectF(rect.x(), middle + (dy - 9) * u, rect.width(), 18 * u)
        canvas.text(row, words, 13, color, weight=600 if dy < 0 else 400, align=CENTER)


def draw_rail(canvas: Canvas, box: TensorBox, lane: Lane) -> None:
    """The faint line that leads from a square down to the band's edge."""
    if box.rail_x is None:
        return
    corner = QPointF(box.rail_x, box.block.center().y())
    color = canvas.color("memory_line")
    canvas.line(QPointF(box.block.x(), corner.y()), corner, color, 1.0)
    canvas.line(corner, QPointF(box.rail_x, lane.band.bottom()), color, 1.0)
