"""The parameter sweep in the window: what to run on one line, and below it what came of it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from explorer.model.errors import UsageError
from explorer.model.param_sweep_words import value_text
from explorer.model.run import Run
from explorer.model.sweep_range import FORMS
from explorer.ui.controls import Picker
from explorer.ui.panel import restyle, wrapped
from explorer.ui.param_sweep_state import (
    param_sweep_blocker,
    shown_param_sweep,
    suggested_text,
    swept_parameter,
    swept_text,
    swept_values,
)
from explorer.ui.param_sweep_view import ParamSweepView
from explorer.ui.state import State, WorkerPhase, wanted_strategies
from explorer.ui.status_line import ElidedLabel
from explorer.ui.store import Store

ABOUT = (
    "A parameter sweep runs the ticked strategies at several values of one parameter, and says "
    "from where on fusion pays."
)
LEAST_RANGE_PX, RANGE_PX = 84, 170


class ParamSweepPanel(QWidget):
    """Fed from the store by :meth:`refresh`, which its owner calls while it is seen.

    Signals:
        run_picked: The run of a point that was picked.
    """

    run_picked = Signal(object)

    def __init__(self, store: Store, switch: QWidget, parent: QWidget | None = None) -> None:
        """Make the panel.

        Args:
            store: What is shown and chosen.
            switch: Stands before the controls.
            parent: Owner.
        """
        super().__init__(parent)
        self._store = store
        self._listed: tuple[str, ...] = ()
        self.parameter = Picker("Parameter to sweep")
        self.parameter.textActivated.connect(store.choose_swept)
        self.values = QLineEdit()
        self.values.setMinimumWidth(LEAST_RANGE_PX)
        self.values.setMaximumWidth(RANGE_PX)
        self.values.setAccessibleName("Values to sweep")
        self.values.textEdited.connect(self._on_text)
        self.values.returnPressed.connect(self._on_run)
        self.about = ElidedLabel("panelHint")
        self.run = QPushButton("Run sweep")
        self.run.setObjectName("small")
        self.run.clicked.connect(self._on_run)
        self.view = ParamSweepView()
        self.view.run_picked.connect(self.run_picked)
        row = QHBoxLayout()
        row.setSpacing(10)
        for widget in (switch, self.parameter, self.values):
            row.addWidget(widget)
        row.addWidget(self.about, 1)
        row.addWidget(self.run)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 2, 0, 0)
        column.setSpacing(3)
        column.addLayout(row)
        column.addWidget(self.view, 1)

    def refresh(self) -> None:
        """Show what the store holds now."""
        state = self._store.state
        self._list_parameters(state)
        self._show_values(state)
        self._show_button(state)
        shown = state.shown_run
        self.view.set_sentence(f"{ABOUT}\n{_plan_words(state)}".strip())
        self.view.set_sweep(shown_param_sweep(state), shown.run if shown else None)

    def _list_parameters(self, state: State) -> None:
        names = tuple(each.name for each in state.chain_descriptor.parameters)
        if names != self._listed:
            self._listed = names
            self.parameter.clear()
            self.parameter.addItems(list(names))
        parameter = swept_parameter(state)
        self.parameter.setEnabled(bool(names))
        if parameter is not None:
            self.parameter.setCurrentText(parameter.name)
            self.parameter.setToolTip(wrapped(parameter.sentence))

    def _show_values(self, state: State) -> None:
        parameter = swept_parameter(state)
        self.values.setEnabled(parameter is not None)
        if parameter is None:
            return
        typed = state.swept_texts.get(parameter.name, "")
        # Setting the same text would move the cursor to the end while someone types.
        if self.values.text().strip() != typed:
            self.values.setText(typed)
        self.values.setPlaceholderText(suggested_text(state, parameter))
        forms = "a list, such as a,b" if parameter.kind == "choice" else FORMS
        tip = f"{parameter.name} takes {parameter.range_text}. Write {forms}."
        self.values.setToolTip(wrapped(tip))
        words, is_wrong = _values_words(state)
        self.about.set_whole(words)
        restyle(self.about, "objectName", "fieldError" if is_wrong else "panelHint")
        restyle(self.values, "invalid", is_wrong)
        self.values.setAccessibleDescription(f"{words} {tip}")

    def _show_button(self, state: State) -> None:
        is_busy = state.worker.phase is WorkerPhase.BUSY
        no_worker = state.worker.phase is WorkerPhase.OFF
        blocker = None if is_busy else param_sweep_blocker(state)
        if no_worker:
            blocker = "No worker is running: this window only shows what was measured."
        self.run.setText("Cancel" if is_busy else "Run sweep")
        self.run.setEnabled(blocker is None)
        tip = "End the run now (Esc); what is done stays" if is_busy else blocker
        tip = tip or "Run the ticked strategies at every value"
        self.run.setToolTip(wrapped(tip))
        self.run.setAccessibleName(f"{self.run.text()}: parameter sweep")
        # Else a screen reader would read the tooltip's markup.
        self.run.setAccessibleDescription(tip)

    def _on_text(self, text: str) -> None:
        parameter = swept_parameter(self._store.state)
        if parameter is not None:
            self._store.set_swept_text(parameter.name, text)

    def _on_run(self) -> None:
        state = self._store.state
        if state.worker.phase is WorkerPhase.BUSY:
            self._store.cancel_requested.emit()
            return
        parameter = swept_parameter(state)
        if parameter is not None and self.run.isEnabled():
            self._store.request_param_sweep(parameter.name)

    def pick(self, run: Run) -> None:
        """Show a run of the sweep in the whole window."""
        item = next((item for item in self._store.state.runs if item.run is run), None)
        if item is not None:
            self._store.show_run(item.key)


def _values_words(state: State) -> tuple[str, bool]:
    """How many runs it would be, or what is wrong with the values, and whether that is so."""
    try:
        values = swept_values(state)
    except UsageError as error:
        return str(error), True
    n_strategies = len(wanted_strategies(state))
    many = f"{len(values)} value{'' if len(values) == 1 else 's'}"
    shown = shown_param_sweep(state)
    is_other = shown is not None and shown.first.chain.name != state.chain
    # What is run is the next chain, whatever is drawn below.
    of_what = f" of {state.chain_descriptor.title}" if is_other else ""
    return f"{many} × {n_strategies} strateg{'y' if n_strategies == 1 else 'ies'}{of_what}", False


def _plan_words(state: State) -> str:
    """What would be run, written out."""
    parameter = swept_parameter(state)
    if parameter is None:
        return ""
    try:
        values = ", ".join(map(value_text, swept_values(state)))
    except UsageError as error:
        return str(error)
    return f"{state.chain_descriptor.title}, {parameter.name} {swept_text(state)}: {values}."
