"""Text tables: aligned columns, an optional second line of headings, nothing measured in here."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

GAP = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its heading.
        group: A heading over this column and its neighbours of the same group.
        is_text: Aligned to the left, as words are; numbers are aligned to the right.
    """

    title: str
    group: str = ""
    is_text: bool = False


def render(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay the rows out in lines.

    Args:
        columns: The columns, left to right.
        rows: One text a column; a row of no texts becomes a rule.

    Returns:
        Headings, a rule, the rows; no line ends in blanks.
    """
    widths = [
        max(len(column.title), *(len(row[i]) for row in rows if row), 0)
        for i, column in enumerate(columns)
    ]
    _widen_to_groups(columns, widths)
    rule = "-" * (sum(widths) + len(GAP) * (len(widths) - 1))
    lines = []
    if any(column.group for column in columns):
        lines.append(_group_line(columns, widths))
    lines.append(_line(columns, widths, [column.title for column in columns]))
    lines.append(rule)
    lines += [_line(columns, widths, row) if row else rule for row in rows]
    return lines


def shortened(text: str, width: int) -> str:
    """Cut a text that is longer than ``width``, with a sign that it was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _line(columns: Sequence[Column], widths: Sequence[int], texts: Sequence[str]) -> str:
    cells = (
        text.ljust(width) if column.is_text else text.rjust(width)
        for column, width, text in zip(columns, widths, texts, strict=True)
    )
    return GAP.join(cells).rstrip()


def _groups(columns: Sequence[Column]) -> list[tuple[str, list[int]]]:
    numbered = groupby(enumerate(columns), key=lambda item: item[1].group or item[0])
    return [
        (members[0][1].group, [i for i, _ in members])
        for members in (list(group) for _, group in numbered)
    ]


def _span(widths: Sequence[int], places: Sequence[int]) -> int:
    return sum(widths[i] for i in places) + len(GAP) * (len(places) - 1)


def _widen_to_groups(columns: Sequence[Column], widths: list[int]) -> None:
    for label, places in _groups(columns):
        widths[places[0]] += max(0, len(label) - _span(widths, places))


def _group_line(columns: Sequence[Column], widths: Sequence[int]) -> str:
    labels = (label.rjust(_span(widths, places)) for label, places in _groups(columns))
    return GAP.join(labels).rstrip()
