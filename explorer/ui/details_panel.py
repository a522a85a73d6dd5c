"""Below the scene: timelines, kernels, fusion groups, sweep and session, one at a time."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QTabBar, QWidget

from explorer.model.finding import Finding
from explorer.ui.fusion_view import FusionView
from explorer.ui.kernel_table import KernelTable
from explorer.ui.panel import Panel
from explorer.ui.runs_panel import RunsPanel
from explorer.ui.state import drawn, place_of
from explorer.ui.status_line import ElidedLabel
from explorer.ui.store import Store
from explorer.ui.sweep_panel import SweepPanel
from explorer.ui.sweep_switch import SweepKind
from explorer.ui.theme import Theme
from explorer.ui.timeline_view import TimelineView
from explorer.ui.turns import Turns

KERNELS_TAB = 1
FUSION_TAB = 2
SWEEP_TAB = 3
SESSION_TAB = 4


class DetailsPanel(Panel):
    """Tabs fed from the store; picks in them go back into it."""

    def __init__(
        self, store: Store, turns: Turns | None = None, parent: QWidget | None = None
    ) -> None:
        super().__init__("Details", parent=parent)
        self._store = store
        self._turns = turns or Turns(self)
        self.timeline = TimelineView(turns=turns)
        self.kernels = KernelTable()
        self.fusion = FusionView()
        self.sweep = SweepPanel(store, turns)
        self.runs = RunsPanel(store)
        self.tabs = QTabBar()
        self.tabs.setAccessibleName("Timelines, kernel table, fusion, sweep or session")
        self.tabs.setDrawBase(False)
        self.tabs.setExpanding(False)
        self.tabs.setUsesScrollButtons(False)
        self._pages = QStackedWidget()
        for title, view in (
            ("Timelines", self.timeline),
            ("Kernel table", self.kernels),
            ("Fusion", self.fusion),
            ("Sweep", self.sweep),
            ("Session", self.runs),
        ):
            self.tabs.addTab(title)
            self._pages.addWidget(view)
        self._words = ElidedLabel("panelHint")
        self._words.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(self.tabs)
        head.addWidget(self._words, 1)
        self.hide_head()
        self.body.setContentsMargins(14, 4, 14, 8)
        self.body.addLayout(head)
        self.body.addWidget(self._pages, 1)
        self._connect()
        self._set_theme(store.theme)
        self._show_runs()

    @property
    def words(self) -> str:
        """What is said at the right of the tabs."""
        return self._words.whole

    def _connect(self) -> None:
        store = self._store
        store.runs_changed.connect(self._show_runs)
        store.shown_changed.connect(self._show_runs)
        store.launch_changed.connect(self._show_launch)
        store.playhead_changed.connect(self.timeline.set_time)
        store.theme_changed.connect(self._set_theme)
        for signal in (store.plan_changed, store.captured_changed):
            signal.connect(self._show_plan)
        self.timeline.launch_selected.connect(self._on_launch_selected)
        self.timeline.run_selected.connect(self._on_run_selected)
        self.timeline.time_requested.connect(self._on_time_requested)
        self.kernels.launch_selected.connect(store.pick_launch)
        self.fusion.launch_selected.connect(store.pick_launch)
        self.sweep.hint_changed.connect(self._show_words)
        store.param_sweep_requested.connect(self.show_param_sweep)
        self.tabs.currentChanged.connect(self._on_tab)

    def _show_runs(self) -> None:
        state = self._store.state
        shown = state.shown_run
        self.timeline.set_runs([item.run for item in drawn(state)])
        self.timeline.set_time(state.playhead_us if shown else None)
        self._show_kernels()
        self._show_fusion()
        self._show_launch()
        self._show_words()

    def explain(self, finding: Finding) -> None:
        """Go to the tab Fusion and unfold a finding of the shown run."""
        self.tabs.setCurrentIndex(FUSION_TAB)
        self.fusion.explain(finding)
        self.fusion.setFocus()

    def _show_plan(self) -> None:
        """After the op graph was painted, which a click waits for: 32 rows take 15 ms."""
        if self.tabs.currentIndex() == FUSION_TAB:
            self._turns.soon(self, self._show_plan_now)

    def _show_plan_now(self) -> None:
        self._show_fusion()
        self._show_words()

    def _show_fusion(self) -> None:
        if self.tabs.currentIndex() == FUSION_TAB:
            self.fusion.show_state(self._store.state)

    def _show_kernels(self) -> None:
        """Fill the table only where it is seen: fitting its columns takes a while."""
        if self.tabs.currentIndex() == KERNELS_TAB:
            shown = self._store.state.shown_run
            self.kernels.set_run(shown.run if shown else None)
            self.kernels.set_selected(self._store.state.launch)

    def _show_launch(self) -> None:
        state = self._store.state
        self.timeline.set_selected(place_of(drawn(state), state.shown), state.launch)
        if self.tabs.currentIndex() == KERNELS_TAB:
            self.kernels.set_selected(state.launch)
        if self.tabs.currentIndex() == FUSION_TAB:
            self.fusion.set_selected(state.launch)

    def _show_words(self) -> None:
        n_runs = len(self._store.state.runs)
        self._words.set_whole(
            (
                self.timeline.hint,
                self.kernels.hint,
                self.fusion.hint,
                self.sweep.hint,
                f"{n_runs} run{'s' if n_runs != 1 else ''} · drop a .kx file to open it",
            )[self.tabs.currentIndex()]
        )

    def _on_tab(self, place: int) -> None:
        self._pages.setCurrentIndex(place)
        self._show_kernels()
        self._show_fusion()
        self._show_words()

    def show_param_sweep(self) -> None:
        """Who has a parameter swept wants to see it, and who opens a recording of one."""
        self.sweep.show_kind(SweepKind.PARAMETER)
        self.tabs.setCurrentIndex(SWEEP_TAB)

    def _set_theme(self, theme: Theme) -> None:
        self.timeline.set_theme(theme)
        self.kernels.set_theme(theme)
        self.fusion.set_theme(theme)

    def _show_place(self, place: int) -> None:
        items = drawn(self._store.state)
        if 0 <= place < len(items):
            self._store.show_run(items[place].key)

    def _on_launch_selected(self, place: int, launch: int) -> None:
        self._show_place(place)
        self._store.pick_launch(launch)

    def _on_run_selected(self, place: int) -> None:
        self._show_place(place)
        self._store.pick_launch(None)

    def _on_time_requested(self, place: int, time_us: float) -> None:
        self._show_place(place)
        self._store.set_playhead(time_us)
