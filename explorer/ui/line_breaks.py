"""Where a line may end within a path, a name or a plan, which are words without a space. No Qt."""

import re

MAY_BREAK = "\u200b"
"""Has no width; a line may end there."""
LONG_WORD = 24
"""From so many letters on a word may be longer than its line."""
_SIGNS = re.compile(r"([/._:,|+])")


def breakable(text: str) -> str:
    """Text whose long words may be broken behind their signs."""
    words = (
        _SIGNS.sub(rf"\1{MAY_BREAK}", word) if len(word) >= LONG_WORD else word
        for word in text.split(" ")
    )
    return " ".join(words)


def unbroken(text: str) -> str:
    """The text that :func:`breakable` was given, for a screen reader."""
    return text.replace(MAY_BREAK, "")
