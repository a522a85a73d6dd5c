"""Two segments at the head of the tab Sweep: plans, or one parameter."""

from enum import StrEnum

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QWidget

from explorer.ui.panel import wrapped


class SweepKind(StrEnum):
    """What a sweep goes over."""

    PLANS = "Plans"
    PARAMETER = "Parameter"


_TIPS = {
    SweepKind.PLANS: "Every fusion plan of the chain, time against traffic",
    SweepKind.PARAMETER: "The ticked strategies at several values of one parameter",
}


class SweepSwitch(QWidget):
    """Shows which kind of sweep is looked at, and picks the other.

    Signals:
        kind_picked: A :class:`SweepKind`.
    """

    kind_picked = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons: dict[SweepKind, QPushButton] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for kind, place in zip(SweepKind, ("first", "last"), strict=True):
            button = QPushButton(kind.value)
            button.setObjectName("segment")
            button.setProperty("place", place)
            button.setCheckable(True)
            button.setToolTip(wrapped(_TIPS[kind]))
            button.setAccessibleName(f"Sweep: {kind.value}")
            button.setAccessibleDescription(_TIPS[kind])
            button.clicked.connect(lambda _=False, kind=kind: self.kind_picked.emit(kind.value))
            row.addWidget(button)
            self.buttons[kind] = button
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.show_kind(SweepKind.PLANS)

    def show_kind(self, kind: SweepKind) -> None:
        """Say which kind is looked at."""
        for each, button in self.buttons.items():
            button.setChecked(each is kind)
