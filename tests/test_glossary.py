"""The glossary explains the words that stand on the screen without an explanation."""

from __future__ import annotations

import re

import pytest

from explorer.model.run import Pedigree
from explorer.model.streams import StreamKind
from explorer.ui.op_links import LinkState
from tests.conftest import CHECKOUT

ROWS = re.findall(r"^\| (.+?) \| .+ \|$", (CHECKOUT / "GLOSSARY.md").read_text(), re.MULTILINE)[1:]
WORDS = {word for row in ROWS for word in re.split(r", | / ", row)}
MARKS_OF_RUNS = ("shown", "beside", "pinned")


def test_it_is_in_alphabetical_order() -> None:
    assert len(ROWS) > 40
    assert sorted(ROWS, key=str.lower) == ROWS


@pytest.mark.parametrize(
    "word",
    [
        *(pedigree.value for pedigree in Pedigree),
        *(kind.value for kind in StreamKind if kind is not StreamKind.TENSOR),
        LinkState.DOUBTED.value,
        LinkState.REWRITTEN.value,
        *MARKS_OF_RUNS,
        *("baseline", "fused", "session", "recording", "helper", "playhead", "lane"),
    ],
)
def test_it_has_the_word(word: str) -> None:
    assert word in WORDS
