"""What is left over: the one generated kernel of unknown ops carries out what no other launch does.

A compiler that rewrites several ops into one of its own leaves no trace of them on the new node.
Where a pass has exactly one kernel without ops, and ops that nothing else carries out, there is no
other place for them.
"""

from collections.abc import Sequence

from explorer.engine.measure.calls import CallKind, RecordedCall
from explorer.engine.measure.observe_compile import ModuleNotes
from explorer.engine.prepared import CapturedNode


def left_over_ops(
    calls: Sequence[RecordedCall],
    notes: Sequence[ModuleNotes | None],
    ops: Sequence[tuple[str, ...]],
    captured: Sequence[CapturedNode],
) -> dict[int, tuple[str, ...]]:
    """The ops of kernels that are told by what is left, by the call's place.

    Args:
        calls: In order.
        notes: Of the generated module that made each, None for eager code.
        ops: That each is known to carry out.
        captured: The chain's ops.
    """
    unknown: dict[object, list[int]] = {}
    within: dict[object, tuple[str, ...]] = {}
    for place, (call, module) in enumerate(zip(calls, notes, strict=True)):
        if module is None or ops[place] or call.kind is CallKind.ATEN:
            continue
        part = _part(module)
        unknown.setdefault(part, []).append(place)
        within[part] = _could_be(module, captured)
    carried = {op for known in ops for op in known}
    found = {}
    for part, places in unknown.items():
        left = tuple(op for op in within[part] if op not in carried)
        if not left and len(within[part]) == 1:
            # Whatever runs in a piece of one op is of that op.
            found.update(dict.fromkeys(places, within[part]))
        elif left and len(places) == 1:
            found[places[0]] = left
    return found


def _part(module: ModuleNotes) -> object:
    """What the kernels of a module are counted with: a piece by itself, else the whole pass."""
    return module.key if module.marked else _is_backward(module)


def _is_backward(module: ModuleNotes) -> bool:
    return any(node.is_backward for node in module.nodes.values())


def _could_be(module: ModuleNotes, captured: Sequence[CapturedNode]) -> tuple[str, ...]:
    """The ops that a kernel of a module may carry out, in the chain's order."""
    if module.marked:
        return tuple(each.op for each in captured if each.node in module.marked)
    return tuple(each.op for each in captured if each.is_backward is _is_backward(module))
