"""The scene in words: for tooltips and for those who do not see it."""

import math
from html import escape

from explorer.model.playback import Life, Moment, Phase, Playback, Schedule, Slot
from explorer.model.run import Pedigree
from explorer.model.streams import KIND_SENTENCES, Amount, Stream, StreamKind, Way
from explorer.model.tensor import Tensor, TensorRole
from explorer.model.units import format_bytes, format_rate, format_us
from explorer.ui.scene.head import describe_run
from explorer.ui.scene.hit import Hit
from explorer.ui.scene.kernels import duration_text, idle_words, kernel_name, stays_sentence
from explorer.ui.words import launch_lines

_ROLE_WORDS = {
    TensorRole.INPUT: "input",
    TensorRole.INTERMEDIATE: "intermediate",
    TensorRole.OUTPUT: "output",
    TensorRole.WORKSPACE: "workspace: made by the generated code or a library",
}


def describe(playback: Playback, t_us: float) -> str:
    """The scene at a moment, in a few sentences."""
    return " ".join(_describe_lane(lane, lane.at(t_us)) for lane in playback.lanes)


def _describe_lane(lane: Schedule, moment: Moment) -> str:
    name = describe_run(lane.run)
    if not lane.slots:
        return f"{name}: {lane.sentence}"
    whole = lane.read_bytes + lane.written_bytes
    done = moment.read_bytes + moment.written_bytes
    return (
        f"{name}. {format_us(moment.t_us)} of {format_us(lane.total_us)}: "
        f"{_state_words(lane, moment)}. "
        f"Read {format_bytes(moment.read_bytes)} and written "
        f"{format_bytes(moment.written_bytes)}, {format_bytes(done)} of {format_bytes(whole)}; "
        f"memory in use {format_bytes(moment.in_use_bytes)}."
    )


def _state_words(lane: Schedule, moment: Moment) -> str:
    if moment.gap is not None:
        return idle_words(lane, moment.gap)
    if not moment.active:
        return "finished"
    parts = []
    for number in moment.active:
        slot = lane.slots[number]
        percent = int(100 * slot.progress(moment.t_us))
        parts.append(
            f"{kernel_name(slot)} of {len(lane.slots)}, {work_words(slot)}, {percent} % done"
        )
    return "; ".join(parts)


def work_words(slot: Slot) -> str:
    """What a launch does: its ops, or its title where it carries out none."""
    return " + ".join(slot.launch.ops) or slot.launch.title


def tooltip(hit: Hit, playback: Playback, t_us: float) -> str:
    """What was hit, as rich text with numbers and their pedigrees."""
    lane = playback.lanes[hit.lane]
    if hit.stream is not None and hit.slot is not None:
        lines = _stream_lines(hit.stream, hit.slot, lane, playback)
    elif hit.slot is not None:
        lines = _kernel_lines(hit.slot, lane)
    elif hit.tensor is not None:
        lines = _tensor_lines(hit.tensor, lane, t_us)
    elif hit.is_memory:
        lines = _memory_lines(lane, t_us)
    else:
        lines = _cache_lines(lane)
    first, *rest = lines
    return "<br>".join([f"<b>{escape(first)}</b>", *map(escape, rest)])


def _kernel_lines(slot: Slot, lane: Schedule) -> list[str]:
    launch = slot.launch
    title, *rest = launch_lines(lane.run, slot.index)
    lines = [f"{kernel_name(slot)}: {title}", *rest]
    if launch.stays_on_chip:
        lines.append(stays_sentence(lane.run, launch))
    lines += [
        f"{nest.name}: {' + '.join(nest.ops)}, reads {format_bytes(nest.bytes_read)}, writes "
        f"{format_bytes(nest.bytes_written)}, no time of its own"
        for nest in launch.loop_nests
    ]
    lines += [_share_line(stream, lane) for stream in slot.traffic.streams]
    return lines


def _share_line(stream: Stream, lane: Schedule) -> str:
    name = stream_name(stream, lane)
    way = "reads" if stream.way is Way.READ else "writes"
    if stream.kind is StreamKind.L2:
        return f"{format_bytes(stream.n_bytes)} from L2"
    return f"{way} {name}: {format_bytes(stream.n_bytes)}"


def stream_name(stream: Stream, lane: Schedule) -> str:
    """The tensor's name, or what the stream is called."""
    if stream.tensor is None:
        return stream.kind.value
    return next(
        (life.tensor.name for life in lane.lives if life.tensor.id == stream.tensor),
        stream.tensor,
    )


def _stream_lines(stream: Stream, slot: Slot, lane: Schedule, playback: Playback) -> list[str]:
    way = "read by" if stream.way is Way.READ else "written by"
    amount = slot.traffic.read if stream.way is Way.READ else slot.traffic.written
    lines = [
        f"{stream_name(stream, lane)} · {format_bytes(stream.n_bytes)} {way} {kernel_name(slot)}"
    ]
    if stream.kind is not StreamKind.TENSOR:
        lines.append(KIND_SENTENCES[stream.kind])
    if stream.modelled_bytes is not None and stream.modelled_bytes != stream.n_bytes:
        lines.append(
            f"modelled {format_bytes(stream.modelled_bytes)}; the tensors' shares are scaled to "
            "what was counted"
        )
    if stream.is_memory_traffic:
        lines.append(_amount_line(stream.way, amount))
    dots = -(-stream.n_bytes // playback.dot_bytes)
    lines.append(
        f"{dots:,} dot{'s' if dots > 1 else ''} of {format_bytes(playback.dot_bytes)}"
        + (", the last one smaller" if stream.n_bytes % playback.dot_bytes else "")
    )
    lines.append(f"in {duration_text(slot.launch)}")
    return lines


def _amount_line(way: Way, amount: Amount) -> str:
    pedigree = amount.pedigree.value if amount.pedigree else Pedigree.PLANNED.value
    settled = ", with the write-back after the launch" if amount.settled else ""
    word = "reads" if way is Way.READ else "writes"
    return f"all {word} of the launch: {format_bytes(amount.n_bytes)} {pedigree}{settled}"


def _tensor_lines(tensor: Tensor, lane: Schedule, t_us: float) -> list[str]:
    shape = " × ".join(f"{size:,}" for size in tensor.shape) or "scalar"
    lines = [
        f"{tensor.name} · {format_bytes(tensor.n_bytes)}",
        f"{tensor.dtype} [{shape}], {_ROLE_WORDS[tensor.role]}",
    ]
    for word, way in (("written by", Way.WRITE), ("read by", Way.READ)):
        users = [
            kernel_name(slot)
            for slot in lane.slots
            for stream in slot.traffic.streams
            if stream.tensor == tensor.id and stream.way is way
        ]
        if users:
            lines.append(f"{word} {', '.join(users)}")
    life = next(life for life in lane.lives if life.tensor.id == tensor.id)
    lines.append(_life_words(life, lane, t_us))
    return lines


def _life_words(life: Life, lane: Schedule, t_us: float) -> str:
    phase = life.phase(min(t_us, lane.total_us))
    if life.there_before:
        return "in memory all the time"
    until = "the end" if math.isinf(life.until_us) else format_us(life.until_us)
    span = f"from {format_us(life.from_us)} to {until}"
    state = {Phase.BEFORE: "not yet there", Phase.DURING: "in memory", Phase.AFTER: "freed"}
    return f"{state[phase]} (holds memory {span})"


def _memory_lines(lane: Schedule, t_us: float) -> list[str]:
    device = lane.run.device
    lines = [device.memory_name]
    if device.ceilings is not None:
        ceilings = device.ceilings
        lines.append(
            f"measured: reading {format_rate(ceilings.read_bytes_per_s)}, writing "
            f"{format_rate(ceilings.write_bytes_per_s)}, copying "
            f"{format_rate(ceilings.copy_bytes_per_s)}"
        )
    lines += [
        f"tensors in use {format_bytes(lane.at(t_us).in_use_bytes)}, "
        f"at most {format_bytes(lane.peak_in_use_bytes)}, modelled: each from its first write to "
        "its last use",
        "a kernel may write over a tensor that it read: what the allocator held at its peak is in "
        "the card Peak memory",
    ]
    return lines


def _cache_lines(lane: Schedule) -> list[str]:
    lines = [f"L2 · {format_bytes(lane.run.device.l2_bytes)}"]
    if lane.l2_bytes:
        lines.append(f"served {format_bytes(lane.l2_bytes)} of requests in this run, counted")
        lines.append(KIND_SENTENCES[StreamKind.L2])
    else:
        lines.append("requests to it were not counted in this run")
    return lines
