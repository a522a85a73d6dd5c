"""What is said of a plan before it ran."""

import pytest

from explorer.ui.plan_edit import PlanTotals, as_written, totals
from explorer.ui.plan_words import saving
from tests.fixtures_runs import GPU_GRAPH

BASE = totals(GPU_GRAPH, as_written(GPU_GRAPH)).n_bytes


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(BASE // 2, "−50 %"), (BASE, ""), (BASE - 1, ""), (BASE + 1, ""), (BASE * 3, "+200 %")],
)
def test_a_saving_that_rounds_to_nothing_is_not_told(n_bytes: int, words: str) -> None:
    short, at_length = saving(GPU_GRAPH, PlanTotals(launches=2, n_bytes=n_bytes))
    assert short == words
    assert "this plan: 2 launches" in at_length
