"""Which plan the window is about, and which graph it is drawn on: what follows from the state.

The op graph shows the shown run until a link is touched; from then on it shows the plan, until a
run is picked again or the plan was run. No Qt.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

from explorer.chains import CHAINS
from explorer.model.comparison import is_comparable
from explorer.model.fusion import FusionPlan, named_ops, parse_plan
from explorer.model.opgraph import OpGraph
from explorer.model.run import Direction, Run
from explorer.model.same import Same
from explorer.model.strategies import PLAN, is_plan, is_plan_run, plan_text
from explorer.ui.plan_edit import as_written, fitted, grouping_of, restricted

if TYPE_CHECKING:
    from explorer.ui.state import SessionRun, State

COMPILED = "compile"
"""The strategy whose launches show Inductor's own grouping."""


def plan_key(chain: str, direction: Direction) -> str:
    """What plans are kept by: forward and backward have ops that forward alone has not."""
    return chain if direction is Direction.FORWARD else f"{chain} {direction.value}"


def work_drawn(state: "State") -> tuple[str, Direction]:
    """Id of the chain that the op graph shows, and in which direction."""
    shown = state.shown_run
    if shown is not None and not state.planning:
        return shown.run.chain.name, shown.run.chain.direction
    return state.chain, state.direction


def is_chosen_work(state: "State", run: Run) -> bool:
    """Whether a run is of the chosen chain in the chosen direction, whatever its size."""
    return (run.chain.name, run.chain.direction) == (state.chain, state.direction)


def graph_drawn(state: "State") -> OpGraph | None:
    """The op graph to draw and to plan on; None before any is known.

    While planning, that is the next run's as captured. The shown run's stands for it where there
    is no capture, or where the run comes from another device: then its sizes are what one looks at.
    """
    shown, captured = state.shown_run, state.captured
    if shown is None:
        return captured.graph if captured else None
    if not state.planning:
        return shown.run.graph
    if captured is None:
        return shown.run.graph if is_chosen_work(state, shown.run) else None
    if _stands_for_next(state, shown.run):
        return shown.run.graph
    return captured.graph


def _stands_for_next(state: "State", run: Run) -> bool:
    """Whether a run's graph is as good as the captured one, with the sizes that one looks at."""
    captured, device = state.captured, state.chosen_device
    if not is_chosen_work(state, run) or captured is None:
        return False
    if [op.name for op in run.graph.ops] != [op.name for op in captured.graph.ops]:
        return False
    is_elsewhere = device is None or (device.id, device.name) != (run.device.id, run.device.name)
    return is_elsewhere or run.chain.parameters == captured.parameters


def plan_drawn(state: "State") -> FusionPlan | None:
    """The grouping that the op graph shows, edited or not; None where there is no graph."""
    graph = graph_drawn(state)
    if graph is None:
        return None
    edited = state.plans.get(state.plan_key)
    if state.planning:
        return as_written(graph) if edited is None else _fit(edited, graph)
    shown = state.shown_run
    if shown is not None and shown.run.launches:
        return grouping(shown.run)
    if edited is not None and shown is None:
        return _fit(edited, graph)
    return as_written(graph)


def shows_plan(state: "State") -> bool:
    """Whether the op graph shows a plan that is yet to be run, not what the shown run did."""
    shown = state.shown_run
    if shown is None or not shown.run.launches:
        return True
    if not state.planning:
        return False
    return graph_drawn(state) is not shown.run.graph or plan_drawn(state) != grouping(shown.run)


def plan_to_run(state: "State") -> FusionPlan | None:
    """The plan of "Your fusion" for the ops of the next run; None while those are not known.

    That is the shown run's while it is a plan run of this chain, else the one drawn by hand.
    """
    ops = next_ops(state)
    if not ops:
        return None
    plan = _current(state)
    if plan is None:
        return restricted(FusionPlan(()), ops)
    captured = state.captured
    if captured is not None and [op.name for op in captured.graph.ops] == ops:
        return _fit(plan, captured.graph)
    return restricted(plan, ops)


def current_text(state: "State") -> str | None:
    """The whole text of "Your fusion" for the shown run's ops, None while there is none."""
    plan, shown = _current(state), state.shown_run
    if plan is None or shown is None:
        return plan.text if plan else None
    return restricted(plan, [op.name for op in shown.run.graph.ops]).text


def _current(state: "State") -> FusionPlan | None:
    shown = state.shown_run
    if shown is not None and not state.planning and is_chosen_work(state, shown.run):
        if is_plan_run(shown.run):
            return grouping(shown.run)
        if state.plan_key not in state.plans and shown.run.launches:
            return grouping(shown.run)
    return state.plans.get(state.plan_key)


def next_ops(state: "State") -> list[str]:
    """Names of the next run's ops in their order; empty while they are not known."""
    chain = CHAINS.get(state.chain)
    is_forward = state.direction is Direction.FORWARD
    if chain is not None and is_forward and not state.parameters.errors:
        return [op.name for op in chain.ops(state.parameters.values)]
    return [op.name for op in state.captured.graph.ops] if state.captured else []


def inductor_plan(state: "State") -> FusionPlan | None:
    """Inductor's own grouping of what is drawn, from the newest run that shows it or as asked."""
    graph = graph_drawn(state)
    if graph is None:
        return None
    ops = [op.name for op in graph.ops]
    for item in reversed(state.runs):
        run = item.run
        if run.strategy.spec == COMPILED and run.launches and _is_same_setting(state, run, graph):
            return grouping(run)
    found = state.grouping
    if found is not None and (found.chain, state.direction) == work_drawn(state):
        named = named_ops(found.plan)
        if set(ops) <= set(named):
            return fitted(parse_plan(found.plan, named, found.chain), graph)
    return None


def _is_same_setting(state: "State", run: Run, graph: OpGraph) -> bool:
    shown = state.shown_run
    if shown is not None and graph is shown.run.graph:
        return is_comparable(run, shown.run)
    captured = state.captured
    return (
        captured is not None
        and is_chosen_work(state, run)
        and run.chain.parameters == captured.parameters
        and run.device.id == captured.device
    )


def plan_result(state: "State") -> "SessionRun | None":
    """The newest run of "Your fusion" in the shown run's setting; one that did not fail first."""
    shown, text = state.shown_run, current_text(state)
    if shown is None or text is None:
        return None
    if is_plan_run(shown.run) and plan_text(shown.run) == text:
        return shown
    fit = [
        item
        for item in state.runs
        if is_plan_run(item.run)
        and plan_text(item.run) == text
        and is_comparable(item.run, shown.run)
    ]
    done = [item for item in fit if item.run.launches]
    found = done or fit
    return found[-1] if found else None


def plan_to_export(state: "State") -> Run | None:
    """The run whose plan the op graph shows, None where that plan was not run."""
    found = plan_result(state)
    return found.run if found is not None and found.run.strategy.plan else None


def list_name(run: Run) -> str:
    """What a run is listed by: its strategy, and a plan run by the whole plan."""
    return f"{PLAN}:{plan_text(run)}" if is_plan_run(run) else run.strategy.spec


def is_plan_spec(spec: str | None) -> bool:
    """Whether a spec is a plan, or the row that stands for the one drawn by hand."""
    return spec is not None and is_plan(spec)


def grouping(run: Run) -> FusionPlan:
    """The grouping that a run shows, kept for the runs looked at last."""
    return _grouping(Same(run))


def _fit(plan: FusionPlan, graph: OpGraph) -> FusionPlan:
    """The plan for a graph's ops; kept, since several views ask for the same one after an edit."""
    return _fitted(plan, Same(graph))


@lru_cache(maxsize=64)
def _grouping(run: Same[Run]) -> FusionPlan:
    return grouping_of(run.it)


@lru_cache(maxsize=64)
def _fitted(plan: FusionPlan, graph: Same[OpGraph]) -> FusionPlan:
    return fitted(plan, graph.it)
