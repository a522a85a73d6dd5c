"""The dialog in which own code is named, and running it is agreed to."""

from collections.abc import Callable, Sequence
from itertools import pairwise

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QFileDialog,
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

from explorer.model.own_code import OwnCode
from explorer.ui.controls import Picker, Toggle
from explorer.ui.line_breaks import breakable, unbroken
from explorer.ui.own_form import (
    INIT_EXAMPLE,
    INPUT_EXAMPLE,
    Checked,
    Field,
    OwnFields,
    check_fields,
)
from explorer.ui.panel import label, restyle
from explorer.ui.theme import Theme

WIDTH_PX = 660
NAME_PX = 150
_NAMES = {
    Field.WHERE: "File or module",
    Field.WHAT: "Function or class",
    Field.INPUTS: "Inputs",
    Field.INIT: "Constructor",
}
_PLACEHOLDERS = {
    Field.WHERE: "path/to/file.py or package.module",
    Field.WHAT: "name",
    Field.INPUTS: INPUT_EXAMPLE,
    Field.INIT: INIT_EXAMPLE,
}


class OwnDialog(QDialog):
    """A form for own code; accepted it holds what is to be opened, and that it may be run."""

    def __init__(
        self,
        theme: Theme,
        recent: Sequence[tuple[str, OwnCode]],
        is_allowed: Callable[[str], bool],
        parent: QWidget | None = None,
    ) -> None:
        """Make the dialog, empty.

        Args:
            theme: Its colours.
            recent: What was opened last, newest first.
            is_allowed: Whether the user agreed before that a file or module is run.
            parent: The window.
        """
        super().__init__(parent)
        self.setObjectName("own")
        self.setWindowTitle("Open your own code")
        self.setAccessibleName("Open your own code")
        self.setFixedWidth(WIDTH_PX)
        self._height = 0
        self._is_allowed = is_allowed
        self._recent = tuple(recent)
        self._edits = {name: self._make_edit(name) for name in Field}
        self._messages = {name: self._make_message() for name in Field}
        self.browse = QPushButton("Browse…")
        self.browse.setAccessibleName("Browse for a Python file")
        self.browse.setAutoDefault(False)
        self.browse.clicked.connect(self._on_browse)
        self.recent = Picker("Opened before")
        self.recent.addItem("Opened before…")
        self.recent.addItems([chain for chain, _ in self._recent])
        # Two files of one name differ in the middle of their paths, and end in what is opened.
        self.recent.view().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.recent.activated.connect(self._on_recent)
        self.training = Toggle("Training mode")
        self.training.set_colors(theme)
        self._face = QFrame()
        self._consent = label("", "calloutText")
        self._consent.setWordWrap(True)
        self._consent.setAccessibleName("What is run")
        self.cancel = QPushButton("Cancel")
        self.cancel.setAutoDefault(False)
        self.cancel.clicked.connect(self.reject)
        self.agree = QPushButton()
        self.agree.setObjectName("run")
        self.agree.setDefault(True)
        self.agree.clicked.connect(self.accept)
        self._lay_out()
        self._refresh()

    def _make_edit(self, name: Field) -> QLineEdit:
        edit = QLineEdit()
        edit.setAccessibleName(_NAMES[name])
        edit.setPlaceholderText(_PLACEHOLDERS[name])
        edit.textChanged.connect(self._refresh)
        return edit

    def _make_message(self) -> QLabel:
        message = label("", "sentence")
        message.setWordWrap(True)
        return message

    def _lay_out(self) -> None:
        whole = QVBoxLayout(self)
        whole.setContentsMargins(22, 18, 22, 18)
        whole.setSpacing(12)
        head = QHBoxLayout()
        head.addWidget(label("Open your own code", "panelTitle"))
        head.addStretch(1)
        head.addWidget(self.recent)
        self.recent.setMaximumWidth(WIDTH_PX // 2)
        self.recent.setVisible(bool(self._recent))
        whole.addLayout(head)
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(3)
        grid.setColumnMinimumWidth(0, NAME_PX)
        grid.setColumnStretch(1, 1)
        for row, name in enumerate(Field):
            self._add_row(grid, 3 * row, name)
        whole.addLayout(grid)
        mode = QHBoxLayout()
        mode.addSpacing(NAME_PX + 12)
        mode.addWidget(self.training)
        mode.addWidget(label("Training mode: dropout drops, batch norms learn", "muted"))
        mode.addStretch(1)
        whole.addLayout(mode)
        whole.addStretch(1)
        face = self._face
        face.setObjectName("message")
        inside = QVBoxLayout(face)
        inside.setContentsMargins(14, 10, 14, 10)
        inside.addWidget(self._consent)
        whole.addWidget(face)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.cancel)
        buttons.addWidget(self.agree)
        whole.addLayout(buttons)
        where, *others = (self._edits[name] for name in Field)
        order: list[QWidget] = [
            where,
            self.browse,
            *others,
            self.training,
            self.agree,
            self.cancel,
            self.recent,
        ]
        for first, second in pairwise(order):
            self.setTabOrder(first, second)
        where.setFocus()

    def _add_row(self, grid: QGridLayout, row: int, name: Field) -> None:
        title = label(_NAMES[name], "fieldName")
        title.setBuddy(self._edits[name])
        grid.addWidget(title, row, 0)
        has_button = name is Field.WHERE
        grid.addWidget(self._edits[name], row, 1, 1, 1 if has_button else 2)
        if has_button:
            grid.addWidget(self.browse, row, 2)
        grid.addWidget(self._messages[name], row + 1, 1, 1, 2)
        grid.setRowMinimumHeight(row + 2, 6)

    def _grow(self) -> None:
        """As high as its sentences want, and never lower than it was: what is typed stays put."""
        layout = self.layout()
        if layout is not None:
            # What is said inside has changed its height, which the frame round it tells too late.
            self._face.updateGeometry()
            layout.activate()
            wanted = layout.totalHeightForWidth(WIDTH_PX)
            self.resize(WIDTH_PX, max(wanted, self._height))
            self._height = self.height()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        # Only now every sentence has the style sheet's font.
        super().showEvent(event)
        self._height = 0
        self._grow()

    def edit(self, name: Field) -> QLineEdit:
        """The field."""
        return self._edits[name]

    def message(self, name: Field) -> str:
        """What is said below a field."""
        return unbroken(self._messages[name].text())

    @property
    def consent(self) -> str:
        """What is said about running the code."""
        return unbroken(self._consent.text())

    @property
    def fields(self) -> OwnFields:
        """The form as filled in."""
        return OwnFields(
            **{name.value: edit.text() for name, edit in self._edits.items()},
            training=self.training.isChecked(),
        )

    def fill(self, fields: OwnFields) -> None:
        """Fill the form in."""
        for name, edit in self._edits.items():
            edit.setText(getattr(fields, name.value))
        self.training.setChecked(fields.training)

    @override
    def accept(self) -> None:
        """Close with what is filled in; with what cannot be opened go to what is wrong instead."""
        checked = check_fields(self.fields)
        if checked.is_ready:
            super().accept()
            return
        wrong = next(name for name in Field if name in checked.errors or name in checked.missing)
        self._edits[wrong].setFocus()

    def _refresh(self) -> None:
        fields = self.fields
        checked = check_fields(fields)
        for name in Field:
            error = checked.errors.get(name, "")
            message = self._messages[name]
            message.setText(breakable(error or checked.hints.get(name, "")))
            restyle(message, "objectName", "fieldError" if error else "sentence")
            restyle(self._edits[name], "invalid", bool(error))
            self._edits[name].setAccessibleDescription(self.message(name))
        self._offer_name(checked)
        is_allowed = self._is_allowed(fields.path)
        consent = _consent_words(fields, is_allowed)
        self._consent.setText(breakable(consent))
        self.agree.setText("Open" if is_allowed else "Run it and open")
        self.agree.setEnabled(checked.is_ready)
        self.agree.setAccessibleDescription(consent)
        self._grow()

    def _offer_name(self, checked: Checked) -> None:
        """The one name that a file defines need not be typed."""
        what = self._edits[Field.WHAT]
        what.setPlaceholderText(checked.only_name or _PLACEHOLDERS[Field.WHAT])
        if checked.only_name and not what.text() and not what.hasFocus():
            what.setText(checked.only_name)

    def _on_browse(self) -> None:
        name, _ = QFileDialog.getOpenFileName(
            self, "Open a Python file", self.fields.path, "Python files (*.py)"
        )
        if name:
            self._edits[Field.WHAT].clear()
            self._edits[Field.WHERE].setText(name)

    def _on_recent(self, index: int) -> None:
        if index > 0:
            self.fill(OwnFields.of(*self._recent[index - 1]))
        self.recent.setCurrentIndex(0)


def _consent_words(fields: OwnFields, is_allowed: bool) -> str:
    where = fields.path
    if not where:
        return "The code is run on this machine, in the worker: open what you trust."
    if is_allowed:
        return f"{where} is run on this machine, in the worker; you agreed to that before."
    return (
        f"{where} will be run on this machine, in the worker, with everything that you may do "
        "yourself; open it only if you trust it. You are asked once while the window is open."
    )
