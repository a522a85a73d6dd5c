"""The loops of the scheduler's nodes in words, and what their sizes tell."""

import math
from collections.abc import Iterable

from explorer.engine.measure.fusion_log import ScheduledNode
from explorer.model.run import RefusalReason


def loops_differ(
    a: ScheduledNode, b: ScheduledNode, *, shares_nothing: bool
) -> Iterable[tuple[RefusalReason, str]]:
    """What the sizes of the loops tell, where the log is silent or vague.

    Args:
        a: The earlier node.
        b: The later node.
        shares_nothing: The compiler found no element that both touch at the same time.
    """
    if elements(a) != elements(b):
        yield (
            RefusalReason.OTHER_SIZE,
            f"{{first}} goes over {spoken(a)} and {{second}} over {spoken(b)}, so one {{code}} "
            "cannot do both",
        )
    elif shares_nothing and a.name in b.takes:
        yield (
            RefusalReason.OTHER_AXIS,
            "{second} takes the result of {first} in another order than {first} makes it",
        )
    elif a.device == "cpu" and sizes_of(a) != sizes_of(b):
        # The C++ back end wants the same loops; on a GPU only their products are known here.
        yield (
            RefusalReason.OTHER_AXIS,
            f"The loops of {{first}} ({spoken(a)}) and {{second}} ({spoken(b)}) do not fit into "
            "one {code}",
        )


def sizes_of(node: ScheduledNode) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the loops over what it writes, and of those that are reduced."""
    return node.loops, node.reduced


def elements(node: ScheduledNode) -> int | tuple[str, ...]:
    """How many elements it goes over, or the sizes where they are not numbers."""
    sizes = (*node.loops, *node.reduced)
    return math.prod(map(int, sizes)) if all(s.isdigit() for s in sizes) else sizes


def spoken(node: ScheduledNode) -> str:
    """``2 × 64 × 64`` or, of a reduction, ``128 rows of 64``."""
    loops, reduced = (
        " × ".join(_grouped(size) for size in sizes if size != "1") for sizes in sizes_of(node)
    )
    if not node.is_reduction:
        return loops or "one element"
    return f"{reduced or 'one element'} for each of {loops or 'one'}"


def _grouped(size: str) -> str:
    """``131,072``; a size that is no number stays as it is."""
    return f"{int(size):,}" if size.isdigit() else size
