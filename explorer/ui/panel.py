"""A panel: a rounded face with a title, a hint at its right, and room for one story below."""

from html import escape

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from explorer.ui.line_breaks import MAY_BREAK


def label(text: str, kind: str) -> QLabel:
    """A plain-text label; ``kind`` is the name that the style sheet knows it by."""
    made = QLabel(text)
    made.setObjectName(kind)
    # What a file or a worker says must not be taken for markup.
    made.setTextFormat(Qt.TextFormat.PlainText)
    return made


def wrapped(text: str) -> str:
    """A tooltip that is broken into lines: Qt lays plain text out as one, across the screen.

    A fusion plan, which is one long word, may be broken at its signs.
    """
    if not text:
        return ""
    breakable = escape(text).replace("|", f"|{MAY_BREAK}").replace("+", f"+{MAY_BREAK}")
    return f"<qt>{breakable.replace(chr(10), '<br>')}</qt>"


def restyle(widget: QWidget, name: str, value: bool | str) -> None:
    """Set a property that the style sheet asks for, and have the widget drawn by it."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)


class Panel(QFrame):
    """A titled face; the style sheet gives it its looks.

    What goes inside is added to :attr:`body`. Screen readers hear the title as the panel's name.
    """

    def __init__(self, title: str, hint: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("panel")
        self.setAccessibleName(title)
        self._title = label(title, "panelTitle")
        self._hint = label(hint, "panelHint")
        self._hint.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.head = QHBoxLayout()
        self.head.setContentsMargins(16, 10, 14, 4)
        self.head.setSpacing(8)
        self.head.addWidget(self._title)
        self.head.addStretch(1)
        self.head.addWidget(self._hint)
        self.body = QVBoxLayout()
        self.body.setContentsMargins(10, 0, 10, 10)
        self.body.setSpacing(6)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addLayout(self.head)
        whole.addLayout(self.body, 1)

    def hide_head(self) -> None:
        """Leave title and hint out, where the content has its own; the name stays."""
        self._title.hide()
        self._hint.hide()
        self.head.setContentsMargins(0, 0, 0, 0)

    @property
    def title(self) -> str:
        """The title as shown."""
        return self._title.text()

    def set_title(self, title: str) -> None:
        """Change the title, and with it what a screen reader says."""
        self._title.setText(title)
        self.setAccessibleName(title)

    @property
    def hint(self) -> str:
        """The hint as shown."""
        return self._hint.text()

    def set_hint(self, hint: str, tip: str = "") -> None:
        """Change the hint; ``tip`` explains it at length."""
        self._hint.setText(hint)
        self._hint.setToolTip(wrapped(tip))
