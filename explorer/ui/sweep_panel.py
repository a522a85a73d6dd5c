"""The sweeps in the window: of plans or of a parameter, fed from the store while they are seen."""

from itertools import pairwise

from PySide6.QtCore import Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QStackedLayout, QWidget
from typing_extensions import override

from explorer.model.run import Run
from explorer.ui.param_sweep_panel import ParamSweepPanel
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
from explorer.ui.sweep_switch import SweepKind, SweepSwitch
from explorer.ui.sweep_view import SweepView
from explorer.ui.turns import Turns


class SweepPanel(QWidget):
    """Shows the plans that did the shown run's work, or a parameter's values; a pick shows a run.

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
        self.switches = tuple(SweepSwitch() for _ in range(3))
        self.view.set_switches(*self.switches[:2])
        self.parameter = ParamSweepPanel(store, self.switches[2])
        self.parameter.run_picked.connect(self._on_run_picked)
        for switch in self.switches:
            switch.kind_picked.connect(lambda kind: self.show_kind(SweepKind(kind)))
        self._kind: SweepKind | None = None
        self._pages = QStackedLayout(self)
        self._pages.setContentsMargins(0, 0, 0, 0)
        self._pages.addWidget(self.view)
        self._pages.addWidget(self.parameter)
        for signal in (
            store.runs_changed,
            store.shown_changed,
            store.plan_changed,
            store.captured_changed,
            store.parameters_changed,
            store.abilities_changed,
            store.worker_changed,
            store.swept_changed,
            store.chain_changed,
            store.strategies_changed,
        ):
            signal.connect(self._refresh_soon)
        for view in (self.view, self.parameter.view):
            store.theme_changed.connect(view.set_theme)
            view.set_theme(store.theme)

    @property
    def hint(self) -> str:
        """How many plans, and how their numbers were taken; or what parameter was swept."""
        is_parameter = self.kind is SweepKind.PARAMETER
        return self.parameter.view.hint if is_parameter else self.view.hint

    @property
    def kind(self) -> SweepKind:
        """What is looked at: what was picked, else what the shown run is a point of.

        A chain with more plans than a sweep takes has its parameters alone.
        """
        if self._kind is not None:
            return self._kind
        state = self._store.state
        shown = state.shown_run
        is_point = shown is not None and shown.run.swept is not None
        has_too_many = state.captured is not None and swept_count(state) is None
        if is_point or (has_too_many and shown_sweep(state) is None):
            return SweepKind.PARAMETER
        return SweepKind.PLANS

    def show_kind(self, kind: SweepKind) -> None:
        """Look at plans, or at a parameter."""
        self._kind = kind
        self.refresh()

    def refresh(self) -> None:
        """Show what the store holds now."""
        kind = self.kind
        for switch in self.switches:
            switch.show_kind(kind)
        if kind is SweepKind.PARAMETER:
            self._pages.setCurrentWidget(self.parameter)
            self.parameter.refresh()
            if self.isVisible():
                self.parameter.view.fill_now()
                self._order_tabs()
        else:
            self._pages.setCurrentWidget(self.view)
            self._show_plans()
        self.hint_changed.emit()

    def _show_plans(self) -> None:
        state = self._store.state
        shown = state.shown_run
        missing = missing_plans(state)
        self.view.set_start(_sentence(state), _why_not(state), len(missing), _elsewhere(state))
        current = plan_drawn(state) if state.planning else None
        self.view.set_sweep(shown_sweep(state), shown.run if shown else None, current)
        if self.isVisible():
            self.view.fill_now()
            self._order_tabs()

    def _order_tabs(self) -> None:
        """Plots are made when first seen: Tab comes to them behind what stands above them."""
        parameter = self.parameter
        before = (parameter.parameter, parameter.values, parameter.run)
        cells = [part for cell in parameter.view.cells for part in (cell.picker, cell.plot)]
        for widgets in (
            (*self.switches[0].buttons.values(), self.view.plot, self.view.list),
            (*self.switches[2].buttons.values(), *before, *cells),
        ):
            made = [widget for widget in widgets if widget is not None]
            for first, second in pairwise(made):
                self.setTabOrder(first, second)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
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
        "A plan sweep runs every plan of a chain, each way of drawing the boundaries between its "
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
