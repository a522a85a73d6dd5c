"""Why ops do not share a kernel, in words, by :class:`~explorer.model.run.RefusalReason`."""

from collections.abc import Iterable
from dataclasses import dataclass

from explorer.model.run import FusionRefusal, RefusalReason, Run


@dataclass(frozen=True, slots=True)
class ReasonWords:
    """What a kind of refusal is called.

    Attributes:
        title: Two or three words, for a label.
        meaning: One sentence about the kind in general.
    """

    title: str
    meaning: str


REASON_WORDS: dict[RefusalReason, ReasonWords] = {
    RefusalReason.DRAWN: ReasonWords(
        "your boundary",
        "The plan has a boundary here, so the compiler never saw both ops at once.",
    ),
    RefusalReason.OTHER_AXIS: ReasonWords(
        "other axis",
        "A kernel has one set of loops, and these ops go through their elements in loops that "
        "do not fit together, such as a sum over rows and a sum over columns.",
    ),
    RefusalReason.GRID_SYNC: ReasonWords(
        "grid-wide wait",
        "The second op needs a result to which every block of the first contributes, and blocks "
        "of one kernel cannot wait for each other.",
    ),
    RefusalReason.OTHER_ALGORITHM: ReasonWords(
        "other algorithm",
        "One kernel for both takes another way to compute the result, such as online softmax in "
        "flash attention, and the compiler does not invent one.",
    ),
    RefusalReason.MATMUL: ReasonWords(
        "matmul alone",
        "A matmul is a kernel of its own, mostly from a library of the vendor; only a template "
        "that max-autotune picks can carry a neighbour.",
    ),
    RefusalReason.TOO_LARGE: ReasonWords(
        "too large",
        "One kernel for both would have too many ops or tensors, or need more registers or "
        "memory than it saves.",
    ),
    RefusalReason.OTHER_SIZE: ReasonWords(
        "other size",
        "The ops work on different numbers of elements or on different devices, so that one "
        "loop cannot do both.",
    ),
    RefusalReason.OPAQUE: ReasonWords(
        "opaque op",
        "The compiler has no code of its own for one of the ops and calls it as it is.",
    ),
    RefusalReason.NOT_WORTH_IT: ReasonWords(
        "no gain seen",
        "The compiler saw nothing to gain, mostly because the ops share little or no data.",
    ),
    RefusalReason.OTHER: ReasonWords(
        "other reason",
        "None of the usual reasons; what the compiler said is shown as it is.",
    ),
}
"""Every kind, in the order of the enum."""


def refusal_between(run: Run, first: str, second: str) -> FusionRefusal | None:
    """Why two ops of a run do not share a kernel; the order in which they are given is free.

    With the same op twice: what split it into several kernels, or several loop nests of a CPU's
    function. None where they share one, where nothing was compiled, or where no reason is known.
    """
    return find_refusal(() if run.compile is None else run.compile.refusals, first, second)


def find_refusal(
    refusals: Iterable[FusionRefusal], first: str, second: str
) -> FusionRefusal | None:
    """The refusal of two ops in either order, None where there is none."""
    for refusal in refusals:
        if {refusal.first, refusal.second} == {first, second}:
            return refusal
    return None
