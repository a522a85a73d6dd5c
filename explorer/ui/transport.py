"""Play, pause, scrub, step and pace: the clock of the scene and its controls.

The clock only advances a moment; what that moment looks like is the scene's business. Time on the
slider is time of the measured run.
"""

from bisect import bisect_left, bisect_right

from PySide6.QtCore import QElapsedTimer, QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QSlider, QWidget
from typing_extensions import override

from explorer.model.playback import Playback
from explorer.model.units import split_us
from explorer.ui.controls import Picker
from explorer.ui.scene.head import format_slowdown
from explorer.ui.scene.numbers import out_of
from explorer.ui.theme import font
from explorer.ui.transport_button import Sign, TransportButton

TICK_MS = 16
FIT_SECONDS = 10.0
"""A whole run in this time, whatever its length, unless a factor is chosen."""
FACTORS = (500.0, 1_000.0, 2_000.0, 5_000.0, 20_000.0, 80_000.0)
SLIDER_STEPS = 10_000
WIDEST_PACE = "in 10 s · 88,800× slower"
LEAST_PACE_PX, LEAST_SLIDER_PX = 110, 90
_US_PER_UNIT = {"µs": 1.0, "ms": 1e3, "s": 1e6}


class Player(QObject):
    """A clock that runs slower than the measured run by a stated factor.

    Signals:
        time_changed: The moment, in microseconds of the measured run.
        playing_changed: Whether it runs.
    """

    time_changed = Signal(float)
    playing_changed = Signal(bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.loops = False
        self._t_us = 0.0
        self._total_us = 0.0
        self._slowdown = 1.0
        self._elapsed = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._on_timeout)

    @property
    def t_us(self) -> float:
        """The moment."""
        return self._t_us

    @property
    def total_us(self) -> float:
        """Where it ends."""
        return self._total_us

    @property
    def is_playing(self) -> bool:
        """Whether it runs."""
        return self._timer.isActive()

    def set_total(self, total_us: float) -> None:
        """Take another length, stop, and go to the start."""
        self.pause()
        self._total_us = total_us
        self.seek(0.0)

    def set_slowdown(self, factor: float) -> None:
        """Run slower than measured by ``factor``."""
        self._slowdown = factor

    def seek(self, t_us: float) -> None:
        """Go to a moment, within the run."""
        t_us = min(max(t_us, 0.0), self._total_us)
        if t_us != self._t_us:
            self._t_us = t_us
            self.time_changed.emit(t_us)

    def play(self) -> None:
        """Run, from the start if it stands at the end."""
        if self._total_us <= 0 or self.is_playing:
            return
        if self._t_us >= self._total_us:
            self.seek(0.0)
        self._elapsed.start()
        self._timer.start()
        self.playing_changed.emit(True)

    def pause(self) -> None:
        """Stand still."""
        if self.is_playing:
            self._timer.stop()
            self.playing_changed.emit(False)

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` of the viewer's time pass; at the end stop, or begin again."""
        t_us = self._t_us + seconds * 1e6 / self._slowdown
        if t_us < self._total_us:
            self.seek(t_us)
        elif self.loops:
            self.seek(t_us % self._total_us)
        else:
            self.seek(self._total_us)
            self.pause()

    def _on_timeout(self) -> None:
        self.advance(self._elapsed.nsecsElapsed() * 1e-9)
        self._elapsed.start()


class Transport(QWidget):
    """The controls under a scene.

    Signals:
        time_changed: The moment, in microseconds of the measured run.
        playing_changed: Whether it runs by itself.
        slowdown_changed: How much slower than measured it runs; 0.0 without a run.
    """

    time_changed = Signal(float)
    playing_changed = Signal(bool)
    slowdown_changed = Signal(float)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.player = Player(self)
        self._starts: tuple[float, ...] = ()
        self.previous_button = TransportButton(Sign.PREVIOUS, "Previous kernel (Left)")
        self.play_button = TransportButton(Sign.PLAY, "Play (Space)")
        self.next_button = TransportButton(Sign.NEXT, "Next kernel (Right)")
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, SLIDER_STEPS)
        self.slider.setAccessibleName("Moment of the run")
        self.label = QLabel()
        self.label.setObjectName("muted")
        self.label.setFont(font(13, tabular=True))
        # Of one width whatever the run, so that the slider does not jump.
        self.speed: QComboBox = Picker("Slow motion", widest=WIDEST_PACE)
        self.speed.setMinimumWidth(LEAST_PACE_PX)
        self.slider.setMinimumWidth(LEAST_SLIDER_PX)
        self._lay_out()
        self._connect()
        self.set_playback(None)

    @property
    def slowdown(self) -> float:
        """How much slower than measured the run is shown; 0.0 without a run."""
        chosen = self.speed.currentData()
        if chosen is not None:
            return float(chosen)
        return FIT_SECONDS * 1e6 / self.player.total_us if self.player.total_us else 0.0

    def set_playback(self, playback: Playback | None) -> None:
        """Drive other runs, from their start; None or runs without launches drive nothing."""
        total_us = playback.total_us if playback else 0.0
        lanes = playback.lanes if playback else ()
        starts = {slot.start_us for lane in lanes for slot in lane.slots}
        self._starts = tuple(sorted(starts))
        self.player.set_total(total_us)
        for part in (self.previous_button, self.play_button, self.next_button, self.slider,
                     self.speed):  # fmt: skip
            part.setEnabled(total_us > 0)
        self._fill_speeds(total_us)
        self._show_time(self.player.t_us)
        self._on_speed_changed()

    def seek(self, t_us: float) -> None:
        """Go to a moment of the run; playing goes on from there."""
        self.player.seek(t_us)

    def toggle(self) -> None:
        """Play or pause."""
        if self.player.is_playing:
            self.player.pause()
        else:
            self.player.play()

    def step(self, direction: int) -> None:
        """Go to the start of the next kernel (1), or back to the one before (-1).

        Back goes to the start of the kernel under way first, if it is well under way.
        """
        self.player.pause()
        t_us = self.player.t_us
        # A rounded start must not count as the next one.
        hair = 1e-9 * max(self.player.total_us, 1.0)
        if direction > 0:
            place = bisect_right(self._starts, t_us + hair)
            last = self.player.total_us
            self.seek(self._starts[place] if place < len(self._starts) else last)
        else:
            place = bisect_left(self._starts, t_us - hair) - 1
            self.seek(self._starts[place] if place >= 0 else 0.0)

    def listen_to(self, widget: QWidget) -> None:
        """Take Space, Left, Right, Home and End from another widget too."""
        widget.installEventFilter(self)

    def handle_key(self, event: QKeyEvent) -> bool:
        """Act on a key of the transport; returns whether it was one."""
        if event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier:
            return False
        match event.key():
            case Qt.Key.Key_Space:
                self.toggle()
            case Qt.Key.Key_Left:
                self.step(-1)
            case Qt.Key.Key_Right:
                self.step(1)
            case Qt.Key.Key_Home:
                self.seek(0.0)
            case Qt.Key.Key_End:
                self.player.pause()
                self.seek(self.player.total_us)
            case _:
                return False
        return True

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self.handle_key(event)
        return super().eventFilter(watched, event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self.handle_key(event):
            super().keyPressEvent(event)

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 4, 0)
        row.setSpacing(8)
        for button in (self.previous_button, self.play_button, self.next_button):
            row.addWidget(button)
        row.addWidget(self.slider, 1)
        row.addWidget(self.label)
        row.addWidget(self.speed)

    def _connect(self) -> None:
        self.previous_button.clicked.connect(lambda: self.step(-1))
        self.play_button.clicked.connect(self.toggle)
        self.next_button.clicked.connect(lambda: self.step(1))
        # Arrow keys step kernels, also on the slider: a step of a slider means nothing here.
        self.listen_to(self.slider)
        self.slider.valueChanged.connect(self._on_slider_moved)
        self.speed.currentIndexChanged.connect(self._on_speed_changed)
        self.player.time_changed.connect(self._show_time)
        self.player.time_changed.connect(self.time_changed)
        self.player.playing_changed.connect(self._show_playing)
        self.player.playing_changed.connect(self.playing_changed)

    def _fill_speeds(self, total_us: float) -> None:
        """Offer the fitted pace, with the factor that it means for this run, and the fixed ones."""
        before = self.speed.currentData()
        self.speed.blockSignals(True)
        self.speed.clear()
        fit = f"in {FIT_SECONDS:g} s"
        if total_us:
            fit += f" · {format_slowdown(FIT_SECONDS * 1e6 / total_us)} slower"
        self.speed.addItem(fit, None)
        for factor in FACTORS:
            self.speed.addItem(f"{format_slowdown(factor)} slower", factor)
        self.speed.setCurrentIndex(max(0, self.speed.findData(before) if before else 0))
        self.speed.blockSignals(False)

    def _on_speed_changed(self) -> None:
        factor = self.slowdown
        if factor:
            self.player.set_slowdown(factor)
        self.slowdown_changed.emit(factor)

    def _on_slider_moved(self, value: int) -> None:
        self.player.seek(value / SLIDER_STEPS * self.player.total_us)

    def _show_time(self, t_us: float) -> None:
        total_us = self.player.total_us
        self.slider.blockSignals(True)
        self.slider.setValue(round(t_us / total_us * SLIDER_STEPS) if total_us else 0)
        self.slider.blockSignals(False)
        number, unit = split_us(total_us)
        words = out_of(t_us / _US_PER_UNIT[unit], number, unit) if total_us else "no run"
        self.label.setText(words)
        # Of one width whatever the moment, so that the slider does not jump.
        self.label.setMinimumWidth(self._label_width(number, unit))

    def _label_width(self, number: str, unit: str) -> int:
        return self.label.fontMetrics().horizontalAdvance(f"{number} / {number} {unit}") + 6

    def _show_playing(self, playing: bool) -> None:
        if playing:
            self.play_button.set_sign(Sign.PAUSE, "Pause (Space)")
        else:
            self.play_button.set_sign(Sign.PLAY, "Play (Space)")
