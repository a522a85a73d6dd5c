"""The row of buttons over a large op graph: its zoom, and its folds."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from explorer.ui.panel import label

FOLD_ALL, OPEN_ALL = "Fold all", "Open all"


class GraphBar(QWidget):
    """Smaller, the zoom, larger, all of it; at the right what folds or opens every part.

    Below them stands a sentence where a graph came up folded.

    Signals:
        stepped: One step larger, or -1 for smaller.
        whole_requested: 100 %.
        fit_requested: All of the graph shall be in sight.
        folds_requested: True for every part folded, False for every one open.
    """

    stepped = Signal(int)
    whole_requested = Signal()
    fit_requested = Signal()
    folds_requested = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shall_fold: bool = True
        self.smaller = _button("−", "first", "Smaller (Ctrl+−, Ctrl+wheel)", "Zoom out")
        self.level = _button("100 %", "middle", "Back to 100 % (Ctrl+0)", "Zoom")
        self.larger = _button("+", "middle", "Larger (Ctrl++, Ctrl+wheel)", "Zoom in")
        self.fit = _button("Fit", "last", "All of the graph (F)", "Fit the graph")
        self.folds = _button(FOLD_ALL, "alone", "", FOLD_ALL)
        self.fit.setCheckable(True)
        self.level.setMinimumWidth(54)
        self.sentence = label("", "status")
        self.sentence.setMinimumWidth(1)
        self.smaller.clicked.connect(lambda: self.stepped.emit(-1))
        self.larger.clicked.connect(lambda: self.stepped.emit(1))
        self.level.clicked.connect(self.whole_requested)
        self.fit.clicked.connect(self.fit_requested)
        self.folds.clicked.connect(lambda: self.folds_requested.emit(self._shall_fold))
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for button in (self.smaller, self.level, self.larger, self.fit):
            row.addWidget(button)
        row.addStretch(1)
        row.addWidget(self.folds)
        column = QVBoxLayout(self)
        column.setContentsMargins(9, 0, 6, 0)
        column.setSpacing(2)
        column.addLayout(row)
        column.addWidget(self.sentence)

    def show_zoom(self, zoom: float, least: float, most: float, *, is_fitted: bool) -> None:
        """Say how large the graph is drawn; a button that would change nothing is off."""
        self.level.setText(f"{zoom * 100:.0f} %")
        self.level.setAccessibleName(f"Zoom {zoom * 100:.0f} %: back to 100 %")
        self.smaller.setEnabled(zoom > least)
        self.larger.setEnabled(zoom < most)
        self.fit.setChecked(is_fitted)

    def show_folds(self, n_parts: int, n_closed: int, sentence: str) -> None:
        """Offer to fold what is open, or to open all; nothing where the graph has no parts."""
        self._shall_fold = n_closed == 0
        text = FOLD_ALL if self._shall_fold else OPEN_ALL
        self.folds.setVisible(n_parts > 0)
        self.folds.setText(text)
        self.folds.setAccessibleName(text)
        self.folds.setToolTip(
            f"Fold each of the {n_parts} parts into a box; Left folds the one at the keyboard"
            if self._shall_fold
            else f"Open every part: {n_closed} of {n_parts} are folded"
        )
        self.sentence.setText(sentence)
        self.sentence.setVisible(bool(sentence))


def _button(text: str, place: str, tip: str, name: str) -> QPushButton:
    made = QPushButton(text)
    made.setObjectName("segment")
    made.setProperty("place", place)
    made.setToolTip(tip)
    made.setAccessibleName(name)
    return made
