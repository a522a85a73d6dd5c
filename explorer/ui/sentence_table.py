"""A table that says in a sentence why it has no rows."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QApplication, QTableView, QWidget
from typing_extensions import override

from explorer.ui.line_breaks import breakable

SIDE_PX = 20


class SentenceTable(QTableView):
    """Without rows there is no header either, and a sentence stands in their place."""

    def __init__(self, sentence: str, parent: QWidget | None = None) -> None:
        """Make a table.

        Args:
            sentence: What it says while it is empty.
            parent: Owner.
        """
        super().__init__(parent)
        self._sentence = sentence

    @property
    def sentence(self) -> str:
        """What it says; empty while there are rows."""
        return self._sentence if self._is_empty else ""

    @property
    def _is_empty(self) -> bool:
        model = self.model()
        return model is None or model.rowCount() == 0

    def show_rows(self, sentence: str | None = None) -> None:
        """Follow a model that got rows or lost them; ``sentence`` is another one from now on."""
        self._sentence = self._sentence if sentence is None else sentence
        self.horizontalHeader().setVisible(not self._is_empty)
        policy = Qt.ScrollBarPolicy
        off = policy.ScrollBarAlwaysOff if self._is_empty else policy.ScrollBarAsNeeded
        self.setHorizontalScrollBarPolicy(off)
        self.setAccessibleDescription(self.sentence)
        self.viewport().update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._is_empty:
            return
        painter = QPainter(self.viewport())
        # The application's: a style sheet puts a paler colour into the widget's own.
        painter.setPen(QApplication.palette().color(QPalette.ColorRole.PlaceholderText))
        room: QRect = self.viewport().rect().adjusted(SIDE_PX, 0, -SIDE_PX, 0)
        flags = int(Qt.AlignmentFlag.AlignCenter) | int(Qt.TextFlag.TextWordWrap)
        painter.drawText(room, flags, breakable(self._sentence))
        painter.end()
