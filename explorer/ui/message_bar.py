"""One sentence that needs to be seen, above everything and never in the way."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QWidget

from explorer.ui.line_breaks import breakable, unbroken
from explorer.ui.panel import label, restyle
from explorer.ui.store import Store


class MessageBar(QFrame):
    """Shows the store's notice until it is dismissed; offers to undo a deletion."""

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("message")
        self._store = store
        self._sentence = label("", "messageText")
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.undo_button = QPushButton("Undo")
        self.undo_button.setAccessibleName("Bring the run back")
        self.undo_button.clicked.connect(store.undo_remove)
        self.close_button = QToolButton()
        self.close_button.setText("×")
        self.close_button.setObjectName("flat")
        self.close_button.setAccessibleName("Dismiss the message")
        self.close_button.setToolTip("Dismiss")
        self.close_button.clicked.connect(store.dismiss_notice)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 5, 6, 5)
        row.addWidget(self._sentence, 1)
        row.addWidget(self.undo_button)
        row.addWidget(self.close_button)
        store.notice_changed.connect(self._refresh)
        self._refresh()

    @property
    def sentence(self) -> str:
        """What the bar says, empty if nothing."""
        return unbroken(self._sentence.text())

    def _refresh(self) -> None:
        notice = self._store.state.notice
        self.setVisible(notice is not None)
        self._sentence.setText(breakable(notice.sentence) if notice else "")
        said = notice.sentence if notice else "No message"
        self.setAccessibleName(said)
        self._sentence.setAccessibleName(said)
        self.undo_button.setVisible(notice is not None and notice.can_undo)
        is_error = notice is not None and notice.is_error
        restyle(self, "error", is_error)
