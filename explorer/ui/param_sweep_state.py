"""What a parameter sweep of the chosen chain would run, and which sweep is shown. No Qt."""

from explorer.chains.descriptor import Chain, Parameter
from explorer.model.errors import UsageError
from explorer.model.messages import RunRequest
from explorer.model.param_sweep import ParameterSweep, sweeps_in
from explorer.model.run import Scalar
from explorer.model.sweep_range import POINT_TIMING_S, SweepRange, points
from explorer.ui.state import State, dtype_reason, run_blocker

DOUBLINGS_BELOW, DOUBLINGS_ABOVE = 3, 1
"""How far a sweep that nobody wrote down goes from the default: from an eighth to twice of it."""
FEW = 64
"""A number that has no more values than this is swept from its least to its greatest."""


def swept_parameter(state: State) -> Parameter | None:
    """The parameter that a sweep would go over: the one chosen, else the most telling one."""
    parameters = state.chain_descriptor.parameters
    chosen = next((each for each in parameters if each.name == state.swept), None)
    return chosen or telling_parameter(state.chain_descriptor)


def telling_parameter(chain: Chain) -> Parameter | None:
    """The one that says how long the chain is, else what is compared, else the largest size."""
    named = {each.name: each for each in chain.parameters}
    for name in (chain.length_parameter, chain.compared, "seq_len", "rows", "tokens"):
        if name in named:
            return named[name]
    sizes = [each for each in chain.parameters if each.kind == "int"]
    return next(iter(sizes or chain.parameters), None)


def suggested_text(state: State, parameter: Parameter) -> str:
    """The values to sweep where none were typed, as on the command line."""
    if parameter.kind == "choice":
        possible = [each for each in parameter.choices if not dtype_reason(state, parameter, each)]
        return ",".join(possible or parameter.choices)
    if parameter.kind == "float":
        default = parameter.default(state.device_kind)
        return ",".join(dict.fromkeys(f"{value:g}" for value in (parameter.minimum, default)))
    low, high = int(parameter.minimum), int(parameter.maximum)
    if high - low < FEW:
        return f"{low}:{high}:x2" if low > 0 else f"{low}:{high}:+1"
    default = parameter.default(state.device_kind)
    assert isinstance(default, int), "a whole number has a whole default"
    values = [default]
    for _ in range(DOUBLINGS_BELOW):
        half, rest = divmod(values[0], 2)
        if rest or half < low or half % parameter.multiple_of:
            break
        values.insert(0, half)
    top = min(default << DOUBLINGS_ABOVE, high)
    return f"{values[0]}:{top}:x2" if top > values[0] else str(default)


def swept_text(state: State) -> str:
    """The values as typed, else as suggested; empty where the chain has no parameter."""
    parameter = swept_parameter(state)
    if parameter is None:
        return ""
    return state.swept_texts.get(parameter.name) or suggested_text(state, parameter)


def swept_values(state: State) -> tuple[Scalar, ...]:
    """The values that a sweep would run.

    Raises:
        UsageError: The text cannot be read, or a value is none that the device has.
    """
    parameter = swept_parameter(state)
    if parameter is None:
        raise UsageError(f"{state.chain_descriptor.title} has no parameter to sweep.")
    values = SweepRange(name=parameter.name, text=swept_text(state)).values(parameter)
    for value in values:
        reason = dtype_reason(state, parameter, value)
        if reason:
            raise UsageError(reason)
    return values


def param_sweep_blocker(state: State) -> str | None:
    """Why no parameter sweep can be started now, in one sentence; None if one can."""
    blocker = run_blocker(state)
    if blocker is not None:
        return blocker
    try:
        swept_values(state)
    except UsageError as error:
        return str(error)
    return None


def swept_points(state: State, request: RunRequest) -> tuple[RunRequest, ...]:
    """The requests of a sweep, one a value.

    Args:
        state: Says what is swept, over which values.
        request: What all points have in common.

    Raises:
        UsageError: As :func:`swept_values`.
    """
    parameter = swept_parameter(state)
    values = swept_values(state)
    return points(request, parameter.name if parameter else "", values, POINT_TIMING_S)


def compared_points(state: State, request: RunRequest) -> tuple[RunRequest, ...]:
    """The requests of a run of a chain whose variants are the point; empty of any other.

    So it is unless the parameter that says the variant was set by hand.
    """
    chain = state.chain_descriptor
    if chain.compared is None or chain.compared in state.parameters.texts:
        return ()
    return points(request, chain.compared, chain.compared_values, request.timing_s)


def shown_param_sweep(state: State) -> ParameterSweep | None:
    """The parameter sweep to draw: the shown run's, else the chosen chain's newest, else any."""
    found = sweeps_in([item.run for item in state.runs])
    shown = state.shown_run
    if shown is not None:
        for sweep in found:
            if any(run is shown.run for run in sweep.runs):
                return sweep
    of_chain = [sweep for sweep in found if sweep.first.chain.name == state.chain]
    return next(reversed(of_chain or found), None)
