"""Fusion plans on the command line: their text is checked, and ``plan:*`` becomes every plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.chains.descriptor import Chain
from explorer.chains.own import is_own
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from explorer.model.fusion import (
    ALL,
    BETWEEN,
    EACH,
    INDUCTOR,
    PRESETS,
    SWEEP,
    TRITON,
    WITHIN,
    FusionPlan,
    named_ops,
    parse_plan,
)
from explorer.model.opgraph import OF_BACKWARD
from explorer.model.run import Direction, Run, Scalar
from explorer.model.strategies import is_plan, is_plan_run, parse_spec, plan_spec, plan_text
from explorer.model.sweep import plan_of_run

USUAL_TIMING_S, SWEEP_TIMING_S = 1.0, 0.3
"""Seconds spent timing each strategy; the second if a sweep is among them, of up to 256 plans."""

MOST_LISTED = 8

PLAN_FORMS = (EACH, INDUCTOR, ALL, SWEEP)
"""What a plan can be besides a text, in the order in which it is offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A strategy to run.

    Attributes:
        spec: As the worker is asked for it.
        title: What progress calls it; of a sweep's plan with its number.
    """

    spec: str
    title: str


def plan_example(chain: Chain) -> str:
    """A plan of the chain that shows how one is written: two pairs from its middle."""
    names = [op.name for op in chain.ops(chain.resolve({}, DeviceKind.CPU))]
    first = max(0, (len(names) - 4) // 2)
    pairs = (names[i : min(i + 2, len(names))] for i in (first, first + 2))
    return BETWEEN.join(WITHIN.join(pair) for pair in pairs if pair)


def is_sweep(spec: str) -> bool:
    """Whether a spec stands for every plan of the chain."""
    return is_plan(spec) and parse_spec(spec).option == SWEEP


def check_plan(
    spec: str,
    chain: Chain,
    settings: Mapping[str, Scalar],
    device: str,
    direction: Direction = Direction.FORWARD,
) -> None:
    """Make sure that a plan's text can be read, as far as that takes no torch.

    Args:
        spec: Of a plan.
        chain: Whose ops it names.
        settings: Parameters that were set; the rest are a device's defaults.
        device: As on the command line.
        direction: With a backward pass any op is taken whose name could be one of its ops, which
            are known only once it was captured.

    Raises:
        UsageError: An op is unknown or named twice, or one is missing.
    """
    option = parse_spec(spec).option or ""
    if option in (INDUCTOR, SWEEP):
        return
    if option == TRITON:
        raise UsageError(
            f"{chain.id} has no kernels written by hand yet, and so no {spec}; "
            f"{', '.join(map(plan_spec, PLAN_FORMS))} are there."
        )
    if is_own(chain.id):
        # Which ops there are is known only once it was captured, and the worker says it then.
        parse_plan(option, named_ops(option), chain.id)
        return
    backward: tuple[str, ...] = ()
    if direction is not Direction.FORWARD and option not in PRESETS:
        backward = tuple(
            dict.fromkeys(name for name in named_ops(option) if name.startswith(OF_BACKWARD))
        )
    kinds = [kind for kind in DeviceKind if device.partition(":")[0] in (kind.value, "auto")]
    for kind in kinds:
        parameters = chain.resolve(settings, kind)
        try:
            chain.check_has(named_ops(option), parameters)
            known = [op.name for op in chain.ops(parameters)]
            parse_plan(option, [*known, *backward], chain.id)
        except UsageError:
            # Defaults that depend on the device may leave out an op on one kind alone.
            if kind is kinds[-1]:
                raise
        else:
            return


def steps(strategies: Sequence[str], swept: Sequence[FusionPlan]) -> tuple[Step, ...]:
    """The strategies in order, ``plan:*`` replaced by the plans of the sweep."""
    found: list[Step] = []
    for spec in strategies:
        if not is_sweep(spec):
            found.append(Step(spec=spec, title=spec))
            continue
        found += [
            Step(spec=plan_spec(plan.text), title=f"plan {i} of {len(swept)}: {plan.text}")
            for i, plan in enumerate(swept, start=1)
        ]
    return tuple(found)


def find_plan(runs: Sequence[Run], text: str, name: str) -> list[Run]:
    """The runs of one plan, in the order given.

    Args:
        runs: Any.
        text: The plan as on the command line.
        name: What the runs' file is called.

    Raises:
        UsageError: No run has that plan; the sentence lists those there are, or says what is
            wrong with the text.
    """
    asked = [run for run in runs if is_plan_run(run)]
    if not asked:
        raise UsageError(f"{name} holds no run of a fusion plan.")
    found, fault = [], ""
    for run in asked:
        ops = [op.name for op in run.graph.ops]
        try:
            wanted = parse_plan(text, ops, run.chain.name)
        except UsageError as error:
            fault = str(error)
            continue
        if plan_of_run(run, run.graph) == wanted:
            found.append(run)
    if found:
        return found
    there = list(dict.fromkeys(plan_text(run) for run in asked))
    more = "" if len(there) <= MOST_LISTED else f" and {len(there) - MOST_LISTED} more"
    raise UsageError(
        fault
        or f"{name} holds no run of the plan {text}; it holds "
        f"{', '.join(there[:MOST_LISTED])}{more}."
    )
