"""The foot of the window: where the numbers come from, and how far a run is."""

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QToolButton, QWidget
from typing_extensions import override

from explorer.model.messages import Progress
from explorer.ui.controls import ProgressBar
from explorer.ui.panel import label, wrapped
from explorer.ui.state import State, WorkerPhase, run_blocker
from explorer.ui.store import Store
from explorer.ui.words import SEPARATOR, source_words


class ElidedLabel(QLabel):
    """A line of text that is cut where it does not fit; the tooltip has all of it.

    Signals:
        cut_changed: Whether some of it is cut off.
    """

    cut_changed = Signal(bool)

    def __init__(self, kind: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(kind)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._whole = ""

    @property
    def whole(self) -> str:
        """The text, uncut."""
        return self._whole

    def set_whole(self, text: str) -> None:
        """Take another text."""
        self._whole = text
        self.setToolTip(wrapped(text))
        self.setAccessibleName(text)
        self._cut()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._cut()

    def _cut(self) -> None:
        metrics = self.fontMetrics()
        shown = metrics.elidedText(self._whole, Qt.TextElideMode.ElideRight, self.width())
        self.setText(shown)
        self.cut_changed.emit(shown != self._whole)


class StatusLine(QWidget):
    """Device, versions and pedigree of what is shown; warnings; progress with percent."""

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._source = ElidedLabel("status")
        self.more_button = _flat_button("more", "All of it in the message bar")
        self.more_button.clicked.connect(self._tell_source)
        keeps_place = self.more_button.sizePolicy()
        keeps_place.setRetainSizeWhenHidden(True)
        self.more_button.setSizePolicy(keeps_place)
        self._source.cut_changed.connect(self.more_button.setVisible)
        self._blocker = label("", "statusWarning")
        self.warnings_button = _flat_button("", "")
        self.warnings_button.clicked.connect(self._tell_warnings)
        self.doctor_button = _flat_button("doctor", "What this machine can measure (F1)")
        self._stage = label("", "status")
        self._bar = ProgressBar("Progress of the run")
        self._bar.setFixedSize(180, 10)
        self._bar.set_theme(store.theme)
        store.theme_changed.connect(self._bar.set_theme)
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 4, 0)
        row.setSpacing(12)
        row.addWidget(self._source, 1)
        row.addWidget(self.more_button)
        row.addWidget(self._blocker)
        row.addWidget(self.warnings_button)
        row.addWidget(self._stage)
        row.addWidget(self._bar)
        row.addWidget(self.doctor_button)
        self.setFixedHeight(30)
        for signal in (
            store.shown_changed,
            store.runs_changed,
            store.abilities_changed,
            store.device_changed,
            store.parameters_changed,
            store.strategies_changed,
            store.worker_changed,
        ):
            signal.connect(self._refresh)
        store.progress_changed.connect(self._show_progress)
        self._refresh()
        self._show_progress()

    @property
    def source(self) -> str:
        """What the line says about the origin of the numbers."""
        return self._source.whole

    @property
    def stage(self) -> str:
        """What it says about the run in progress."""
        return self._stage.text()

    @property
    def blocker(self) -> str:
        """Why Run is off, empty if it is not."""
        return self._blocker.text()

    def _refresh(self) -> None:
        state = self._store.state
        self._source.set_whole(source_sentence(state))
        shown = state.shown_run
        warnings = shown.run.warnings if shown else ()
        n = len(warnings)
        self.warnings_button.setVisible(n > 0)
        self.warnings_button.setText(f"{n} warning{'s' if n != 1 else ''}")
        self.warnings_button.setToolTip(wrapped("\n".join(warnings)))
        self.warnings_button.setAccessibleName(
            f"{n} warnings of the shown run: {' '.join(warnings)}"
        )
        blocker = run_blocker(state)
        is_busy = state.worker.phase is WorkerPhase.BUSY
        self._blocker.setText(f"Run is off: {blocker}" if blocker and not is_busy else "")

    def _show_progress(self) -> None:
        progress = self._store.state.progress
        self._bar.setVisible(progress is not None)
        self._stage.setVisible(progress is not None)
        if progress is None:
            self._stage.setText("")
            return
        self._stage.setText(progress_words(progress))
        self._bar.show_fraction(progress.fraction)

    def _tell_source(self) -> None:
        self._store.tell(self._source.whole, is_error=False)

    def _tell_warnings(self) -> None:
        shown = self._store.state.shown_run
        if shown is not None:
            self._store.tell(" ".join(shown.run.warnings), is_error=False)


def _flat_button(text: str, tip: str) -> QToolButton:
    made = QToolButton()
    made.setObjectName("flat")
    made.setText(text)
    made.setToolTip(tip)
    made.setAccessibleName(f"{text}: {tip}")
    return made


def progress_words(progress: Progress) -> str:
    """``compile · timing: 200 calls · 42 %``."""
    return SEPARATOR.join(filter(None, (progress.strategy, stage_words(progress))))


def stage_words(progress: Progress) -> str:
    """The same without the strategy, which stands beside it: no ``Compiling compile``."""
    sentence = progress.sentence
    if progress.strategy:
        sentence = re.sub(rf" (of )?{re.escape(progress.strategy)}(?= |$)", "", sentence, count=1)
    percent = "" if progress.fraction is None else f"{round(100 * progress.fraction)} %"
    return SEPARATOR.join(filter(None, (sentence, percent)))


def source_sentence(state: State) -> str:
    """Where the shown numbers come from; without any, what the chosen device can tell."""
    shown = state.shown_run
    if shown is not None:
        told = source_words((shown.run,), recorded=shown.is_recorded)
        sentence = shown.run.counters.sentence if shown.run.counters else ""
        return f"{told} · {sentence}" if sentence else told
    ability = state.device_ability
    if ability is None or state.abilities is None:
        return f"No run yet · {state.worker.sentence}"
    device, versions = ability.device, state.abilities.versions
    parts = [device.name]
    if device.driver:
        parts.append(f"driver {device.driver}")
    parts.append(f"torch {versions.torch}")
    if versions.triton:
        parts.append(f"triton {versions.triton}")
    return " · ".join([*parts, ability.counters_sentence])
