"""The strategies: toggles for the next run, and the result of each in the shown setting."""

from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget

from explorer.model.messages import Progress
from explorer.model.strategies import PLAN
from explorer.ui.panel import Panel
from explorer.ui.plan_state import is_plan_spec, next_ops, plan_to_run
from explorer.ui.plan_strip import PlanOps
from explorer.ui.plan_words import row_words
from explorer.ui.state import drawn, result_of, strategy_abilities
from explorer.ui.status_line import stage_words
from explorer.ui.store import Store
from explorer.ui.strategy_row import RowText, StrategyRow, row_text
from explorer.ui.theme import Theme
from explorer.ui.words import SEPARATOR, parameters_sentence, run_color_name


class StrategiesPanel(Panel):
    """The list of strategies, fed from the store; toggles and picks go back into it."""

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__("Strategies", parent=parent)
        self._store = store
        self._rows: dict[str, StrategyRow] = {}
        self._holder = QWidget()
        self._holder.setObjectName("rows")
        self._list = QVBoxLayout(self._holder)
        self._list.setContentsMargins(0, 0, 4, 0)
        self._list.setSpacing(3)
        self._list.addStretch(1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(self._holder)
        self._scroll = scroll
        self.body.addWidget(scroll)
        for signal in (
            store.strategies_changed,
            store.runs_changed,
            store.shown_changed,
            store.abilities_changed,
            store.device_changed,
            store.plan_changed,
            store.captured_changed,
        ):
            signal.connect(self._refresh)
        store.progress_changed.connect(self._show_progress)
        store.theme_changed.connect(self._on_theme)
        self._refresh()

    @property
    def rows(self) -> dict[str, StrategyRow]:
        """The rows by strategy."""
        return self._rows

    def _refresh(self) -> None:
        state = self._store.state
        abilities = strategy_abilities(state)
        self._keep_rows([ability.spec for ability in abilities])
        runs = [item.run for item in drawn(state)]
        for ability in abilities:
            row = self._rows[ability.spec]
            result = result_of(state, ability.spec)
            row.box.setEnabled(ability.available)
            row.box.setChecked(ability.available and ability.spec in state.strategies)
            text = row_text(ability, result, runs)
            if ability.spec == PLAN and ability.available:
                text = self._with_plan(text)
            row.show_text(
                text,
                run_color_name(result.run) if result else "plain",
                has_result=result is not None and bool(result.run.launches),
                is_shown=result is not None and result.key == state.shown,
            )
        shown = state.shown_run
        setting = parameters_sentence(shown.run.chain.parameters) if shown else ""
        told = f"Results: {setting}." if setting else "No results yet."
        self.set_hint("ticked: next run", f"Run measures the ticked strategies. {told}")

    def _with_plan(self, text: RowText) -> RowText:
        """The row of the plan drawn by hand says which it is, and what it promises until it ran."""
        state = self._store.state
        plan = plan_to_run(state)
        if plan is None:
            return text
        tip = f"{text.tip}\nplan:{plan.text}"
        if text.time:
            return replace(text, tip=tip)
        shown = PlanOps(plan, tuple(next_ops(state)))
        return replace(text, below=row_words(plan), tip=tip, plan=shown)

    def _show_progress(self) -> None:
        """On the row that is being measured, how far that is."""
        progress = self._store.state.progress
        for spec, row in self._rows.items():
            is_mine = progress is not None and (
                progress.strategy == spec or (spec == PLAN and is_plan_spec(progress.strategy))
            )
            row.show_progress(_stage_alone(progress) if progress and is_mine else "")

    def _keep_rows(self, specs: list[str]) -> None:
        """Have a row for each strategy, in order; rows that stay keep their focus."""
        if specs == list(self._rows):
            return
        for spec in [spec for spec in self._rows if spec not in specs]:
            self._rows.pop(spec).deleteLater()
        ordered = {}
        for place, spec in enumerate(specs):
            row = self._rows.get(spec) or self._make_row(spec)
            self._list.insertWidget(place, row)
            ordered[spec] = row
        self._rows = ordered

    def _make_row(self, spec: str) -> StrategyRow:
        row = StrategyRow(spec)
        row.set_theme(self._store.theme)
        row.toggled_on.connect(lambda on: self._store.toggle_strategy(spec, on))
        row.clicked.connect(lambda: self._show(spec))
        return row

    def _show(self, spec: str) -> None:
        result = result_of(self._store.state, spec)
        if result is None:
            if spec == PLAN:
                self._store.plan.show()
            return
        if result.run.launches:
            self._store.show_run(result.key)
        elif result.run.error:
            self._store.tell(result.run.error)

    def _on_theme(self, theme: Theme) -> None:
        for row in self._rows.values():
            row.set_theme(theme)


def _stage_alone(progress: Progress) -> str:
    """The stage without where a sweep stands, which the window's foot has more room to say."""
    own = progress.sentence.rpartition(SEPARATOR)[2]
    return stage_words(replace(progress, sentence=own))
