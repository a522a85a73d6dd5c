"""What Inductor's fusion log says, as a kind and a sentence.

The messages are those of torch 2.11 to 2.13: ``_inductor/scheduler.py``, ``choices.py``,
``codegen/simd.py`` and the CUTLASS scheduling. One that is not known is of the kind ``OTHER``.
"""

import re
from dataclasses import dataclass

from explorer.model.run import RefusalReason

_LINE = re.compile(r"cannot fuse (?P<first>\S+) with (?P<second>\S+): (?P<reason>.*)", re.DOTALL)
_BENCHMARK = re.compile(
    r"cannot fuse \(benchmark\): fusing (?P<first>.*?) with (?P<second>.*?) cause "
    r"(?P<factor>[\d.]+)x slowdown"
)
_QUOTED = re.compile(r"'([^']+)'")
SLOWER = "slower when measured"
"""Stands for the reason of a line of the autotuner, which is worded otherwise."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the log that says no.

    Attributes:
        first: Names of scheduler's nodes or of buffers.
        second: Alike.
        reason: What it says behind the names.
        raw: The whole line.
    """

    first: frozenset[str]
    second: frozenset[str]
    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a message means.

    Attributes:
        pattern: Found in the message.
        reason: The kind.
        sentence: With ``{first}``, ``{second}``, and ``{code}``: "kernel" or "loop nest".
        is_vague: It says only that something stands in the way; any other message says more.
    """

    pattern: str
    reason: RefusalReason
    sentence: str
    is_vague: bool = False


_LOOPS = "The loops of {first} and {second} do not fit into one {code}"
_EPILOGUE = "{first} comes from a matmul's template, which cannot take {second} along"
_PROLOGUE = "{second} is a matmul whose template does not compute {first} as it loads its input"
_MEMORY = (
    "One {code} for {first} and {second} might raise the peak of memory, by more than the "
    "compiler trades for the traffic that it saves"
)
MEANINGS: tuple[Meaning, ...] = (
    Meaning(
        r"numel/rnumel mismatch \(reduce\)",
        RefusalReason.OTHER_AXIS,
        "{first} and {second} reduce over different axes or sizes, and one {code} has one set of "
        "loops",
    ),
    Meaning(
        r"numel/rnumel mismatch|nodes numel incompatibility|size: .* differs from",
        RefusalReason.OTHER_SIZE,
        "{first} and {second} go over different numbers of elements, so one loop cannot do both",
    ),
    Meaning(
        r"foreach do not have same length",
        RefusalReason.OTHER_SIZE,
        "{first} and {second} work on lists of tensors of different lengths",
    ),
    Meaning(
        r"device mismatch",
        RefusalReason.OTHER_SIZE,
        "{first} and {second} run on different devices",
    ),
    Meaning(
        r"Split scan cannot fuse with reductions",
        RefusalReason.GRID_SYNC,
        "One of {first} and {second} is a running sum that the blocks pass on from one to the "
        "next, and a reduction cannot wait for that within the {code}",
    ),
    Meaning(
        r"numel/rnumel incompatibility|tiling|loop order|buf layouts",
        RefusalReason.OTHER_AXIS,
        _LOOPS + ": they go through the elements in another order",
    ),
    Meaning(
        r"memory deps did not match",
        RefusalReason.OTHER_AXIS,
        "{second} needs other elements of {first}'s result than the ones that its own loop has "
        "just made",
    ),
    Meaning(
        r"indexing mismatch",
        RefusalReason.OTHER_AXIS,
        _LOOPS + ": they touch the same tensor in different orders",
    ),
    Meaning(
        r"foreach ops cannot be fused with reductions",
        RefusalReason.OTHER_AXIS,
        "One of {first} and {second} goes over a list of tensors and the other reduces; their "
        "loops do not fit together",
    ),
    Meaning(
        r"exceeds max fusion",
        RefusalReason.TOO_LARGE,
        "{first} and {second} together would put more ops into one {code} than the compiler allows",
    ),
    Meaning(
        r"too_many_reads_and_writes",
        RefusalReason.TOO_LARGE,
        "One {code} for {first} and {second} would take more tensors than the compiler allows",
    ),
    Meaning(
        r"register spilling of the (first|second)",
        RefusalReason.TOO_LARGE,
        "One of {first} and {second} needs more registers than there are by itself already, so "
        "the compiler did not try one {code} for both",
    ),
    Meaning(
        r"register spilling",
        RefusalReason.TOO_LARGE,
        "One {code} for {first} and {second} would need more registers than there are",
    ),
    Meaning(r"increase peak memory", RefusalReason.TOO_LARGE, _MEMORY),
    Meaning(
        r"template epilogue not satisfied|EVT|TMA-enabled|is not a Pointwise op"
        r"|is not a ComputedBuffer|computed buffer name|has aliasing or mutation"
        r"|cutlass epilogue fusion is not enabled|Cannot fuse epilogue|requires ComputedBuffer",
        RefusalReason.MATMUL,
        _EPILOGUE,
    ),
    Meaning(
        r"prologue fusion will not increase|not profitable for low precision",
        RefusalReason.NOT_WORTH_IT,
        "{second} is a matmul that reads its input many times, and the compiler expects that to "
        "compute {first} anew each time costs more than it saves",
    ),
    Meaning(r"prologue", RefusalReason.MATMUL, _PROLOGUE),
    Meaning(
        r"extern|mutated output|doesn't support epilogue fusion",
        RefusalReason.OPAQUE,
        "One of {first} and {second} is called as it is; the compiler cannot put another op "
        "into it",
    ),
    Meaning(
        SLOWER,
        RefusalReason.NOT_WORTH_IT,
        "The autotuner ran {first} and {second} both ways, and one {code} for both was slower",
    ),
    Meaning(
        r"no shared data|score_fusion_memory_threshold",
        RefusalReason.NOT_WORTH_IT,
        "{first} and {second} share no data that one {code} would save from memory",
        is_vague=True,
    ),
    Meaning(
        r"intermediate nodes between",
        RefusalReason.OTHER,
        "Something between {first} and {second} has to run after the one and before the other",
        is_vague=True,
    ),
    Meaning(
        r"will create cycle",
        RefusalReason.OTHER,
        "{first} and {second} in one {code} would have to run both before and after another one",
        is_vague=True,
    ),
    Meaning(
        r"must go before|is nop|grouped node|not dep of any foreach|has no dep in any foreach"
        r"|explicit disabled",
        RefusalReason.OTHER,
        "The compiler does not put {first} and {second} into one {code}",
        is_vague=True,
    ),
)
"""Looked through in this order: the first that fits counts."""

UNKNOWN = Meaning(
    "",
    RefusalReason.OTHER,
    "The compiler gives a reason of its own for keeping {first} and {second} apart",
)


def read_line(raw: str) -> Line | None:
    """Take a line of the log apart; None where it is worded in no known way."""
    slower = _BENCHMARK.search(raw)
    if slower is not None:
        first, second = (frozenset(_QUOTED.findall(slower[side])) for side in ("first", "second"))
        return Line(first, second, SLOWER, raw)
    match = _LINE.match(raw)
    if match is None:
        return None
    return Line(_names(match["first"]), _names(match["second"]), match["reason"], raw)


def meaning_of(reason: str) -> Meaning:
    """What a message means; :data:`UNKNOWN` for one that is not known."""
    for meaning in MEANINGS:
        if re.search(meaning.pattern, reason):
            return meaning
    return UNKNOWN


def _names(fused: str) -> frozenset[str]:
    """A kernel of several nodes is called by all their names: ``op0_op1``."""
    return frozenset(fused.split("_"))
