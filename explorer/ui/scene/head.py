"""Draws the heading: which run, from where, at which pace, and what the colours mean."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPointF, QRectF, Qt

from explorer.model.playback import Playback, Schedule
from explorer.model.run import Direction, Pedigree, Run
from explorer.model.streams import StreamKind
from explorer.model.units import format_bytes, format_us, split_us
from explorer.ui.painting import CENTER, RIGHT
from explorer.ui.run_names import title_among
from explorer.ui.scene.canvas import Canvas
from explorer.ui.scene.layout import Lane, Layout
from explorer.ui.scene.numbers import out_of
from explorer.ui.words import direction_words, setting_text

_TITLE_PX = 16.0
_LANE_TITLE_PX = 14.0
"""Of one of several lanes, the badge included."""
_SETTING_PX = 13.5
_TITLE_GAP = 10.0


def draw_title(canvas: Canvas, lane: Lane, recorded: bool, runs: Sequence[Run]) -> None:
    """Chain and strategy; where a run was recorded elsewhere, a badge of the same size.

    Args:
        canvas: To draw on.
        lane: The run's.
        recorded: Whether it was measured elsewhere.
        runs: All that are side by side, this one among them.
    """
    alone = len(runs) == 1
    rect, u = QRectF(lane.title), canvas.u
    px = _TITLE_PX if alone else _LANE_TITLE_PX
    run = lane.schedule.run
    if recorded:
        badge = canvas.text_width("RECORDED", px, 700) + 18 * u

        def room(origin: str) -> float:
            """What the origin's words and the badge leave."""
            gap = 9 * u if origin else 0.0
            return rect.width() - canvas.text_width(origin, px, 600) - gap - badge - 14 * u

        origin = _origin(canvas, run, px, runs, room)
        used = canvas.text(rect, origin, px, "write", weight=600, align=RIGHT)
        space = 9 * u if used else 0.0
        face = QRectF(rect.right() - used - badge - space, rect.y(), badge, rect.height())
        canvas.box(face, 6, fill=canvas.color("write"))
        canvas.text(face, "RECORDED", px, "on_accent", weight=700, align=CENTER)
        rect.setRight(face.left() - 14 * u)
    for words, size, color, weight in _title_parts(canvas, run, px, runs, rect.width()):
        used = canvas.text(rect, words, size, color, weight=weight)
        rect.setLeft(rect.left() + used + _TITLE_GAP * u)


_Part = tuple[str, float, str, int]
"""Words, size, colour and weight."""


def _origin(
    canvas: Canvas, run: Run, px: float, runs: Sequence[Run], room: Callable[[str], float]
) -> str:
    """Where and when a run was recorded, as much as leaves the room for what it is a run of.

    The window's foot says it too, with the vendor, without which the device is still plain.
    """
    short, day = run.device.name.removeprefix("NVIDIA "), run.created_at[:10]
    dated = [f"{run.device.name}  ·  {day}"] if len(runs) == 1 else []
    dated.append(f"{short}  ·  {day}")
    if len(runs) == 1:
        named = _with_chain(run, px, runs)
        fits = (o for o in (*dated, short) if any(_width(canvas, p) <= room(o) for p in named))
        found = next(fits, None)
        if found is not None:
            return found
    strategy = canvas.text_width(strategy_words(run, runs), px, 700)
    return next((o for o in (*dated, short) if strategy <= room(o)), "")


def _width(canvas: Canvas, parts: Sequence[_Part]) -> float:
    """Of parts beside each other."""
    words = sum(canvas.text_width(words, size, weight) for words, size, _, weight in parts)
    return words + _TITLE_GAP * canvas.u * (len(parts) - 1)


def _with_chain(run: Run, px: float, runs: Sequence[Run]) -> list[list[_Part]]:
    """Chain, strategy and setting, the chain's title whole or up to its comma."""
    rest: list[_Part] = [
        ("–", px, "muted", 600),
        (strategy_words(run, runs), px, "text", 700),
        (setting_text(run), _SETTING_PX, "muted", 400),
    ]
    titles = (run.chain.title, run.chain.title.partition(",")[0])
    return [[(title, px, "text", 600), *rest] for title in titles]


def _title_parts(
    canvas: Canvas, run: Run, px: float, runs: Sequence[Run], width: float
) -> list[_Part]:
    """Chain, strategy and setting: as much as fits.

    The setting is worth more than the end of a long title, and the strategy more than both.
    """
    strategy: _Part = (strategy_words(run, runs), px, "text", 700)
    setting: _Part = (setting_text(run), _SETTING_PX, "muted", 400)
    choices = _with_chain(run, px, runs) if len(runs) == 1 else []
    choices += [[strategy, setting]]
    if run.chain.direction is not Direction.FORWARD:
        # Two runs of one strategy differ by it, which their sizes do not show.
        choices.append(
            [strategy, (direction_words(run.chain.direction), _SETTING_PX, "muted", 400)]
        )
    choices.append([strategy])
    return next((parts for parts in choices if _width(canvas, parts) <= width), choices[-1])


def draw_details(
    canvas: Canvas, layout: Layout, playback: Playback, t_us: float, slowdown: float | None
) -> None:
    """The moment, the pace and where the numbers come from; the legend's left neighbour."""
    rect = QRectF(layout.details)
    rect.setRight(rect.right() - legend_width(canvas, playback) - 16 * canvas.u)
    clock = _clock_words(playback, t_us)
    used = canvas.text(rect, clock, 13, "text", weight=600, tabular=True)
    for part in _source_parts(playback, slowdown):
        rect.setLeft(rect.left() + used + 8 * canvas.u)
        words = f"·  {part}"
        # Half a part would say something else.
        if canvas.text_width(words, 13) > rect.width():
            break
        used = canvas.text(rect, words, 13, "muted")


def draw_legend(canvas: Canvas, layout: Layout, playback: Playback) -> None:
    """What one dot stands for and what the colours mean."""
    u, rect = canvas.u, layout.details
    x = rect.right()
    for words, color in reversed(_legend(playback)):
        width = canvas.text_width(words, 13)
        x -= width
        canvas.text(QRectF(x, rect.y(), width + 2, rect.height()), words, 13, "text")
        x -= 10 * u
        canvas.painter.setPen(Qt.PenStyle.NoPen)
        canvas.painter.setBrush(canvas.color(color))
        canvas.painter.drawEllipse(QPointF(x, rect.center().y()), 4.3 * u, 4.3 * u)
        x -= 16 * u
    scale = QRectF(rect.x(), rect.y(), x - rect.x(), rect.height())
    canvas.text(scale, _scale_words(playback), 13, "muted", align=RIGHT)


def legend_width(canvas: Canvas, playback: Playback) -> float:
    """The room that scale and legend take."""
    entries = _legend(playback)
    words = sum(canvas.text_width(each, 13) for each, _ in entries)
    return words + 26 * canvas.u * len(entries) + canvas.text_width(_scale_words(playback), 13)


def _scale_words(playback: Playback) -> str:
    return f"1 dot = {format_dot(playback.dot_bytes)}"


def format_dot(n_bytes: int) -> str:
    """A dot's bytes, which are a round number: ``10 MB``, without decimals."""
    number, unit = format_bytes(n_bytes).split(" ")
    return f"{float(number.replace(',', '')):g} {unit}"


def _legend(playback: Playback) -> list[tuple[str, str]]:
    """Only what occurs in the runs shown."""
    slots = [slot for lane in playback.lanes for slot in lane.slots]
    entries = [("read", "read"), ("write", "write")]
    if any(s.kind is StreamKind.L2 for slot in slots for s in slot.traffic.streams):
        entries.append(("L2", "cache"))
    if any(slot.launch.stays_on_chip for slot in slots):
        entries.append(("on chip", "fused"))
    return entries


def _clock_words(playback: Playback, t_us: float) -> str:
    if not any(lane.is_timed for lane in playback.lanes):
        return "order only: this run holds no times"
    number, unit = split_us(playback.total_us)
    factor = {"µs": 1.0, "ms": 1e3, "s": 1e6}[unit]
    return out_of(t_us / factor, number, unit)


def _source_parts(playback: Playback, slowdown: float | None) -> list[str]:
    """The pace, the pedigree of the bytes and the traced total, the most important first."""
    parts = []
    if slowdown:
        parts.append(f"{format_slowdown(slowdown)} slower")
    parts.append(f"bytes {_pedigree_words(playback.lanes)}")
    alone = playback.lanes[0] if len(playback.lanes) == 1 else None
    if alone and alone.trace_total_us and alone.is_timed:
        parts.append(f"traced {format_us(alone.trace_total_us)}")
    return parts


def format_slowdown(factor: float) -> str:
    """``1870.4`` -> ``1,870×``: three digits."""
    if factor < 10:
        return f"{factor:.3g}×"
    digits = max(0, len(str(int(factor))) - 3)
    rounded = round(factor / 10**digits) * 10**digits
    return f"{rounded:,.0f}×"


def _pedigree_words(lanes: Sequence[Schedule]) -> str:
    found: list[Pedigree] = []
    for lane in lanes:
        found += [pedigree for pedigree in lane.pedigrees if pedigree not in found]
    return " / ".join(pedigree.value for pedigree in found) or "unknown"


def strategy_words(run: Run, beside: Sequence[Run] = ()) -> str:
    """The run's name, what tells it apart, and what really ran where the strategy says not."""
    title, backend = title_among(run, beside or (run,)), run.strategy.backend
    return f"{title} ({backend})" if backend and backend not in title else title


def describe_run(run: Run) -> str:
    """Chain, strategy and device in words."""
    title = run.chain.title
    if run.chain.direction is not Direction.FORWARD:
        title += f", {direction_words(run.chain.direction)}"
    return f"{title}, {strategy_words(run)}, on {run.device.name}"
