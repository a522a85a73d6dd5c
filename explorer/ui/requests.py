"""What the worker is asked for what is chosen in the window. Pure functions of the state; no Qt."""

from dataclasses import replace

from explorer.model.messages import GraphCaptured, GraphRequest, GroupingRequest, RunRequest
from explorer.model.run import Scalar
from explorer.ui.plan_state import plan_key
from explorer.ui.state import State


def run_request(
    state: State, strategies: tuple[str, ...], timing_s: float | None = None
) -> RunRequest:
    """To measure strategies in the chosen setting.

    Args:
        state: What is chosen.
        strategies: Specs, in the order to run them.
        timing_s: Seconds spent timing each; None for what the worker takes.
    """
    request = RunRequest(
        chain=state.chain,
        parameters=_parameters(state),
        strategies=strategies,
        device=device_of(state),
        direction=state.direction,
        own=state.own,
    )
    return request if timing_s is None else replace(request, timing_s=timing_s)


def graph_request(state: State) -> GraphRequest:
    """To capture the chosen chain."""
    return GraphRequest(
        chain=state.chain,
        parameters=dict(state.parameters.values),
        device=device_of(state),
        direction=state.direction,
        own=state.own,
    )


def grouping_request(state: State) -> GroupingRequest:
    """To have Inductor say how it would group the chosen chain's ops."""
    return GroupingRequest(
        chain=state.chain,
        parameters=_parameters(state),
        device=device_of(state),
        direction=state.direction,
        own=state.own,
    )


def device_of(state: State) -> str:
    """Id of the device that is asked for: the one chosen, else the worker's own choice."""
    return state.device or (state.abilities.default_device if state.abilities else "auto")


def is_of_choice(state: State, request: GraphRequest) -> bool:
    """Whether a request is about the chain that is chosen still."""
    is_chosen = plan_key(request.chain, request.direction) == state.plan_key
    return is_chosen and request.own == state.own


def is_of_setting(state: State, captured: GraphCaptured) -> bool:
    """Whether a graph was captured in the setting and on the device chosen still."""
    is_alike = captured.parameters == state.parameters.values
    return is_alike and captured.device == device_of(state)


def _parameters(state: State) -> dict[str, Scalar]:
    """Of the next run; what was typed until the device is known, and so the defaults."""
    parameters = state.parameters
    if state.chosen_device is not None:
        return dict(parameters.values)
    return {name: parameters.values[name] for name in parameters.texts}
