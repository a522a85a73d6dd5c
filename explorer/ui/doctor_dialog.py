"""What this machine can measure, what it cannot and the remedy, as a page to read and to copy."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from explorer.model.doctor_words import details, state_word, table_lines
from explorer.model.messages import Check
from explorer.ui.line_breaks import breakable
from explorer.ui.panel import label, restyle

SIZE_PX = (860, 640)
_NAME_PX, _STATE_PX = 170, 80


class DoctorDialog(QDialog):
    """A row a check; those of the worker come when it has tried everything.

    Signals:
        examination_requested: The worker is to look at the machine (again).
    """

    examination_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("doctor")
        self.setWindowTitle("Doctor")
        self.setAccessibleName("What this machine can measure")
        self.resize(*SIZE_PX)
        self._checks: tuple[Check, ...] = ()
        self.sentence = label("", "sentence")
        self.sentence.setWordWrap(True)
        self._scroll = QScrollArea()
        self._scroll.setWidgetResizable(True)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        self.copy = _button("Copy", "Copy the table as text")
        self.copy.clicked.connect(self._copy)
        self.again = _button("Examine again", "Try everything again")
        self.again.clicked.connect(self.examination_requested)
        self.done_button = _button("Close", "Close this page (Esc)")
        self.done_button.clicked.connect(self.accept)
        self._lay_out()

    @property
    def checks(self) -> tuple[Check, ...]:
        """What is shown."""
        return self._checks

    @property
    def text(self) -> str:
        """The page as text."""
        return "\n".join(table_lines(self._checks)) + "\n"

    def show_checks(self, checks: Sequence[Check], sentence: str, *, may_ask: bool) -> None:
        """Show checks, those that failed first.

        Args:
            checks: In the order tried.
            sentence: Above the table: how far the examination is.
            may_ask: Whether the worker can be asked now.
        """
        self._checks = tuple(sorted(checks, key=lambda check: check.ok))
        self.sentence.setText(sentence)
        self.again.setEnabled(may_ask)
        self.copy.setEnabled(bool(checks))
        self._fill()

    def _lay_out(self) -> None:
        whole = QVBoxLayout(self)
        whole.setContentsMargins(22, 18, 22, 18)
        whole.setSpacing(10)
        whole.addWidget(label("What this machine can measure", "panelTitle"))
        whole.addWidget(self.sentence)
        whole.addWidget(self._scroll, 1)
        buttons = QHBoxLayout()
        buttons.addWidget(self.copy)
        buttons.addStretch(1)
        buttons.addWidget(self.again)
        buttons.addWidget(self.done_button)
        whole.addLayout(buttons)

    def _fill(self) -> None:
        rows = QWidget()
        rows.setObjectName("rows")
        grid = QGridLayout(rows)
        grid.setContentsMargins(0, 4, 8, 4)
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(8)
        grid.setColumnMinimumWidth(0, _NAME_PX)
        grid.setColumnMinimumWidth(1, _STATE_PX)
        grid.setColumnStretch(2, 1)
        for place, check in enumerate(self._checks):
            name = _cell(check.name, "doctorName")
            name.setAccessibleName(f"{check.name} {state_word(check)}: {' '.join(details(check))}")
            state = _cell(state_word(check), "doctorState")
            restyle(state, "missing", not check.ok)
            grid.addWidget(name, place, 0, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(state, place, 1, Qt.AlignmentFlag.AlignTop)
            grid.addWidget(_cell("\n".join(details(check)), "doctorText"), place, 2)
        grid.setRowStretch(len(self._checks), 1)
        self._scroll.setWidget(rows)

    def _copy(self) -> None:
        QApplication.clipboard().setText(self.text)
        self.sentence.setText("The table is copied.")


def _cell(text: str, kind: str) -> QLabel:
    made = label(breakable(text), kind)
    made.setWordWrap(True)
    made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


def _button(text: str, tip: str) -> QPushButton:
    made = QPushButton(text)
    made.setToolTip(tip)
    made.setAccessibleName(tip)
    made.setAutoDefault(False)
    return made
