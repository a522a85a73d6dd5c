"""Draws the kernels: a card a launch, with its ops and what stays on chip between them."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath

from explorer.model.device import DeviceKind
from explorer.model.playback import Moment, Phase, Schedule, Slot
from explorer.model.run import Launch, LoopNest, Run
from explorer.model.units import format_bytes, format_us
from explorer.ui.painting import CENTER, LEFT, RIGHT
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.card_layout import CARD_GAP, Card, nest_columns, nest_rows
from explorer.ui.scene.layout import Lane

_GLOW = ((10.0, 16), (7.0, 26), (4.0, 40))
"""Reach in units and alpha of the rings round the active card."""


def draw_card(canvas: Canvas, card: Card, run: Run, phase: Phase) -> None:
    """A kernel's card, all but its progress bar."""
    rect, u = card.rect, canvas.u
    active = phase is Phase.DURING
    if active:
        for reach, alpha in _GLOW:
            grown = rect.adjusted(-reach * u, -reach * u, reach * u, reach * u)
            canvas.box(grown, 10 + reach, fill=canvas.color("compute", alpha))
    line = canvas.color("compute" if active else "line")
    face = canvas.color("panel" if phase is Phase.BEFORE else "raised")
    canvas.box(rect, 10, fill=face, line=line, width=2.2 if active else 1.3)
    _draw_head(canvas, card, phase)
    canvas.box(card.chip, 7, fill=canvas.color("sunken"), line=canvas.color("line"))
    if card.has_label:
        label = card.chip.adjusted(9 * u, 3 * u, -9 * u, 0)
        label.setHeight(18 * u)
        canvas.text(label, _chip_name(run), 13, "muted")
    _draw_ops(canvas, card, run, phase)
    if card.has_sentence:
        _draw_sentences(canvas, card, run)
    _draw_traffic(canvas, card, phase)
    canvas.box(progress_bar(card, u), 2, fill=canvas.color("line"))
    if phase is Phase.AFTER:
        canvas.box(progress_bar(card, u), 2, fill=canvas.color("compute"))


def draw_hover(canvas: Canvas, card: Card) -> None:
    """Frame the card under the pointer."""
    canvas.box(card.rect, 10, line=canvas.color("muted"), width=1.3)


def progress_bar(card: Card, u: float) -> QRectF:
    """Where the card's progress is."""
    rect = card.rect
    return QRectF(rect.x() + 10 * u, rect.bottom() - 9.5 * u, rect.width() - 20 * u, 4 * u)


def draw_progress(canvas: Canvas, card: Card, progress: float) -> None:
    """How far the launch under way is."""
    bar = progress_bar(card, canvas.u)
    bar.setWidth(max(bar.width() * progress, bar.height()))
    canvas.box(bar, 2, fill=canvas.color("compute"))


def draw_idle(canvas: Canvas, lane: Lane, moment: Moment) -> None:
    """Between two launches: that nothing runs, and for how long."""
    if moment.gap is None or not lane.cards:
        return
    u = canvas.u
    words = idle_words(lane.schedule, moment.gap)
    width = canvas.text_width(words, 14, 600) + 28 * u
    done = [c.rect.right() for c in lane.cards if moment.phases[c.slot.index] is Phase.AFTER]
    middle = max(done, default=lane.cards[0].rect.left() - CARD_GAP * u) + CARD_GAP * u / 2
    left = min(max(middle - width / 2, lane.band.left()), lane.band.right() - width)
    y = (lane.band.bottom() + lane.l2.top()) / 2 - 14 * u
    rect = QRectF(left, y, width, 28 * u)
    canvas.box(rect, 14, fill=canvas.color("sunken"), line=canvas.color("muted"), width=1.3)
    canvas.text(rect, words, 14, "text", weight=600, align=CENTER)


def idle_words(schedule: Schedule, gap: tuple[float, float]) -> str:
    """What a gap is: a wait for the next launch, or time that no traced launch accounts for."""
    length = format_us(gap[1] - gap[0])
    if gap[1] >= schedule.total_us:
        return f"no traced launch for the last {length}"
    return f"idle for {length}"


def kernel_name(slot: Slot) -> str:
    """What a launch is called on screen."""
    return f"Kernel {slot.index + 1}"


def duration_text(launch: Launch) -> str:
    """The traced time of a launch, or that there is none."""
    return "no time" if launch.duration_us is None else format_us(launch.duration_us)


def _chip_name(run: Run) -> str:
    return "SRAM + registers" if run.device.kind is DeviceKind.CUDA else "caches + registers"


def _draw_head(canvas: Canvas, card: Card, phase: Phase) -> None:
    rect, u, launch = card.rect, canvas.u, card.slot.launch
    strong = "muted" if phase is Phase.BEFORE else "text"
    head = QRectF(rect.x() + 11 * u, rect.y() + 6 * u, rect.width() - 22 * u, 23 * u)
    name = kernel_name(card.slot)
    time_color = "muted" if phase is Phase.BEFORE else "compute"
    if card.is_narrow:
        if card.is_low:
            head.translate(0, -3 * u)
        canvas.text(head, name, 15, strong, weight=700)
        time = head.translated(0, 20 * u)
        used = canvas.text(time, duration_text(launch), 14.5, time_color, weight=600)
        # Where the time leaves no room, its colour and the full bar say that it is done.
        if phase is Phase.AFTER and used + 17 * u <= time.width():
            _draw_check(canvas, QPointF(head.right() - 5 * u, time.center().y()))
        return
    used = canvas.text(head, name, 16, strong, weight=700)
    time_width = canvas.text(head, duration_text(launch), 15, time_color, weight=600, align=RIGHT)
    if phase is Phase.AFTER:
        _draw_check(canvas, QPointF(head.right() - time_width - 11 * u, head.center().y()))
        time_width += 18 * u
    between = head.adjusted(used + 10 * u, 1 * u, -time_width - 10 * u, 1 * u)
    if between.width() > 90 * u:
        canvas.text(between, launch.kernel, 13, "muted", mono=True, alpha=190)


def _draw_check(canvas: Canvas, middle: QPointF) -> None:
    """A tick, drawn so that it looks the same with any font."""
    x, y, u = middle.x(), middle.y(), canvas.u
    path = QPainterPath(QPointF(x - 4.5 * u, y + 0.5 * u))
    path.lineTo(x - 1.5 * u, y + 3.5 * u)
    path.lineTo(x + 4.5 * u, y - 3.5 * u)
    canvas.painter.setBrush(canvas.color("compute", 0))
    canvas.painter.strokePath(path, canvas.pen(canvas.color("compute"), 2))


def _draw_ops(canvas: Canvas, card: Card, run: Run, phase: Phase) -> None:
    launch = card.slot.launch
    color = "muted" if phase is Phase.BEFORE else "text"
    details = {op.name: op.detail for op in run.graph.ops}
    for before, after in zip(card.ops, card.ops[1:], strict=False):
        stays = bool(_between(run, before.name, after.name) & set(launch.stays_on_chip))
        _draw_link(canvas, before.rect, after.rect, stays, phase)
    for i, op in enumerate(card.ops):
        rect = op.rect
        active = phase is Phase.DURING
        alpha = 70 if active else 0
        canvas.box(rect, 6, fill=canvas.color("panel"))
        canvas.box(rect, 6, fill=canvas.color("op", 255 if phase is not Phase.BEFORE else 130))
        canvas.box(
            rect,
            6,
            fill=canvas.color("compute", alpha // 2),
            line=canvas.color("compute", 235 if active else 105),
            width=1.4,
            dashed=launch.is_helper,
        )
        is_last = i == len(card.ops) - 1
        words = f"+{card.hidden_ops + 1} more" if is_last and card.hidden_ops else op.name
        detail = "" if is_last and card.hidden_ops else details.get(op.name, "")
        _write_op(canvas, rect, words, detail, color)


def _write_op(canvas: Canvas, rect: QRectF, words: str, detail: str, color: str) -> None:
    """An op's name, and under it a few words on what it does where there is room."""
    u = canvas.u
    inside = rect.adjusted(3 * u, 0, -3 * u, 0)
    if detail and rect.height() >= 40 * u and canvas.text_width(detail, 13) <= inside.width():
        half = inside.height() / 2
        below = QRectF(inside.x(), inside.y() + half + 0.5 * u, inside.width(), 16 * u)
        canvas.text(below, detail, 13, "muted", align=CENTER)
        inside = QRectF(inside.x(), inside.y() + half - 18.5 * u, inside.width(), 19 * u)
    if canvas.text_width(words, 13, 600) > inside.width():
        # Of a helper, what it does, rather than for which of many ops it does it.
        words = words.rpartition(": ")[2]
    size = _op_size(canvas, words, rect)
    first, _, second = words.partition(" ")
    if second and canvas.text_width(words, size, 600) > inside.width() and rect.height() >= 26 * u:
        row = QRectF(inside.x(), inside.center().y() - 14 * u, inside.width(), 14 * u)
        canvas.text(row, first, size, color, weight=600, align=CENTER)
        canvas.text(row.translated(0, 14 * u), second, size, color, weight=600, align=CENTER)
        return
    canvas.text(inside, words, size, color, weight=600, align=CENTER)


def _op_size(canvas: Canvas, words: str, rect: QRectF) -> float:
    for size in (15.0, 14.0):
        if canvas.text_width(words, size, 600) <= rect.width() - 8 * canvas.u:
            return size
    return 13.0


def _between(run: Run, before: str, after: str) -> set[str]:
    """Ids of the tensors that one op of the graph hands to another."""
    ops = {op.name: op for op in run.graph.ops}
    if before not in ops or after not in ops:
        return set()
    return set(ops[before].writes) & set(ops[after].reads)


def _draw_link(canvas: Canvas, before: QRectF, after: QRectF, stays: bool, phase: Phase) -> None:
    """A link between two ops: lit if what passes over it stays on chip."""
    if abs(before.y() - after.y()) > 1:
        start = QPointF(before.center().x(), before.bottom())
        end = QPointF(after.center().x(), after.top())
    elif after.x() > before.x():
        start = QPointF(before.right(), before.center().y())
        end = QPointF(after.left(), after.center().y())
    else:
        start = QPointF(before.left(), before.center().y())
        end = QPointF(after.right(), after.center().y())
    if stays:
        alpha = 255 if phase is Phase.DURING else 165 if phase is Phase.AFTER else 120
        canvas.line(start, end, canvas.color("fused", alpha), 4)
    else:
        canvas.line(start, end, canvas.color("faint"), 1.5)


def _draw_sentences(canvas: Canvas, card: Card, run: Run) -> None:
    """Under the ops: a generated function's loop nests, else what stays on chip."""
    launch, chip, u = card.slot.launch, card.chip, canvas.u
    if launch.loop_nests:
        _draw_nests(canvas, card, launch.loop_nests)
    elif launch.stays_on_chip:
        row = QRectF(chip.x() + 9 * u, chip.bottom() - 21.5 * u, chip.width() - 18 * u, 16.5 * u)
        canvas.text(row, stays_sentence(run, launch), 13, "fused", weight=600, align=CENTER)


def _draw_nests(canvas: Canvas, card: Card, nests: Sequence[LoopNest]) -> None:
    """The loop nests of a generated function with their bytes, in one or two columns."""
    u, chip = canvas.u, card.chip
    columns = nest_columns(chip, u)
    rows = min(-(-len(nests) // columns), nest_rows(chip, u))
    cells = [_nest_words(nest) for nest in nests]
    shown = rows * columns - 1
    if len(cells) > rows * columns:
        more = f"{len(cells) - shown} more loop nests" if shown else f"{len(cells)} loop nests"
        cells = [*cells[:shown], more]
    width = (chip.width() - 18 * u) / columns
    top = chip.bottom() - (5 + 16.5 * rows) * u
    for i, words in enumerate(cells):
        row, column = divmod(i, columns)
        cell = QRectF(chip.x() + 9 * u + width * column, top + 16.5 * u * row, width, 16.5 * u)
        canvas.text(cell, words, 13, "muted", align=LEFT if columns > 1 else CENTER)
    if card.has_label:
        head = QRectF(chip.x(), chip.y() + 3 * u, chip.width() - 9 * u, 18 * u)
        head.setLeft(head.left() + canvas.text_width("caches + registers", 13) + 24 * u)
        told = f"{len(nests)} loop nest{'s' * (len(nests) > 1)}"
        at_length = f"{told}, no times of {'their' if len(nests) > 1 else 'its'} own"
        if canvas.text_width(at_length, 13) <= head.width():
            told = at_length
        canvas.text(head, told, 13, "muted", align=RIGHT)


def _nest_words(nest: LoopNest) -> str:
    return f"{nest.name}: R {format_bytes(nest.bytes_read)}, W {format_bytes(nest.bytes_written)}"


def stays_sentence(run: Run, launch: Launch) -> str:
    """Which tensors never reach memory, by name."""
    names = {tensor.id: tensor.name for tensor in run.graph.tensors}
    listed = ", ".join(names.get(key, key) for key in launch.stays_on_chip)
    verb = "stays" if len(launch.stays_on_chip) == 1 else "stay"
    return f"0 bytes: {listed} {verb} on chip"


def _draw_traffic(canvas: Canvas, card: Card, phase: Phase) -> None:
    """The two numbers that the launch's dots add up to."""
    rect, u, traffic = card.rect, canvas.u, card.slot.traffic
    alpha = 170 if phase is Phase.BEFORE else 255
    read = f"R {format_bytes(traffic.read.n_bytes)}"
    written = f"W {format_bytes(traffic.written.n_bytes)}"
    row = QRectF(rect.x() + 11 * u, card.chip.bottom() + 2 * u, rect.width() - 22 * u, 17 * u)
    if traffic.read.pedigree is None and traffic.written.pedigree is None:
        is_split = card.is_narrow and not card.is_low
        for words in ("bytes", "unknown") if is_split else ("bytes unknown",):
            canvas.text(row, words, 13, "muted", alpha=alpha)
            row.translate(0, 15.5 * u)
        return
    if card.is_narrow and card.is_low:
        n_bytes = traffic.read.n_bytes + traffic.written.n_bytes
        canvas.text(row, format_bytes(n_bytes), 13, "text", weight=600, alpha=alpha)
        return
    if card.is_narrow:
        canvas.text(row, read, 13, "read", weight=600, alpha=alpha)
        row.translate(0, 15.5 * u)
        canvas.text(row, written, 13, "write", weight=600, alpha=alpha)
        return
    used = canvas.text(row, read, 13, "read", weight=600, alpha=alpha)
    row.setLeft(row.left() + used + 14 * u)
    used = canvas.text(row, written, 13, "write", weight=600, alpha=alpha)
    kept = len(card.slot.launch.stays_on_chip)
    if kept and not card.has_sentence:
        row.setLeft(row.left() + used + 14 * u)
        words = f"{kept} tensor{'s stay' if kept > 1 else ' stays'} on chip"
        canvas.text(row, words, 13, "fused", weight=600, align=RIGHT)
