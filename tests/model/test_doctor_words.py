"""The doctor's table as text."""

from explorer.model.doctor_words import WIDTH, table_lines
from explorer.model.messages import Check

WELL = Check(name="torch", ok=True, sentence="torch 9.")
ILL = Check(name="NVML", ok=False, sentence="It is silent.", lost="clocks.", remedy="Wake it.")


def test_a_row_says_what_was_found_and_of_what_is_missing_the_cost_and_the_remedy() -> None:
    assert table_lines((WELL, ILL)) == [
        "ability  state    what was found",
        "-" * WIDTH,
        "torch    works    torch 9.",
        "NVML     missing  It is silent.",
        "                  Lost: clocks.",
        "                  Remedy: Wake it.",
    ]


def test_long_words_go_on_below_each_other() -> None:
    lines = table_lines((Check(name="torch", ok=True, sentence="a word " * 40),))
    assert max(map(len, lines)) <= WIDTH
    assert [line[:16].strip() for line in lines[2:]] == ["torch    works", "", ""]
