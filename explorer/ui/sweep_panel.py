"""The sweep in the window: the view fed from the store, while it is seen."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget
from typing_extensions import override

from explorer.model.run import Run
from explorer.ui.plan_state import plan_drawn
from explorer.ui.state import State, WorkerPhase
from explorer.ui.store import Store
from explorer.ui.sweep_state import (
    is_in_setting,
    missing_plans,
    shown_sweep,
    sweep_blocker,
    swept_count,
)
from explorer.ui.sweep_view import SweepView
from explorer.ui.turns import Turns


class SweepPanel(QWidget):
    """Shows the plans that did the shown run's work; a pick in it shows that run.

    Signals:
        hint_changed: What the panel's heading should say is another.
    """

    hint_changed = Signal()

    def __init__(
        self, store: Store, turns: Turns | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._store = store
        self._turns = turns or Turns(self)
        self.view = SweepView()
        self.view.run_picked.connect(self._on_run_picked)
        self.view.sweep_requested.connect(store.sweep_requested)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(self.view)
        for signal in (
            store.runs_changed,
            store.shown_changed,
            store.plan_changed,
            store.captured_changed,
            store.parameters_changed,
            store.abilities_changed,
            store.worker_changed,
        ):
            signal.connect(self._refresh_soon)
        store.theme_changed.connect(self.view.set_theme)
        self.view.set_theme(store.theme)

    @property
    def hint(self) -> str:
        """How many plans, and how their numbers were taken."""
        return self.view.hint

    def refresh(self) -> None:
        """Show what the store holds now."""
        state = self._store.state
        shown = state.shown_run
        missing = missing_plans(state)
        self.view.set_start(_sentence(state), _why_not(state), len(missing), _elsewhere(state))
        current = plan_drawn(state) if state.planning else None
        self.view.set_sweep(shown_sweep(state), shown.run if shown else None, current)
        self.hint_changed.emit()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.view.fill_now()
        self.refresh()

    def _refresh_soon(self) -> None:
        """Once for all that changes in this turn of the event loop, and only where it is seen."""
        if self.isVisible():
            self._turns.soon(self, self.refresh)

    def _on_run_picked(self, run: Run) -> None:
        item = next((item for item in self._store.state.runs if item.run is run), None)
        if item is not None:
            self._store.show_run(item.key)


def _sentence(state: State) -> str:
    """What a sweep is, and how large the chosen chain's would be."""
    about = (
        "A sweep runs every plan of a chain, each way of drawing the boundaries between its "
        "kernels, and sets their times against their traffic."
    )
    count = swept_count(state)
    if count is None:
        return about
    links = count.bit_length() - 1
    return (
        f"{about}\n{state.chain_descriptor.title}: {count} plans, "
        f"{links} link{'s' if links > 1 else ''}, each fused or through memory."
    )


def _elsewhere(state: State) -> str:
    """What a sweep would be of, where that is not the shown run's work; empty where it is."""
    shown, device = state.shown_run, state.chosen_device
    if shown is None or device is None or is_in_setting(state, shown.run):
        return ""
    if shown.run.chain.name != state.chain:
        return f"of {state.chain}"
    if (shown.run.device.id, shown.run.device.name) != (device.id, device.name):
        return f"on {device.name}"
    return "of the chosen size"


def _why_not(state: State) -> str:
    if state.worker.phase is WorkerPhase.OFF:
        return "No worker is running: this window only shows what was measured."
    return sweep_blocker(state) or ""
