"""The kernel tables of several runs as one picture."""

from collections.abc import Sequence

from PySide6.QtCore import QRectF
from PySide6.QtGui import QPainter

from explorer.model.run import Run
from explorer.model.traffic import run_traffic
from explorer.model.units import format_bytes
from explorer.ui.kernel_columns import COLUMNS, Column, Entry, cell_text, entries_of
from explorer.ui.painting import LEFT, RIGHT, draw_panel, draw_sentence, draw_text, text_width
from explorer.ui.theme import Theme, font
from explorer.ui.words import DASH, run_title

HEAD_PX, LINE_PX, ROW_PX = 46.0, 16.0, 26.0
PAD_PX, GAP_PX = 14.0, 10.0
WIDEST_PX = 260.0
LEAST_ZOOM, MOST_ZOOM = 0.75, 1.6
"""Below the least the text could not be read: columns are left out, and the picture says so."""
LEFT_OUT_FIRST = ("kernel", "start_us", "spills", "registers", "block", "grid", "ops")


def paint_tables(painter: QPainter, rect: QRectF, runs: Sequence[Run], theme: Theme) -> None:
    """Paint one table a run, as large as fits.

    Args:
        painter: Where to.
        rect: For all of them.
        runs: Those without launches get their reason in the place of a table.
        theme: Colours.
    """
    tables = [entries_of(run) for run in runs]
    columns, left_out = _columns_that_fit(tables, rect.width())
    width = _total_width(columns, tables)
    most = _most_rows(tables, rect.height() / LEAST_ZOOM)
    zoom = min(rect.width() / width, rect.height() / _total_height(tables, most), MOST_ZOOM)
    painter.save()
    painter.translate(rect.topLeft())
    painter.scale(zoom, zoom)
    y = 0.0
    for run, table in zip(runs, tables, strict=True):
        box = QRectF(0, y, rect.width() / zoom, _height(table, most))
        without = f"without {', '.join(left_out)}" if left_out else ""
        hint = "  ·  ".join(filter(None, (_hint(run), without)))
        inner = draw_panel(painter, box, theme, run_title(run), hint)
        if table:
            _draw_table(painter, inner, table[:most], columns, tables, theme)
            _draw_more(painter, inner, len(table) - most, theme)
        else:
            draw_sentence(painter, inner, run.error or "No launch was traced.", theme)
        y += box.height() + GAP_PX
    painter.restore()


def _columns_that_fit(
    tables: Sequence[tuple[Entry, ...]], width: float
) -> tuple[list[Column], list[str]]:
    """Columns with anything in them, and the titles of those left out for want of room."""
    columns = [
        column
        for column in COLUMNS
        if any(column.value(entry) is not None for table in tables for entry in table)
    ]
    left_out: list[str] = []
    for key in LEFT_OUT_FIRST:
        if width / _total_width(columns, tables) >= LEAST_ZOOM:
            break
        left_out += [column.title for column in columns if column.key == key]
        columns = [column for column in columns if column.key != key]
    return columns, left_out


def _total_width(columns: Sequence[Column], tables: Sequence[tuple[Entry, ...]]) -> float:
    return sum(_width(column, tables) for column in columns) + 20


def _draw_table(
    painter: QPainter,
    inner: QRectF,
    table: tuple[Entry, ...],
    columns: Sequence[Column],
    tables: Sequence[tuple[Entry, ...]],
    theme: Theme,
) -> None:
    x = inner.x()
    for column in columns:
        width = _width(column, tables)
        align = RIGHT if column.is_number else LEFT
        for i, line in enumerate(column.title.split("\n")):
            cell = QRectF(x + PAD_PX / 2, inner.y() + i * LINE_PX, width - PAD_PX, LINE_PX)
            draw_text(painter, cell, align, line, font(12, 500), theme.color("muted"))
        y = inner.y() + 2 * LINE_PX + 4
        for entry in table:
            text = cell_text(column, entry)
            dimmed = text == DASH or entry.nest is not None or entry.of_launch.is_helper
            cell = QRectF(x + PAD_PX / 2, y, width - PAD_PX, ROW_PX)
            face = font(12 if column.is_code else 13, mono=column.is_code)
            draw_text(painter, cell, align, text, face, theme.color("muted" if dimmed else "text"))
            y += ROW_PX
        x += width


def _hint(run: Run) -> str:
    best = run_traffic(run).best
    if best is None:
        return ""
    read, written, pedigree = best
    return f"read {format_bytes(read)}  ·  written {format_bytes(written)}  ·  {pedigree.value}"


def _draw_more(painter: QPainter, inner: QRectF, n_more: int, theme: Theme) -> None:
    """Say how many rows there was no room for."""
    if n_more > 0:
        line = QRectF(inner.x() + PAD_PX / 2, inner.bottom() - ROW_PX + 6, inner.width(), ROW_PX)
        draw_text(painter, line, LEFT, f"{n_more} more rows", font(13), theme.color("muted"))


def _most_rows(tables: Sequence[tuple[Entry, ...]], height: float) -> int:
    """How many rows of each table fit, at least one."""
    longest = max(len(table) for table in tables)
    fitting = (n for n in range(longest, 1, -1) if _total_height(tables, n) <= height)
    return next(fitting, 1)


def _total_height(tables: Sequence[tuple[Entry, ...]], most: int) -> float:
    return sum(_height(table, most) for table in tables) + GAP_PX * (len(tables) - 1)


def _height(table: tuple[Entry, ...], most: int) -> float:
    n_lines = min(len(table), most) + (len(table) > most)
    return HEAD_PX + 2 * LINE_PX + 8 + ROW_PX * max(n_lines, 1)


def _width(column: Column, tables: Sequence[tuple[Entry, ...]]) -> float:
    """Wide enough for header and cells, the same in every table so that they line up."""
    face = font(12 if column.is_code else 13, mono=column.is_code)
    widths = [text_width(line, font(12, 500)) for line in column.title.split("\n")]
    widths += [text_width(cell_text(column, entry), face) for table in tables for entry in table]
    widest = WIDEST_PX * 1.6 if column.is_code else WIDEST_PX
    return min(max(widths), widest) + PAD_PX + 1
