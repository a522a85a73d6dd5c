"""What the window shows, as one frozen value, and what follows from it. No Qt in here.

The :class:`~explorer.ui.store.Store` holds the value and tells when a part of it changed; views
read it and never each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from explorer.chains import CHAINS
from explorer.chains.descriptor import Chain, Parameter
from explorer.chains.own import chain_of
from explorer.model.comparison import is_comparable
from explorer.model.device import Abilities, Device, DeviceAbility, DeviceKind, StrategyAbility
from explorer.model.errors import UsageError
from explorer.model.fusion import FusionPlan, sweep_plans
from explorer.model.messages import GraphCaptured, GroupingFound, Progress
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run, Scalar, StrategyInfo
from explorer.model.same import Same
from explorer.model.strategies import (
    DEFAULT_SPECS,
    PLAN,
    SDPA,
    STRATEGIES,
    all_specs,
    is_plan,
    is_plan_run,
    parse_spec,
    plan_sentence,
    plan_spec,
    plan_text,
    specs_for_every_chain,
)
from explorer.ui.plan_state import (
    current_text,
    list_name,
    plan_key,
    plan_result,
    plan_to_run,
)

YOUR_PLAN = "Your fusion"
"""What the plan drawn by hand is called in lists; among the strategies it stands as ``plan``."""
DTYPE = "dtype"
"""The parameter whose values depend on what the device computes in."""
PLAN_PLACE = 1
"""Its place in the list of strategies: behind the baseline."""


class WorkerPhase(StrEnum):
    """What the worker is doing."""

    OFF = "off"
    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """The worker's phase with the sentence that the header shows."""

    phase: WorkerPhase = WorkerPhase.OFF
    sentence: str = "worker not started"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One sentence for the message bar.

    Attributes:
        sentence: What happened, with the remedy.
        is_error: Something failed, rather than merely happened.
        can_undo: The bar offers to take back the last deletion.
    """

    sentence: str
    is_error: bool = True
    can_undo: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRun:
    """A run in the session's list.

    Attributes:
        key: Unique in the session.
        run: What was measured.
        name: As the user calls it.
        pinned: Kept in the timelines whatever else is shown.
        recorded_in: File it was opened from; None if it was measured in this session.
    """

    key: str
    run: Run
    name: str
    pinned: bool = False
    recorded_in: str | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether it was not measured on this machine in this session."""
        return self.recorded_in is not None

    @property
    def origin(self) -> str:
        """Device and day of the measurement: ``NVIDIA H200 · 2026-11-30``."""
        return f"{self.run.device.name} · {self.run.created_at[:10]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterValues:
    """Settings as typed, and what the chain's descriptor makes of them.

    Attributes:
        texts: What the user typed, by parameter; those left out take the defaults.
        values: All parameters, where valid, defaults filled in.
        errors: A sentence for each parameter that is not valid.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Scalar] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Everything the window shows.

    Attributes:
        chain: Id of the chain that the next run measures.
        own: How the chain's code is called, where it is not built in.
        direction: What the next run measures of it.
        parameters: Its settings.
        swept: Name of the parameter that a sweep goes over; None for the most telling one.
        swept_texts: What was typed as its values, by parameter.
        strategies: Specs that the next run measures, in the order they were toggled on.
        device: Id of the device chosen; None leaves it to the worker.
        runs: The session's runs, oldest first.
        shown: Key of the run that scene, cards and graph show.
        compared: Key of the run beside it.
        launch: Index of the shown run's launch that was picked, None if none was.
        playhead_us: Moment shown, in the run's own time.
        playing: Whether the playhead moves by itself.
        theme: Name of the theme.
        worker: Its phase.
        progress: Where a request stands; None when none is in progress.
        abilities: What the worker can do; None until it said so.
        captured: Op graph of the chosen chain; None until captured.
        capture_failure: Why it could not be captured; empty unless that failed.
        plans: Fusion plans drawn by hand, by :attr:`plan_key` of chain and direction.
        planning: The op graph shows that plan rather than the shown run.
        grouping: Inductor's own grouping, as it was last asked for; None if it never was.
        asking: Inductor is being asked for it.
        notice: What the message bar says.
    """

    chain: str = next(iter(CHAINS))
    own: OwnCode | None = None
    direction: Direction = Direction.FORWARD
    parameters: ParameterValues = ParameterValues()
    swept: str | None = None
    swept_texts: Mapping[str, str] = field(default_factory=dict)
    strategies: tuple[str, ...] = DEFAULT_SPECS
    device: str | None = None
    runs: tuple[SessionRun, ...] = ()
    shown: str | None = None
    compared: str | None = None
    launch: int | None = None
    playhead_us: float = 0.0
    playing: bool = False
    theme: str = "dark"
    worker: WorkerState = WorkerState()
    progress: Progress | None = None
    abilities: Abilities | None = None
    captured: GraphCaptured | None = None
    capture_failure: str = ""
    plans: Mapping[str, FusionPlan] = field(default_factory=dict)
    planning: bool = False
    grouping: GroupingFound | None = None
    asking: bool = False
    notice: Notice | None = None

    @property
    def chain_descriptor(self) -> Chain:
        """The chosen chain."""
        return chain_of(self.chain, self.own)

    @property
    def plan_key(self) -> str:
        """What the plan of the next run is kept by."""
        return plan_key(self.chain, self.direction)

    @property
    def shown_run(self) -> SessionRun | None:
        """The run that is shown."""
        return self.find_run(self.shown)

    @property
    def compared_run(self) -> SessionRun | None:
        """The run beside it."""
        return self.find_run(self.compared)

    @property
    def device_ability(self) -> DeviceAbility | None:
        """What the chosen device can do; None until the worker said so."""
        if self.abilities is None:
            return None
        wanted = self.device or self.abilities.default_device
        return next((a for a in self.abilities.devices if a.device.id == wanted), None)

    @property
    def chosen_device(self) -> Device | None:
        """The device of the next run; None until the worker named it."""
        ability = self.device_ability
        return ability.device if ability else None

    @property
    def device_kind(self) -> DeviceKind:
        """Kind of the device of the next run; a CPU until the worker says otherwise."""
        device = self.chosen_device
        return device.kind if device else DeviceKind.CPU

    def find_run(self, key: str | None) -> SessionRun | None:
        """The run with that key, or None."""
        return None if key is None else _by_key(Same(self.runs)).get(key)


@lru_cache(maxsize=4)
def _by_key(runs: Same[tuple[SessionRun, ...]]) -> dict[str, SessionRun]:
    return {item.key: item for item in runs.it}


def next_values(state: State) -> Mapping[str, Scalar]:
    """The next run's settings; of a parameter whose values are compared, all that will run."""
    values, chain = dict(state.parameters.values), state.chain_descriptor
    if chain.compared is not None and chain.compared not in state.parameters.texts:
        values[chain.compared] = " | ".join(map(str, chain.compared_values))
    return values


def refused_choice(state: State, name: str, text: str) -> str:
    """Why a value cannot be picked on the chosen device; empty if it can."""
    parameters = state.chain_descriptor.parameters
    found = next((each for each in parameters if each.name == name), None)
    return dtype_reason(state, found, text.strip()) if found else ""


def with_device(state: State, checked: ParameterValues) -> ParameterValues:
    """The settings, with what the chosen device does not have among their errors."""
    errors = dict(checked.errors)
    for parameter in state.chain_descriptor.parameters:
        reason = dtype_reason(state, parameter, checked.values.get(parameter.name))
        if reason:
            errors[parameter.name] = reason
    return replace(checked, errors=errors)


def no_backward_sentence(chain: Chain) -> str:
    """Why a chain cannot run forward and backward."""
    return f"{chain.title} runs forward only: no training step differentiates it."


def dtype_reason(state: State, parameter: Parameter, value: object) -> str:
    """Why the chosen device has no such type of number; empty where it has, or nobody knows."""
    ability = state.device_ability
    if parameter.name != DTYPE or ability is None:
        return ""
    lacking = (each for each in ability.dtypes if each.name == value and not each.available)
    found = next(lacking, None)
    if found is None:
        return ""
    return found.reason or f"{ability.device.name} does not compute in {value}."


def check_parameters(chain: Chain, texts: Mapping[str, str], device: DeviceKind) -> ParameterValues:
    """Check each text by itself, so that every field can say what is wrong with it."""
    values: dict[str, Scalar] = {}
    errors: dict[str, str] = {}
    for parameter in chain.parameters:
        text = texts.get(parameter.name)
        if text is None:
            values[parameter.name] = parameter.default(device)
            continue
        try:
            values[parameter.name] = parameter.parse(text.strip())
        except UsageError as error:
            errors[parameter.name] = str(error)
    return ParameterValues(texts=dict(texts), values=values, errors=errors)


def peers(state: State) -> tuple[SessionRun, ...]:
    """The runs to set side by side with the shown one, failed ones included.

    That is the newest run of each strategy that did the shown run's work (the newest that did not
    fail, if there is one), the shown one in the place of its strategy's newest, the compared run
    and every pinned one; in the order of the table of strategies. A fusion plan is a strategy of
    its own, and of all plans that were run only the one drawn is among them.
    """
    shown = state.shown_run
    if shown is None:
        return ()
    return _peers(Same(state.runs), shown.key, state.compared, current_text(state))


# Every panel asks after every change, and a session may hold a thousand runs.
@lru_cache(maxsize=4)
def _peers(
    runs: Same[tuple[SessionRun, ...]], shown_key: str, compared: str | None, current: str | None
) -> tuple[SessionRun, ...]:
    shown = _by_key(runs)[shown_key]
    newest: dict[str, SessionRun] = {}
    for item in runs.it:
        if is_plan_run(item.run) and plan_text(item.run) != current:
            continue
        name = list_name(item.run)
        if is_comparable(item.run, shown.run) and (item.run.launches or name not in newest):
            newest[name] = item
    newest[list_name(shown.run)] = shown
    wanted = {*(item.key for item in newest.values()), compared}
    found = [item for item in runs.it if item.pinned or item.key in wanted]
    specs = list(all_specs())
    specs.insert(PLAN_PLACE, PLAN)
    order = {spec: place for place, spec in enumerate(specs)}

    def place(item: SessionRun) -> int:
        spec = PLAN if is_plan_run(item.run) else item.run.strategy.spec
        return order.get(spec, len(order))

    return tuple(sorted(found, key=place))


def drawn(state: State) -> tuple[SessionRun, ...]:
    """The runs to set side by side that have something to draw; a place in it is a colour."""
    return tuple(item for item in peers(state) if item.run.launches)


def place_of(items: Sequence[SessionRun], key: str | None) -> int:
    """Place of the run with that key, or -1."""
    return next((place for place, item in enumerate(items) if item.key == key), -1)


def result_of(state: State, spec: str) -> SessionRun | None:
    """The run of a strategy among those beside the shown one, doing the same work."""
    shown = state.shown_run
    if shown is None:
        return None
    if is_plan(spec):
        return plan_result(state)
    fit = [
        item
        for item in peers(state)
        if item.run.strategy.spec == spec and is_comparable(item.run, shown.run)
    ]
    if shown in fit:
        return shown
    return fit[-1] if fit else None


def strategy_abilities(state: State) -> tuple[StrategyAbility, ...]:
    """The strategies to list: those of the chosen device, then those that only runs know of.

    What the worker says of the chosen chain and its settings counts most. Until it has, strategies
    are offered that are for every chain, and for attention torch's own operator.
    """
    ability = state.device_ability
    known = [_as_in_table(each) for each in ability.strategies] if ability else list(_table())
    plan = next((each for each in known if is_plan(each.spec)), None)
    known = [each for each in known if not is_plan(each.spec)]
    known = _for_chain(known, state)
    known.insert(PLAN_PLACE, _your_plan(plan))
    specs = {strategy.spec for strategy in known}
    for item in peers(state):
        strategy = item.run.strategy
        if strategy.spec not in specs and not is_plan_run(item.run):
            specs.add(strategy.spec)
            reason = _why_absent(strategy, state)
            title = strategy.title or strategy.spec
            known.append(
                _as_in_table(
                    StrategyAbility(spec=strategy.spec, title=title, available=False, reason=reason)
                )
            )
    return tuple(known)


def _for_chain(known: Sequence[StrategyAbility], state: State) -> list[StrategyAbility]:
    """Those that are for the chosen chain, off where they refuse its settings."""
    told = {each.spec: each for each in state.captured.strategies} if state.captured else {}
    if told:
        return [_as_in_table(told[each.spec]) for each in known if each.spec in told]
    some = (SDPA,) if state.chain_descriptor.is_attention else ()
    return [each for each in known if each.spec in (*specs_for_every_chain(), *some)]


def _why_absent(strategy: StrategyInfo, state: State) -> str:
    """Why a strategy that has a result is not among those that are offered."""
    ability = state.device_ability
    here = {each.spec for each in ability.strategies} if ability else set(all_specs())
    if strategy.spec in here:
        if state.captured is None:
            return f"Whether it can run {state.chain} is known once the chain is captured."
        return f"It is not for {state.chain}."
    package = next((each.package for each in STRATEGIES if each.name == strategy.name), None)
    why = f"{package} is not installed here" if package else "This release cannot run it"
    return f"{why}; the result is from a recording."


def strategy_sentence(spec: str) -> str:
    """What a strategy does, empty if the table does not know it."""
    if is_plan(spec):
        return plan_sentence()
    for strategy in STRATEGIES:
        for variant_spec, variant in zip(strategy.specs, strategy.variants, strict=True):
            if variant_spec == spec:
                return variant.sentence
    return ""


def _your_plan(ability: StrategyAbility | None) -> StrategyAbility:
    """The row of the plan drawn by hand, which runs wherever the device does not say otherwise."""
    if ability is None:
        return StrategyAbility(spec=PLAN, title=YOUR_PLAN, available=True)
    return replace(ability, spec=PLAN, title=YOUR_PLAN)


def _table() -> Iterator[StrategyAbility]:
    for spec in all_specs():
        yield StrategyAbility(spec=spec, title=parse_spec(spec).title, available=True)


def _as_in_table(ability: StrategyAbility) -> StrategyAbility:
    """The same with the table's title, which charts and recordings of every release share."""
    try:
        return replace(ability, title=parse_spec(ability.spec).title)
    except UsageError:
        return ability


def wanted_strategies(state: State) -> tuple[str, ...]:
    """The strategies of the next run: toggled on and available, in the order they are listed.

    The plan drawn by hand is written out: ``plan:scale+mask|softmax``.
    """
    listed = strategy_abilities(state)
    unavailable = {strategy.spec for strategy in listed if not strategy.available}
    order = {strategy.spec: place for place, strategy in enumerate(listed)}
    wanted = [spec for spec in state.strategies if spec not in unavailable]
    wanted.sort(key=lambda spec: order.get(spec, len(order)))
    plan = plan_to_run(state)
    written = plan_spec(plan.text) if plan else None
    return tuple(
        spec for spec in (written if each == PLAN else each for each in wanted) if spec is not None
    )


def run_blocker(state: State) -> str | None:
    """Why no run can be started now, in one sentence with the remedy; None if it can."""
    if state.worker.phase is WorkerPhase.BUSY:
        return "A run is in progress; Cancel ends it."
    if state.parameters.errors:
        return next(iter(state.parameters.errors.values()))
    if not wanted_strategies(state):
        return "No strategy is switched on; switch one on in the list of strategies."
    return None


def swept_plans(state: State) -> tuple[FusionPlan, ...]:
    """Every plan of the chosen chain, for a sweep.

    Raises:
        UsageError: There are none or too many, or none can be run now; one sentence why.
    """
    if state.worker.phase is WorkerPhase.BUSY:
        raise UsageError("A run is in progress; Cancel ends it.")
    if state.parameters.errors:
        raise UsageError(next(iter(state.parameters.errors.values())))
    if state.captured is None:
        raise UsageError("The chain's ops are not known yet; the worker is capturing them.")
    return sweep_plans(state.captured.graph, state.chain)
