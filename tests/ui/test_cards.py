"""The cards' words against hand counts, and the widget for screen readers and tooltips."""

from dataclasses import replace

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.run import Bytes, Run, Samples
from explorer.ui.card_content import CARD_KEYS, Card, Tone, cards_of
from explorer.ui.cards import CardsView, CardView
from explorer.ui.theme import DARK, LIGHT
from explorer.ui.words import DASH
from tests.fixtures_runs import (
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    sdpa_attention,
)

RUNS = (eager_attention(), compiled_attention(), sdpa_attention())


def cold(run: Run) -> Samples:
    assert run.timing is not None
    assert run.timing.cold is not None
    return run.timing.cold


def timed(run: Run, *, median: float, q1: float, q3: float) -> Run:
    assert run.timing is not None
    samples = replace(cold(run), median_us=median, q1_us=q1, q3_us=q3)
    return replace(run, timing=replace(run.timing, cold=samples, warm=None))


def card(key: str, run: Run | None, runs: tuple[Run, ...] = RUNS) -> Card:
    cards = dict(zip(CARD_KEYS, cards_of(run, runs), strict=True))
    return cards[key]


def test_speed_up_over_eager_and_over_the_single_operator() -> None:
    run = timed(RUNS[1], median=2675, q1=2600, q3=2700)
    found = card("speed-up", run, (RUNS[0], run, RUNS[2]))
    assert (found.value, found.tone) == ("2.00×", Tone.GOOD)
    assert found.delta == "5.35 ms → 2.67 ms"
    # Broken before the name, never within it.
    assert found.note == "2.35× slower than SDPA\u00a0·\u00a0cuDNN"
    assert "cold L2" in found.detail
    assert "arithmetic floor 201 µs, " in found.detail


def test_no_ratio_is_printed_when_the_quartiles_overlap() -> None:
    base = timed(RUNS[0], median=100, q1=90, q3=110)
    run = timed(RUNS[1], median=80, q1=75, q3=91)
    found = card("speed-up", run, (base, run))
    assert found.value == "≈"
    assert found.delta == "equal within noise"
    assert "×" not in found.value + found.delta + found.sentence
    assert card("time", run, (base, run)).delta == "≈ eager"


def test_a_slow_down_is_told_as_one() -> None:
    base = timed(RUNS[0], median=100, q1=99, q3=101)
    run = timed(RUNS[1], median=125, q1=124, q3=126)
    found = card("speed-up", run, (base, run))
    assert (found.label, found.value) == ("Slower than eager", "1.25×")
    assert found.tone is Tone.BAD
    assert card("time", run, (base, run)).delta == "+25 %"


@pytest.mark.parametrize(
    ("run", "runs", "words"),
    [
        (RUNS[1], RUNS[1:], "eager was not run beside it"),
        (RUNS[0], RUNS, "this is the baseline"),
        (replace(RUNS[1], timing=None), RUNS, "not both were timed alike"),
        (failed_run(), RUNS, "the run failed"),
        (None, (), "no run is shown"),
    ],
)
def test_no_speed_up_has_a_reason(run: Run | None, runs: tuple[Run, ...], words: str) -> None:
    found = card("speed-up", run, runs)
    assert (found.value, found.delta) == (DASH, words)
    assert found.sentence


def test_another_devices_eager_is_no_baseline() -> None:
    found = card("speed-up", cpu_attention(), RUNS)
    assert found.value == DASH


def test_traffic_is_split_and_names_its_pedigree() -> None:
    run = RUNS[0]
    read = sum(launch.bytes_read.counted or 0 for launch in run.launches)
    written = sum(launch.bytes_written.counted or 0 for launch in run.launches)
    found = card("traffic", run)
    assert found.label == "HBM traffic"
    assert (found.value, found.unit) == (f"{(read + written) / 1e9:.1f}", "GB")
    assert found.split is not None
    number = float(found.split[0].removeprefix("R ")) + float(found.split[1].removeprefix("W "))
    assert number == pytest.approx((read + written) / 1e9, abs=0.02)
    assert found.note == "counted"
    assert "counted against it" in found.sentence


def test_the_parts_of_the_traffic_are_rounded_like_any_number() -> None:
    run = RUNS[0]
    launch = replace(
        run.launches[0], bytes_read=Bytes(counted=6_494_000_000),
        bytes_written=Bytes(counted=5_942_000_000),
    )  # fmt: skip
    found = card("traffic", replace(run, launches=(launch,)))
    # 6.49 and 5.94, although the sum of 12.436 is cut to 12.4.
    assert (found.value, found.unit) == ("12.4", "GB")
    assert found.split == ("R 6.49", "W 5.94")


def test_traffic_is_compared_only_within_one_pedigree() -> None:
    launches = tuple(
        replace(
            launch,
            bytes_read=replace(launch.bytes_read, counted=None),
            bytes_written=replace(launch.bytes_written, counted=None),
        )
        for launch in RUNS[0].launches
    )
    base = replace(RUNS[0], launches=launches)
    found = card("traffic", RUNS[1], (base, RUNS[1]))
    assert found.delta == ""
    assert "No delta" in found.sentence
    assert card("traffic", RUNS[1]).delta.startswith("−")


def test_a_cpu_has_dram_and_cpu_time() -> None:
    run = cpu_attention()
    assert card("traffic", run, (run,)).label == "DRAM traffic"
    assert card("traffic", run, (run,)).note == "modelled"
    assert card("time", run, (run,)).label == "CPU time"


def test_without_a_run_the_cards_use_the_chosen_devices_words(qtbot: QtBot) -> None:
    view = CardsView()
    qtbot.addWidget(view)
    assert [card.label for card in view.cards][1:3] == ["Time", "Memory traffic"]
    view.set_device(cpu_attention().device)
    assert [card.label for card in view.cards][1:3] == ["CPU time", "DRAM traffic"]
    view.set_device(RUNS[0].device)
    assert [card.label for card in view.cards][1:3] == ["GPU time", "HBM traffic"]
    view.set_runs((cpu_attention(),), 0)
    assert [card.label for card in view.cards][1:3] == ["CPU time", "DRAM traffic"]


def test_launches_and_memory() -> None:
    launches = card("launches", RUNS[1])
    assert (launches.value, launches.delta, launches.detail) == ("4", "−2", "1 helper")
    memory = card("memory", RUNS[1])
    assert (memory.value, memory.unit, memory.delta) == ("3.24", "GB", "±0 %")
    assert "84.0 MB that the inputs hold" in memory.sentence


def test_missing_numbers_are_dashes_with_a_sentence() -> None:
    bare = replace(RUNS[1], launches=(), timing=None, memory=None, counters=None)
    for found in cards_of(bare, (bare,)):
        assert found.value == DASH
        assert found.sentence
        assert "no value" in found.spoken


def test_a_floor_above_the_time_asks_for_new_ceilings() -> None:
    run = timed(RUNS[2], median=10, q1=9, q3=11)
    assert "measure the ceilings again" in card("speed-up", run, (run,)).detail


def test_the_widget_tells_screen_readers_and_tooltips(qtbot: QtBot) -> None:
    view = CardsView()
    qtbot.addWidget(view)
    view.set_runs(RUNS, 1)
    first = view.findChildren(CardView)[0]
    assert first.accessibleName().startswith("Speed-up over eager: 1.")
    assert "quartiles" in first.toolTip()
    assert [found.key for found in view.cards] == list(CARD_KEYS)
    view.set_runs((), -1)
    assert view.cards[0].value == DASH


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_a_speed_up_has_its_strategys_colour(qtbot: QtBot, theme: object) -> None:
    looks = DARK if theme is DARK else LIGHT
    view = CardsView()
    qtbot.addWidget(view)
    view.resize(290, 370)
    view.set_theme(looks)
    view.set_runs(RUNS, 1)
    image = view.grab().toImage()
    wanted = looks.color("fused")
    found = sum(
        abs(color.red() - wanted.red()) + abs(color.blue() - wanted.blue()) < 12
        for x in range(10, 140)
        for y in range(30, 80)
        for color in [image.pixelColor(x, y)]
    )
    assert found > 100
