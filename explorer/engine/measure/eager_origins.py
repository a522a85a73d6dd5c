"""Which ops eager calls carry out: by the line of the code that made them, and their operator."""

import math
from collections.abc import Iterable, Mapping, Sequence

from explorer.engine.measure.backward_origins import ops_in_order
from explorer.engine.measure.calls import CallKind, RecordedCall, packet_of
from explorer.engine.prepared import CapturedNode, Prepared
from explorer.model.opgraph import OpKind

_DRAWING = "aten.bernoulli"
"""Draws which elements dropout keeps, where no operator does all of dropout."""


def eager_ops(calls: Sequence[RecordedCall], prepared: Prepared) -> list[tuple[str, ...]]:
    """The ops of each call that no compiled code makes; none of one that cannot be told.

    Args:
        calls: As recorded, in order.
        prepared: The chain with its captured graph.
    """
    found = _dropout_ops(calls, prepared)
    taken: dict[str, int] = {}
    forward = [each for each in prepared.nodes if not each.is_backward]
    found |= _ops_of_other_operators(calls, forward, found)
    run = {(call.source_file, call.source_line) for call in calls}
    other = [each for each in forward if (each.source_file, each.source_line) not in run]
    back: list[int] = []
    for place, call in enumerate(calls):
        if place in found or call.kind is not CallKind.ATEN or call.module is not None:
            continue
        if call.is_backward:
            back.append(place)
        elif (op := _eager_op(call, forward, other or forward, taken)) is not None:
            found[place] = op
    told = set(found.values())
    backward = [c for c in prepared.nodes if c.is_backward and c.op not in told]
    ops = ops_in_order([calls[place] for place in back], backward)
    found |= {place: op for place, op in zip(back, ops, strict=True) if op is not None}
    found |= _traded(calls, found, prepared)
    return [(found[place],) if place in found else () for place in range(len(calls))]


def _traded(
    calls: Sequence[RecordedCall], found: Mapping[int, str], prepared: Prepared
) -> dict[int, str]:
    """The ops of calls of the backward pass that make a result of another one's size.

    Another way to write the chain takes gradients in another order: that of a sum with a matmul
    begins with the matmul's first factor.
    """
    sizes = {
        op.name: {math.prod(prepared.graph.tensor(tensor).shape) for tensor in op.writes}
        for op in prepared.graph.ops
    }

    def fits(place: int, op: str) -> bool:
        written = {math.prod(t.use.shape) for t in calls[place].touches if t.is_write}
        return not written or bool(written & sizes[op])

    wrong = [p for p, op in found.items() if calls[p].is_backward and not fits(p, op)]
    traded: dict[int, str] = {}
    for place in wrong:
        alike = [other for other in wrong if calls[other].name == calls[place].name]
        fitting = {found[other] for other in alike if fits(place, found[other])}
        if len(fitting) == 1:
            traded[place] = fitting.pop()
    is_whole = sorted(traded.values()) == sorted(found[place] for place in traded)
    return traded if is_whole else {}


def _dropout_ops(calls: Sequence[RecordedCall], prepared: Prepared) -> dict[int, str]:
    """The op of each call that is a part of dropout or of its gradient, by the call's place.

    The n-th dropout that runs is the n-th captured, if there are as many. That within attention is
    a part of attention.
    """
    random = [op for op in prepared.graph.ops if op.kind is OpKind.RANDOM]
    parts = _dropout_parts(calls)
    if len(random) != len(parts):
        return {}
    found: dict[int, str] = {}
    for op, places in zip(random, parts, strict=True):
        if operator_of(op.aten) == _DRAWING:
            # Captured taken apart as well: then the other parts are ops of their own.
            found[places[0]] = op.name
        if "dropout" not in op.aten:
            continue
        gradient = next(
            (c.op for c in prepared.nodes if c.gradient_of == op.name and not c.adds_gradients),
            op.name,
        )
        found |= {place: gradient if calls[place].is_backward else op.name for place in places}
    return found


def _ops_of_other_operators(
    calls: Sequence[RecordedCall], captured: Sequence[CapturedNode], found: Mapping[int, str]
) -> dict[int, str]:
    """The ops of the calls of a line that runs other operators than were captured, in order.

    A batch of matmuls may run as one, on a copy of its input. Where the operators are the same,
    their order tells more simply. Code of torch's own modules has no lines, and counts as one.
    """
    told = set(found.values())
    by_line: dict[tuple[str | None, int | None], list[int]] = {}
    for place, call in enumerate(calls):
        is_eager = call.kind is CallKind.ATEN and call.module is None and not call.is_backward
        if is_eager and place not in found:
            by_line.setdefault((call.source_file, call.source_line), []).append(place)
    aligned: dict[int, str] = {}
    for line, places in by_line.items():
        known = [c for c in captured if (c.source_file, c.source_line) == line and c.op not in told]
        called = [operator_of(calls[place].name) for place in places]
        if len(known) < 2 or sorted(called) == sorted(operator_of(c.aten) for c in known):
            continue
        ops = ops_in_order([calls[place] for place in places], known)
        aligned |= {place: op for place, op in zip(places, ops, strict=True) if op is not None}
    return aligned


def _eager_op(
    call: RecordedCall,
    captured: Sequence[CapturedNode],
    other: Sequence[CapturedNode],
    taken: dict[str, int],
) -> str | None:
    """The op of a call; ``other`` are those that a line which was not captured may carry out."""
    operator = operator_of(call.name)
    called = (call.source_file, call.source_line)
    candidates = [c for c in captured if (c.source_file, c.source_line) == called]
    if call.source_line is not None and len(candidates) == 1:
        return candidates[0].op
    # Code that is not the chain's own, such as another way to write it, has lines of its own. It
    # stands for lines that do not run.
    same = [c for c in candidates or other if operator_of(c.aten) == operator]
    if not same:
        return None
    # The n-th call of an operator is the n-th op of that kind; further calls help the last.
    key = f"{call.source_file}:{call.source_line}:{operator}"
    place = taken.get(key, 0)
    taken[key] = place + 1
    return same[min(place, len(same) - 1)].op


def operator_of(overload: str) -> str:
    """An operator, whether or not it works in place, and whichever of its variants it is."""
    packet = packet_of(overload).removesuffix("_")
    return "aten.batch_norm" if "batch_norm" in packet else packet


def _dropout_parts(calls: Sequence[RecordedCall]) -> list[list[int]]:
    """Each dropout taken apart: the calls that draw which to keep, scale that, multiply by it.

    The gradient is multiplied by it as well.
    """
    found: list[list[int]] = []
    noise: dict[int, list[int]] = {}
    saved: dict[int, list[int]] = {}
    for place, call in enumerate(calls):
        operator = packet_of(call.name).removesuffix("_")
        written = [t.use.storage for t in call.touches if t.is_write]
        read = [t.use.storage for t in call.touches if not t.is_write]
        if operator == _DRAWING:
            found.append([place])
            noise |= dict.fromkeys(written, found[-1])
        elif operator == "aten.div" and (drawn := _first(noise, written)) is not None:
            noise[drawn].append(place)
        elif operator == "aten.mul" and (drawn := _first(noise, read)) is not None:
            saved[drawn] = noise.pop(drawn)
            saved[drawn].append(place)
        elif (
            operator == "aten.mul"
            and call.is_backward
            and (drawn := _first(saved, read)) is not None
        ):
            saved.pop(drawn).append(place)
    return found


def _first(held: Mapping[int, object], storages: Iterable[int]) -> int | None:
    return next((storage for storage in storages if storage in held), None)
