"""What is said of the ops and links of the operator chain, for tool tips and screen readers."""

from dataclasses import dataclass

from explorer.model.units import format_bytes
from explorer.ui.op_links import ChainPicture, Link, OpRow, format_flops, link_sentence

MOST_NUMBERS = 8
"""Launches that are told one by one."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What setting a link the other way would change.

    Attributes:
        short: In the pill: ``−2.15 GB · −1 launch``.
        sentence: At length.
    """

    short: str
    sentence: str


def has_reason(link: Link) -> bool:
    """Whether somebody knows why its two ops are apart."""
    return link.refusal is not None or link.graph_break is not None


def can_be_set(link: Link) -> bool:
    """Whether a click switches it: a bundle's links are switched once its part is open."""
    return link.graph_break is None and not link.bundle


def link_lines(link: Link, memory: str, preview: Preview | None) -> str:
    """A link at length: what it costs, why it is there, and what a click would change."""
    lines = [link_sentence(link, memory)]
    if link.refusal is not None:
        lines.append(f"Why apart: {link.refusal.sentence}")
    if preview is not None:
        lines.append(preview.sentence)
    return "\n".join(lines)


def fold_notes(row: OpRow) -> tuple[str, str]:
    """How many ops a folded part holds, and the bytes of the kernels that begin in it."""
    return f"{len(row.ops)} ops", format_bytes(row.n_bytes)


def op_sentence(picture: ChainPicture, place: int) -> str:
    """An op at length: ATen operator, arithmetic, what it reads from elsewhere, source line."""
    row = picture.rows[place]
    if row.folded:
        return _part_sentence(picture, row)
    lines = [f"{row.op.name}: {row.op.aten}", format_flops(row.op.flops)]
    if row.side_inputs:
        lines.append(sides_sentence(picture, place))
    if row.launches:
        lines.append(f"carried out by {_launches(row)}")
    source = (row.op.source_place, row.op.source_line)
    if any(source):
        lines.append(": ".join(part for part in source if part))
    return "\n".join(lines)


def _part_sentence(picture: ChainPicture, row: OpRow) -> str:
    n_ops, n_bytes = fold_notes(row)
    lines = [
        f"{row.name}, folded: {n_ops}, {row.ops[0].name} to {row.ops[-1].name}",
        f"{n_bytes} {picture.pedigree.value}: what the kernels read and write that begin here",
        format_flops(sum(op.flops for op in row.ops)),
    ]
    if row.launches:
        lines.append(f"carried out by {_launches(row)}")
    return "\n".join([*lines, "Click, Enter or Right opens it"])


def _launches(row: OpRow) -> str:
    if len(row.launches) > MOST_NUMBERS:
        return f"{len(row.launches)} launches"
    numbers = ", ".join(str(i + 1) for i in row.launches)
    return f"launch{'es' if len(row.launches) > 1 else ''} {numbers}"


def sides_sentence(picture: ChainPicture, place: int) -> str:
    """What an op reads that no other op made, one a line."""
    return "\n".join(
        f"reads {side.name}: {format_bytes(side.n_bytes)} ({picture.pedigree.value})"
        for side in picture.rows[place].side_inputs
    )
