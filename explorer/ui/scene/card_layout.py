"""Where each kernel's card lies, and the op boxes inside it; which launches share a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from PySide6.QtCore import QRectF

from explorer.model.playback import Slot

CARD_GAP = 14.0
LEAST_WIDTH = 86.0
WIDTH_PER_OP = 74.0
MOST_WIDTH = 230.0
"""For the first op; each further one adds half of it. A lone small kernel need not fill the row."""
NARROW = 190.0
"""Below this width the number and the time are written one below the other."""
LOW = 120.0
"""Below this height a narrow card tells the sum of its bytes alone."""
OP_GAP = 20.0
CLOSE_OP_GAP = 11.0
LEAST_OP_WIDTH = 58.0
MOST_OP_WIDTH = 150.0
MOST_OP_HEIGHT = 44.0
LEAST_OP_HEIGHT = 20.0
ROW_GAP = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OpBox:
    """An op inside a kernel.

    Attributes:
        name: The op.
        rect: Its box.
    """

    name: str
    rect: QRectF


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A kernel's card.

    Attributes:
        slot: The launch.
        rect: The whole card.
        is_narrow: Whether number and time are on two lines.
        is_low: Whether there is one line for its bytes, however narrow it is.
        chip: The inside, where what stays on chip is drawn.
        ops: Boxes of the ops, in order; rows run to and fro, so that links stay short.
        hidden_ops: How many ops found no room.
        has_label: Whether the chip says what it is.
        has_sentence: Whether it says under the ops what stays in it; if not, the card's foot does.
    """

    slot: Slot
    rect: QRectF
    is_narrow: bool
    is_low: bool
    chip: QRectF
    ops: tuple[OpBox, ...]
    hidden_ops: int
    has_label: bool
    has_sentence: bool


@dataclass(frozen=True, slots=True)
class Page:
    """The launches in view where not all of them fit.

    Attributes:
        first: Number of the first.
        end: Number after the last.
        count: Launches in all.
    """

    first: int
    end: int
    count: int

    @property
    def is_whole(self) -> bool:
        """Whether everything is in view."""
        return self.end - self.first == self.count


def page_of(slots: Sequence[Slot], number: int, width: float, u: float) -> Page:
    """The page that shows launch ``number``; pages are of equal length, as far as they can be."""
    needed = [_least_width(slot, u) + CARD_GAP * u for slot in slots]
    room = width + CARD_GAP * u
    if sum(needed) <= room:
        return Page(0, len(slots), len(slots))
    # Equal pages, as many as it takes for the fullest one to fit.
    for pages in range(2, len(slots) + 1):
        bounds = [len(slots) * i // pages for i in range(pages + 1)]
        fullest = max(sum(needed[a:b]) for a, b in pairwise(bounds))
        if fullest <= room or pages == len(slots):
            first = max(bound for bound in bounds[:-1] if bound <= number)
            end = min(bound for bound in bounds if bound > first)
            return Page(first, end, len(slots))
    return Page(0, len(slots), len(slots))


def place_cards(slots: Sequence[Slot], rect: QRectF, u: float) -> tuple[Card, ...]:
    """Place the cards of a page side by side.

    Each has what it needs to be read; the rest is shared by the number of ops.
    """
    least = [_least_width(slot, u) for slot in slots]
    weights = [1 + 0.55 * _columns_wanted(slot) for slot in slots]
    most = [(MOST_WIDTH + MOST_WIDTH / 2 * max(0, len(slot.launch.ops) - 1)) * u for slot in slots]
    free = rect.width() - CARD_GAP * u * (len(slots) - 1) - sum(least)
    shares = [max(0.0, free) * weight / sum(weights) for weight in weights]
    # A card that needs more than the row gives (a long fused kernel alone on its page) shrinks.
    widths = [
        min(a + share, b, rect.width()) for a, share, b in zip(least, shares, most, strict=True)
    ]
    x = rect.x() + (rect.width() - sum(widths) - CARD_GAP * u * (len(slots) - 1)) / 2
    cards = []
    for slot, width in zip(slots, widths, strict=True):
        cards.append(_card(slot, QRectF(x, rect.y(), width, rect.height()), u))
        x += width + CARD_GAP * u
    return tuple(cards)


def _columns_wanted(slot: Slot) -> int:
    return min(max(1, len(slot.launch.ops)), 6)


def _least_width(slot: Slot, u: float) -> float:
    """Two ops need more than one; from four on they can go in rows."""
    columns = min(_columns_wanted(slot), 4)
    return (LEAST_WIDTH + WIDTH_PER_OP * (columns - 1)) * u


def _card(slot: Slot, rect: QRectF, u: float) -> Card:
    is_narrow = rect.width() < NARROW * u
    is_low = rect.height() < LOW * u
    top, bottom = (50.0, 44.0) if is_narrow else (35.0, 31.0)
    if is_low:
        top, bottom = 45.0 if is_narrow else 31.0, 29.0
    chip = rect.adjusted(9 * u, top * u, -9 * u, -bottom * u)
    names = slot.launch.ops or (slot.launch.title,)
    if is_narrow and len(names) == 1:
        # One box may fill the chip: a long name then goes on two lines.
        box = OpBox(name=names[0], rect=chip.adjusted(3 * u, 2.5 * u, -3 * u, -2.5 * u))
        return Card(
            slot=slot, rect=rect, is_narrow=True, is_low=is_low, chip=chip, ops=(box,),
            hidden_ops=0, has_label=False, has_sentence=False,
        )  # fmt: skip
    label, sentence = _has_room_for_label(chip, u), _has_room_for_sentence(chip, u)
    ops: tuple[OpBox, ...] = ()
    # Words give way to ops, which are what the card is about: the label first.
    for with_label, with_sentence in ((label, sentence), (False, sentence), (False, False)):
        label, sentence = with_label, with_sentence
        room = chip.adjusted(8 * u, (22 if label else 6) * u, -8 * u, -6 * u)
        if sentence:
            room.setBottom(room.bottom() - 16.5 * u * _rows_below(slot, chip, u))
        ops = _place_ops(names, room, u)
        if len(ops) == len(names):
            break
    return Card(
        slot=slot,
        rect=rect,
        is_narrow=is_narrow,
        is_low=is_low,
        chip=chip,
        ops=ops,
        hidden_ops=len(names) - len(ops),
        has_label=label,
        has_sentence=sentence,
    )


def _rows_below(slot: Slot, chip: QRectF, u: float) -> int:
    """Lines of text under the op boxes."""
    if slot.launch.loop_nests:
        wanted = -(-len(slot.launch.loop_nests) // nest_columns(chip, u))
        return min(wanted, nest_rows(chip, u))
    return 1 if slot.launch.stays_on_chip else 0


def _has_room_for_label(chip: QRectF, u: float) -> bool:
    """Whether the chip is large enough for the words that say what it is."""
    return chip.height() >= 62 * u and chip.width() >= 128 * u


def _has_room_for_sentence(chip: QRectF, u: float) -> bool:
    """Whether the chip is large enough for a sentence about what stays in it."""
    return chip.height() >= 52 * u and chip.width() >= 150 * u


def nest_columns(chip: QRectF, u: float) -> int:
    """How many loop nests go side by side."""
    return 2 if chip.width() >= 400 * u else 1


def nest_rows(chip: QRectF, u: float) -> int:
    """How many lines of loop nests fit under the op boxes."""
    return max(1, int((chip.height() - 54 * u) / (16.5 * u)))


def _place_ops(names: Sequence[str], room: QRectF, u: float) -> tuple[OpBox, ...]:
    """Boxes in one row if they fit, else in rows that run to and fro like a snake."""
    row_gap = ROW_GAP * u
    fitting = max(1, int((room.height() + row_gap) / (LEAST_OP_HEIGHT * u + row_gap)))
    # Boxes move together before one of them is left out.
    for gap in (OP_GAP * u, CLOSE_OP_GAP * u):
        columns = len(names)
        while columns > 1 and (room.width() - gap * (columns - 1)) / columns < LEAST_OP_WIDTH * u:
            columns -= 1
        rows = -(-len(names) // columns)
        if rows <= fitting:
            break
    shown_rows = min(rows, fitting)
    width = min((room.width() - gap * (columns - 1)) / columns, MOST_OP_WIDTH * u)
    height = min((room.height() - row_gap * (shown_rows - 1)) / shown_rows, MOST_OP_HEIGHT * u)
    left = room.x() + (room.width() - width * columns - gap * (columns - 1)) / 2
    used = height * shown_rows + row_gap * (shown_rows - 1)
    top = room.y() + (room.height() - used) / 2
    boxes = []
    for i, name in enumerate(names[: columns * shown_rows]):
        row, column = divmod(i, columns)
        place = column if row % 2 == 0 else columns - 1 - column
        rect = QRectF(left + place * (width + gap), top + row * (height + row_gap), width, height)
        boxes.append(OpBox(name=name, rect=rect))
    return tuple(boxes)
