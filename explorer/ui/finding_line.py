"""One line below the scene: the most telling difference of the shown run, and the way to why."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget
from typing_extensions import override

from explorer.model.finding import Finding, FindingKind
from explorer.model.traffic import run_traffic
from explorer.ui.fusion_view import finding_of
from explorer.ui.painting import antialias
from explorer.ui.status_line import ElidedLabel
from explorer.ui.store import Store
from explorer.ui.theme import DARK, Theme

LEAST_SHARE = 0.05
"""Of the run's traffic: below it a finding is for those who open the tab."""
DOT_PX = 8
HEIGHT_PX = 28
"""What the button needs; in less it would reach beyond the line, and its word stand lower."""


class FindingLine(QWidget):
    """Hidden where planned, modelled and counted bytes agree.

    Signals:
        why_requested: The finding is to be explained.
    """

    why_requested = Signal(object)

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._finding: Finding | None = None
        self._dot = _Dot()
        self._words = ElidedLabel("sentence")
        self.why = QToolButton()
        self.why.setObjectName("flat")
        self.why.setText("why")
        self.why.setAccessibleName("Why: explain the difference in the tab Fusion")
        self.why.clicked.connect(self._ask)
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 0, 4, 0)
        row.setSpacing(8)
        row.addWidget(self._dot)
        row.addWidget(self._words, 1)
        row.addWidget(self.why)
        self.setFixedHeight(HEIGHT_PX)
        store.shown_changed.connect(self.refresh)
        store.runs_changed.connect(self.refresh)
        store.theme_changed.connect(self._set_theme)
        self._set_theme(store.theme)
        self.refresh()

    @property
    def text(self) -> str:
        """What it says; empty if it is hidden."""
        return self._words.whole if self._finding else ""

    def refresh(self) -> None:
        """Say what there is to say of the shown run."""
        shown = self._store.state.shown_run
        finding = finding_of(shown.run) if shown else None
        best = run_traffic(shown.run).best if shown else None
        if finding is not None and best is not None:
            whole = best[0] + best[1]
            finding = finding if finding.n_bytes >= LEAST_SHARE * whole else None
        self._finding = finding
        self.setVisible(finding is not None)
        if finding is not None:
            ops = " + ".join(finding.ops)
            self._words.set_whole(f"{ops} {finding.short}".strip())
            is_known = finding.kind is not FindingKind.UNEXPLAINED
            self._dot.set_color("write" if is_known else "warning")

    def _ask(self) -> None:
        if self._finding is not None:
            self.why_requested.emit(self._finding)

    def _set_theme(self, theme: Theme) -> None:
        self._dot.set_theme(theme)


class _Dot(QWidget):
    """A disc in the colour of what the line is about."""

    def __init__(self) -> None:
        super().__init__()
        self._color, self._theme = "write", DARK
        self.setFixedSize(DOT_PX + 4, HEIGHT_PX)

    def set_color(self, name: str) -> None:
        self._color = name
        self.update()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        antialias(painter)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color(self._color))
        painter.drawEllipse(2, (HEIGHT_PX - DOT_PX) // 2, DOT_PX, DOT_PX)
