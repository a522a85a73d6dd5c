"""Every chain at a small size through the session, and what holds of each of its runs.

Nothing here knows Qt, so that the tests on a GPU can use it too.
"""

from collections.abc import Iterator, Mapping, Sequence

from explorer.chains import CHAINS
from explorer.engine.session import Session
from explorer.model.device import DeviceKind
from explorer.model.fusion import parse_plan
from explorer.model.messages import GraphCaptured, GraphRequest, Reply, RunFinished, RunRequest
from explorer.model.opgraph import OpKind
from explorer.model.planned import PlannedKernel, planned_kernels
from explorer.model.run import Direction, Launch, Run, Scalar
from explorer.model.strategies import PLAN
from explorer.model.tensor import TensorRole
from tests.engine.graphs import SMALL

FORWARD, BOTH = Direction.FORWARD, Direction.FORWARD_BACKWARD
CPU = "cpu"
ROWS: dict[str, Scalar] = {"rows": 16, "columns": 64}
Case = tuple[str, dict[str, Scalar]]


def cases(sizes: Mapping[str, Mapping[str, Scalar]] = SMALL) -> Iterator[Case]:
    """Every chain at a small size, with each of the values that are compared by default.

    Args:
        sizes: Settings by chain; one that is not named has rows and columns.
    """
    for chain in CHAINS.values():
        for value in chain.compared_values or (None,):
            compared = {chain.compared: value} if chain.compared else {}
            wanted: dict[str, object] = {**sizes.get(chain.id, ROWS), **compared}
            yield chain.id, {n: chain.parameter(n).parse(wanted[n]) for n in wanted}


def named(case: Case) -> str:
    """The case in a test's id."""
    chain, settings = case
    compared = CHAINS[chain].compared
    return f"{chain}-{settings[compared]}" if compared else chain


def available(
    engine: Session, case: Case, direction: Direction = FORWARD, device: str = CPU
) -> list[str]:
    """The strategies that the session offers for a case; a compiler's other modes left out."""
    chain, settings = case
    request = GraphRequest(chain=chain, parameters=settings, direction=direction, device=device)
    [captured] = [r for r in _replies(engine, request) if isinstance(r, GraphCaptured)]
    offered = [each.spec for each in captured.strategies if each.available]
    return [spec for spec in offered if not spec.startswith("compile:")]


def runs(
    engine: Session,
    case: Case,
    specs: Sequence[str],
    direction: Direction = FORWARD,
    device: str = CPU,
) -> list[Run]:
    """A run of each strategy, in the order given."""
    chain, settings = case
    request = RunRequest(
        chain=chain,
        parameters=settings,
        strategies=tuple(specs),
        direction=direction,
        device=device,
        timing_s=0.01,
        measure_ceilings=False,
    )
    made = [reply.run for reply in _replies(engine, request) if isinstance(reply, RunFinished)]
    assert [run.strategy.spec for run in made] == list(specs)
    return made


def check(*made: Run) -> None:
    """Holds of every run, whatever the chain, the strategy, the direction and the device.

    It ran, its results and gradients are those of 64-bit floating point, it has times, every op is
    carried out by a launch, every launch's bytes are those of the tensors that it touches, and the
    groups of a plan are those that were asked for. On a CPU, where what a loop stores can be read
    off its code, a group of one op moves what was planned.

    Raises:
        AssertionError: With all that does not hold, a line each.
    """
    found = [complaint for run in made for complaint in complaints(run)]
    assert not found, "\n".join(found)


def complaints(run: Run) -> list[str]:
    """What does not hold of a run, each with the run's name before it."""
    what = f"{run.chain.name} {run.chain.direction.words}, {run.strategy.spec}"
    if run.error is not None:
        return [f"{what}: {run.error}"]
    return [f"{what}: {each}" for part in CHECKS for each in part(run)]


def _numbers(run: Run) -> Iterator[str]:
    if run.accuracy is None:
        yield f"has no accuracy: {run.warnings}"
    elif not run.accuracy.passed:
        yield f"is not exact: {run.accuracy}"
    if run.timing is None or run.timing.cold is None:
        yield f"has no time: {run.timing}"


def _ops(run: Run) -> Iterator[str]:
    ops = {op.name for op in run.graph.ops}
    carried = {op for launch in run.launches for op in launch.ops}
    if ops - carried:
        helpers = [told(launch) for launch in run.launches if not launch.ops]
        yield f"no launch carries out {sorted(ops - carried)}; launches without an op: {helpers}"
    if carried - ops:
        yield f"launches carry out {sorted(carried - ops)}, which the chain lacks"


def _bytes(run: Run) -> Iterator[str]:
    known = {tensor.id for tensor in (*run.tensors, *run.graph.tensors)}
    for launch in run.launches:
        if bool(launch.ops) is launch.is_helper:
            yield f"neither helps nor carries out an op, or both: {told(launch)}"
        if launch.ops and modelled([launch]) != by_tensor(launch):
            yield f"models {modelled([launch])} bytes: {told(launch)}"
        if launch.ops and not sum(by_tensor(launch)):
            yield f"moves nothing: {told(launch)}"
        strange = {access.tensor for access in launch.accesses} - known
        if strange:
            yield f"touches {sorted(strange)}, which no list has: {told(launch)}"


def _results(run: Run) -> Iterator[str]:
    """Results and gradients lie in memory when the call is over."""
    outputs = {tensor.id for tensor in run.graph.tensors if tensor.role is TensorRole.OUTPUT}
    written = {a.tensor for launch in run.launches for a in launch.accesses if a.bytes_written}
    if outputs - written:
        yield f"no launch writes {sorted(outputs - written)}; they write {sorted(written)}"


def _plan(run: Run) -> Iterator[str]:
    """A plan can be written down, and its loops of one op move what is planned."""
    if run.strategy.name != PLAN:
        return
    plan = parse_plan(run.strategy.plan or "", [op.name for op in run.graph.ops], run.chain.name)
    if plan.text != run.strategy.plan:
        yield f"is written {run.strategy.plan}, and read {plan.text}"
    if sorted(group.ops for group in run.groups) != sorted(plan.groups):
        yield f"ran {[group.ops for group in run.groups]} for {plan.text}"
        return
    planned = {kernel.ops: kernel for kernel in planned_kernels(run.graph, plan)}
    kinds = {op.name: op.kind for op in run.graph.ops}
    for group in run.groups:
        kernel = planned[group.ops]
        if (group.bytes_read, group.bytes_written) != _promised(kernel):
            yield f"group {group.ops} promises {group.bytes_read, group.bytes_written}, {kernel}"
        if len(group.ops) == 1 and run.device.kind is DeviceKind.CPU:
            carrying = [run.launches[place] for place in group.launches]
            yield from _differences(kernel, carrying, kinds[group.ops[0]])


def _differences(kernel: PlannedKernel, carrying: Sequence[Launch], kind: OpKind) -> Iterator[str]:
    """What the launches of a single op move other than planned.

    The C++ code of a reduction may go over its input several times, a loop nest each, and keeps a
    number a row in memory between them, under the op's name: that is more than one kernel needs,
    and what is planned is the least. Matmuls are a library's, and may take a copy with them.
    """
    said = f"{kernel} is carried out by {[told(launch) for launch in carrying]}"
    if kind is OpKind.ELEMENTWISE and modelled(carrying) != _promised(kernel):
        yield said
    if kind is not OpKind.REDUCTION:
        return
    planned = {access.tensor for access in kernel.accesses}
    beside = [a for each in carrying for a in each.accesses if a.tensor not in planned]
    for access in kernel.accesses:
        same = [a for each in carrying for a in each.accesses if a.tensor == access.tensor]
        read = sum(a.bytes_read for a in same)
        written = sum(a.bytes_written for a in same)
        if written != access.bytes_written or read < access.bytes_read:
            yield said
    largest = max(access.bytes_read + access.bytes_written for access in kernel.accesses)
    if any(
        not a.tensor.startswith(f"{kernel.ops[0]}: ") or a.bytes_written * 4 > largest
        for a in beside
    ):
        yield f"{said}, which keep {beside}"


CHECKS = (_numbers, _ops, _bytes, _results, _plan)


def modelled(launches: Sequence[Launch]) -> tuple[int | None, int | None]:
    """Bytes read and written by launches together, None where one is not known."""
    read = [launch.bytes_read.modelled for launch in launches]
    written = [launch.bytes_written.modelled for launch in launches]
    return (
        None if None in read else sum(n for n in read if n is not None),
        None if None in written else sum(n for n in written if n is not None),
    )


def by_tensor(launch: Launch) -> tuple[int, int]:
    """Bytes read and written by its accesses together."""
    return (
        sum(access.bytes_read for access in launch.accesses),
        sum(access.bytes_written for access in launch.accesses),
    )


def told(launch: Launch) -> str:
    """A launch in a failure's words."""
    touched = [(a.tensor, a.bytes_read, a.bytes_written) for a in launch.accesses]
    kind = "helper" if launch.is_helper else "no helper"
    return f"{launch.title!r} = {launch.kernel[:70]} ({kind}, ops {launch.ops}, {touched})"


def _promised(kernel: PlannedKernel) -> tuple[int, int]:
    return kernel.bytes_read, kernel.bytes_written


def _replies(engine: Session, request: RunRequest | GraphRequest) -> list[Reply]:
    got: list[Reply] = []
    engine.handle(request, got.append)
    return got
