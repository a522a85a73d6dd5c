"""A strategy's row: whether the next run measures it, and what came of it so far."""

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget
from typing_extensions import override

from explorer.model.comparison import Verdict, distrust, find_baseline, headline, speed_up
from explorer.model.device import StrategyAbility
from explorer.model.run import Run
from explorer.model.units import format_us
from explorer.ui.controls import FocusRing, Toggle, draw_focus
from explorer.ui.painting import LEFT, RIGHT, draw_text, text_width
from explorer.ui.panel import wrapped
from explorer.ui.plan_strip import LEAST_WIDTH, PlanOps, draw_strip
from explorer.ui.state import (
    SessionRun,
    strategy_sentence,
)
from explorer.ui.theme import Theme, font
from explorer.ui.words import (
    compared_words,
    ratio_words,
    short_title,
    verdict_color_name,
)

LEAST_CELL_PX = 13.0
"""Of an op in a plan's strip: narrower ones hold no letter, and the text says more."""
ROW_PX = 34
"""Of every row, so that none moves when a result comes in."""
TOGGLE_X_PX, CHIP_X_PX, TEXT_X_PX, SIDE_PX = 6, 33, 45, 11


@dataclass(frozen=True, slots=True, kw_only=True)
class RowText:
    """What a row says.

    Attributes:
        title: The strategy.
        below: Launches, or why it is off, or how it failed; before any run what it does.
        time: The headline time, empty without a result.
        ratio: How that compares with the baseline, empty without one; or that a check failed.
        verdict: Of that comparison.
        tip: All of it at length.
        plan: A plan with which ``below`` ends; where that does not fit, a strip stands for it.
    """

    title: str
    below: str
    time: str = ""
    ratio: str = ""
    verdict: Verdict = Verdict.EQUAL
    tip: str = ""
    plan: PlanOps | None = None


def row_text(ability: StrategyAbility, result: SessionRun | None, runs: list[Run]) -> RowText:
    """The words of a row.

    Args:
        ability: The strategy and whether it can run.
        result: Its run in the shown setting.
        runs: The runs beside the shown one, among them the baseline.
    """
    reason = (ability.reason or "It cannot run on this device.") if not ability.available else ""
    if result is None:
        sentence = strategy_sentence(ability.spec)
        tip = "\n".join(part for part in (ability.title, sentence, reason) if part)
        below = _without_spec(reason, ability.spec) or sentence
        return RowText(title=ability.title, below=below, tip=tip)
    run = result.run
    if run.error is not None:
        return RowText(title=ability.title, below=run.error, tip=run.error)
    n = sum(not launch.is_helper for launch in run.launches)
    below = f"{n} kernel{'s' if n != 1 else ''}"
    helpers = len(run.launches) - n
    if helpers:
        below += f" + {helpers} helper{'s' if helpers != 1 else ''}"
    if run.strategy.backend:
        below = f"{run.strategy.backend} · {below}"
    timed = headline(run)
    base = find_baseline(run, runs)
    found = speed_up(run, base) if base else None
    time = format_us(timed.samples.median_us) if timed else "not timed"
    compared, verdict = compared_words(run, found)
    doubt = distrust(run)
    tips = [doubt, result.name, strategy_sentence(ability.spec), f"{below}; {time}"]
    if timed:
        tips.append(f"median of {timed.samples.n}, {timed.condition.value}")
    if found and base and found.verdict is Verdict.WITHHELD:
        tips.append(f"The speed-up is withheld. {found.reason}" if found.reason != doubt else "")
    elif found and base:
        link = "as" if found.verdict is Verdict.EQUAL else "than"
        tips.append(f"{ratio_words(found)} {link} {base.strategy.spec} ({found.condition.value})")
    return RowText(
        title=ability.title,
        below=below,
        time=time,
        ratio=compared,
        verdict=verdict,
        tip="\n".join(part for part in (*tips, reason) if part),
    )


def _without_spec(reason: str, spec: str) -> str:
    """A refusal below its strategy's title, which there is little room to say once more."""
    if reason.startswith(f"{spec} "):
        rest = reason.removeprefix(f"{spec} ")
        return rest[0].upper() + rest[1:]
    return reason.replace(f" {spec} here ", " it here ", 1)


class StrategyRow(QAbstractButton):
    """One strategy: a toggle at the left, its result at the right; a click shows its run.

    Signals:
        toggled_on: Whether the next run measures it.
    """

    toggled_on = Signal(bool)

    def __init__(self, spec: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.spec = spec
        self._text = RowText(title=spec, below="")
        self._color = "plain"
        self._theme: Theme | None = None
        self._is_shown = False
        self._has_result = False
        self._progress = ""
        self._ring = FocusRing(self)
        self.box = Toggle(f"Measure {spec} in the next run", self)
        self.box.clicked.connect(self.toggled_on)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(ROW_PX)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @property
    def text_shown(self) -> RowText:
        """What the row says."""
        return self._text

    def show_text(self, text: RowText, color: str, *, has_result: bool, is_shown: bool) -> None:
        """Take words and colour; a row without a result cannot be picked to be shown."""
        looks = (text, color, has_result, is_shown)
        if looks == (self._text, self._color, self._has_result, self._is_shown):
            return
        self._text, self._color, self._has_result, self._is_shown = looks
        self.setToolTip(wrapped(text.tip))
        self.box.setAccessibleName(f"Measure {text.title} in the next run")
        said = ", ".join(part for part in (text.below, text.time, text.ratio) if part)
        self.setAccessibleName(f"{text.title}: {said}")
        # Else a screen reader would read the tooltip with its markup.
        self.setAccessibleDescription("shown" if is_shown else text.tip)
        self.update()

    @property
    def progress(self) -> str:
        """What is said of its measuring, empty while it is not under way."""
        return self._progress

    def show_progress(self, progress: str) -> None:
        """Say how far its measuring is; empty for not at all."""
        if progress != self._progress:
            self._progress = progress
            self.update()

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self.box.set_colors(theme)
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(260, self.height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self.box.move(TOGGLE_X_PX, (self.height() - self.box.height()) // 2)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        theme = self._theme
        if theme is None:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        face = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        line = theme.color(self._color) if self._is_shown else theme.color("line")
        fill = theme.color(self._color, 38) if self._is_shown else theme.color("raised")
        if self._has_result or self._is_shown:
            painter.setPen(QPen(line, 1.6 if self._is_shown else 1))
            painter.setBrush(fill)
            painter.drawRoundedRect(face, 8, 8)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(self._color))
            painter.drawRoundedRect(QRectF(CHIP_X_PX, 8, 5, self.height() - 16), 2.5, 2.5)
        width = self.width() - TEXT_X_PX - SIDE_PX
        self._draw_words(painter, theme, QRectF(TEXT_X_PX, 0, width, self.height()))
        if self._ring.is_on:
            draw_focus(painter, QRectF(self.rect()), theme.color("text"), 8)
        painter.end()

    def _draw_words(self, painter: QPainter, theme: Theme, room: QRectF) -> None:
        """Title and time above; below launches and speed-up, or what else there is to say."""
        text = self._text
        upper, lower = _halves(room)
        face = font(15, 700, tabular=True)
        used = draw_text(painter, upper, RIGHT, text.time, face, theme.color("text"))
        rest = upper.adjusted(0, 0, -used - 8 if used else 0, 0)
        title = short_title(text.title) if self._has_result else text.title
        can_run = self._has_result or self.box.isEnabled()
        _draw_title(painter, rest, title, theme.color("text" if can_run else "muted"))
        if self._progress:
            draw_text(painter, lower, LEFT, self._progress, font(12.5, 600), theme.color("compute"))
            return
        ratio_ink = theme.color(verdict_color_name(text.verdict))
        used = draw_text(painter, lower, RIGHT, text.ratio, font(12.5, 600), ratio_ink)
        rest = lower.adjusted(0, 0, -used - 8 if used else 0, 0)
        _draw_below(painter, rest, text, theme)


def _draw_title(painter: QPainter, room: QRectF, title: str, color: QColor) -> None:
    """A title as long as fits, in a slightly smaller font before it is cut."""
    faces = [font(px, 600) for px in (13.5, 13)]
    fitting = (face for face in faces if text_width(title, face) <= room.width())
    draw_text(painter, room, LEFT, title, next(fitting, faces[-1]), color)


def _draw_below(painter: QPainter, room: QRectF, text: RowText, theme: Theme) -> None:
    """The second line, with a strip in the place of a plan's text that does not fit."""
    face, shown, strip = font(12.5), text.below, QRectF(room)
    if text.plan is not None and text_width(shown, face) > room.width():
        lead = shown.removesuffix(text.plan.plan.text)
        strip.setLeft(room.left() + text_width(lead, face) + 2)
        cell = strip.width() / max(len(text.plan.ops), 1)
        if strip.width() >= LEAST_WIDTH and cell >= LEAST_CELL_PX:
            shown = lead
            draw_strip(painter, strip, text.plan, theme)
    draw_text(painter, room, LEFT, shown, face, theme.color("muted"))


def _halves(room: QRectF) -> tuple[QRectF, QRectF]:
    """Room for a first and a second line."""
    half = room.height() / 2
    return (
        QRectF(room.left(), 2, room.width(), half),
        QRectF(room.left(), half - 2, room.width(), half),
    )
