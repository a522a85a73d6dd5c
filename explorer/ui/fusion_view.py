"""The tab "Fusion": what was planned, what was made of it and what was counted, with the causes."""

from functools import lru_cache

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QStackedLayout, QWidget

from explorer.model.finding import Finding
from explorer.model.findings import main_finding
from explorer.model.run import Run
from explorer.model.same import Same
from explorer.ui.fusion_rows import Row, plan_hint, plan_rows, run_hint, run_rows
from explorer.ui.fusion_tree import FusionTree
from explorer.ui.panel import label
from explorer.ui.plan_state import graph_drawn, plan_drawn, shows_plan
from explorer.ui.state import State
from explorer.ui.theme import Theme

NOTHING = (
    "Nothing is planned yet: the operator chain is not known. Run measures it, and a boundary "
    "set on a link of the chain makes a plan."
)


class FusionView(QWidget):
    """One row a fusion group, with findings and reasons below it; before a run what is planned.

    The state comes in through :meth:`show_state`.

    Signals:
        launch_selected: Index of the launch that a picked row is about.
    """

    launch_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.hint = ""
        self.tree = FusionTree()
        self._empty = label(NOTHING, "sentence")
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = QStackedLayout(self)
        self._stack.setContentsMargins(0, 0, 0, 0)
        self._stack.addWidget(self._empty)
        self._stack.addWidget(self.tree)
        self.tree.launch_selected.connect(self.launch_selected)
        # Tab and clicks on the tab go where the keys do something.
        self.setFocusProxy(self.tree)

    @property
    def sentence(self) -> str:
        """What stands in the place of rows; empty if there are rows."""
        return "" if self._stack.currentWidget() is self.tree else self._empty.text()

    def show_state(self, state: State) -> None:
        """Show the plan that is drawn, or what became of the shown run's groups."""
        rows, self.hint, sentence = content(state)
        self._empty.setText(sentence)
        self.tree.set_rows(rows)
        self._stack.setCurrentWidget(self.tree if rows else self._empty)
        self.set_selected(state.launch)

    def set_selected(self, launch: int | None) -> None:
        """Pick a launch's group without telling so."""
        self.tree.set_selected(launch)

    def explain(self, finding: Finding) -> None:
        """Unfold a finding."""
        self.tree.explain(finding.launch, finding.short)

    def set_theme(self, theme: Theme) -> None:
        """Take another theme's colours."""
        self.tree.set_theme(theme)


def content(state: State) -> tuple[tuple[Row, ...], str, str]:
    """Rows, the words beside the tabs, and the sentence that stands there if there are no rows."""
    shown = state.shown_run
    if shown is not None and not shows_plan(state):
        return _of_run(Same(shown.run))
    graph, plan = graph_drawn(state), plan_drawn(state)
    if graph is not None and plan is not None and graph.ops:
        return plan_rows(graph, plan), plan_hint(graph, plan), ""
    if shown is not None and shown.run.error:
        return (), "", shown.run.error
    return (), "", NOTHING


def finding_of(run: Run) -> Finding | None:
    """The run's main finding, kept for the runs looked at last."""
    return _finding_of(Same(run))


@lru_cache(maxsize=16)
def _of_run(key: Same[Run]) -> tuple[tuple[Row, ...], str, str]:
    return run_rows(key.it), run_hint(key.it), ""


@lru_cache(maxsize=64)
def _finding_of(key: Same[Run]) -> Finding | None:
    return main_finding(key.it)
