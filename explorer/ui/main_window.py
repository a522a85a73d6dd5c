"""The window: makes the panels, lays them out, and wires them to store, session and files."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QKeyEvent,
    QKeySequence,
    QPaintEvent,
    QShortcut,
)
from PySide6.QtWidgets import QApplication, QMainWindow, QVBoxLayout, QWidget
from typing_extensions import override

from explorer.ui.doctor_actions import DoctorActions
from explorer.ui.file_actions import FileActions
from explorer.ui.graph_panel import GraphPanel
from explorer.ui.header import Header
from explorer.ui.message_bar import MessageBar
from explorer.ui.own_actions import OwnActions
from explorer.ui.panel import Panel
from explorer.ui.results_panel import ResultsPanel
from explorer.ui.session import Session
from explorer.ui.settings import Settings
from explorer.ui.splitter import SharingSplitter
from explorer.ui.state import WorkerPhase
from explorer.ui.status_line import StatusLine
from explorer.ui.store import Store
from explorer.ui.strategies_panel import StrategiesPanel
from explorer.ui.style_sheet import style_sheet
from explorer.ui.theme import Theme, font, load_fonts, palette
from explorer.ui.turns import Turns

if TYPE_CHECKING:
    from explorer.ui.details_panel import DetailsPanel
    from explorer.ui.scene_panel import ScenePanel

FIRST_SIZE = (1440, 900)
LEAST_SIZE = (1120, 690)
SIDE_PX = (296, 360)
"""Least and greatest width of the left and of the right column at first."""
STRATEGIES_PX, DETAILS_PX = 344, 236
"""Heights of the strategies and of the panel below the scene at first."""
LEAST_DETAILS_PX, READABLE_SCENE_PX = 196, 390
"""In a low window the latter gives way until the scene's text has 12 pixels."""


class MainWindow(QMainWindow):
    """Everything on one screen. It holds no state of its own: the store does.

    Signals:
        first_painted: The window is on the screen; what takes long may begin.
    """

    first_painted = Signal()

    scene: "ScenePanel"
    details: "DetailsPanel"

    def __init__(
        self,
        store: Store,
        session: Session | None = None,
        *,
        settings: Settings | None = None,
        complete: bool = True,
    ) -> None:
        """Make the window.

        Args:
            store: What is shown.
            session: Carries out runs; None for a window that only shows.
            settings: What it looked like last time, and where that is kept; None for neither.
            complete: Make scene, details and plot at once; otherwise :meth:`complete` and then
                the results' ``fill`` are to be called when the window is on the screen, since
                numpy and pyqtgraph take a while to import.
        """
        super().__init__()
        self._store = store
        self._session = session
        self._settings = settings
        self._was_painted = False
        self.turns = Turns(self)
        self.files = FileActions(store, self)
        self.own = OwnActions(store, self, settings)
        self.doctor = DoctorActions(store, self, None if session is None else session.examination)
        self.header = Header(store, can_run=session is not None)
        self.message = MessageBar(store)
        self.graph = GraphPanel(store, self.turns, can_run=session is not None)
        self.strategies = StrategiesPanel(store)
        self.results = ResultsPanel(store, self.turns)
        self.status = StatusLine(store)
        self.setWindowTitle("Kernel Explorer")
        self.setAcceptDrops(True)
        self.setMinimumSize(*LEAST_SIZE)
        self.resize(*FIRST_SIZE)
        self._lay_out()
        self._connect()
        self._make_shortcuts()
        self._set_theme(store.theme)
        if settings is not None:
            self._restore(settings)
        if complete:
            self.complete()
            self.first_painted.connect(self.results.fill)

    def complete(self) -> None:
        """Put the scene and what is below it into their places."""
        from explorer.ui import details_panel, scene_panel

        self.scene = scene_panel.ScenePanel(self._store, self.turns)
        self.details = details_panel.DetailsPanel(self._store, self.turns)
        for place, panel in enumerate((self.scene, self.details)):
            held = self._centre.replaceWidget(place, panel)
            panel.show()
            if held is not None:
                held.deleteLater()
        self.details.runs.save_requested.connect(self.files.ask_to_save)
        self.files.sweep_opened.connect(self.details.show_param_sweep)
        self.graph.op_activated.connect(self.scene.seek_op)
        self.scene.ops_active.connect(self.graph.view.set_active)
        self.scene.finding.why_requested.connect(self.details.explain)
        self._shortcut("Ctrl+S", self.details.runs.save)
        self._order_tabs()

    def _order_tabs(self) -> None:
        """Tab goes from panel to panel as one reads, though some of them were made later."""
        panels = (
            self.header,
            self.message,
            self.graph,
            self.strategies,
            self.scene,
            self.details,
            self.results,
            self.status,
        )
        chain: list[QWidget] = []
        widget = self.nextInFocusChain()
        while widget is not None and widget is not self:
            if widget.focusPolicy() is not Qt.FocusPolicy.NoFocus:
                chain.append(widget)
            widget = widget.nextInFocusChain()
        ordered = [each for panel in panels for each in chain if panel.isAncestorOf(each)]
        for first, second in pairwise(ordered):
            self.setTabOrder(first, second)

    def _lay_out(self) -> None:
        left = SharingSplitter(Qt.Orientation.Vertical, _share_left)
        left.addWidget(self.graph)
        left.addWidget(self.strategies)
        self._centre = SharingSplitter(Qt.Orientation.Vertical, _share_centre)
        for title in ("Memory traffic", "Timelines"):
            held = Panel(title)
            held.body.addStretch(1)
            self._centre.addWidget(held)
        columns = SharingSplitter(Qt.Orientation.Horizontal, _share_columns)
        for column in (left, self._centre, self.results):
            columns.addWidget(column)
        self._splitters = {"left": left, "centre": self._centre, "columns": columns}
        root = QWidget()
        root.setObjectName("root")
        whole = QVBoxLayout(root)
        whole.setContentsMargins(14, 10, 14, 4)
        whole.setSpacing(8)
        whole.addWidget(self.header)
        whole.addWidget(self.message)
        whole.addWidget(columns, 1)
        whole.addWidget(self.status)
        self.setCentralWidget(root)
        # Nothing is framed until someone uses the keyboard.
        root.setFocus()

    def _restore(self, settings: Settings) -> None:
        """Look as last time, as far as the screen allows it."""
        if settings.size is not None:
            # A smaller screen than last time: no larger than it, or than at the very first start.
            most = self.screen().availableSize().expandedTo(QSize(*FIRST_SIZE))
            self.resize(QSize(*settings.size).boundedTo(most))
        if settings.is_maximized:
            self.setWindowState(Qt.WindowState.WindowMaximized)
        for name, splitter in self._splitters.items():
            shares = settings.shares(name, splitter.count())
            if shares is not None:
                splitter.set_shares(shares)

    def _remember(self, settings: Settings) -> None:
        """Keep what the window looks like."""
        settings.theme = self._store.state.theme
        settings.is_maximized = self.isMaximized()
        if not self.isMaximized():
            settings.size = (self.width(), self.height())
        for name, splitter in self._splitters.items():
            shares = splitter.shares()
            if shares is not None:
                settings.keep_shares(name, shares)
        settings.sync()

    def _connect(self) -> None:
        session, store = self._session, self._store
        if session is not None:
            self.header.run_requested.connect(session.run)
            self.header.cancel_requested.connect(session.cancel)
            self.results.measure_requested.connect(session.measure_ceilings)
            self.graph.inductor_requested.connect(session.ask_inductor)
            self.graph.asking_cancelled.connect(session.cancel_asking)
        self.header.open_requested.connect(self.files.ask_to_open)
        self.header.own_requested.connect(self.own.ask_for_any)
        self.header.export_requested.connect(self.files.ask_to_export)
        self.status.doctor_button.clicked.connect(self.doctor.open)
        store.theme_changed.connect(self._set_theme)
        self.graph.export_requested.connect(self.files.ask_to_export_plan)
        store.worker_changed.connect(self._allow_cancel)
        store.plan_changed.connect(self._allow_cancel)

    def _make_shortcuts(self) -> None:
        self._cancel_key = self._shortcut("Esc", self._cancel)
        self._allow_cancel()
        self._shortcut("Ctrl+R", self._run)
        self._shortcut("Ctrl+O", self.files.ask_to_open)
        if self._session is not None:
            self._shortcut("Ctrl+Shift+O", self.own.ask_for_any)
        self._shortcut("Ctrl+E", self.files.ask_to_export)
        self._shortcut("F1", self.doctor.open)
        self._shortcut("Ctrl+P", self.header.open_form)
        self._shortcut("Ctrl+Z", self._store.plan.undo)
        for keys in ("Ctrl+Shift+Z", "Ctrl+Y"):
            self._shortcut(keys, self._store.plan.redo)
        self._shortcut("Ctrl+Q", self.close)

    def _shortcut(self, keys: str, slot: Callable[[], object]) -> QShortcut:
        made = QShortcut(QKeySequence(keys), self)
        made.activated.connect(slot)
        return made

    def _run(self) -> None:
        if self._session is not None:
            self._session.run()

    def _cancel(self) -> None:
        if self._session is not None:
            self._session.cancel()

    def _allow_cancel(self) -> None:
        # Otherwise Escape belongs to whatever has the focus.
        state = self._store.state
        self._cancel_key.setEnabled(state.worker.phase is WorkerPhase.BUSY or state.asking)

    def _set_theme(self, theme: Theme) -> None:
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.setPalette(palette(theme))
        self.setStyleSheet(style_sheet(theme))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._was_painted:
            self._was_painted = True
            QTimer.singleShot(0, self, self.first_painted.emit)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Space and the arrows play and step wherever nothing else wants them.
        if not (hasattr(self, "scene") and self.scene.transport.handle_key(event)):
            super().keyPressEvent(event)

    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        if self._settings is not None:
            self._remember(self._settings)
        # Ending a busy worker takes up to two seconds: the window need not stay to watch.
        self.hide()
        if self._session is not None:
            self._session.close()
        event.accept()

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_paths(event):
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        paths = _dropped_paths(event)
        if paths:
            event.acceptProposedAction()
            self.files.open_paths(paths)


def prepare_application(application: QApplication) -> None:
    """Give an application our style and fonts, whatever the desktop is set to."""
    application.setApplicationName("Kernel Explorer")
    application.setStyle("Fusion")
    load_fonts()
    application.setFont(font(14))


def _dropped_paths(event: QDropEvent) -> list[Path]:
    """Local files in what is dropped, of any kind: one that is no recording is told so."""
    return [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]


def _share_columns(width: int) -> list[int]:
    side = min(max(round(0.21 * width), SIDE_PX[0]), SIDE_PX[1])
    # The names of strategies want a little more.
    left = round(1.045 * side)
    return [left, width - left - side, side]


def _share_left(height: int) -> list[int]:
    strategies = min(max(STRATEGIES_PX, round(0.38 * height)), round(0.43 * height))
    return [height - strategies, strategies]


def _share_centre(height: int) -> list[int]:
    details = max(DETAILS_PX, round(0.29 * height))
    details = max(min(details, height - READABLE_SCENE_PX), LEAST_DETAILS_PX)
    return [height - details, details]
