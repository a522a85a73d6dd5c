"""The parameters of the next run: a field each, with what is wrong beside it."""

from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from explorer.chains.descriptor import Parameter
from explorer.chains.own import is_own, read_name
from explorer.model.units import format_bytes
from explorer.ui.controls import Picker
from explorer.ui.form_fields import (
    ChoicePicker,
    LengthRow,
    all_of_them,
    can_be_dragged,
    compared_sentence,
)
from explorer.ui.line_breaks import breakable
from explorer.ui.panel import label, restyle
from explorer.ui.state import State, dtype_reason
from explorer.ui.store import Store

FORM_WIDTH_PX, FIELD_PX = 600, 184


class ChainForm(QFrame):
    """A form below the parameter button. Every change goes to the store, valid or not.

    An empty field stands for the device's default, which it shows in grey.
    """

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("popup")
        self.setAccessibleName("Parameters of the next run")
        self.setFixedWidth(FORM_WIDTH_PX)
        self._store = store
        self._edits: dict[str, QLineEdit] = {}
        self._pickers: dict[str, ChoicePicker] = {}
        self._messages: dict[str, QLabel] = {}
        self._lengths: dict[str, LengthRow] = {}
        self._refused: dict[str, str] = {}
        self._formula = label("", "fieldName")
        self._formula.setWordWrap(True)
        self._look_at = label("", "sentence")
        self._look_at.setWordWrap(True)
        self._estimate = label("", "sentence")
        self._estimate.setWordWrap(True)
        self._reset = QPushButton("Defaults")
        self._reset.setAccessibleName("Back to the device's defaults")
        self._reset.clicked.connect(store.reset_parameters)
        self._done = QPushButton("Done")
        self._done.clicked.connect(self.hide)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(18, 14, 18, 14)
        whole.setSpacing(10)
        about = QVBoxLayout()
        about.setSpacing(3)
        about.addWidget(self._formula)
        about.addWidget(self._look_at)
        whole.addLayout(about)
        self._holder = QWidget()
        whole.addWidget(self._holder)
        whole.addWidget(self._estimate)
        buttons = QHBoxLayout()
        buttons.addWidget(self._reset)
        buttons.addStretch(1)
        buttons.addWidget(self._done)
        whole.addLayout(buttons)
        store.chain_changed.connect(self._rebuild)
        store.parameters_changed.connect(self._refresh)
        store.captured_changed.connect(self._refresh)
        store.abilities_changed.connect(self._refresh)
        self._rebuild()

    def field(self, name: str) -> QLineEdit | Picker:
        """The field of a parameter.

        Raises:
            KeyError: The chain has no such parameter.
        """
        return self._edits[name] if name in self._edits else self._pickers[name]

    @property
    def about(self) -> tuple[QLabel, QLabel]:
        """What the chain is, and what there is to look at, or where own code comes from."""
        return self._formula, self._look_at

    def message(self, name: str) -> str:
        """What the form says beside a field."""
        return self._messages[name].text()

    def _rebuild(self) -> None:
        self._edits.clear()
        self._pickers.clear()
        self._messages.clear()
        self._lengths.clear()
        self._refused.clear()
        chain = self._store.state.chain_descriptor
        formula, *look_at = _about(self._store.state)
        self._formula.setText(breakable(formula))
        self._look_at.setText(breakable("\n".join(look_at)))
        holder = QWidget()
        grid = QGridLayout(holder)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(7)
        grid.setColumnStretch(2, 1)
        for row, parameter in enumerate(chain.parameters):
            name = label(parameter.name, "fieldName")
            field = self._make_field(parameter)
            field.setFixedWidth(FIELD_PX)
            name.setBuddy(field)
            message = label("", "sentence")
            message.setWordWrap(True)
            self._messages[parameter.name] = message
            grid.addWidget(name, row, 0)
            grid.addWidget(field, row, 1)
            if can_be_dragged(chain, parameter):
                beside = QVBoxLayout()
                beside.setSpacing(3)
                beside.addWidget(self._make_length(parameter))
                beside.addWidget(message)
                grid.addLayout(beside, row, 2)
            else:
                grid.addWidget(message, row, 2)
        layout = self.layout()
        if layout is not None:
            layout.replaceWidget(self._holder, holder)
        self._holder.hide()
        self._holder.deleteLater()
        self._holder = holder
        order: list[QWidget] = []
        for parameter in chain.parameters:
            order.append(self.field(parameter.name))
            if parameter.name in self._lengths:
                length = self._lengths[parameter.name]
                order += [length.slider, length.sweep]
        for first, second in pairwise([*order, self._reset, self._done]):
            self.setTabOrder(first, second)
        self._refresh()

    def open_below(self, widget: QWidget) -> None:
        """Open under a widget, the keyboard at the first field that needs a correction."""
        self.ensurePolished()
        for text in self.about:
            text.ensurePolished()
        self._fit()
        self.move(widget.mapToGlobal(widget.rect().bottomLeft()))
        self.show()
        names = [parameter.name for parameter in self._store.state.chain_descriptor.parameters]
        wrong = (name for name in names if name in self._store.state.parameters.errors)
        first = self.field(next(wrong, names[0])) if names else self._done
        first.setFocus(Qt.FocusReason.TabFocusReason)

    def _make_field(self, parameter: Parameter) -> QLineEdit | Picker:
        name = parameter.name
        if parameter.kind == "choice":
            return self._make_picker(parameter)
        edit = QLineEdit()
        edit.setAccessibleName(name)
        edit.textEdited.connect(lambda text: self._store.set_parameter(name, text))
        self._edits[name] = edit
        return edit

    def _make_picker(self, parameter: Parameter) -> ChoicePicker:
        chain, name = self._store.state.chain_descriptor, parameter.name
        picker = ChoicePicker(name)
        every = all_of_them(chain) if name == chain.compared else ""
        if every:
            picker.addItem(every)
        picker.addItems(list(parameter.choices))

        def pick(text: str) -> None:
            self._refused.pop(name, None)
            self._store.set_parameter(name, "" if text == every else text)
            self._refresh()

        picker.textActivated.connect(pick)
        picker.refused.connect(lambda reason: self._refuse(name, reason))
        self._pickers[name] = picker
        return picker

    def _refuse(self, name: str, reason: str) -> None:
        self._refused[name] = reason
        self._refresh()

    def _make_length(self, parameter: Parameter) -> LengthRow:
        row, name = LengthRow(parameter), parameter.name
        row.value_picked.connect(lambda value: self._store.set_parameter(name, str(value)))
        row.sweep_requested.connect(lambda: self._sweep(name))
        self._lengths[name] = row
        return row

    def _sweep(self, name: str) -> None:
        self.hide()
        self._store.request_param_sweep(name)

    def _refresh(self) -> None:
        state = self._store.state
        chain, parameters = state.chain_descriptor, state.parameters
        for parameter in chain.parameters:
            name = parameter.name
            default = str(parameter.default(state.device_kind))
            error = parameters.errors.get(name) or self._refused.get(name)
            sentence = parameter.sentence
            if name == chain.compared:
                sentence = compared_sentence(chain, is_set=name in parameters.texts)
                default = all_of_them(chain)
            if name in self._lengths:
                self._lengths[name].show_value(parameters.values.get(name))
            if name in self._edits:
                self._show_text(self._edits[name], parameters.texts.get(name, ""), default, error)
            else:
                picker = self._pickers[name]
                picker.setCurrentText(parameters.texts.get(name, default))
                found = ((c, dtype_reason(state, parameter, c)) for c in parameter.choices)
                picker.set_reasons({choice: reason for choice, reason in found if reason})
            message = self._messages[name]
            message.setText(error or sentence)
            restyle(message, "objectName", "fieldError" if error else "sentence")
            hint = "" if parameter.kind == "choice" else f" It takes {parameter.range_text}."
            self.field(name).setAccessibleDescription(error or sentence + hint)
            self.field(name).setToolTip(sentence + hint)
        self._estimate.setText(_estimate_words(state))
        self._fit()

    def _show_text(self, edit: QLineEdit, text: str, default: str, error: str | None) -> None:
        # Setting the same text would move the cursor to the end while someone types.
        if edit.text() != text:
            edit.setText(text)
        edit.setPlaceholderText(default)
        restyle(edit, "invalid", error is not None)

    def _fit(self) -> None:
        """As high as its sentences are; what Qt would take is as high as if they were narrow."""
        layout, inner = self.layout(), self._holder.layout()
        if layout is not None and inner is not None:
            for part in self._holder.findChildren(QWidget):
                # Fields that were just made have no font of the style sheet's yet.
                part.ensurePolished()
                part.updateGeometry()
            self._holder.updateGeometry()
            layout.activate()
            self.resize(FORM_WIDTH_PX, layout.totalHeightForWidth(FORM_WIDTH_PX))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.hide()
        else:
            super().keyPressEvent(event)


def _estimate_words(state: State) -> str:
    """How much memory the next run needs; empty until its op graph is known."""
    captured, device = state.captured, state.chosen_device
    if captured is None:
        return ""
    where = f" on {device.name}" if device is not None else ""
    need = format_bytes(captured.estimate_bytes)
    return f"Needs about {need} over its inputs at its peak{where} (planned)."


def _about(state: State) -> list[str]:
    """What there is to say of a chain: its formula, or where own code comes from."""
    chain = state.chain_descriptor
    if not is_own(state.chain):
        return [chain.formula, chain.look_at]
    own = state.own
    called = own.inputs if own and own.inputs else "with what its example_inputs() gives"
    about = [chain.title, f"from {read_name(state.chain).where}", called]
    if not chain.parameters:
        about.append("Without parameters: a size written rows=1024 in the inputs is one.")
    return about
