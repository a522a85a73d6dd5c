"""What a sweep of the chosen setting would run, and why it cannot be started. No Qt."""

from explorer.model.errors import UsageError
from explorer.model.fusion import sweep_plans
from explorer.model.run import Run
from explorer.model.strategies import DEFAULT_SPECS, plan_spec
from explorer.model.sweep import Sweep, plan_of_run, possible_plans, sweep_of
from explorer.ui.plan_state import is_chosen_work
from explorer.ui.state import State, strategy_abilities, swept_plans


def shown_sweep(state: State) -> Sweep | None:
    """The sweep to draw: of the shown run's work, or of the newest plan while nothing is shown."""
    shown = state.shown_run
    return sweep_of([item.run for item in state.runs], shown.run if shown else None)


def swept_count(state: State) -> int | None:
    """How many plans a sweep of the chosen setting runs; None where that is not known or none."""
    return possible_plans(state.captured.graph) if state.captured else None


def missing_plans(state: State) -> tuple[str, ...]:
    """Specs of the plans that have no run with launches in the chosen setting, in order."""
    captured = state.captured
    if captured is None or swept_count(state) is None:
        return ()
    done = {plan_of_run(run, captured.graph) for run in _in_setting(state) if run.launches}
    plans = sweep_plans(captured.graph, state.chain)
    return tuple(plan_spec(plan.text) for plan in plans if plan not in done)


def sweep_specs(state: State) -> tuple[str, ...]:
    """What a sweep sends: the missing plans, after eager and compile where they are missing too.

    Without those two there would be no baseline, and Inductor's own choice not be known.
    """
    plans = missing_plans(state)
    if not plans:
        return ()
    done = {run.strategy.spec for run in _in_setting(state) if run.launches}
    unable = {each.spec for each in strategy_abilities(state) if not each.available}
    before = [spec for spec in DEFAULT_SPECS if spec not in done and spec not in unable]
    return (*before, *plans)


def sweep_blocker(state: State) -> str | None:
    """Why no sweep can be started now, in one sentence; None if one can."""
    try:
        swept_plans(state)
    except UsageError as error:
        return str(error)
    for ability in strategy_abilities(state):
        if ability.spec == "compile" and not ability.available:
            return f"Plans need torch.compile: {ability.reason or 'it cannot run here.'}"
    if not missing_plans(state):
        return "Every plan of this setting has run."
    return None


def is_in_setting(state: State, run: Run) -> bool:
    """Whether a run did the work that is chosen for the next one, on the device chosen for it."""
    captured, device = state.captured, state.chosen_device
    return (
        captured is not None
        and device is not None
        and is_chosen_work(state, run)
        and run.chain.parameters == captured.parameters
        and (device.id, device.name) == (run.device.id, run.device.name)
    )


def _in_setting(state: State) -> list[Run]:
    return [item.run for item in state.runs if is_in_setting(state, item.run)]
