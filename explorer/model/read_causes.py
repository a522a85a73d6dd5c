"""Why a launch reads more than its arguments hold: candidates by shape and by code, then a fit.

A candidate says how many bytes it would add. Claimed are those candidates whose sum accounts for
what was counted; where none do, nothing is claimed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod

from explorer.model.code_evidence import TwoLoops, loaded_twice, stored_and_loaded
from explorer.model.finding import EXPLAINED_SHARE, Evidence, FindingKind
from explorer.model.opgraph import OpKind
from explorer.model.run import Launch, Run
from explorer.model.tensor import Tensor, TensorRole
from explorer.model.units import format_bytes

MOST_CANDIDATES = 8
"""Every subset of them is tried, 256 at most."""
_NEAR_SHARE = 0.5
"""Of L2: a tensor asked for again after less traffic than that is still in it."""
_LARGE_SHARE = 0.5
"""Of the largest input: what is smaller even with its repeats costs nothing to read twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A reason for bytes read beyond the model, if it holds.

    Attributes:
        kind: Of the finding it would be.
        n_bytes: What it adds.
        words: What the kernel does; ``{}`` stands for the tensor's name.
        name: Name of the tensor.
        is_certain: It follows from the shapes; the kernel cannot do without asking again.
        evidence: What speaks for it.
    """

    kind: FindingKind
    n_bytes: int
    words: str
    name: str
    is_certain: bool
    evidence: tuple[Evidence, ...]


def source_of(run: Run, launch: Launch) -> str:
    """The generated code of a launch, empty if the run has none."""
    return run.code.get(launch.code, "") if launch.code else ""


def code_pair(pairs: Sequence[TwoLoops], tensor: Tensor) -> TwoLoops | None:
    """The pointer that stands for a tensor, if the type of number singles one out."""
    fit = [pair for pair in pairs if not pair.dtype or pair.dtype == tensor.dtype]
    return fit[0] if len(fit) == 1 else None


def pair_evidence(pair: TwoLoops) -> tuple[Evidence, ...]:
    """The lines of code that touch a pointer in two loops."""
    lines = [line for line in (pair.drawn, pair.first, pair.second) if line is not None]
    return tuple(
        Evidence(f"generated code, line {line.number}", line.text, is_code=True) for line in lines
    )


def read_causes(run: Run, launch: Launch, excess: int) -> tuple[Cause, ...]:
    """The causes that account for ``excess`` bytes read beyond the model, empty if none do.

    What must be asked for again comes first, then as few causes as suffice.
    """
    tensors = {tensor.id: tensor for tensor in run.tensors}
    counted = (launch.bytes_read.counted or 0) + (launch.bytes_written.counted or 0)
    found = [
        *_broadcasts(run, launch, tensors, counted),
        *_second_passes(run, launch, tensors),
        *_read_backs(run, launch, tensors),
    ][:MOST_CANDIDATES]
    slack = EXPLAINED_SHARE * counted
    certain = sum(cause.is_certain for cause in found)
    fits = [
        subset
        for size in range(1, len(found) + 1)
        for subset in combinations(found, size)
        if abs(sum(cause.n_bytes for cause in subset) - excess) <= slack
    ]

    def rank(subset: tuple[Cause, ...]) -> tuple[int, int, int]:
        missing = certain - sum(cause.is_certain for cause in subset)
        return missing, len(subset), abs(sum(cause.n_bytes for cause in subset) - excess)

    chosen = min(fits, key=rank, default=())
    return tuple(_named(cause, found, chosen) for cause in chosen)


def _named(cause: Cause, found: Sequence[Cause], chosen: Sequence[Cause]) -> Cause:
    """The cause with every tensor that it may be about: equal bytes cannot be told apart."""
    others = [
        other.name
        for other in found
        if other not in chosen and (other.words, other.n_bytes) == (cause.words, cause.n_bytes)
    ]
    return replace(cause, words=cause.words.format(" or ".join([cause.name, *others])))


def _broadcasts(
    run: Run, launch: Launch, tensors: Mapping[str, Tensor], counted: int
) -> Iterator[Cause]:
    """Operands smaller than what they are combined with, too far apart for L2 to keep."""
    touched = [tensors[a.tensor] for a in launch.accesses if a.tensor in tensors]
    if not touched:
        return
    widest = max(touched, key=lambda tensor: prod(tensor.shape))
    for tensor, n_bytes in _read_tensors(launch, tensors):
        repeats, inner = _repeats(tensor.shape, widest.shape)
        between = counted * inner // max(1, prod(widest.shape))
        if repeats <= 1 or between < _NEAR_SHARE * run.device.l2_bytes:
            continue
        yield Cause(
            kind=FindingKind.REREAD,
            n_bytes=(repeats - 1) * n_bytes,
            words=f"reads the tensor {{}} once for each of {repeats:,} {_unit(widest, repeats)} "
            "instead of once",
            name=tensor.name,
            is_certain=True,
            evidence=(
                Evidence(
                    "shapes",
                    f"{tensor.name} {_shape(tensor)} against {widest.name} {_shape(widest)}: "
                    f"{repeats:,} × {format_bytes(n_bytes)} = {format_bytes(repeats * n_bytes)}",
                ),
                Evidence(
                    "cache",
                    f"{format_bytes(between)} move before {tensor.name} is asked for again; L2 "
                    f"holds {format_bytes(run.device.l2_bytes)} in all",
                ),
            ),
        )


def _second_passes(run: Run, launch: Launch, tensors: Mapping[str, Tensor]) -> Iterator[Cause]:
    """Inputs of a reduction: it may go through them once to reduce and once to use the result."""
    source = source_of(run, launch)
    pairs = loaded_twice(source)
    if source and not pairs:
        return
    kinds = {op.kind for op in run.graph.ops if op.name in launch.ops}
    if not source and OpKind.REDUCTION not in kinds:
        return
    read = list(_read_tensors(launch, tensors))
    widest = max((tensor for tensor, _ in read), key=lambda t: prod(t.shape), default=None)
    for tensor, n_bytes in read:
        repeats, _ = (1, 0) if widest is None else _repeats(tensor.shape, widest.shape)
        # A few numbers a row stay in registers or the nearest cache.
        if widest is not None and repeats * n_bytes >= _LARGE_SHARE * widest.n_bytes:
            yield Cause(
                kind=FindingKind.SECOND_PASS,
                n_bytes=repeats * n_bytes,
                words="goes through {} twice",
                name=tensor.name,
                is_certain=False,
                evidence=tuple(line for pair in pairs[:1] for line in pair_evidence(pair)),
            )


def _read_backs(run: Run, launch: Launch, tensors: Mapping[str, Tensor]) -> Iterator[Cause]:
    """What the code stores in one loop and loads again in a later one."""
    pairs = stored_and_loaded(source_of(run, launch))
    for access in launch.accesses:
        tensor = tensors.get(access.tensor)
        if tensor is None or not access.bytes_written or tensor.role is not TensorRole.WORKSPACE:
            continue
        pair = code_pair(pairs, tensor)
        if pair is not None:
            yield Cause(
                kind=FindingKind.SECOND_PASS,
                n_bytes=access.bytes_written,
                words="reads back the {} that it stored",
                name=tensor.name,
                is_certain=False,
                evidence=pair_evidence(pair),
            )


def _read_tensors(launch: Launch, tensors: Mapping[str, Tensor]) -> Iterator[tuple[Tensor, int]]:
    for access in launch.accesses:
        if access.bytes_read and access.tensor in tensors:
            yield tensors[access.tensor], access.bytes_read


def _repeats(shape: tuple[int, ...], widest: tuple[int, ...]) -> tuple[int, int]:
    """How often a shape is repeated to fill another, and the elements between two repeats.

    ``[4096, 4096]`` in ``[2, 16, 4096, 4096]``: 32 times, every 4096 × 4096 elements. One that
    does not broadcast to it is not repeated.
    """
    padded = (1,) * (len(widest) - len(shape)) + shape
    if len(padded) != len(widest) or any(
        mine not in (1, theirs) for mine, theirs in zip(padded, widest, strict=True)
    ):
        return 1, 0
    repeats = prod(widest) // max(1, prod(padded))
    inner = 1
    for mine, theirs in zip(reversed(padded), reversed(widest), strict=True):
        if mine != theirs:
            break
        inner *= theirs
    return repeats, inner


def _unit(widest: Tensor, repeats: int) -> str:
    """What is repeated: heads, where the leading axes of four are; else just repeats."""
    is_heads = len(widest.shape) == 4 and prod(widest.shape[:2]) == repeats
    return "heads" if is_heads else "repeats"


def _shape(tensor: Tensor) -> str:
    return "[" + ", ".join(f"{size}" for size in tensor.shape) + "]"
