"""The doctor's checks as a table of text: on a terminal, and to be pasted into a report."""

import textwrap
from collections.abc import Iterator, Sequence

from explorer.model.messages import Check

WIDTH = 120
"""Characters of a line at most, but for a word that is longer."""
_HEADINGS = ("ability", "state", "what was found")
_GAP = "  "


def state_word(check: Check) -> str:
    """``works`` or ``missing``."""
    return "works" if check.ok else "missing"


def details(check: Check) -> tuple[str, ...]:
    """What was found; of what is missing also what is lost by it, and the remedy."""
    lost = f"Lost: {check.lost}" if check.lost else ""
    remedy = f"Remedy: {check.remedy}" if check.remedy else ""
    return tuple(filter(None, (check.sentence, lost, remedy)))


def table_lines(checks: Sequence[Check]) -> list[str]:
    """Headings, a rule and the checks, a line each and more where the words are long."""
    widths = [max(map(len, (heading, *texts))) for heading, texts in zip(
        _HEADINGS, ([c.name for c in checks], [state_word(c) for c in checks]), strict=False
    )]  # fmt: skip
    before = sum(widths) + len(_GAP) * len(widths)
    wrapper = textwrap.TextWrapper(
        width=WIDTH - before, break_long_words=False, break_on_hyphens=False
    )
    return [
        _line(_HEADINGS, widths),
        "-" * WIDTH,
        *(line for check in checks for line in _rows(check, widths, wrapper)),
    ]


def _rows(check: Check, widths: Sequence[int], wrapper: textwrap.TextWrapper) -> Iterator[str]:
    first = (check.name, state_word(check))
    for part in details(check):
        for line in wrapper.wrap(part):
            yield _line((*first, line), widths)
            first = ("", "")


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    *short, last = cells
    padded = [cell.ljust(width) for cell, width in zip(short, widths, strict=True)]
    return _GAP.join((*padded, last)).rstrip()
