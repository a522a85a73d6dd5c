"""A run whose check failed: red, first, and without a speed-up wherever one would stand."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QRectF
from pytestqt.qtbot import QtBot

from explorer.model.comparison import Verdict, distrust
from explorer.model.run import Run
from explorer.ui.card_content import CARD_KEYS, Card, Tone, cards_of
from explorer.ui.cards import CardsView, CardView
from explorer.ui.store import Store
from explorer.ui.strategies_panel import StrategiesPanel
from explorer.ui.strategy_row import RowText
from explorer.ui.theme import DARK, LIGHT, Theme
from explorer.ui.timeline_layout import Selected, lay_out
from explorer.ui.timeline_pick import described
from tests.fixtures_runs import (
    compiled_attention,
    eager_attention,
    sdpa_attention,
    wrong_randomness,
    wrong_result,
)

EAGER, COMPILED, SDPA = eager_attention(), compiled_attention(), sdpa_attention()
WRONG = pytest.mark.parametrize(
    "runs",
    [
        (EAGER, wrong_result(COMPILED)),
        (EAGER, wrong_randomness(COMPILED)),
        (wrong_result(EAGER), COMPILED),
    ],
    ids=["result", "randomness", "baseline"],
)
RECT = QRectF(0, 0, 1200, 240)


def cards(run: Run, runs: tuple[Run, ...]) -> dict[str, Card]:
    return dict(zip(CARD_KEYS, cards_of(run, runs), strict=True))


def rows(qtbot: QtBot, runs: tuple[Run, ...]) -> dict[str, RowText]:
    store = Store()
    store.add_runs(runs)
    panel = StrategiesPanel(store)
    qtbot.addWidget(panel)
    return {spec: row.text_shown for spec, row in panel.rows.items()}


@WRONG
def test_no_view_prints_a_ratio(qtbot: QtBot, runs: tuple[Run, ...]) -> None:
    found = cards(runs[1], runs)
    first = found["speed-up"]
    assert (first.value, first.tone) == ("withheld", Tone.WRONG)
    assert "wrong" in first.delta
    assert "×" not in first.spoken + first.sentence
    assert (found["time"].delta, found["time"].tone) == ("withheld", Tone.WRONG)
    row = rows(qtbot, runs)["compile"]
    assert row.verdict is Verdict.WITHHELD
    assert "×" not in row.ratio + row.tip
    label = lay_out(RECT, runs, None).labels[1]
    assert label.compared_color == "wrong"
    assert "×" not in label.compared + described(runs, Selected(1, None))


@WRONG
def test_the_sentence_is_the_first_thing_said(runs: tuple[Run, ...]) -> None:
    reason = next(filter(None, map(distrust, runs)))
    first = cards(runs[1], runs)["speed-up"]
    assert first.delta.endswith(reason)
    assert first.sentence.startswith(first.delta)
    assert first.spoken.startswith("Check failed: speed-up withheld: withheld, ")


def test_the_failed_run_is_marked_even_without_a_baseline(qtbot: QtBot) -> None:
    runs = (wrong_result(EAGER),)
    first = cards(runs[0], runs)["speed-up"]
    assert (first.value, first.tone) == ("withheld", Tone.WRONG)
    row = rows(qtbot, runs)["eager"]
    assert (row.ratio, row.verdict) == ("check failed", Verdict.WITHHELD)
    assert row.tip.startswith("Its result is wrong")
    assert lay_out(RECT, runs, None).labels[0].compared == "check failed"


def test_a_wrong_rival_is_no_rival() -> None:
    runs = (EAGER, COMPILED, wrong_result(SDPA))
    assert "SDPA" in cards(COMPILED, (EAGER, COMPILED, SDPA))["speed-up"].note
    assert cards(COMPILED, runs)["speed-up"].note == ""


def test_what_was_not_checked_says_so(qtbot: QtBot) -> None:
    runs = (EAGER, replace(COMPILED, accuracy=None))
    first = cards(runs[1], runs)["speed-up"]
    assert "×" in first.value
    assert first.detail.startswith("not checked")
    assert rows(qtbot, runs)["compile"].ratio.endswith("× faster, not checked")
    assert lay_out(RECT, runs, None).labels[1].compared.endswith("not checked")


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_the_card_is_red_and_holds_its_sentence(qtbot: QtBot, theme: Theme) -> None:
    view = CardsView()
    qtbot.addWidget(view)
    view.resize(290, 370)
    view.set_theme(theme)
    runs = (EAGER, wrong_randomness(COMPILED))
    view.set_runs(runs, 1)
    first = view.findChildren(CardView)[0]
    image = first.grab().toImage()
    wanted = theme.color("wrong")
    red = [
        (x, y)
        for x in range(image.width())
        for y in range(image.height())
        for color in [image.pixelColor(x, y)]
        if abs(color.red() - wanted.red()) + abs(color.blue() - wanted.blue()) < 12
    ]
    inside = [(x, y) for x, y in red if 8 < x < image.width() - 8 and 8 < y < image.height() - 4]
    assert len(inside) > 200
    # All of it is within the card: the last line does not run into the border.
    assert max(y for _, y in inside) < image.height() - 6


def test_a_rate_that_is_not_the_one_asked_for_is_told_with_both(qtbot: QtBot) -> None:
    wrong = wrong_randomness(SDPA)
    assert wrong.accuracy is not None
    [check] = wrong.accuracy.distribution
    fine = replace(check, observed=0.8985, passed=True)
    run = replace(wrong, accuracy=replace(wrong.accuracy, distribution=(fine,)))
    first = cards(run, (EAGER, run))["speed-up"]
    assert first.value == "4.69×"
    assert first.note == "keeps 230 of 256: p is 0.102, not 0.1"
    assert "0.8985, expected 0.8984 ± 0.0005 (230 of 256; the chain asks for 0.9)" in first.sentence
    assert "Off by up to 3.9e-03 from the fp64 reference, eager by 3.9e-03" in first.sentence
    assert cards(COMPILED, (EAGER, COMPILED))["speed-up"].note == ""
