"""A calm explanation beside what it is about: a sentence, perhaps a remedy, never in the way."""

from itertools import pairwise

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from explorer.ui.panel import label

GAP_PX = 6
BESIDE_SHARE = 0.6
"""What begins right of this share of the width has its explanation at its left."""
RAW_PX = 110
"""Height of the room for what a compiler said."""
SHOW_RAW, HIDE_RAW = "Show what the compiler said", "Hide what the compiler said"


class Callout(QFrame):
    """A sentence laid over its parent, below or above a place; × closes it, its owner on Escape.

    Signals:
        remedy_chosen: The button with the remedy was pressed.
        closed: It is gone.
    """

    remedy_chosen = Signal()
    closed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("callout")
        self._sentence = label("", "calloutText")
        self._sentence.setWordWrap(True)
        self._sentence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._sentence.setAccessibleName("Explanation")
        self.remedy_button = QPushButton()
        self.remedy_button.setObjectName("small")
        self.remedy_button.setAccessibleName("Remedy")
        self.remedy_button.clicked.connect(self._on_remedy)
        self.raw_button = QPushButton(SHOW_RAW)
        self.raw_button.setObjectName("small")
        self.raw_button.setAccessibleName(SHOW_RAW)
        self.raw_button.clicked.connect(self._on_raw)
        self.close_button = QToolButton()
        self.close_button.setText("×")
        self.close_button.setObjectName("icon")
        self.close_button.setFixedSize(22, 22)
        self.close_button.setToolTip("Close (Esc)")
        self.close_button.setAccessibleName("Close the explanation")
        self.close_button.clicked.connect(self.close_it)
        self.raw = QPlainTextEdit()
        self.raw.setObjectName("raw")
        self.raw.setReadOnly(True)
        self.raw.setFixedHeight(RAW_PX)
        self.raw.setAccessibleName("What the compiler said")
        self._lay_out()
        self._place = QRect()
        self.hide()

    def _lay_out(self) -> None:
        actions = self._actions = QHBoxLayout()
        actions.setSpacing(6)
        actions.addWidget(self.remedy_button)
        actions.addWidget(self.raw_button)
        actions.addStretch(1)
        head = self._head = QHBoxLayout()
        head.setSpacing(4)
        head.addWidget(self._sentence, 1)
        head.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        whole = self._column = QVBoxLayout(self)
        whole.setContentsMargins(12, 8, 6, 9)
        whole.setSpacing(7)
        whole.addLayout(head)
        whole.addWidget(self.raw)
        whole.addLayout(actions)
        # What helps before what ends.
        for first, second in pairwise(
            (self.remedy_button, self.raw_button, self.raw, self.close_button)
        ):
            QWidget.setTabOrder(first, second)

    @property
    def sentence(self) -> str:
        """What it says."""
        return self._sentence.text()

    def explain(self, sentence: str, place: QRect, *, remedy: str = "", raw: str = "") -> None:
        """Show a sentence beside a place of the parent.

        Args:
            sentence: What there is to say.
            place: What it is about, in the parent's coordinates; must stay in sight.
            remedy: Words of the button that cures it; none without.
            raw: What a compiler said, to be shown on demand.
        """
        self._sentence.setText(sentence)
        self.setAccessibleName(sentence)
        self._sentence.setAccessibleName(sentence)
        self.remedy_button.setText(remedy)
        self.remedy_button.setAccessibleName(remedy or "Remedy")
        self.remedy_button.setVisible(bool(remedy))
        self.raw.setPlainText(raw)
        self.raw.hide()
        self.raw_button.setText(SHOW_RAW)
        self.raw_button.setVisible(bool(raw))
        self._place = place
        # What is hidden is not measured: its parts have no sizes before it is shown.
        self.show()
        self.put()
        self.raise_()

    def put(self) -> None:
        """Lie below the place, or above it where there is no room below."""
        parent = self.parentWidget()
        if parent is None:
            return
        whole = parent.width() - 2 * GAP_PX
        # Beside what stands at the right edge, below or above what goes across.
        is_at_side = self._place.left() > BESIDE_SHARE * parent.width()
        width = self._place.left() - 2 * GAP_PX if is_at_side else whole
        self._sentence.setFixedWidth(width - 46)
        # Laid out while it was hidden, the layouts keep what an earlier sentence needed.
        for layout in (self._head, self._actions, self._column):
            layout.invalidate()
        height = max(self._column.totalHeightForWidth(width), self.sizeHint().height())
        top = self._place.top() if is_at_side else self._place.bottom() + GAP_PX
        if top + height > parent.height():
            above = self._place.top() - GAP_PX - height
            top = parent.height() - height if is_at_side or above < 0 else above
        self.setGeometry(GAP_PX, max(top, 0), width, height)

    def close_it(self) -> None:
        """Go away."""
        if self.isVisible():
            parent, focus = self.parentWidget(), QApplication.focusWidget()
            if parent is not None and focus is not None and self.isAncestorOf(focus):
                parent.setFocus()
            self.hide()
            self.closed.emit()

    def _on_remedy(self) -> None:
        self.hide()
        self.remedy_chosen.emit()
        self.closed.emit()

    def _on_raw(self) -> None:
        self.raw.setVisible(self.raw.isHidden())
        self.raw_button.setText(SHOW_RAW if self.raw.isHidden() else HIDE_RAW)
        self.put()
