"""Puts recorded calls, traced events and counted bytes together into launches."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from explorer.engine.cupti.counters import RangeBytes
from explorer.engine.measure.calls import CallKind, RecordedCall
from explorer.engine.measure.generated import read_module
from explorer.engine.measure.naming import Named, NamedCall
from explorer.engine.measure.provenance import CallOrigin, Origins
from explorer.engine.measure.trace import GpuEvent, Slot
from explorer.model.run import Bytes, Launch

_HELPER_WORDS = (
    ("memcpy", "copy"),
    ("memset", "fill"),
    ("philox", "random seeds"),
    ("fill", "fill"),
    ("copy", "copy"),
    ("distribution", "random numbers"),
    ("split", "sum of the parts"),
    ("reduce", "sum of the parts"),
)
"""What a helper is called, by what its kernel's name contains."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The calls with everything that is known of them but their times."""

    calls: tuple[RecordedCall, ...]
    origins: Origins
    named: Named

    def launches(self) -> tuple[Launch, ...]:
        """One launch a call, without times and counted bytes."""
        titles = _titles(self.calls, self.origins.calls, self.named.calls)
        _, keys = generated_sources(self.calls)
        return tuple(
            _launch(call, origin, named, title, key)
            for call, origin, named, title, key in zip(
                self.calls, self.origins.calls, self.named.calls, titles, keys, strict=True
            )
        )


def generated_sources(
    calls: Sequence[RecordedCall],
) -> tuple[dict[str, str], tuple[str | None, ...]]:
    """The source of each generated kernel by key, and the key of each call's.

    The key is the kernel's name; kernels of several modules that have one name, such as a
    multiplication in two groups of a plan, are numbered where their sources differ.
    """
    sources: dict[str, str] = {}
    keys: list[str | None] = []
    for call in calls:
        kernels = read_module(call.module).kernels if call.module is not None else {}
        if call.kind is CallKind.ATEN or call.name not in kernels:
            keys.append(None)
            continue
        key, number, source = call.name, 2, kernels[call.name].source
        while sources.setdefault(key, source) != source:
            key, number = f"{call.name} ({number})", number + 1
        keys.append(key)
    return sources, tuple(keys)


def with_times(launches: Sequence[Launch], slots: Sequence[Slot]) -> tuple[Launch, ...]:
    """The launches with their places on the time axis."""
    return tuple(
        replace(launch, start_us=slot.start_us, duration_us=slot.duration_us)
        for launch, slot in zip(launches, slots, strict=True)
    )


def on_gpu(
    events: Sequence[GpuEvent],
    slots: Sequence[Slot],
    calls: Sequence[int | None],
    recorded: Sequence[Launch],
) -> tuple[Launch, ...]:
    """One launch for everything the GPU did.

    An operator that launched several kernels gives its bytes to the longest of them; the others
    are helpers.

    Args:
        events: As traced, in order.
        slots: Their places on the time axis.
        calls: For each event, the index of the call that launched it.
        recorded: One launch a call.
    """
    main: dict[int, int] = {}
    for place, call in enumerate(calls):
        if call is None:
            continue
        best = main.get(call)
        if best is None or slots[place].duration_us > slots[best].duration_us:
            main[call] = place
    launches = []
    for place, (event, slot, call) in enumerate(zip(events, slots, calls, strict=True)):
        helper = _helper(event)
        if call is None:
            launch = helper
        elif main[call] == place:
            launch = recorded[call]
        else:
            launch = replace(helper, title=f"{recorded[call].title}: {helper.title}")
        launches.append(_as_traced(launch, event, slot))
    return tuple(launches)


def traced_alone(events: Sequence[GpuEvent], slots: Sequence[Slot]) -> tuple[Launch, ...]:
    """Launches of which nothing but the trace is known."""
    return tuple(
        _as_traced(Launch(kernel=event.name, title=event.name), event, slot)
        for event, slot in zip(events, slots, strict=True)
    )


def with_counts(
    launches: Sequence[Launch], counted: Mapping[int, RangeBytes]
) -> tuple[Launch, ...]:
    """The launches with counted bytes, by place."""
    result = []
    for place, launch in enumerate(launches):
        count = counted.get(place)
        if count is not None:
            launch = replace(  # noqa: PLW2901 - the launch, with more known of it
                launch,
                bytes_read=replace(launch.bytes_read, counted=count.bytes_read),
                bytes_written=replace(launch.bytes_written, counted=count.bytes_written),
                l2_bytes_requested=count.bytes_requested,
            )
        result.append(launch)
    return tuple(result)


def helper_title(name: str) -> str:
    """A short name for a launch that the chain does not ask for."""
    lower = name.lower()
    return next((word for part, word in _HELPER_WORDS if part in lower), "helper")


def _helper(event: GpuEvent) -> Launch:
    """A launch that no op accounts for; what the driver itself moves is known from the trace."""
    read = written = None
    if event.n_bytes is not None:
        # A copy's name tells its ends: ``Memcpy DtoH``, D being the device's memory.
        source, _, target = event.name.partition("to")
        is_copy = "memcpy" in event.name.lower()
        read = event.n_bytes if is_copy and source.endswith("D") else 0
        written = event.n_bytes if not is_copy or target.startswith("D") else 0
    return Launch(
        kernel=event.name,
        title=helper_title(event.name),
        bytes_read=Bytes(modelled=read),
        bytes_written=Bytes(modelled=written),
        is_helper=True,
    )


def _as_traced(launch: Launch, event: GpuEvent, slot: Slot) -> Launch:
    return replace(
        launch,
        kernel=event.name,
        start_us=slot.start_us,
        duration_us=slot.duration_us,
        stream=event.stream,
        grid=event.grid,
        block=event.block,
        registers=event.registers,
        shared_bytes=event.shared_bytes,
    )


def _launch(
    call: RecordedCall, origin: CallOrigin, named: NamedCall, title: str, code: str | None
) -> Launch:
    read = sum(access.bytes_read for access in named.accesses)
    written = sum(access.bytes_written for access in named.accesses)
    # Of a compiled call whose compilation was not seen, it is unknown what it is there for.
    is_known = call.module is None or origin.notes is not None
    return Launch(
        kernel=call.name,
        title=title,
        ops=origin.ops,
        accesses=named.accesses,
        bytes_read=Bytes(modelled=read),
        bytes_written=Bytes(modelled=written),
        stays_on_chip=named.stays_on_chip,
        spills=call.spills,
        is_helper=is_known and not origin.ops,
        code=code,
        loop_nests=named.loop_nests,
    )


def _titles(
    calls: Sequence[RecordedCall], origins: Sequence[CallOrigin], named: Sequence[NamedCall]
) -> list[str]:
    alike = Counter(origin.ops for origin in origins)
    seen: Counter[tuple[str, ...]] = Counter()
    titles = []
    for call, origin, tensors in zip(calls, origins, named, strict=True):
        title = " + ".join(origin.ops)
        seen[origin.ops] += 1
        if not origin.ops:
            title = _helper_call(call, tensors)
        elif alike[origin.ops] > 1 and call.kind is CallKind.ATEN:
            title = f"{title}: {_short(call.name)}"
        elif alike[origin.ops] > 1:
            title = f"{title}, part {seen[origin.ops]} of {alike[origin.ops]}"
        titles.append(title)
    return titles


def _helper_call(call: RecordedCall, named: NamedCall) -> str:
    """A helper that makes one thing is called after it."""
    written = [access.tensor for access in named.accesses if access.bytes_written]
    if len(written) == 1 and written[0].startswith("random "):
        return written[0]
    return _short(call.name) if call.kind is CallKind.ATEN else call.name


def _short(overload: str) -> str:
    parts = overload.split(".")
    return (parts[1] if len(parts) > 1 else overload).strip("_")
