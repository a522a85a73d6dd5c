"""Fields of the parameter form: choices that a device may lack, and a length as a slider."""

from collections.abc import Mapping

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QKeyEvent, QStandardItemModel
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSlider, QWidget
from typing_extensions import override

from explorer.chains.descriptor import Chain, Parameter
from explorer.model.param_sweep_words import value_text
from explorer.ui.controls import Picker
from explorer.ui.panel import wrapped

MOST_STEPS = 64
"""A number with more values than this is typed, not dragged."""
_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}


class ChoicePicker(Picker):
    """A list in which what cannot be picked is grey and says why.

    The keyboard passes such a choice over, and its reason is told.

    Signals:
        refused: Why the choice that the keyboard came to cannot be picked.
    """

    refused = Signal(str)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent=parent)
        self._reasons: dict[str, str] = {}

    def set_reasons(self, reasons: Mapping[str, str]) -> None:
        """Say which choices cannot be picked, and why."""
        if dict(reasons) == self._reasons:
            return
        self._reasons = dict(reasons)
        model = self.model()
        for place in range(self.count()):
            reason = self._reasons.get(self.itemText(place), "")
            if isinstance(model, QStandardItemModel):
                model.item(place).setEnabled(not reason)
            self.setItemData(place, wrapped(reason), Qt.ItemDataRole.ToolTipRole)
            self.setItemData(place, reason, Qt.ItemDataRole.AccessibleDescriptionRole)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        before = self.currentIndex()
        super().keyPressEvent(event)
        step = _STEPS.get(Qt.Key(event.key()), 0)
        beside = self.itemText(before + step)
        if step and self.currentIndex() != before + step and beside in self._reasons:
            self.refused.emit(self._reasons[beside])
        letter = event.text().lower()
        if letter and self.currentIndex() == before:
            meant = (name for name in self._reasons if name.startswith(letter))
            reason = self._reasons.get(next(meant, ""))
            if reason:
                self.refused.emit(reason)


class LengthRow(QWidget):
    """A slider for the number that says how long a chain is, and a button that sweeps it.

    Signals:
        value_picked: The slider was moved, by mouse or keys.
        sweep_requested: All lengths are to be run.
    """

    value_picked = Signal(int)
    sweep_requested = Signal()

    def __init__(self, parameter: Parameter, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(int(parameter.minimum), int(parameter.maximum))
        self.slider.setPageStep(4)
        self.slider.setAccessibleName(f"{parameter.name} as a slider")
        self.slider.setToolTip(wrapped(f"{parameter.sentence} {parameter.range_text}."))
        self.slider.valueChanged.connect(self.value_picked)
        self.sweep = QPushButton(f"Sweep {parameter.name}")
        self.sweep.setObjectName("small")
        self.sweep.setToolTip(wrapped(f"Run the ticked strategies at {parameter.range_text}"))
        self.sweep.setAccessibleName(self.sweep.text())
        self.sweep.clicked.connect(self.sweep_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self.slider, 1)
        row.addWidget(self.sweep)

    def show_value(self, value: object) -> None:
        """Move the slider, without asking for anything."""
        if isinstance(value, int):
            with QSignalBlocker(self.slider):
                self.slider.setValue(value)


def can_be_dragged(chain: Chain, parameter: Parameter) -> bool:
    """Whether a parameter is a slider: the number that says how long the chain is."""
    few = parameter.maximum - parameter.minimum <= MOST_STEPS
    return parameter.name == chain.length_parameter and few


def all_of_them(chain: Chain) -> str:
    """What stands for running every variant of a chain that is there to compare them."""
    return " | ".join(map(value_text, chain.compared_values))


def compared_sentence(chain: Chain, *, is_set: bool) -> str:
    """That the variants of a chain are run side by side, or that one of them is picked alone."""
    values = " and ".join(map(value_text, chain.compared_values))
    if is_set:
        return f"This value alone; empty, {values} run side by side."
    return f"{values} run side by side: picking one runs it alone."
