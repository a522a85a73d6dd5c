"""What every run on a GPU promises, as sentences about what is not so: all in one failure."""

from collections.abc import Iterator

from explorer.model.comparison import check_words
from explorer.model.fusion import parse_plan
from explorer.model.run import Clock, Launch, Run
from explorer.model.strategies import PLAN
from explorer.model.tensor import TensorRole

GRAPHS = ("cudagraph", "compile:reduce-overhead")
BY_THE_DRIVER = ("Memcpy", "Memset")
"""Begins the name of a launch that is no kernel, so that no counter sees it."""
NOT_RECORDED = (
    "only names and times", "Only names and times", "launches are not known", "were left out",
    "was not observed", "it is unknown which", "could not be recorded", "There is no accuracy",
    "too little memory", "is not known",
)  # fmt: skip
"""Parts of what a run says when it lacks something; that times spread is no such thing."""


def complaints(run: Run) -> list[str]:
    """Everything that does not hold of a run, each with the run's name before it."""
    direction = run.chain.direction.words
    name = f"{run.chain.name} {run.chain.dtype} {direction} {run.strategy.spec}"
    if run.error is not None:
        return [f"{name}: failed: {run.error}"]
    return [f"{name}: {each}" for check in CHECKS for each in check(run)]


def _recording(run: Run) -> Iterator[str]:
    for warning in run.warnings:
        if any(part in warning for part in NOT_RECORDED):
            yield f"says {warning!r}; launches {[launch.title for launch in run.launches]}"


def _accuracy(run: Run) -> Iterator[str]:
    if run.accuracy is None:
        yield f"has no accuracy; it says {run.warnings}"
        return
    if not run.accuracy.passed:
        yield f"is not exact: {run.accuracy}"
    if run.accuracy.coverage != 1.0:
        yield f"was compared on {run.accuracy.coverage} of its elements only"
    for check in run.accuracy.distribution:
        if not check.passed:
            yield f"draws wrongly: {check_words(check)}"


def _timing(run: Run) -> Iterator[str]:
    if run.timing is None or run.timing.cold is None:
        yield f"has no time: {run.timing}"
        return
    if run.timing.cold.clock is not Clock.EVENTS:
        yield f"was timed by {run.timing.cold.clock}"
    if (run.timing.graph is not None) is not (run.strategy.spec in GRAPHS):
        yield f"has replays {run.timing.graph}"


def _ops(run: Run) -> Iterator[str]:
    ops = [op.name for op in run.graph.ops]
    carried = {op for launch in run.launches for op in launch.ops}
    missing = [op for op in ops if op not in carried]
    if missing:
        unknown = [_told(launch) for launch in run.launches if not launch.ops]
        yield f"no launch carries out {missing}; launches without an op: {unknown}"
    if carried - set(ops):
        yield f"launches carry out {carried - set(ops)}, which the chain lacks"


def _launches(run: Run) -> Iterator[str]:
    known = {tensor.id for tensor in (*run.tensors, *run.graph.tensors)}
    for launch in run.launches:
        read, written = launch.bytes_read.modelled, launch.bytes_written.modelled
        moved = (
            sum(access.bytes_read for access in launch.accesses),
            sum(access.bytes_written for access in launch.accesses),
        )
        if bool(launch.ops) is launch.is_helper:
            yield f"neither helps nor carries out an op, or both: {_told(launch)}"
        if launch.ops and (read, written) != moved:
            yield f"models {read} and {written} bytes, by tensor {moved}: {_told(launch)}"
        if launch.ops and not sum(moved):
            yield f"moves nothing: {_told(launch)}"
        if launch.duration_us is None:
            yield f"has no duration: {_told(launch)}"
        strange = {access.tensor for access in launch.accesses} - known
        if strange:
            yield f"touches {strange}, which no list has: {_told(launch)}"


def _results(run: Run) -> Iterator[str]:
    """Results and gradients lie in memory when the call is over."""
    outputs = {t.id for t in run.graph.tensors if t.role is TensorRole.OUTPUT}
    written = {a.tensor for launch in run.launches for a in launch.accesses if a.bytes_written}
    if outputs - written:
        yield f"no launch writes {sorted(outputs - written)}; they write {sorted(written)}"


def _counters(run: Run) -> Iterator[str]:
    counters = run.counters
    if counters is None or not counters.joined:
        yield f"is not counted: {counters}"
        return
    for launch in run.launches:
        is_kernel = not launch.kernel.startswith(BY_THE_DRIVER)
        # Beside a graph run fills with the seed, and copies, that are not all counted.
        is_wanted = bool(launch.ops) or run.strategy.spec not in GRAPHS
        counted = (launch.bytes_read.counted, launch.bytes_written.counted)
        if is_kernel and is_wanted and None in counted:
            yield f"a kernel has no counted bytes: {_told(launch)}; {counters.sentence}"
    if run.strategy.spec in GRAPHS and counters.total_bytes_read is None:
        yield f"the replay has no total: {counters.sentence}"


def _memory(run: Run) -> Iterator[str]:
    memory = run.memory
    if memory is None or memory.estimate_bytes is None:
        yield f"has no memory: {memory}"
        return
    if memory.peak_bytes > memory.estimate_bytes:
        yield f"holds more than was estimated: {memory}"
    if run.strategy.spec in GRAPHS and not memory.graph_pool_bytes:
        yield f"has a graph without a pool: {memory}"


def _plan(run: Run) -> Iterator[str]:
    if run.strategy.name != PLAN:
        return
    plan = parse_plan(run.strategy.plan or "", [op.name for op in run.graph.ops], run.chain.name)
    if sorted(group.ops for group in run.groups) != sorted(plan.groups):
        yield f"ran {[group.ops for group in run.groups]} for {plan.text}"
    for group in run.groups:
        carrying = [run.launches[place] for place in group.launches]
        carried = {op for launch in carrying for op in launch.ops}
        if carried != set(group.ops):
            yield f"the group {group.ops} is carried out by {[_told(each) for each in carrying]}"


CHECKS = (
    _recording, _accuracy, _timing, _ops, _launches, _results, _counters, _memory, _plan,
)  # fmt: skip


def _told(launch: Launch) -> str:
    touched = [(a.tensor, a.bytes_read, a.bytes_written) for a in launch.accesses]
    kind = "helper" if launch.is_helper else "no helper"
    return f"{launch.title!r} = {launch.kernel[:70]} ({kind}, ops {launch.ops}, {touched})"
