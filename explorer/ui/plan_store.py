"""The part of the store that is about the fusion plan: editing it, taking an edit back."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from explorer.chains import CHAINS
from explorer.chains.own import is_own
from explorer.model.fusion import FusionPlan
from explorer.model.legality import Illegal
from explorer.model.messages import GroupingFound
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run, Scalar
from explorer.model.strategies import PLAN
from explorer.ui.plan_edit import set_link
from explorer.ui.plan_history import History, PlanStep, RemovalStep, Step
from explorer.ui.plan_state import (
    graph_drawn,
    inductor_plan,
    is_chosen_work,
    plan_drawn,
    plan_key,
)
from explorer.ui.state import SessionRun, State, peers

if TYPE_CHECKING:
    from explorer.ui.store import Store


class PlanEditing:
    """Edits of the plan and their history. It keeps no state of its own beside the history."""

    def __init__(self, store: "Store") -> None:
        self._store = store
        self.history = History()

    def set_link(
        self, first: str, second: str, *, fused: bool, continues: bool = False
    ) -> Illegal | None:
        """Put two ops into one group or into two.

        Args:
            first: Name of the earlier op.
            second: Name of the later op.
            fused: One group.
            continues: Part of the same stroke as the edit before, to be taken back with it.

        Returns:
            Why that cannot be; the plan is then as before.
        """
        state = self._store.state
        graph, plan = graph_drawn(state), plan_drawn(state)
        if graph is None or plan is None or plan.shares(first, second) is fused:
            return None
        changed = set_link(graph, plan, first, second, fused=fused)
        if isinstance(changed, Illegal):
            return changed
        self.edit(changed, continues=continues)
        return None

    def edit(self, plan: FusionPlan, *, continues: bool = False) -> None:
        """Make a legal plan of the drawn graph's ops the chain's, and let the op graph show it."""
        store = self._store
        if not self._adopt_chain():
            return
        state = store.state
        before = state.plans.get(state.plan_key)
        if plan == before and state.planning:
            return
        step = PlanStep(work=state.plan_key, before=before, after=plan, was_planning=state.planning)
        if continues:
            self.history.extend(step)
        else:
            self.history.add(step)
        self._show(plan, planning=True)
        store.toggle_strategy(PLAN, on=True)

    def show(self) -> None:
        """Let the op graph show the plan drawn by hand, if there is one."""
        state = self._store.state
        if state.plan_key in state.plans:
            self._show(state.plans[state.plan_key], planning=True)

    def go_on(self) -> None:
        """Let the op graph show the plan being drawn again, though another run is shown."""
        if not self._store.state.planning:
            self._store.change(planning=True)
            self._store.plan_changed.emit()

    def take_grouping(self, found: GroupingFound) -> None:
        """Take Inductor's answer; it becomes the plan if it is still about what is drawn."""
        self._store.change(grouping=found, asking=False)
        plan = inductor_plan(self._store.state)
        if plan is not None:
            self.edit(plan)
        self._store.plan_changed.emit()

    def set_asking(self, asking: bool) -> None:
        """Say whether Inductor is being asked for its grouping."""
        if asking != self._store.state.asking:
            self._store.change(asking=asking)
            self._store.plan_changed.emit()

    def undo(self) -> None:
        """Take back what was done last: an edit of this chain's plan, or a removal."""
        step = self.history.last(self._store.state.plan_key)
        if step is None:
            return
        self.history.undo(step)
        if isinstance(step, RemovalStep):
            self._store.bring_back(step)
        else:
            self._show(step.before, planning=step.was_planning)

    def redo(self) -> None:
        """Do again what was taken back last."""
        step = self.history.last_undone(self._store.state.plan_key)
        if step is None:
            return
        self.history.redo(step)
        if isinstance(step, RemovalStep):
            self._store.take_off(step.item.key)
        else:
            self._show(step.after, planning=True)

    def undo_removal(self) -> None:
        """Bring back the run that was taken off last, whatever was edited since."""
        step = self.history.last_removal()
        if step is not None:
            self.history.undo(step)
            self._store.bring_back(step)

    def removed(self, place: int, item: SessionRun) -> None:
        """Remember that a run was taken off the list."""
        self.history.add(RemovalStep(place=place, item=item))

    def next_undo(self) -> Step | None:
        """What :meth:`undo` would take back."""
        return self.history.last(self._store.state.plan_key)

    def next_redo(self) -> Step | None:
        """What :meth:`redo` would do again."""
        return self.history.last_undone(self._store.state.plan_key)

    def _show(self, plan: FusionPlan | None, *, planning: bool) -> None:
        store = self._store
        before = peers(store.state)
        key = store.state.plan_key
        plans = {k: v for k, v in store.state.plans.items() if k != key}
        if plan is not None:
            plans[key] = plan
        store.change(plans=plans, planning=planning)
        if plan is None:
            store.toggle_strategy(PLAN, on=False)
        store.plan_changed.emit()
        if [item.key for item in peers(store.state)] != [item.key for item in before]:
            store.runs_changed.emit()

    def _adopt_chain(self) -> bool:
        """Choose chain and direction that are drawn, where a shown run has other than chosen."""
        store, shown = self._store, self._store.state.shown_run
        if shown is None or store.state.planning or is_chosen_work(store.state, shown.run):
            return True
        run = shown.run
        if is_own(run.chain.name):
            # A recording's code is never run unasked.
            store.own_requested.emit(run.chain.name, run.chain.own or OwnCode())
            return False
        if run.chain.name not in CHAINS:
            store.tell(f"{run.chain.title} is no built-in chain, so that its plan cannot be run.")
            return False
        store.choose_chain(run.chain.name)
        store.set_direction(run.chain.direction)
        for name, value in _settings_of(run, store.state).items():
            store.set_parameter(name, str(value))
        return True


def _settings_of(run: Run, state: State) -> Mapping[str, Scalar]:
    """The settings to take over from a run: all on a like device, else what decides on its ops."""
    chain = CHAINS[run.chain.name]
    known = {parameter.name for parameter in chain.parameters}
    is_like = run.device.kind is state.device_kind
    return {
        name: value
        for name, value in run.chain.parameters.items()
        if name in known and (is_like or name in chain.deciding)
    }


def kept(state: State, chain: str, direction: Direction) -> dict[str, Any]:
    """Changes to the state when other work is chosen: its own plan counts from then on."""
    others = tuple(spec for spec in state.strategies if spec != PLAN)
    strategies = (*others, PLAN) if plan_key(chain, direction) in state.plans else others
    # Its op graph is what one wants to see, unless a run of it is shown.
    shown = state.shown_run
    planning = shown is not None and (shown.run.chain.name, shown.run.chain.direction) != (
        chain,
        direction,
    )
    return {"strategies": strategies, "planning": planning, "grouping": None}
