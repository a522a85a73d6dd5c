"""Which ops a library's kernels carry out, which neither the chain's code nor a compiler tells."""

from collections.abc import Sequence
from dataclasses import replace

from explorer.engine.measure.calls import CallKind, RecordedCall, packet_of
from explorer.engine.measure.provenance import CallOrigin
from explorer.engine.prepared import Prepared
from explorer.engine.strategies.base import LibraryOps

_HELPERS = {
    "aten._to_copy", "aten.clone", "aten.copy_", "aten.fill_", "aten.full", "aten.ones",
    "aten.ones_like", "aten.zero_", "aten.zeros", "aten.zeros_like",
}  # fmt: skip
"""Operators that a library calls for itself."""


def with_library_ops(
    calls: Sequence[RecordedCall],
    origins: Sequence[CallOrigin],
    prepared: Prepared,
    library: LibraryOps,
) -> tuple[CallOrigin, ...]:
    """The origins with the ops of the library's kernels.

    Kernels of the forward pass that the library names carry out what it says, or all that no other
    call does. Where it names none, and in the backward pass, each kernel of its own carries out
    every op of the pass that no other call does; where it has none of its own but calls torch's
    operators, those do.

    Args:
        calls: As recorded, in order.
        origins: Of each, as far as it is known without the library.
        prepared: The chain with its captured graph.
        library: What the library says.
    """
    order = {op.name: place for place, op in enumerate(prepared.graph.ops)}
    found = list(origins)
    rest: dict[bool, list[int]] = {False: [], True: []}
    for place, call in enumerate(calls):
        named = _named(call, library)
        if named:
            ops = sorted((op for op in named if op in order), key=lambda name: order[name])
            found[place] = replace(found[place], ops=tuple(ops))
        elif named is not None:
            rest[call.is_backward].append(place)
    for is_backward, places in rest.items():
        if is_backward or not library.by_kernel:
            places[:] = _without_ops(calls, found, is_backward=is_backward)
        carried = {
            op for place, origin in enumerate(found) if place not in places for op in origin.ops
        }
        left = tuple(
            op.name
            for op in prepared.graph.ops
            if op.is_backward is is_backward and op.name not in carried
        )
        for place in places:
            found[place] = replace(found[place], ops=left)
    return tuple(found)


def _named(call: RecordedCall, library: LibraryOps) -> tuple[str, ...] | None:
    """What the library says that a call of the forward pass carries out, None if nothing."""
    if call.is_backward:
        return None
    return next((ops for part, ops in library.by_kernel if part in call.name), None)


def _without_ops(
    calls: Sequence[RecordedCall], origins: Sequence[CallOrigin], *, is_backward: bool
) -> list[int]:
    """The places of a pass's calls that may be the library's: its own, else torch's."""
    unknown = [
        place
        for place, (call, origin) in enumerate(zip(calls, origins, strict=True))
        if call.is_backward is is_backward
        and not origin.ops
        and packet_of(call.name) not in _HELPERS
    ]
    own = [place for place in unknown if not _is_torchs(calls[place])]
    return own or unknown


def _is_torchs(call: RecordedCall) -> bool:
    return call.kind is CallKind.ATEN and call.name.startswith("aten.")
