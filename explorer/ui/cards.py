"""The cards: speed-up, time, traffic, launches and peak memory of the run shown."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget
from typing_extensions import override

from explorer.model.device import Device
from explorer.model.run import Run
from explorer.ui.card_content import CARD_KEYS, Card, Tone, cards_of
from explorer.ui.painting import LEFT, PANEL_RADIUS, RIGHT, antialias, draw_text, text_width
from explorer.ui.panel import wrapped
from explorer.ui.theme import DARK, Theme, font
from explorer.ui.words import DASH, run_color_name

BOTTOM_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom
BIG_HEIGHT, SMALL_HEIGHT = 132, 106
GAP = 10


def draw_card(
    painter: QPainter, rect: QRectF, card: Card, accent: str, theme: Theme, zoom: float = 1.0
) -> None:
    """Paint one card.

    Args:
        painter: Where to.
        rect: The whole card.
        card: Its words.
        accent: Colour name of a speed-up's value: the shown run's.
        theme: Colours.
        zoom: Factor on fonts and margins.
    """
    antialias(painter)
    is_wrong = card.key == "speed-up" and card.tone is Tone.WRONG
    painter.setPen(QPen(theme.color("wrong" if is_wrong else "line"), 1))
    painter.setBrush(theme.color("panel"))
    radius = PANEL_RADIUS * zoom
    painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
    inner = rect.adjusted(14 * zoom, 9 * zoom, -12 * zoom, -8 * zoom)
    label = QRectF(inner.x(), inner.y(), inner.width(), 20 * zoom)
    ink, weight = ("wrong", 700) if is_wrong else ("muted", 500)
    draw_text(painter, label, LEFT, card.label, font(13 * zoom, weight), theme.color(ink))
    if is_wrong:
        _draw_wrong(painter, inner.adjusted(0, 24 * zoom, 0, 0), card.delta, theme, zoom)
    elif card.key == "speed-up":
        _draw_speed_up(painter, inner, card, accent, theme, zoom)
    else:
        _draw_small(painter, inner, card, theme, zoom)


def _draw_speed_up(
    painter: QPainter, inner: QRectF, card: Card, accent: str, theme: Theme, zoom: float
) -> None:
    colors = {Tone.GOOD: accent, Tone.BAD: "warning", Tone.NEUTRAL: "muted", Tone.WRONG: "wrong"}
    value = QRectF(inner.x(), inner.y() + 22 * zoom, inner.width(), 52 * zoom)
    face = font(44 * zoom, 700)
    used = draw_text(painter, value, LEFT, card.value, face, theme.color(colors[card.tone]))
    beside = value.adjusted(used + 10 * zoom, 0, 0, -7 * zoom)
    painter.setFont(font(12 * zoom))
    painter.setPen(theme.color("muted"))
    painter.drawText(beside, int(BOTTOM_RIGHT) | int(Qt.TextFlag.TextWordWrap), card.note)
    line = QRectF(inner.x(), inner.bottom() - 38 * zoom, inner.width(), 20 * zoom)
    tone = "compute" if card.tone is Tone.GOOD else colors[card.tone]
    draw_text(painter, line, LEFT, card.delta, font(13.5 * zoom, 600), theme.color(tone))
    line.translate(0, 20 * zoom)
    draw_text(painter, line, LEFT, card.detail, font(12 * zoom), theme.color("muted"))


def _draw_wrong(painter: QPainter, room: QRectF, words: str, theme: Theme, zoom: float) -> None:
    """Why there is no number, in the number's place: as large as fits."""
    flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
    flags |= int(Qt.TextFlag.TextWordWrap)
    for size in (15, 14, 13, 12):
        painter.setFont(font(size * zoom, 600))
        if painter.boundingRect(room, flags, words).height() <= room.height():
            break
    painter.setPen(theme.color("wrong"))
    painter.drawText(room, flags, words)


def _draw_small(painter: QPainter, inner: QRectF, card: Card, theme: Theme, zoom: float) -> None:
    face = font(27 * zoom, 700)
    value = QRectF(inner.x(), inner.y() + 19 * zoom, inner.width(), 34 * zoom)
    color = theme.color("muted" if card.value == DASH else "text")
    used = draw_text(painter, value, LEFT, card.value, face, color)
    unit = QRectF(value.x() + used + 7 * zoom, value.y() + 5 * zoom, inner.width(), 30 * zoom)
    unit.setRight(inner.right())
    draw_text(painter, unit, LEFT, card.unit, font(16 * zoom, 500), theme.color("muted"))
    detail = QRectF(inner.x(), inner.bottom() - 38 * zoom, inner.width(), 18 * zoom)
    if card.split:
        _draw_split(painter, detail, card.split, theme, zoom)
    else:
        draw_text(painter, detail, LEFT, card.detail, font(12 * zoom), theme.color("muted"))
    line = QRectF(inner.x(), inner.bottom() - 18 * zoom, inner.width(), 18 * zoom)
    _draw_delta_and_note(painter, line, card, theme, zoom)


def _draw_delta_and_note(
    painter: QPainter, line: QRectF, card: Card, theme: Theme, zoom: float
) -> None:
    """The last line: how it compares at the left, where it comes from at the right."""
    face = font(13.5 * zoom, 600)
    color = {
        Tone.GOOD: "compute",
        Tone.BAD: "warning",
        Tone.NEUTRAL: "muted",
        Tone.WRONG: "wrong",
    }[card.tone]
    draw_text(painter, line, LEFT, card.delta, face, theme.color(color))
    rest = QRectF(line)
    if card.delta:
        rest.setLeft(line.left() + text_width(card.delta, face) + 6 * zoom)
    draw_text(painter, rest, RIGHT, card.note, font(12 * zoom), theme.color("muted"))


def _draw_split(
    painter: QPainter, line: QRectF, split: tuple[str, str], theme: Theme, zoom: float
) -> None:
    """Read and written, in the unit of their sum above, each in its colour."""
    face, rest = font(12.5 * zoom, 600), QRectF(line)
    for words, name in zip(split, ("read", "write"), strict=True):
        used = draw_text(painter, rest, LEFT, words, face, theme.color(name))
        rest.setLeft(rest.left() + used + 12 * zoom)


class CardView(QWidget):
    """One card; hovering tells the whole story, and a screen reader hears the number first."""

    def __init__(self, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.card = Card(key=key, label="", value=DASH)
        self._accent, self._theme, self._zoom = "fused", DARK, 1.0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_card(self, card: Card, accent: str, theme: Theme, zoom: float) -> None:
        """Paint these words."""
        self.card, self._accent, self._theme, self._zoom = card, accent, theme, zoom
        self.setAccessibleName(card.spoken)
        self.setAccessibleDescription(card.sentence)
        self.setToolTip(wrapped(card.sentence))
        self.updateGeometry()
        self.update()

    @override
    def sizeHint(self) -> QSize:
        height = BIG_HEIGHT if self.card.key == "speed-up" else SMALL_HEIGHT
        return QSize(round(140 * self._zoom), round(height * self._zoom))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(round(110 * self._zoom), self.sizeHint().height())

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        draw_card(painter, QRectF(self.rect()), self.card, self._accent, self._theme, self._zoom)


class CardsView(QWidget):
    """Five cards about one run: the speed-up across, the others two in a row.

    Runs come in through :meth:`set_runs`, the chosen device through :meth:`set_device`.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._runs: tuple[Run, ...] = ()
        self._shown = -1
        self._device: Device | None = None
        self._theme, self._zoom = DARK, 1.0
        self._views = tuple(CardView(key, self) for key in CARD_KEYS)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(GAP)
        grid.addWidget(self._views[0], 0, 0, 1, 2)
        for place, view in enumerate(self._views[1:]):
            grid.addWidget(view, 1 + place // 2, place % 2)
        self.setAccessibleName("Results of the run shown")
        self._refresh()

    @property
    def cards(self) -> tuple[Card, ...]:
        """The words on screen, in the order of :data:`CARD_KEYS`."""
        return tuple(view.card for view in self._views)

    def set_device(self, device: Device | None) -> None:
        """The device of the next run: while no run is shown the cards are named after it."""
        if device != self._device:
            self._device = device
            self._refresh()

    def set_runs(self, runs: Sequence[Run], shown: int) -> None:
        """Tell about ``runs[shown]`` against the baseline among ``runs``; -1 for none."""
        self._runs, self._shown = tuple(runs), shown
        self._refresh()

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme."""
        self._theme = theme
        self._refresh()

    def set_zoom_factor(self, zoom: float) -> None:
        """Enlarge fonts and margins, for a talk."""
        self._zoom = zoom
        self._refresh()

    def _refresh(self) -> None:
        run = self._runs[self._shown] if 0 <= self._shown < len(self._runs) else None
        accent = run_color_name(run) if run else "plain"
        for view, card in zip(self._views, cards_of(run, self._runs, self._device), strict=True):
            view.show_card(card, accent, self._theme, self._zoom)
