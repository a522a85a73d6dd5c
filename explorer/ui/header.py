"""The top bar: what the next run measures, on which device, and the button that starts it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget
from typing_extensions import override

from explorer.chains import CHAINS
from explorer.chains.own import is_own
from explorer.model.device import DeviceKind
from explorer.ui.chain_form import ChainForm
from explorer.ui.chain_picker import ChainPicker
from explorer.ui.controls import MenuButton, Picker
from explorer.ui.direction_button import DirectionButton
from explorer.ui.panel import label, restyle, wrapped
from explorer.ui.state import WorkerPhase, next_values, run_blocker
from explorer.ui.store import Store
from explorer.ui.theme_button import ThemeButton
from explorer.ui.words import parameters_sentence, parameters_text, with_direction

RUN_WIDTH_PX = 116
LEAST_CHAIN_PX, WHOLE_CHAIN_PX, MOST_SETTING_PX = 150, 328, 460
LEAST_ROOMY_PX = 1700
"""A bar so wide, or one with nothing to choose, has room for every chain's title."""
LEAST_BRANDED_PX = 1240
"""A narrower bar goes without the program's name."""
WIDEST_WORKER = "● worker starting"
"""So wide it stays, whatever it says: what is beside it must not jump."""
OPEN_OWN = "open-own"
"""Stands in the list of chains for one that is not there yet."""


class Header(QWidget):
    """Brand, chain, direction, parameters, device, worker, and the actions.

    Signals:
        run_requested: Run was clicked.
        cancel_requested: Cancel was clicked.
        open_requested: A recording is to be opened.
        export_requested: The picture is to be written.
        own_requested: Own code is to be opened.
    """

    run_requested = Signal()
    cancel_requested = Signal()
    open_requested = Signal()
    export_requested = Signal()
    own_requested = Signal()

    def __init__(self, store: Store, can_run: bool = True, parent: QWidget | None = None) -> None:
        """Make the bar.

        Args:
            store: What is chosen.
            can_run: There is a worker. Without one the bar names the shown run instead of the
                next one, and has no button to start it.
            parent: Owner.
        """
        super().__init__(parent)
        self._store = store
        self._can_run = can_run
        self.chain = ChainPicker("Operator chain")
        for chain in CHAINS.values():
            self.chain.addItem(chain.title, chain.id)
        if can_run:
            self.chain.insertSeparator(self.chain.count())
            self.chain.addItem("Open your own…", OPEN_OWN)
        self.chain.activated.connect(self._on_chain)
        self.direction = DirectionButton(store)
        self.parameters = MenuButton()
        self.parameters.setStyleSheet("text-align: left; padding-right: 32px;")
        self.parameters.clicked.connect(self.open_form)
        self.form = ChainForm(store, self)
        self.device = Picker("Device of the next run")
        self.device.setMaximumWidth(200)
        self.device.activated.connect(self._on_device)
        self.worker = label("", "worker")
        self.theme = ThemeButton()
        self.theme.clicked.connect(self._on_theme)
        self.open = _button("Open", "Open a recording (Ctrl+O)")
        self.open.clicked.connect(self.open_requested)
        self.export = _button("Export", "Write the window as a picture (Ctrl+E)")
        self.export.clicked.connect(self.export_requested)
        self.run = _button("Run", "")
        self.run.setObjectName("run")
        self.run.clicked.connect(self.run_requested)
        self.cancel = _button("Cancel", "End the run now (Esc)")
        self.cancel.setObjectName("cancel")
        self.cancel.clicked.connect(self.cancel_requested)
        self._brand = label("Kernel Explorer", "brand")
        self._lay_out()
        for signal in (
            store.chain_changed,
            store.parameters_changed,
            store.strategies_changed,
            store.device_changed,
            store.worker_changed,
            store.abilities_changed,
            store.theme_changed,
            store.shown_changed,
        ):
            signal.connect(self._refresh)
        store.abilities_changed.connect(self._list_devices)
        store.theme_changed.connect(self.chain.set_theme)
        self.chain.set_theme(store.theme)
        self._list_devices()
        self._refresh()

    def open_form(self) -> None:
        """Open the parameter form below its button."""
        self.form.open_below(self.parameters)

    def _lay_out(self) -> None:
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self._brand)
        row.addSpacing(10)
        self.chain.setMinimumWidth(LEAST_CHAIN_PX)
        for choice in (self.direction, self.parameters, self.device):
            choice.setMinimumWidth(110)
        # The setting gives way first, so that nothing beside it moves with its length.
        policy = QSizePolicy.Policy
        for choice, width in ((self.chain, policy.Maximum), (self.device, policy.Maximum)):
            choice.setSizePolicy(width, policy.Fixed)
        self.parameters.setSizePolicy(policy.Ignored, policy.Fixed)
        self.parameters.setMaximumWidth(MOST_SETTING_PX)
        self.worker.ensurePolished()
        widest = self.worker.fontMetrics().horizontalAdvance(WIDEST_WORKER)
        self.worker.setMinimumWidth(widest + 4)
        row.addWidget(self.chain)
        row.addWidget(self.direction)
        row.addWidget(self.parameters, 1000)
        row.addWidget(self.device)
        row.addWidget(self.worker)
        row.addStretch(1)
        for action in (self.theme, self.open, self.export, self.run, self.cancel):
            row.addWidget(action)
        # One width for "Run", "Run on GPU" and "Cancel": what is beside it must not jump.
        for button in (self.run, self.cancel):
            button.setMinimumWidth(RUN_WIDTH_PX)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        # The title bar says it too, and what is to be chosen wants the room.
        width = event.size().width()
        self._brand.setVisible(width >= LEAST_BRANDED_PX)
        is_roomy = width >= LEAST_ROOMY_PX or not self._can_run
        self.chain.setMinimumWidth(WHOLE_CHAIN_PX if is_roomy else LEAST_CHAIN_PX)
        super().resizeEvent(event)

    def _list_devices(self) -> None:
        abilities = self._store.state.abilities
        self.device.clear()
        for ability in abilities.devices if abilities else ():
            self.device.addItem(ability.device.name, ability.device.id)
        if abilities is None:
            self.device.addItem("this machine")
        self.device.setEnabled(abilities is not None or not self._can_run)

    def _refresh(self) -> None:
        state = self._store.state
        if not self._can_run:
            self._show_shown()
            return
        self._list_own(state.chain, state.chain_descriptor.title)
        self.chain.setCurrentIndex(self.chain.findData(state.chain))
        summary = parameters_text(next_values(state)) or "no parameters"
        n_errors = len(state.parameters.errors)
        self.parameters.setText(f"{n_errors} to correct" if n_errors else summary)
        at_length = parameters_sentence(next_values(state)) or "none"
        self.parameters.setAccessibleName(f"Parameters of the next run: {at_length}")
        self.parameters.setToolTip(wrapped(f"Parameters of the next run (Ctrl+P): {at_length}"))
        restyle(self.parameters, "invalid", n_errors > 0)
        device = state.chosen_device
        if device is not None:
            self.device.setCurrentIndex(self.device.findData(device.id))
        self.worker.setText(f"● {state.worker.sentence}")
        self._set_phase(state.worker.phase)
        is_busy = state.worker.phase is WorkerPhase.BUSY
        blocker = run_blocker(state)
        kind = "GPU" if device and device.kind is DeviceKind.CUDA else "CPU" if device else ""
        self.run.setText(f"Run on {kind}" if kind else "Run")
        # While a run is in progress it is hidden, and a disabled button would lose the keyboard.
        self.run.setEnabled(blocker is None or is_busy)
        self._swap(is_busy)
        self.run.setToolTip(blocker or "Measure the strategies that are ticked (Ctrl+R)")
        self.run.setAccessibleDescription(self.run.toolTip())
        self._name_theme()

    def _swap(self, is_busy: bool) -> None:
        """Show Cancel in the place of Run or back, and leave the keyboard where it is."""
        comes, goes = (self.cancel, self.run) if is_busy else (self.run, self.cancel)
        comes.setVisible(True)
        if goes.hasFocus():
            comes.setFocus(Qt.FocusReason.OtherFocusReason)
        goes.setVisible(False)

    def _name_theme(self) -> None:
        other = "light" if self._store.state.theme == "dark" else "dark"
        self.theme.show_other(other)

    def _show_shown(self) -> None:
        """Name chain, parameters and device of the shown run; there is nothing to choose."""
        shown = self._store.state.shown_run
        self._name_theme()
        for part in (self.worker, self.run, self.cancel, self.direction):
            part.setVisible(False)
        for choice in (self.chain, self.parameters, self.device):
            choice.setVisible(shown is not None)
        if shown is None:
            return
        run = shown.run
        self.chain.setItemText(0, run.chain.title)
        self.chain.setCurrentIndex(0)
        setting = parameters_text(run.chain.parameters) or "no parameters"
        self.parameters.setText(with_direction(setting, run.chain.direction))
        self.device.setItemText(0, run.device.name)

    def _set_phase(self, phase: WorkerPhase) -> None:
        shown = WorkerPhase.READY if phase is WorkerPhase.BUSY else phase
        restyle(self.worker, "phase", shown.value)

    def _list_own(self, chain: str, title: str) -> None:
        """Put the own code that is chosen before the way to open some; it stands there alone."""
        if self.chain.findData(chain) >= 0 or not is_own(chain):
            return
        end = self.chain.findData(OPEN_OWN)
        if is_own(str(self.chain.itemData(end - 1))):
            self.chain.removeItem(end - 1)
            end -= 1
        self.chain.insertItem(end, title, chain)
        self.chain.setItemData(end, chain, Qt.ItemDataRole.ToolTipRole)

    def _on_chain(self, index: int) -> None:
        chain = str(self.chain.itemData(index))
        if chain == OPEN_OWN or (is_own(chain) and chain != self._store.state.chain):
            self._refresh()
            self.own_requested.emit()
        elif not is_own(chain):
            self._store.choose_chain(chain)

    def _on_device(self, index: int) -> None:
        device_id = self.device.itemData(index)
        if device_id is not None:
            self._store.choose_device(device_id)

    def _on_theme(self) -> None:
        self._store.set_theme("light" if self._store.state.theme == "dark" else "dark")


def _button(text: str, tip: str) -> QPushButton:
    made = QPushButton(text)
    made.setToolTip(tip)
    made.setAccessibleName(text)
    return made
