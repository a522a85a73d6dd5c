"""Where each tensor lies in the memory band: areas in proportion to bytes, with a least size.

Large tensors are blocks of the band's height, so their widths are in proportion. Tensors for
which that block would be too narrow to read are squares of the true area in a column, with their
names beside them; their streams leave by a rail at the column's left.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF

from explorer.model.tensor import Tensor

BLOCK_GAP = 9.0
LEAST_BLOCK_WIDTH = 20.0
"""Enough for a name from bottom to top."""
LEAST_SQUARE = 8.0
ROW_HEIGHT = 24.0
LABEL_GAP = 5.0
RAIL_STEP = 6.0
RAIL_TURN = 6.0
"""Between the last rail and the squares: room for an arrow head."""
LEAST_SCALE = 0.3
"""Of the largest scale possible: readable names are worth that much of the blocks' area."""
_HALVINGS = 12
MOST_OF_BAND = 0.4
"""A lone tensor must not fill the band: there would be nothing to compare it with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorBox:
    """A tensor's place.

    Attributes:
        tensor: The tensor.
        block: Its area, in proportion to its bytes.
        label: Where the name is written beside a square; None if it is written in the block.
        rail_x: Where the streams of a square run down; None for a block.
    """

    tensor: Tensor
    block: QRectF
    label: QRectF | None = None
    rail_x: float | None = None

    @property
    def is_square(self) -> bool:
        """Whether it is a small square with its name beside."""
        return self.label is not None


@dataclass(frozen=True, slots=True)
class _Area:
    """The room for tensors, how many square pixels a byte takes, and the labels' widths."""

    rect: QRectF
    u: float
    per_byte: float
    label_widths: Mapping[str, float]

    def width(self, tensor: Tensor) -> float:
        """Width of the tensor's block at the band's full height."""
        return tensor.n_bytes * self.per_byte / self.rect.height()

    def side(self, tensor: Tensor) -> float:
        """Side of the tensor's square, no less than can be seen and no more than fits."""
        side = math.sqrt(tensor.n_bytes * self.per_byte)
        return min(max(side, LEAST_SQUARE * self.u), self.rect.height())


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What is to be placed in a band, and in which room.

    Attributes:
        tensors: In the order in which they should lie, so that streams stay short.
        late: Ids of those used mostly by later kernels: their squares lie at the right.
        label_widths: Width of each tensor's name and size, in pixels, by id.
        rect: The room for them.
        u: Length of the scene's unit in pixels.
        most_per_byte: Square pixels a byte at most, so that two bands can share a scale.
    """

    tensors: Sequence[Tensor]
    late: frozenset[str]
    label_widths: Mapping[str, float]
    rect: QRectF
    u: float
    most_per_byte: float = math.inf


def area_per_byte(shelf: Shelf) -> float:
    """Square pixels a byte at which everything fits."""
    return _choose_scale(shelf)[0].per_byte


def place_tensors(shelf: Shelf) -> dict[str, TensorBox]:
    """Place the tensors in the band; boxes by tensor id."""
    area, small = _choose_scale(shelf)
    rect, u = shelf.rect, shelf.u
    left, right = _sides(small, shelf)
    large = [tensor for tensor in shelf.tensors if tensor.id not in small]
    boxes: dict[str, TensorBox] = {}
    x = _place_columns(left, area, rect.x(), boxes)
    for tensor in large:
        width = area.width(tensor)
        block = QRectF(x, rect.y(), width, rect.height())
        boxes[tensor.id] = TensorBox(tensor=tensor, block=block)
        x += width + BLOCK_GAP * u
    _place_columns(right, area, x, boxes)
    _spread(boxes, rect)
    return boxes


def _choose_scale(shelf: Shelf) -> tuple[_Area, frozenset[str]]:
    """The best scale, and the ids of the tensors too small for a block at that scale.

    As squares the small ones leave room to the others, but their names take room. Of all cuts
    between small and large, those that leave the blocks far smaller than need be are out; among
    the rest the one with the fewest unreadable blocks wins, then the one with the largest scale.
    """
    by_size = sorted(shelf.tensors, key=lambda tensor: tensor.n_bytes)
    cuts = []
    for n_small in range(len(by_size) + 1):
        if 0 < n_small < len(by_size) and by_size[n_small - 1].n_bytes == by_size[n_small].n_bytes:
            # Of two tensors alike, one as a square and one as a block would look unlike.
            continue
        small = frozenset(tensor.id for tensor in by_size[:n_small])
        area = _area_for(small, shelf)
        least = LEAST_BLOCK_WIDTH * shelf.u
        narrow = sum(area.width(tensor) < least for tensor in by_size[n_small:])
        cuts.append((area, small, narrow))
        if not narrow:
            # Any further cut would only turn readable blocks into squares.
            break
    largest = max(area.per_byte for area, _, _ in cuts)
    area, small, _ = min(
        (cut for cut in cuts if cut[0].per_byte >= LEAST_SCALE * largest),
        key=lambda cut: (cut[2], -cut[0].per_byte),
    )
    return area, small


def _sides(small: frozenset[str], shelf: Shelf) -> tuple[list[Tensor], list[Tensor]]:
    """Squares at the left and at the right, in the shelf's order."""
    squares = [tensor for tensor in shelf.tensors if tensor.id in small]
    left = [tensor for tensor in squares if tensor.id not in shelf.late]
    return left, [tensor for tensor in squares if tensor.id in shelf.late]


def _area_for(small: frozenset[str], shelf: Shelf) -> _Area:
    """The room with the largest scale at which everything fits, ``small`` as squares."""
    rect, u = shelf.rect, shelf.u
    biggest = max((tensor.n_bytes for tensor in shelf.tensors), default=0)
    if biggest == 0:
        return _Area(rect, u, 0.0, shelf.label_widths)
    sides = _sides(small, shelf)
    n_large = len(shelf.tensors) - len(small)
    large_bytes = sum(tensor.n_bytes for tensor in shelf.tensors if tensor.id not in small)
    high = min(shelf.most_per_byte, MOST_OF_BAND * rect.width() * rect.height() / biggest)
    low = 0.0
    area = _Area(rect, u, high, shelf.label_widths)
    # Squares and their columns grow with the scale as blocks do: halve the range.
    for _ in range(_HALVINGS):
        columns = sum(
            _column_width(column, area) + BLOCK_GAP * u
            for side in sides
            for column in _columns(side, area)
        )
        blocks = large_bytes * area.per_byte / rect.height() + BLOCK_GAP * u * max(0, n_large - 1)
        if columns + blocks <= rect.width():
            low = area.per_byte
            if low == high:
                break
        else:
            high = area.per_byte
        area = _Area(rect, u, (low + high) / 2, shelf.label_widths)
    return _Area(rect, u, low, shelf.label_widths)


def _columns(tensors: Sequence[Tensor], area: _Area) -> list[list[Tensor]]:
    """Distribute squares over columns that are no higher than the band."""
    columns: list[list[Tensor]] = []
    used = math.inf
    for tensor in tensors:
        height = _row_height(tensor, area)
        if used + height > area.rect.height() + 0.5:
            columns.append([])
            used = 0.0
        columns[-1].append(tensor)
        used += height
    return columns


def _row_height(tensor: Tensor, area: _Area) -> float:
    return max(ROW_HEIGHT * area.u, min(area.side(tensor) + 4 * area.u, area.rect.height()))


def _column_width(column: Sequence[Tensor], area: _Area) -> float:
    widest = max(area.side(tensor) for tensor in column)
    label = max(area.label_widths[tensor.id] for tensor in column)
    return (RAIL_STEP * len(column) + RAIL_TURN + LABEL_GAP) * area.u + widest + label


def _place_columns(
    tensors: Sequence[Tensor], area: _Area, x: float, boxes: dict[str, TensorBox]
) -> float:
    """Place squares in columns from ``x`` on; returns where the next thing may begin."""
    u = area.u
    for column in _columns(tensors, area):
        widest = max(area.side(tensor) for tensor in column)
        heights = [_row_height(tensor, area) for tensor in column]
        y = area.rect.y() + max(0.0, area.rect.height() - sum(heights)) / 2
        squares_x = x + (RAIL_STEP * len(column) + RAIL_TURN) * u
        for row, (tensor, height) in enumerate(zip(column, heights, strict=True)):
            side = area.side(tensor)
            block = QRectF(
                squares_x + (widest - side) / 2, y + (height - side) / 2, side, side
            )  # fmt: skip
            label_x = squares_x + widest + LABEL_GAP * u
            label = QRectF(label_x, y, area.label_widths[tensor.id], height)
            boxes[tensor.id] = TensorBox(
                tensor=tensor, block=block, label=label, rail_x=x + RAIL_STEP * u * row
            )
            y += height
        x += _column_width(column, area) + BLOCK_GAP * u
    return x


def _spread(boxes: dict[str, TensorBox], rect: QRectF) -> None:
    """Move the boxes so that room left over lies evenly at both sides."""
    if not boxes:
        return
    edges = [
        box.block.right() if box.label is None else box.label.right() for box in boxes.values()
    ]
    shift = max(0.0, rect.right() - max(edges)) / 2
    for key, box in boxes.items():
        boxes[key] = TensorBox(
            tensor=box.tensor,
            block=box.block.translated(shift, 0),
            label=None if box.label is None else box.label.translated(shift, 0),
            rail_x=None if box.rail_x is None else box.rail_x + shift,
        )
