"""The kernel tables of several runs as one picture."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from explorer.model.run import Run
from explorer.model.traffic import run_traffic
from explorer.model.units import format_bytes
from explorer.ui.kernel_columns import COLUMNS, Column, Entry, cell_text, entries_of
from explorer.ui.kernel_table import cell_font
from explorer.ui.painting import HEADING_HEIGHT, LEFT, RIGHT, draw_panel, draw_text, text_width
from explorer.ui.theme import Theme, font
from explorer.ui.words import DASH, run_title

LINE_PX, ROW_PX, TITLE_PX = 16.0, 22.0, 30.0
HEAD_PX = 2 * LINE_PX + 6
PAD_PX = 14.0
WIDEST_PX = 260.0
LEAST_ZOOM, MOST_ZOOM = 0.6, 1.6
"""Below the least the text could not be read: columns and rows are left out, and it says so."""
LEFT_OUT_FIRST = ("kernel", "start_us", "spills", "registers", "block", "grid", "ops")

Table = tuple[Entry, ...]


def paint_tables(painter: QPainter, rect: QRectF, runs: Sequence[Run], theme: Theme) -> None:
    """Paint the launches of every run under one heading, as large as fits.

    Args:
        painter: Where to.
        rect: For all of them.
        runs: Those without launches get their reason in the place of rows.
        theme: Colours.
    """
    tables = [entries_of(run) for run in runs]
    widths = _widths(tables)
    columns, left_out = _columns_that_fit(tables, widths, rect.width())
    most = _most_rows(tables, rect.height() / LEAST_ZOOM)
    height = _total_height(tables, most)
    zoom = min(rect.width() / _total_width(columns, widths), rect.height() / height, MOST_ZOOM)
    painter.save()
    painter.translate(rect.topLeft())
    painter.scale(zoom, zoom)
    hint = f"without {', '.join(left_out)}" if left_out else ""
    box = QRectF(0, 0, rect.width() / zoom, height)
    inner = draw_panel(painter, box, theme, "Launches", hint)
    _draw_head(painter, inner, columns, widths, theme)
    y = inner.y() + HEAD_PX
    for run, table in zip(runs, tables, strict=True):
        strip = QRectF(inner.x(), y, inner.width(), TITLE_PX)
        _draw_title(painter, strip, run, theme)
        y += TITLE_PX
        for entry in table[:most]:
            _draw_row(painter, QPointF(inner.x(), y), entry, columns, widths, theme)
            y += ROW_PX
        more = _words_below(run, table, most)
        if more:
            line = QRectF(inner.x() + PAD_PX / 2, y, inner.width() - PAD_PX, ROW_PX)
            color = theme.color("warning" if run.error else "muted")
            draw_text(painter, line, LEFT, more, font(13), color)
            y += ROW_PX
    painter.restore()


def _columns_that_fit(
    tables: Sequence[Table], widths: Mapping[str, float], width: float
) -> tuple[list[Column], list[str]]:
    """Columns with anything in them, and the titles of those left out for want of room."""
    columns = [
        column
        for column in COLUMNS
        if any(column.value(entry) is not None for table in tables for entry in table)
    ]
    left_out: list[str] = []
    for key in LEFT_OUT_FIRST:
        if width / _total_width(columns, widths) >= LEAST_ZOOM:
            break
        left_out += [column.title for column in columns if column.key == key]
        columns = [column for column in columns if column.key != key]
    return columns, left_out


def _total_width(columns: Sequence[Column], widths: Mapping[str, float]) -> float:
    return sum(widths[column.key] for column in columns) + 20


def _widths(tables: Sequence[Table]) -> dict[str, float]:
    """Of each column by key, measured once: every cell of every table has a say in it."""
    return {column.key: _width(column, tables) for column in COLUMNS}


def _width(column: Column, tables: Sequence[Table]) -> float:
    """Wide enough for header and cells of every table."""
    face = cell_font(column)
    widths = [text_width(line, font(12, 500)) for line in column.title.split("\n")]
    widths += [text_width(cell_text(column, entry), face) for table in tables for entry in table]
    widest = WIDEST_PX * 1.6 if column.is_code else WIDEST_PX
    return min(max(widths), widest) + PAD_PX + 1


def _most_rows(tables: Sequence[Table], height: float) -> int:
    """How many rows of each table fit, at least one."""
    longest = max(len(table) for table in tables)
    fitting = (n for n in range(longest, 1, -1) if _total_height(tables, n) <= height)
    return next(fitting, 1)


def _total_height(tables: Sequence[Table], most: int) -> float:
    n_lines = sum(min(len(table), most) + (len(table) > most or not table) for table in tables)
    return HEADING_HEIGHT + HEAD_PX + TITLE_PX * len(tables) + ROW_PX * n_lines + 14


def _words_below(run: Run, table: Table, most: int) -> str:
    """What stands below a run's rows: its error, or how many more there are."""
    if not table:
        return run.error or "No launch was traced."
    return f"{len(table) - most} more rows" if len(table) > most else ""


def _draw_head(
    painter: QPainter,
    inner: QRectF,
    columns: Sequence[Column],
    widths: Mapping[str, float],
    theme: Theme,
) -> None:
    x = inner.x()
    for column in columns:
        width = widths[column.key]
        align = RIGHT if column.is_number else LEFT
        for i, line in enumerate(column.title.split("\n")):
            cell = QRectF(x + PAD_PX / 2, inner.y() + i * LINE_PX, width - PAD_PX, LINE_PX)
            draw_text(painter, cell, align, line, font(12, 500), theme.color("muted"))
        x += width


def _draw_title(painter: QPainter, strip: QRectF, run: Run, theme: Theme) -> None:
    """A run's name on a strip of its own, its totals at the right."""
    painter.fillRect(strip.adjusted(0, 4, 0, -2), theme.color("raised"))
    line = strip.adjusted(PAD_PX / 2, 4, -PAD_PX / 2, -2)
    draw_text(painter, line, LEFT, run_title(run), font(13.5, 600), theme.color("text"))
    best = run_traffic(run).best
    if best is not None:
        read, written, pedigree = best
        words = (
            f"read {format_bytes(read)}  ·  written {format_bytes(written)}  ·  {pedigree.value}"
        )
        draw_text(painter, line, RIGHT, words, font(12.5), theme.color("muted"))


def _draw_row(
    painter: QPainter,
    corner: QPointF,
    entry: Entry,
    columns: Sequence[Column],
    widths: Mapping[str, float],
    theme: Theme,
) -> None:
    x = corner.x()
    for column in columns:
        text, width = cell_text(column, entry), widths[column.key]
        dimmed = text == DASH or entry.nest is not None or entry.of_launch.is_helper
        cell = QRectF(x + PAD_PX / 2, corner.y(), width - PAD_PX, ROW_PX)
        align = RIGHT if column.is_number else LEFT
        color = theme.color("muted" if dimmed else "text")
        draw_text(painter, cell, align, text, cell_font(column), color)
        x += width
