"""A sweep's table: the fastest plan first, what is best of it marked, and said in sentences."""

from __future__ import annotations

import re

from explorer.cli.report import report
from tests.fixtures_sweep import broken, many_plans, plan_run, scores_sweep, timed, wrong

PLANS = scores_sweep()[2:]
FASTEST, MOST_FUSED = "scale+mask+softmax|dropout", "scale+mask+softmax+dropout"


def rows_of(text: str) -> list[list[str]]:
    """The rows of the first table: the marks, then the cells."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("---")) + 1
    last = next(i for i in range(first, len(lines)) if lines[i].startswith("time:"))
    split = (re.fullmatch(r"([*I!]*) +(\S.*)", line) for line in lines[first:last])
    return [[found[1], *re.split(r"\s{2,}", found[2].strip())] for found in split if found]


def unbroken(text: str) -> str:
    """The text with the lines of a sentence put together again."""
    return re.sub(r"\n {2,}", " ", text)


def test_the_fastest_plan_comes_first_with_its_marks() -> None:
    rows = rows_of(report(PLANS, inductor_plan=MOST_FUSED))
    assert len(rows) == 8
    assert rows[0] == ["*", FASTEST, "2", "2.67 ms", "5.38 GB", "2.15 GB"]
    assert rows[1] == ["I", MOST_FUSED, "1", "2.82 ms", "5.37 GB", "1.07 GB"]
    assert [row[0] for row in rows[2:]] == [""] * 6
    assert rows[-1][1] == "scale|mask|softmax+dropout"


def test_the_table_fits_a_narrow_terminal() -> None:
    lines = report(PLANS).splitlines()
    header = next(line for line in lines if " plan " in line and "kernels" in line)
    assert "traffic, counted" in header
    assert len(header) <= 80
    assert (
        "\n*: no other plan is better in time or traffic without being worse in the other\n"
        in report(PLANS)
    )


def test_the_best_plan_is_named_and_the_most_fused_one_when_it_is_not() -> None:
    text = report(PLANS, inductor_plan=MOST_FUSED)
    assert (
        f"\nThe fastest plan is {FASTEST}: 2.67 ms, 5.38 GB read and written (counted), 2.15 GB at "
        "the peak.\n"
    ) in text
    assert f"\nThe most fused plan is not the fastest: {FASTEST} in 2 kernels takes 2.67 ms" in text
    assert f"Inductor's own choice, {MOST_FUSED}, takes 1.06× the time of the fastest." in text


def test_plans_that_are_as_fast_within_noise_are_not_beaten() -> None:
    close = [timed(run, 2669.0 + i) for i, run in enumerate(PLANS[:3])]
    assert ". Within noise 2 others are as fast." in unbroken(report(close))
    assert f". Within noise {close[1].strategy.plan} is as fast." in unbroken(report(close[:2]))
    assert "Within noise" not in unbroken(report(PLANS))


def test_only_the_fastest_and_the_most_fused_have_their_launches_told() -> None:
    text = report(PLANS)
    told = re.findall(r"^plan:(\S+): \d+ launch", text, re.MULTILINE)
    assert told == [FASTEST, MOST_FUSED]
    assert re.findall(r"^The plan (\S+)$", text, re.MULTILINE) == told
    assert text.endswith("The launches of the other plans: kernel-explorer show FILE --plan TEXT.")


def test_inductors_plan_is_taken_from_a_run_of_compile_or_missed() -> None:
    assert rows_of(report(scores_sweep()))[1][:2] == ["I", MOST_FUSED]
    assert "own grouping is not known here: no run of compile is beside." in report(PLANS)
    foreign = report(PLANS, inductor_plan="qk|pv")
    assert "own grouping is not known here" in foreign
    missing = report(PLANS[:5], inductor_plan=MOST_FUSED)
    assert f"Inductor's own grouping is {MOST_FUSED}, which did not run." in missing


def test_what_went_wrong_stands_first_and_is_not_the_best() -> None:
    spoilt = [wrong(timed(PLANS[-1], 1000.0)), broken(PLANS[0]), *PLANS[1:-1]]
    text = report(spoilt)
    rows = rows_of(text)
    assert [row[0] for row in rows] == ["!", "!", "*", *[""] * 5]
    assert rows[0][1] == MOST_FUSED
    assert rows[1][1:] == ["scale|mask|softmax|dropout", "–", "failed", "–", "–"]
    assert f"The fastest plan is {FASTEST}" in text
    assert "\n!: wrong or failed: its time is not to be used\n" in text
    assert "  plan:scale|mask|softmax|dropout: failed: The worker ended with signal 11." in text


def test_other_strategies_keep_their_own_table_beside_a_sweep() -> None:
    text = report(scores_sweep())
    table = text.partition("strategy ")[2].partition("time: median")[0]
    assert "baseline" in table
    assert "scale+mask" not in table


def test_a_few_plans_stand_among_the_strategies_and_the_best_is_named() -> None:
    runs = (scores_sweep()[0], plan_run("scale|mask|softmax|dropout"), plan_run(FASTEST))
    text = report(runs)
    assert re.search(rf"^{re.escape(FASTEST)} +2.67 ms", text, re.MULTILINE)
    assert f"\nThe fastest plan is {FASTEST}: 2.67 ms" in text
    assert "plans done" not in text
    assert len(re.findall(r"^plan:\S+: \d+ launch", text, re.MULTILINE)) == 2


def test_a_long_sweep_is_told_in_a_line_a_plan() -> None:
    assert len(rows_of(report(many_plans()))) == 256
