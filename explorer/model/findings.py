"""Why a run's bytes are not those that were planned: every difference with its cause.

Two steps are told apart. From planned to modelled the compiler is the cause: it made more kernels
than one, or a buffer that the chain does not ask for. From modelled to counted the hardware is:
caches that were too small for what is asked for again, or large enough to spare memory a read.
"""

from collections.abc import Iterator, Sequence

from explorer.model.code_evidence import stored_and_loaded
from explorer.model.count_findings import count_findings, launch_name
from explorer.model.finding import EXPLAINED_SHARE, Evidence, Finding, FindingKind, Step
from explorer.model.outcome import GroupOutcome, outcomes
from explorer.model.read_causes import code_pair, pair_evidence, read_causes, source_of
from explorer.model.run import Access, Launch, Pedigree, Run
from explorer.model.tensor import Tensor, TensorRole
from explorer.model.units import BYTES_PER_ELEMENT, format_bytes


def findings(run: Run) -> tuple[Finding, ...]:
    """Every difference that matters, group by group and then launch by launch.

    Empty for a failed run, and where planned, modelled and counted bytes agree within 5 %.
    """
    return (*plan_findings(run), *count_findings(run))


def main_finding(run: Run) -> Finding | None:
    """The finding of most bytes beyond what was expected; one with a cause goes first."""
    beyond = [finding for finding in findings(run) if finding.n_bytes > 0]
    return max(
        beyond,
        key=lambda f: (f.kind is not FindingKind.UNEXPLAINED, f.n_bytes),
        default=None,
    )


def group_findings(found: Sequence[Finding], outcome: GroupOutcome) -> tuple[Finding, ...]:
    """The findings that belong to one group: those of its launches, and those of it as a whole."""
    return tuple(
        finding
        for finding in found
        if finding.launch in outcome.launches
        or (finding.launch is None and bool(finding.ops) and finding.ops == outcome.ops)
    )


def plan_findings(run: Run) -> tuple[Finding, ...]:
    """Planned against modelled, group by group."""
    found: list[Finding] = []
    for outcome in outcomes(run):
        planned = outcome.total(Pedigree.PLANNED)
        modelled = outcome.total(Pedigree.MODELLED)
        if planned is None or modelled is None:
            continue
        slack = EXPLAINED_SHARE * max(planned, modelled)
        more = modelled - planned
        causes = [*_split(run, outcome), *_extra_buffers(run, outcome)]
        found += [cause for cause in causes if cause.n_bytes > slack]
        left = more - sum(cause.n_bytes for cause in causes)
        if abs(left) > slack:
            found.append(_unexplained(outcome, left, planned, modelled))
    return tuple(found)


def _extra_buffers(run: Run, outcome: GroupOutcome) -> Iterator[Finding]:
    tensors = {tensor.id: tensor for tensor in run.tensors}
    for index in outcome.launches:
        launch = run.launches[index]
        for access in launch.accesses:
            tensor = tensors.get(access.tensor)
            if tensor is not None and tensor.role is TensorRole.WORKSPACE:
                yield _extra_buffer(run, index, access, tensor)


def _extra_buffer(run: Run, index: int, access: Access, tensor: Tensor) -> Finding:
    launch = run.launches[index]
    n_bytes = access.bytes_read + access.bytes_written
    ways = " and ".join(
        f"{way} {format_bytes(amount)}"
        for way, amount in (("reads", access.bytes_read), ("writes", access.bytes_written))
        if amount
    )
    short = f"{ways} of {tensor.name} that the chain does not ask for"
    pair = code_pair(stored_and_loaded(source_of(run, launch)), tensor)
    sizes = ", ".join(f"{size:,}" for size in tensor.shape)
    evidence = [
        Evidence("argument", f"{tensor.name}: [{sizes}] {tensor.dtype}, {format_bytes(n_bytes)}")
    ]
    sentences = [f"{launch_name(launch)} {short}{_element_words(run, launch, tensor)}."]
    if pair is not None:
        evidence += pair_evidence(pair)
        drawn = "draws them in a loop of their own, " if pair.drawn else ""
        sentences.append(
            f"Its code {drawn}stores them and loads them again in a later loop, since what one "
            "loop keeps in registers the next does not have."
        )
        sentences += _read_back_words(run, launch, access)
    elif len(launch.loop_nests) > 1:
        sentences.append(f"Its {len(launch.loop_nests)} loop nests pass it on through memory.")
    return Finding(
        kind=FindingKind.EXTRA_BUFFER,
        step=Step.PLAN_TO_MODEL,
        n_bytes=n_bytes,
        sentence=" ".join(sentences),
        short=short,
        launch=index,
        ops=launch.ops,
        evidence=tuple(evidence),
    )


def _element_words(run: Run, launch: Launch, tensor: Tensor) -> str:
    """``: 4 bytes an element, where dropped takes 2``; empty where nothing compares."""
    mine = BYTES_PER_ELEMENT.get(tensor.dtype)
    for access in launch.accesses:
        other = next((t for t in run.tensors if t.id == access.tensor), None)
        if other is None or not access.bytes_written or other.role is TensorRole.WORKSPACE:
            continue
        theirs = BYTES_PER_ELEMENT.get(other.dtype)
        if other.shape == tensor.shape and mine and theirs and mine != theirs:
            unit = "byte" if mine == 1 else "bytes"
            return f": {mine:g} {unit} an element, where {other.name} takes {theirs:g}"
    return ""


def _read_back_words(run: Run, launch: Launch, access: Access) -> tuple[str, ...]:
    """Whether what was stored came back from memory, as far as counters tell."""
    counted, modelled = launch.bytes_read.counted, launch.bytes_read.modelled
    if counted is None or modelled is None:
        return ()
    excess = counted - modelled
    causes = read_causes(run, launch, excess)
    left = excess - sum(cause.n_bytes for cause in causes)
    slack = EXPLAINED_SHARE * (counted + (launch.bytes_written.counted or 0))
    if any(cause.n_bytes == access.bytes_written and not cause.is_certain for cause in causes):
        return ("They come back from memory: the reads counted have room for them.",)
    if abs(left) <= slack:
        return (
            "They come back from a cache: the reads counted are accounted for without them.",
        )  # fmt: skip
    return ()


def _split(run: Run, outcome: GroupOutcome) -> Iterator[Finding]:
    """What goes through memory because a group became several kernels."""
    if outcome.kernels < 2:
        return
    passed, again = _between(run, outcome)
    n_bytes = sum(passed.values()) + sum(again.values())
    if not n_bytes:
        return
    names = {tensor.id: tensor.name for tensor in run.tensors}
    parts = []
    if passed:
        parts.append(f"pass {', '.join(names[t] for t in passed)} on through memory")
    if again:
        parts.append(f"each read {', '.join(names[t] for t in again)}")
    short = f"becomes {outcome.kernels} kernels, which {' and '.join(parts)}"
    evidence = [
        Evidence(f"kernel {i + 1}", run.launches[i].kernel)
        for i in outcome.launches
        if not run.launches[i].is_helper
    ]
    evidence += [
        Evidence("argument", f"{names[t]}: {format_bytes(amount)} more than in one kernel")
        for t, amount in {**passed, **again}.items()
    ]
    yield Finding(
        kind=FindingKind.SPLIT_GROUP,
        step=Step.PLAN_TO_MODEL,
        n_bytes=n_bytes,
        sentence=f"{' + '.join(outcome.ops)} {short}: {format_bytes(n_bytes)} more than in one.",
        short=f"{short}: {format_bytes(n_bytes)} more",
        ops=outcome.ops,
        evidence=tuple(evidence),
    )


def _between(run: Run, outcome: GroupOutcome) -> tuple[dict[str, int], dict[str, int]]:
    """Bytes beyond one kernel's, by tensor: what its kernels pass on, and what several read."""
    inside = set(outcome.launches)
    roles = {tensor.id: tensor.role for tensor in run.tensors}
    needed = {
        access.tensor
        for i, launch in enumerate(run.launches)
        if i not in inside
        for access in launch.accesses
        if access.bytes_read
    }
    written: dict[str, int] = {}
    passed: dict[str, int] = {}
    reads: dict[str, list[int]] = {}
    for index in outcome.launches:
        for access in run.launches[index].accesses:
            tensor = access.tensor
            if roles.get(tensor) in (TensorRole.WORKSPACE, None):
                continue
            if access.bytes_read and tensor in written:
                passed[tensor] = passed.get(tensor, 0) + access.bytes_read
            elif access.bytes_read:
                reads.setdefault(tensor, []).append(access.bytes_read)
        for access in run.launches[index].accesses:
            if access.bytes_written:
                written[access.tensor] = access.bytes_written
    for tensor in passed:
        if tensor not in needed and roles[tensor] is TensorRole.INTERMEDIATE:
            passed[tensor] += written[tensor]
    again = {t: sum(amounts) - max(amounts) for t, amounts in reads.items() if len(amounts) > 1}
    return passed, again


def _unexplained(outcome: GroupOutcome, left: int, planned: int, modelled: int) -> Finding:
    word = "more" if left > 0 else "less"
    short = f"moves {format_bytes(abs(left))} {word} by its kernels' arguments than was planned"
    return Finding(
        kind=FindingKind.UNEXPLAINED,
        step=Step.PLAN_TO_MODEL,
        n_bytes=left,
        sentence=f"{' + '.join(outcome.ops)} {short}, cause not known.",
        short=short,
        ops=outcome.ops,
        evidence=(
            Evidence(
                "bytes", f"planned {format_bytes(planned)}, modelled {format_bytes(modelled)}"
            ),
        ),
    )
