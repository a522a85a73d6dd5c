"""What a run on a GPU promises beyond what every run does: sentences about all that is not so."""

from collections.abc import Iterator

from explorer.model.comparison import check_words
from explorer.model.run import Clock, Run
from tests.engine import every_chain
from tests.engine.every_chain import told

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
    found = every_chain.complaints(run)
    if run.error is not None:
        return found
    name = f"{run.chain.name} {run.chain.dtype} {run.chain.direction.words}, {run.strategy.spec}"
    return [*found, *(f"{name}: {each}" for check in CHECKS for each in check(run))]


def _recording(run: Run) -> Iterator[str]:
    for warning in run.warnings:
        if any(part in warning for part in NOT_RECORDED):
            yield f"says {warning!r}; launches {[launch.title for launch in run.launches]}"


def _accuracy(run: Run) -> Iterator[str]:
    if run.accuracy is None:
        return
    if run.accuracy.coverage != 1.0:
        yield f"was compared on {run.accuracy.coverage} of its elements only"
    for check in run.accuracy.distribution:
        if not check.passed:
            yield f"draws wrongly: {check_words(check)}"


def _timing(run: Run) -> Iterator[str]:
    if run.timing is None or run.timing.cold is None:
        return
    if run.timing.cold.clock is not Clock.EVENTS:
        yield f"was timed by {run.timing.cold.clock}"
    if (run.timing.graph is not None) is not (run.strategy.spec in GRAPHS):
        yield f"has replays {run.timing.graph}"
    for launch in run.launches:
        if launch.duration_us is None:
            yield f"has no duration: {told(launch)}"


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
            yield f"a kernel has no counted bytes: {told(launch)}; {counters.sentence}"
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


def _groups(run: Run) -> Iterator[str]:
    for group in run.groups:
        carrying = [run.launches[place] for place in group.launches]
        carried = {op for launch in carrying for op in launch.ops}
        if carried != set(group.ops):
            yield f"the group {group.ops} is carried out by {[told(each) for each in carrying]}"


CHECKS = (_recording, _accuracy, _timing, _counters, _memory, _groups)
