"""The operator chain with its controls: what the next run fuses, or what the shown run did."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QRect, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from explorer.chains.own import is_own, read_name
from explorer.model.errors import UsageError
from explorer.model.fusion import ALL, EACH, INDUCTOR
from explorer.model.legality import Illegal, break_sentence, cured
from explorer.model.strategies import is_plan_run, plan_spec
from explorer.model.units import format_bytes
from explorer.ui.callout import Callout
from explorer.ui.graph_bar import GraphBar
from explorer.ui.graph_scroll import MOST_ZOOM, GraphScroll
from explorer.ui.graph_view import GraphView
from explorer.ui.graph_words import Preview
from explorer.ui.op_links import ChainPicture, Link
from explorer.ui.panel import Panel
from explorer.ui.plan_bar import PlanText, PresetBar
from explorer.ui.plan_edit import (
    as_whole,
    as_written,
    bare_text,
    change_of,
    plan_from_text,
    totals,
)
from explorer.ui.plan_state import (
    graph_drawn,
    inductor_plan,
    plan_drawn,
    shows_plan,
)
from explorer.ui.plan_words import MINUS, made_words, planned_words, preview_of, saving
from explorer.ui.state import YOUR_PLAN, State
from explorer.ui.store import Store
from explorer.ui.theme import Theme
from explorer.ui.turns import Turns

if TYPE_CHECKING:
    from explorer.model.fusion import FusionPlan

CURE = "Fuse those in between too"
TITLE = "Operator chain"
INVITATION = "click a link"


class GraphPanel(Panel):
    """The op graph, fed from the store; what is switched in it goes back into the store.

    Until a link is touched it shows the shown run, with that run's launches and bytes; from then
    on the plan, with planned bytes, until the plan was run.

    Signals:
        op_activated: Name of an op that the user picked.
        inductor_requested: The plan shall be as Inductor groups; nothing here knows that yet.
        asking_cancelled: Inductor need not be asked any more.
        export_requested: The plan shall be written as a module.
    """

    op_activated = Signal(str)
    inductor_requested = Signal()
    asking_cancelled = Signal()
    export_requested = Signal()

    def __init__(
        self,
        store: Store,
        turns: Turns | None = None,
        parent: QWidget | None = None,
        *,
        can_run: bool = False,
    ) -> None:
        """Make the panel.

        Args:
            store: What is shown and edited.
            turns: Spreads repainting.
            parent: Owner.
            can_run: There is a worker that could be asked for Inductor's grouping.
        """
        super().__init__(TITLE, parent=parent)
        self._store = store
        self._can_run = can_run
        self._stroke_has_edit = False
        self._cure: FusionPlan | None = None
        self.presets = PresetBar()
        self.view = GraphView(turns=turns)
        self.text = PlanText()
        self.sight = GraphScroll(self.view)
        self.bar = GraphBar()
        self.callout = Callout(self.view)
        self._lay_out()
        self._connect()
        self._set_theme(store.theme)
        self._refresh()

    def _lay_out(self) -> None:
        # Rather cut than wider: the column has its width from the scene beside it.
        self._hint.setMinimumWidth(1)
        self.body.setContentsMargins(4, 0, 4, 8)
        self.body.setSpacing(3)
        self.presets.setContentsMargins(9, 0, 2, 0)
        self.text.setContentsMargins(10, 0, 10, 0)
        self.body.addWidget(self.presets)
        self.body.addWidget(self.bar)
        self.body.addWidget(self.sight, 1)
        self.body.addWidget(self.text)

    def _connect(self) -> None:
        store, view, presets = self._store, self.view, self.presets
        view.set_previewer(self._preview)
        view.op_activated.connect(self.op_activated)
        view.stroke_begun.connect(self._on_stroke)
        view.link_set.connect(self._on_link_set)
        view.why_requested.connect(self._explain)
        self.sight.zoomed.connect(self._show_bar)
        self.sight.zoomed.connect(self.callout.close_it)
        self.bar.stepped.connect(self.sight.step)
        self.bar.whole_requested.connect(lambda: self.sight.set_zoom(1))
        self.bar.fit_requested.connect(self.sight.fit)
        self.bar.folds_requested.connect(view.fold_all)
        presets.each_requested.connect(self._take_each)
        presets.all_requested.connect(self._take_whole)
        presets.inductor_requested.connect(self._take_inductor)
        presets.asking_cancelled.connect(self.asking_cancelled)
        presets.undo_requested.connect(store.plan.undo)
        presets.redo_requested.connect(store.plan.redo)
        self.text.entered.connect(self.take_text)
        self.text.left.connect(self.callout.close_it)
        self.callout.remedy_chosen.connect(self._take_cure)
        self.callout.closed.connect(self._on_callout_closed)
        menu = presets.menu
        menu.addAction("Copy the plan\tCtrl+C", self.copy_text)
        menu.addAction("Paste a plan\tCtrl+V", self.paste_text)
        menu.addSeparator()
        self.export_action = menu.addAction("Export plan…", self.export_requested.emit)
        for keys, slot in ((QKeySequence.StandardKey.Copy, self.copy_text),
                           (QKeySequence.StandardKey.Paste, self.paste_text)):  # fmt: skip
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)
        for signal in (
            store.shown_changed,
            store.captured_changed,
            store.worker_changed,
            store.plan_changed,
            store.runs_changed,
            store.chain_changed,
        ):
            signal.connect(self._refresh)
        store.theme_changed.connect(self._set_theme)

    @override
    def event(self, event: QEvent) -> bool:
        # Escape closes the explanation, also while it would otherwise cancel a run.
        is_key = event.type() in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        is_escape = isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape
        if not (is_key and is_escape and self.callout.isVisible()):
            return super().event(event)
        event.accept()
        if event.type() is QEvent.Type.KeyPress:
            self.callout.close_it()
        return True

    # What is shown.

    def _refresh(self) -> None:
        state = self._store.state
        picture, memory = picture_of(state)
        self.view.set_picture(picture, memory, self._empty_sentence())
        plan, graph = plan_drawn(state), graph_drawn(state)
        is_known = plan is not None and graph is not None
        for part in (self.presets, self.text):
            part.setEnabled(is_known)
        self.text.show_plan(plan.text if plan else "")
        self._show_words(state)
        self._show_preset(state)
        undo, redo = self._store.plan.next_undo(), self._store.plan.next_redo()
        self.presets.undo.setEnabled(undo is not None)
        self.presets.redo.setEnabled(redo is not None)

    def _show_words(self, state: State) -> None:
        plan, graph, shown = plan_drawn(state), graph_drawn(state), state.shown_run
        self.text.show_saving(INVITATION if plan else "", "", "")
        if plan is None or graph is None:
            self._head(TITLE, "")
        elif shows_plan(state):
            found = totals(graph, plan)
            share, told = saving(graph, found)
            is_touched = state.plan_key in state.plans
            if is_touched:
                self._head(YOUR_PLAN, planned_words(found), told)
            else:
                self._head(TITLE, f"{format_bytes(found.n_bytes)} planned", told)
            if share:
                kind = "better" if share.startswith(MINUS) else "worse"
                self.text.show_saving(share, told, kind)
        elif shown is not None:
            words, told = made_words(shown.run)
            self._head(YOUR_PLAN if is_plan_run(shown.run) else TITLE, words, told)

    def _head(self, title: str, words: str, tip: str = "") -> None:
        """The heading line; for a screen reader the panel keeps its name."""
        self.set_title(title)
        self.setAccessibleName(f"{TITLE}: {title}, {words}" if words else TITLE)
        self.set_hint(words, tip or "Click a link to fuse or to part what it joins")

    def _show_preset(self, state: State) -> None:
        plan, graph = plan_drawn(state), graph_drawn(state)
        known = inductor_plan(state)
        fitting: set[str] = set()
        if plan is not None and graph is not None:
            offers = ((EACH, as_written(graph)), (ALL, as_whole(graph)), (INDUCTOR, known))
            # Several may come to the same, which is worth seeing.
            fitting = {name for name, offer in offers if offer == plan}
        self.presets.show_presets(fitting)
        self.presets.show_asking(state.asking)
        can_ask = self._can_run or known is not None
        self.presets.inductor.setEnabled(can_ask)
        self.presets.inductor.setToolTip(
            "As Inductor groups: from the run of torch.compile in this setting"
            if known is not None
            else "As Inductor groups: it is asked by compiling the chain, without running it"
            if can_ask
            else "As Inductor groups: no run of torch.compile is here, and no worker to ask"
        )

    def _empty_sentence(self) -> str:
        state = self._store.state
        chain = state.chain_descriptor
        if is_own(state.chain):
            what = [chain.title, f"from {read_name(state.chain).where}"]
        else:
            ops = " → ".join(op.name for op in chain.ops(state.parameters.values))
            what = [chain.formula, ops]
        end = state.capture_failure or "Its graph is drawn once the worker captured it."
        return "\n\n".join([*what, end])

    def _set_theme(self, theme: Theme) -> None:
        self.view.set_theme(theme)
        self.presets.set_theme(theme)

    def _show_bar(self) -> None:
        """The row over the graph, which one that is seen whole and has no parts does not need."""
        view, scroll, folding = self.view, self.sight, self.view.folding
        self.bar.show_zoom(scroll.zoom, view.fitting_zoom, MOST_ZOOM, is_fitted=scroll.is_fitted)
        self.bar.show_folds(len(folding.parts), len(folding.closed), folding.sentence())
        # The row itself takes room: what counts is whether the graph is seen whole without it.
        taken = self.bar.height() + self.body.spacing() if self.bar.isVisible() else 0
        is_large = view.lowest_height > scroll.viewport().height() + taken
        self.bar.setVisible(is_large or bool(folding.parts) or scroll.zoom != 1)

    # Switching links.

    def _preview(self, link: Link) -> Preview | None:
        state = self._store.state
        graph, plan = graph_drawn(state), plan_drawn(state)
        if graph is None or plan is None:
            return None
        change = change_of(graph, plan, link.first, link.second)
        return preview_of(change, is_fused=plan.shares(link.first, link.second))

    def _on_stroke(self) -> None:
        self._stroke_has_edit = False
        self.callout.close_it()

    def _on_link_set(self, first: str, second: str, fused: bool) -> None:
        illegal = self._store.plan.set_link(
            first, second, fused=fused, continues=self._stroke_has_edit
        )
        if illegal is None:
            self._stroke_has_edit = True
        else:
            self._refuse(illegal, self.view.refuse(first, second))

    def _refuse(self, illegal: Illegal, place: QRect) -> None:
        """Say why a plan cannot be, and offer the smallest that can."""
        state = self._store.state
        graph, plan = graph_drawn(state), plan_drawn(state)
        if graph is None or plan is None:
            return
        self._cure = cured(graph, plan, illegal.cure)
        self.callout.explain(illegal.sentence, place, remedy=CURE if illegal.cure else "")
        self.sight.bring_into_sight(self.callout.geometry().united(place))

    def _take_cure(self) -> None:
        if self._cure is not None:
            self._store.plan.edit(self._cure)
        self.view.setFocus()

    def _on_callout_closed(self) -> None:
        self.view.forgive()

    def _explain(self, first: str, second: str) -> None:
        """Why the compiler left two ops apart, with what it said itself."""
        shown = self._store.state.shown_run
        link = self._link(first, second)
        refusal = link.refusal if link else None
        place = self.view.rect_between(first, second)
        if link is not None and link.graph_break is not None:
            self.callout.explain(break_sentence(first, second, link.graph_break), place)
            self.sight.bring_into_sight(self.callout.geometry().united(place))
            return
        if shown is None or refusal is None:
            return
        self.callout.explain(refusal.sentence, place, raw=refusal.raw)
        self.sight.bring_into_sight(self.callout.geometry())
        (self.callout.raw_button if refusal.raw else self.callout.close_button).setFocus()

    def _link(self, first: str, second: str) -> Link | None:
        picture, _ = picture_of(self._store.state)
        links = (*picture.links, *(side.link for side in picture.side_links)) if picture else ()
        return next((x for x in links if (x.first, x.second) == (first, second)), None)

    # Presets and text.

    def _take_each(self) -> None:
        graph = graph_drawn(self._store.state)
        if graph is not None:
            self._store.plan.edit(as_written(graph))
        self._show_preset(self._store.state)

    def _take_whole(self) -> None:
        graph = graph_drawn(self._store.state)
        if graph is not None:
            self._store.plan.edit(as_whole(graph))
        self._show_preset(self._store.state)

    def _take_inductor(self) -> None:
        known = inductor_plan(self._store.state)
        if known is not None:
            self._store.plan.edit(known)
        else:
            self.inductor_requested.emit()
        self._show_preset(self._store.state)

    def copy_text(self) -> None:
        """Put the plan into the clipboard as it is written on the command line."""
        plan = plan_drawn(self._store.state)
        if plan is not None:
            QGuiApplication.clipboard().setText(plan_spec(plan.text))

    def paste_text(self) -> None:
        """Take a plan from the clipboard."""
        self.take_text(QGuiApplication.clipboard().text())

    def take_text(self, text: str) -> None:
        """Take a plan as text; one that is wrong is refused beside the field and stays there."""
        state = self._store.state
        graph = graph_drawn(state)
        if graph is None:
            return
        self.callout.close_it()
        if bare_text(text) == INDUCTOR and self.presets.inductor.isEnabled():
            self.text.give_up()
            self._take_inductor()
            return
        try:
            plan = plan_from_text(text, graph, state.chain)
        except UsageError as error:
            self._refuse_text(text, str(error))
            return
        if isinstance(plan, Illegal):
            self._cure = cured(graph, as_written(graph), plan.cure)
            self._refuse_text(text, plan.sentence, CURE if plan.cure else "")
            return
        self.text.give_up()
        self._store.plan.edit(plan)
        self._refresh()

    def _refuse_text(self, text: str, sentence: str, remedy: str = "") -> None:
        self.text.show_wrong(text.strip())
        seen = self.view.visibleRegion().boundingRect()
        place = QRect(seen.left(), seen.bottom() - 1, seen.width(), 1)
        self.callout.explain(sentence, place, remedy=remedy)


def picture_of(state: State) -> tuple[ChainPicture | None, str]:
    """The chain to draw, and what the memory of its device is called."""
    shown, device = state.shown_run, state.chosen_device
    graph, plan = graph_drawn(state), plan_drawn(state)
    is_of_run = shown is not None and graph is shown.run.graph
    if shown is not None and (is_of_run or device is None):
        memory = shown.run.device.memory_name
    else:
        memory = device.memory_name if device else "memory"
    if graph is None:
        return None, memory
    # Imported once there is something to draw: the window is on the screen sooner.
    from explorer.ui.chain_picture import chain_picture

    if shown is not None and not shows_plan(state):
        return chain_picture(graph, shown.run), memory
    return chain_picture(graph, None, plan), memory
