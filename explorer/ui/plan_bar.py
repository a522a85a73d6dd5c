"""The controls round the op graph: presets, undo and redo above it, the plan's text below."""

from collections.abc import Collection

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from explorer.model.fusion import ALL, EACH, INDUCTOR
from explorer.ui.panel import label, restyle, wrapped
from explorer.ui.theme import DARK, Theme, font

ASKING = "asking Inductor… ×"
LEAST_PX = 284
"""What the row of presets needs."""


class PresetBar(QWidget):
    """Three presets as one row, then undo, redo and a menu.

    Signals:
        each_requested: One op a kernel.
        inductor_requested: As Inductor groups.
        asking_cancelled: Inductor need not be asked any more.
        all_requested: All in one kernel.
        undo_requested: Take the last edit back.
        redo_requested: Do it again.
    """

    each_requested = Signal()
    inductor_requested = Signal()
    asking_cancelled = Signal()
    all_requested = Signal()
    undo_requested = Signal()
    redo_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_asking = False
        # Before the style sheet is known the buttons would ask for more than they need.
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(LEAST_PX)
        self.each = _segment("One each", "One op a kernel", "first")
        self.inductor = _segment("Inductor", "As Inductor groups", "middle")
        self.whole = _segment("All in one", "All in one kernel", "last")
        self.each.clicked.connect(self.each_requested)
        self.inductor.clicked.connect(self._on_inductor)
        self.whole.clicked.connect(self.all_requested)
        self.undo = _ArrowButton("Undo", "Take the last edit back (Ctrl+Z)", turns=False)
        self.redo = _ArrowButton("Redo", "Do it again (Ctrl+Shift+Z)", turns=True)
        self.undo.clicked.connect(self.undo_requested)
        self.redo.clicked.connect(self.redo_requested)
        self.more = QToolButton()
        self.more.setObjectName("icon")
        self.more.setText("⋯")
        self.more.setToolTip("Copy, paste or export the plan")
        self.more.setAccessibleName("Plan: copy, paste, export")
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setFixedSize(24, 26)
        self.menu = QMenu(self.more)
        self.more.setMenu(self.menu)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for segment in (self.each, self.inductor, self.whole):
            row.addWidget(segment)
        row.addStretch(1)
        for button in (self.undo, self.redo, self.more):
            row.addWidget(button)

    def show_presets(self, names: Collection[str]) -> None:
        """Mark the presets that the plan is: ``each``, ``inductor``, ``all`` or several of them."""
        for button, own in ((self.each, EACH), (self.inductor, INDUCTOR), (self.whole, ALL)):
            button.setChecked(own in names)

    def show_asking(self, asking: bool) -> None:
        """Say that Inductor is being asked; a click then ends that."""
        self._is_asking = asking
        self.inductor.setText(ASKING if asking else "Inductor")
        for other in (self.each, self.whole):
            other.setVisible(not asking)
        restyle(self.inductor, "place", "alone" if asking else "middle")

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        for button in (self.undo, self.redo):
            button.set_theme(theme)

    def _on_inductor(self) -> None:
        if self._is_asking:
            self.asking_cancelled.emit()
        else:
            self.inductor_requested.emit()


class PlanText(QWidget):
    """The plan as text, to read, copy or type over; at its right what it saves.

    Signals:
        entered: A text was typed and Enter pressed.
        left: What was typed was given up.
    """

    entered = Signal(str)
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plan = ""
        self.field = _PlanField()
        self.field.setObjectName("plan")
        self.field.setFont(font(12, mono=True))
        self.field.setAccessibleName("Fusion plan as text")
        self.field.setPlaceholderText("scale+mask|softmax")
        self.field.returnPressed.connect(lambda: self.entered.emit(self.field.text()))
        self.field.left.connect(self.give_up)
        self.field.left.connect(self.left)
        self.saving = label("", "saving")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self.field, 1)
        row.addWidget(self.saving)

    def show_plan(self, text: str) -> None:
        """Show a plan's text; what is being typed stays until the plan is another."""
        if text == self._plan and self.field.isModified():
            return
        self._plan = text
        self.give_up()

    def show_saving(self, text: str, tip: str, kind: str) -> None:
        """Show what it saves against one op a kernel; empty for nothing."""
        self.saving.setText(text)
        self.saving.setToolTip(wrapped(tip))
        self.saving.setVisible(bool(text))
        restyle(self.saving, "kind", kind)

    def show_wrong(self, text: str) -> None:
        """Mark that a text is no plan; it stays there to be corrected."""
        self.field.setText(text)
        self.field.setModified(True)
        restyle(self.field, "invalid", True)

    def give_up(self) -> None:
        """Put the plan's text back into the place of what was typed."""
        restyle(self.field, "invalid", False)
        if self.field.text() != self._plan:
            self.field.setText(self._plan)
        self.field.setModified(False)
        self.field.setCursorPosition(0)
        how = "Type another and press Enter; + within a kernel, | between"
        self.field.setAccessibleDescription(how)
        self.field.setToolTip(wrapped(f"plan:{self._plan}\n{how}"))


class _PlanField(QLineEdit):
    """A line that gives what was typed up when Escape is pressed."""

    left = Signal()

    @override
    def event(self, event: QEvent) -> bool:
        # While something is typed Escape gives that up, and does not cancel a run.
        if (
            event.type() is QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.key() == Qt.Key.Key_Escape
            and self.isModified()
        ):
            event.accept()
            return True
        return super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if event.reason() is not Qt.FocusReason.MouseFocusReason:
            self.selectAll()


class _ArrowButton(QToolButton):
    """A bent arrow, to the left for undo and to the right for redo."""

    def __init__(self, name: str, tip: str, *, turns: bool) -> None:
        super().__init__()
        self._turns = turns
        self._theme = DARK
        self.setObjectName("icon")
        self.setAccessibleName(name)
        self.setToolTip(tip)
        self.setFixedSize(24, 26)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours."""
        self._theme = theme
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(24, 26)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        room = QRectF(self.rect())
        painter.translate(room.center())
        if self._turns:
            painter.scale(-1, 1)
        color = self._theme.color("text" if self.isEnabled() else "faint")
        painter.setPen(QPen(color, 1.8, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap,
                            Qt.PenJoinStyle.RoundJoin))  # fmt: skip
        path = QPainterPath(QPointF(-6, -2))
        path.lineTo(2, -2)
        path.arcTo(QRectF(-2, -2, 8, 8), 90, -180)
        path.lineTo(-1, 6)
        painter.drawPath(path)
        head = QPainterPath(QPointF(-3, -5.5))
        head.lineTo(-6.5, -2)
        head.lineTo(-3, 1.5)
        painter.drawPath(head)
        painter.end()


def _segment(text: str, name: str, place: str) -> QPushButton:
    made = QPushButton(text)
    made.setObjectName("segment")
    made.setProperty("place", place)
    made.setCheckable(True)
    made.setAccessibleName(name)
    made.setToolTip(name)
    made.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    return made
