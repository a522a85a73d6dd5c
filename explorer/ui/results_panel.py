"""The right column: cards of the shown run, and the roofline of all runs beside it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from explorer.ui.cards import CardsView
from explorer.ui.panel import Panel
from explorer.ui.roofline_view import RooflineView
from explorer.ui.state import WorkerPhase, drawn, place_of
from explorer.ui.store import Store
from explorer.ui.theme import Theme
from explorer.ui.turns import Turns


class ResultsPanel(QWidget):
    """Fed from the store.

    Signals:
        measure_requested: The device's ceilings are to be measured.
    """

    measure_requested = Signal()

    def __init__(
        self, store: Store, turns: Turns | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._turns = turns or Turns(self)
        self.cards = CardsView()
        self.roofline = RooflineView()
        self.roofline.measure_requested.connect(self.measure_requested)
        self._panel = Panel("Roofline")
        self._panel.body.setContentsMargins(8, 0, 8, 8)
        self._panel.body.addWidget(self.roofline, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self.cards)
        column.addWidget(self._panel, 1)
        for signal in (store.shown_changed, store.runs_changed):
            signal.connect(self._show_runs)
        for signal in (store.abilities_changed, store.device_changed):
            signal.connect(self._name_cards)
        store.worker_changed.connect(self._allow_measuring)
        store.theme_changed.connect(self._set_theme)
        self._set_theme(store.theme)
        self._allow_measuring()
        self._name_cards()
        self._show_runs()

    def fill(self) -> None:
        """Have the plot made: after the first paint, since its import takes a third of a second."""
        self._plot()
        self.roofline.fill_now()

    def _show_runs(self) -> None:
        state = self._store.state
        items = drawn(state)
        runs, place = [item.run for item in items], place_of(items, state.shown)
        self.cards.set_runs(runs, place)
        # A plot takes tens of milliseconds: once for all that changes in this turn of the event
        # loop, and in a later one, so that the rest of the window need not wait for it.
        self._turns.soon(self, self._plot)

    def _plot(self) -> None:
        items = drawn(self._store.state)
        place = place_of(items, self._store.state.shown)
        self.roofline.set_runs([item.run for item in items], place)
        self._panel.set_hint(self.roofline.hint)

    def _name_cards(self) -> None:
        self.cards.set_device(self._store.state.chosen_device)

    def _allow_measuring(self) -> None:
        state = self._store.state
        is_free = state.worker.phase in (WorkerPhase.READY, WorkerPhase.STARTING)
        self.roofline.set_can_measure(is_free, f"Not now: {state.worker.sentence}.")

    def _set_theme(self, theme: Theme) -> None:
        self.cards.set_theme(theme)
        self.roofline.set_theme(theme)
