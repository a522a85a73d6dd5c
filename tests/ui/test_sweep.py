"""The sweep in the window: plot and list of the plans, and the button that runs them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import thread_time

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from explorer.model.device import Abilities, DeviceAbility, StrategyAbility
from explorer.model.fusion import plan_of
from explorer.model.messages import GraphCaptured
from explorer.model.run import Run
from explorer.model.sweep import sweep_of
from explorer.ui.details_panel import SWEEP_TAB, DetailsPanel
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from explorer.ui.sweep_list import KERNELS, PEAK, PLAN, TIME
from explorer.ui.sweep_picture import MarkKind, SweepPicture, neighbour, picture_of
from explorer.ui.sweep_plot import SweepPlot
from explorer.ui.sweep_state import missing_plans, sweep_blocker, sweep_specs
from explorer.ui.sweep_view import SweepView
from explorer.ui.theme import DARK, LIGHT, Theme
from tests.fixtures_runs import CPU_VERSIONS, H200, cpu_attention, eager_attention
from tests.fixtures_sweep import (
    OPS,
    broken,
    eager_scores,
    long_graph,
    many_plans,
    plan_run,
    scores_graph,
    scores_sweep,
    timed,
    wrong,
)
from tests.ui.drive import click, press

ALL = "scale+mask+softmax+dropout"
BEST = "scale+mask+softmax|dropout"
WAIT_MS = 10_000


def has(image: QImage, color: QColor, least: int = 10) -> bool:
    """Whether at least so many pixels have about this colour."""
    close = 0
    for y in range(image.height()):
        for x in range(image.width()):
            pixel = image.pixelColor(x, y)
            close += (
                abs(pixel.red() - color.red()) < 12
                and abs(pixel.green() - color.green()) < 12
                and abs(pixel.blue() - color.blue()) < 12
            )
    return close >= least


def shown_in(qtbot: QtBot, runs: Sequence[Run], shown: Run | None = None) -> SweepView:
    """A view with a plot, on the screen."""
    view = SweepView()
    qtbot.addWidget(view)
    view.resize(900, 360)
    view.set_sweep(sweep_of(runs), shown)
    view.fill_now()
    view.show()
    return view


def plot_of(view: SweepView) -> SweepPlot:
    assert view.plot is not None
    return view.plot


def picture_in(view: SweepView) -> SweepPicture:
    picture = plot_of(view).picture
    assert picture is not None
    return picture


def number_of(picture: SweepPicture, text: str) -> int:
    """Number of the mark of a plan."""
    return next(i for i, mark in enumerate(picture.marks) if mark.words[0] == text)


# The picture.


def test_every_plan_has_a_mark_where_its_numbers_say() -> None:
    sweep = sweep_of(scores_sweep())
    assert sweep is not None
    picture = picture_of(sweep)
    assert picture is not None
    assert len(picture.marks) == 10
    best = picture.marks[number_of(picture, BEST)]
    assert (best.x, best.y) == (5_377_000_000, 2669.0)
    assert best.low < best.y < best.high
    assert best.on_front
    assert best.label == "fastest, least traffic"
    assert picture.front[1] == (best.x, best.y)
    ringed = [mark for mark in picture.marks if mark.ringed]
    assert [mark.words[0] for mark in ringed] == [ALL]
    assert ringed[0].label == "Inductor's choice"
    assert [mark.kind for mark in picture.marks[:2]] == [MarkKind.EAGER, MarkKind.COMPILED]


def test_what_is_far_beyond_stands_at_the_edge() -> None:
    slow = timed(eager_scores(), 50_000.0)
    quick = timed(scores_sweep()[1], 10.0)
    sweep = sweep_of((slow, quick, *scores_sweep()[2:]))
    assert sweep is not None
    picture = picture_of(sweep)
    assert picture is not None
    assert [picture.beyond(mark) for mark in picture.marks[:2]] == [1, -1]
    assert all(picture.beyond(mark) == 0 for mark in picture.marks[2:])


def test_the_floor_is_the_traffic_at_the_measured_ceiling() -> None:
    runs = [
        timed(run, run_us)
        for run, run_us in zip(scores_sweep()[2:5], (2400, 2000, 2200), strict=True)
    ]
    sweep = sweep_of(runs)
    assert sweep is not None
    picture = picture_of(sweep)
    assert picture is not None
    assert picture.floor
    for x, y in picture.floor:
        assert y == pytest.approx(x / 4.276e12 * 1e6)
    bare = replace(H200, ceilings=None)
    unknown = sweep_of([replace(run, device=bare) for run in runs])
    assert unknown is not None
    without = picture_of(unknown)
    assert without is not None
    assert (without.floor, without.floor_words) == ((), "")


def test_a_failed_check_is_crossed_out_and_off_the_front() -> None:
    runs = [*scores_sweep()[:6], wrong(plan_run(BEST)), broken(plan_run(ALL))]
    sweep = sweep_of(runs)
    assert sweep is not None
    picture = picture_of(sweep)
    assert picture is not None
    mark = picture.marks[number_of(picture, BEST)]
    assert mark.kind is MarkKind.WRONG
    assert not mark.on_front
    assert "Its result is wrong" in mark.words[1]
    assert not any(mark.words[0] == ALL for mark in picture.marks), "nothing was measured"


def test_keys_lead_from_mark_to_mark() -> None:
    sweep = sweep_of(scores_sweep())
    assert sweep is not None
    picture = picture_of(sweep)
    assert picture is not None
    place = min(range(len(picture.marks)), key=lambda i: picture.marks[i].x)
    seen = [place]
    for _ in range(len(picture.marks) - 1):
        place = neighbour(picture, place, (1, 0))
        seen.append(place)
    assert sorted(seen) == list(range(len(picture.marks)))
    xs = [picture.marks[i].x for i in seen]
    assert xs == sorted(xs)
    assert neighbour(picture, place, (1, 0)) == place
    low = min(range(len(picture.marks)), key=lambda i: picture.marks[i].y)
    assert neighbour(picture, low, (0, -1)) == low
    assert picture.marks[neighbour(picture, low, (0, 1))].y >= picture.marks[low].y


# The view.


def test_without_a_plan_it_says_what_a_sweep_is(qtbot: QtBot) -> None:
    view = shown_in(qtbot, ())
    view.set_start("A sweep runs every plan.", "", 8)
    assert view.sentence == "A sweep runs every plan."
    assert view.button.text() == "Run all 8 plans"
    assert view.button.isEnabled()
    assert view.hint == ""
    with qtbot.waitSignal(view.sweep_requested):
        click(view.button)
    view.set_start("A sweep runs every plan.", "It has too many links.", 0)
    assert not view.button.isEnabled()
    assert "too many links" in view.button.accessibleDescription()


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_marks_stand_where_the_axes_say(qtbot: QtBot, theme: Theme) -> None:
    view = shown_in(qtbot, scores_sweep())
    view.set_theme(theme)
    picture, plot = picture_in(view), plot_of(view)
    image = plot.grab().toImage()
    for mark, name in ((BEST, "compute"), ("scale|mask|softmax+dropout", "fused")):
        spot = plot.spot(number_of(picture, mark)).toPoint()
        assert has(image.copy(spot.x() - 5, spot.y() - 5, 10, 10), theme.color(name), 8), mark


def test_the_finding_stands_above_and_at_length_where_there_is_room(qtbot: QtBot) -> None:
    view = shown_in(qtbot, scores_sweep())
    view.resize(1000, 620)
    assert "2 kernels takes 2.67 ms" in view.finding
    assert "Inductor's own choice" in view.finding
    view.resize(700, 190)
    assert view.finding == (
        "The most fused plan is not the fastest: 1 kernel in 2.82 ms, 2 kernels in 2.67 ms."
    )
    assert view.hint == "8 plans · cold L2 · bytes counted"


def test_labels_do_not_overlap(qtbot: QtBot) -> None:
    for size in ((760, 190), (1100, 260), (1300, 700)):
        view = shown_in(qtbot, scores_sweep(), plan_run("scale|mask|softmax|dropout"))
        view.resize(*size)
        labels = plot_of(view).labels
        assert len(labels) >= 3
        assert any("Inductor's choice" in text for text, _ in labels)
        for i, (text, box) in enumerate(labels):
            for other, other_box in labels[i + 1 :]:
                tight = box.adjusted(0, 4, 0, -4)
                assert not tight.intersects(other_box.adjusted(0, 4, 0, -4)), (text, other)


def test_hover_tells_every_number(qtbot: QtBot) -> None:
    view = shown_in(qtbot, scores_sweep())
    marks = plot_of(view).getPlotItem().items
    scatter = next(item for item in marks if getattr(item, "opts", {}).get("hoverable"))
    point = next(p for p in scatter.points() if p.data()[1].words[0] == ALL)
    tip = scatter.opts["tip"](x=point.pos().x(), y=point.pos().y(), data=point.data())
    assert tip.splitlines() == [
        ALL,
        "2.82 ms, half of 5 calls between 2.81 ms and 2.84 ms, cold L2",
        "2.15 GB read, 3.22 GB written, counted",
        "1 kernel, peak 1.07 GB",
        "most fused, Inductor's choice",
    ]


def test_a_click_on_a_mark_picks_its_run(qtbot: QtBot) -> None:
    runs = scores_sweep()
    view = shown_in(qtbot, runs)
    plot = plot_of(view)
    qtbot.waitExposed(view)
    number = number_of(picture_in(view), "scale|mask+softmax|dropout")
    with qtbot.waitSignal(view.run_picked) as picked:
        click(plot.viewport(), plot.spot(number))
    assert picked.args[0] is next(
        r for r in runs if r.strategy.plan == picked.args[0].strategy.plan
    )
    assert picked.args[0].strategy.plan == "scale|mask+softmax|dropout"


def test_arrows_and_enter_pick_a_run(qtbot: QtBot) -> None:
    runs = scores_sweep()
    view = shown_in(qtbot, runs, runs[-1])
    plot, picture = plot_of(view), picture_in(view)
    press(plot, Qt.Key.Key_Left)
    assert picture.marks[plot.at].shown, "it begins at the run that is shown"
    press(plot, Qt.Key.Key_Right)
    there = picture.marks[plot.at]
    assert there.x >= picture.marks[number_of(picture, ALL)].x
    assert there.words[0] in plot.accessibleDescription()
    with qtbot.waitSignal(view.run_picked) as picked:
        press(plot, Qt.Key.Key_Return)
    assert picked.args[0] is there.run


def test_the_list_has_a_row_a_plan_and_sorts(qtbot: QtBot) -> None:
    runs = [*scores_sweep()[:-1], broken(plan_run(ALL))]
    view = shown_in(qtbot, runs, runs[2])
    times = [point.median_us for point in view.list.points]
    assert times == sorted(times), "the fastest first, what failed last"
    assert view.list.points[-1].text == ALL
    view.list.sortByColumn(PLAN, Qt.SortOrder.DescendingOrder)
    texts = [point.text for point in view.list.points]
    assert texts == sorted(texts, reverse=True)
    row = next(i for i, p in enumerate(view.list.points) if p.run is runs[2])
    assert view.list.currentIndex().row() == row
    other = view.list.model().index(0, 0)
    with qtbot.waitSignal(view.run_picked) as picked:
        click(view.list.viewport(), QPointF(view.list.visualRect(other).center()))
    assert picked.args[0] is view.list.points[0].run
    press(view.list, Qt.Key.Key_Down)
    with qtbot.waitSignal(view.run_picked):
        press(view.list, Qt.Key.Key_Return)


def test_a_narrow_list_leaves_the_last_columns_out(qtbot: QtBot) -> None:
    view = shown_in(qtbot, scores_sweep())
    view.resize(1200, 300)
    assert not view.list.isColumnHidden(PEAK)
    view.resize(700, 190)
    assert view.list.isColumnHidden(PEAK)
    assert not view.list.isColumnHidden(PLAN)
    # As narrow as in the smallest window, the time is told before the whole name is.
    view.resize(456, 200)
    assert not view.list.isColumnHidden(TIME)
    assert view.list.isColumnHidden(KERNELS)


def test_plans_that_cannot_be_placed_leave_the_list_and_a_sentence(qtbot: QtBot) -> None:
    view = shown_in(qtbot, [broken(plan_run(BEST))])
    assert view.sentence == ""
    assert len(view.list.points) == 1
    assert "not used" in view.finding
    assert plot_of(view).picture is None


# In the window.


@pytest.fixture
def store() -> Store:
    """A store that waits for nothing: the worker is ready, attention-scores is captured."""
    store = Store()
    settings = plan_run(ALL).chain
    strategies = tuple(
        StrategyAbility(spec=spec, title=spec, available=True) for spec in ("eager", "compile")
    )
    store.set_abilities(
        Abilities(
            versions=CPU_VERSIONS, default_device="cuda:0",
            devices=(
                DeviceAbility(
                    device=H200, counters=True, counters_sentence="", strategies=strategies
                ),
            ),
        )
    )  # fmt: skip
    object.__setattr__(store.state, "chain", settings.name)
    object.__setattr__(store.state.parameters, "values", dict(settings.parameters))
    store.set_captured(
        GraphCaptured(
            graph=scores_graph(), parameters=dict(settings.parameters), estimate_bytes=1,
            device="cuda:0",
        )
    )  # fmt: skip
    store.set_worker(WorkerPhase.READY, "worker ready")
    return store


@pytest.fixture
def details(qtbot: QtBot, store: Store) -> Iterator[DetailsPanel]:
    panel = DetailsPanel(store)
    qtbot.addWidget(panel)
    panel.resize(900, 260)
    panel.show()
    panel.tabs.setCurrentIndex(SWEEP_TAB)
    yield panel
    panel.hide()


def test_the_tab_opens_without_runs(details: DetailsPanel) -> None:
    view = details.sweep.view
    assert "A plan sweep runs every plan" in view.sentence
    assert ": 8 plans, 3 links" in view.sentence
    assert view.button.text() == "Run all 8 plans"
    assert view.button.isEnabled()


def test_the_button_beside_a_sweep_says_what_it_would_run(
    store: Store, details: DetailsPanel
) -> None:
    def offers(words: str) -> bool:
        details.sweep.refresh()
        buttons = details.sweep.view.findChildren(QPushButton)
        return any(button.isVisible() and button.text() == words for button in buttons)

    plans = [run for run in scores_sweep() if run.strategy.name == "plan"]
    store.add_runs(plans[:5])
    assert offers("Run 3 more")
    captured = store.state.captured
    assert captured is not None
    other_size = {**captured.parameters, "seq_len": 512}
    store.set_captured(replace(captured, parameters=other_size))
    assert offers("Run 8 plans of the chosen size")
    store.choose_chain("attention")
    store.set_captured(replace(captured, parameters=dict(store.state.parameters.values)))
    assert offers("Run 8 plans of attention")


def test_the_tab_shows_the_shown_runs_sweep_and_a_click_shows_a_run(
    qtbot: QtBot, store: Store, details: DetailsPanel
) -> None:
    store.add_runs([*scores_sweep(), eager_attention(), cpu_attention()])
    view = details.sweep.view
    qtbot.waitUntil(lambda: view.sentence == "", timeout=WAIT_MS)
    qtbot.waitUntil(lambda: "8 plans" in details.words, timeout=WAIT_MS)
    plot = plot_of(view)
    number = number_of(picture_in(view), BEST)
    qtbot.waitExposed(details)
    click(plot.viewport(), plot.spot(number))
    shown = store.state.shown_run
    assert shown is not None
    assert shown.run.strategy.plan == BEST
    qtbot.waitUntil(
        lambda: picture_in(view).marks[number_of(picture_in(view), BEST)].shown, timeout=WAIT_MS
    )


def test_another_shown_work_has_another_sweep(
    qtbot: QtBot, store: Store, details: DetailsPanel
) -> None:
    store.add_runs([*scores_sweep(), cpu_attention()])
    view = details.sweep.view
    qtbot.waitUntil(lambda: view.sentence == "", timeout=WAIT_MS)
    store.show_run(store.state.runs[-1].key)
    qtbot.waitUntil(lambda: view.sentence != "", timeout=WAIT_MS)


def test_the_plan_being_drawn_is_marked() -> None:
    sweep = sweep_of(scores_sweep())
    assert sweep is not None
    picture = picture_of(sweep, None, plan_of(OPS, [("mask", "softmax")]))
    assert picture is not None
    assert [mark.words[0] for mark in picture.marks if mark.current] == [
        "scale|mask+softmax|dropout"
    ]


def test_only_missing_plans_are_run(store: Store) -> None:
    assert sweep_specs(store.state)[:3] == ("eager", "compile", "plan:scale|mask|softmax|dropout")
    assert len(sweep_specs(store.state)) == 10
    store.add_runs([eager_scores(), plan_run(BEST), broken(plan_run(ALL))])
    assert f"plan:{BEST}" not in missing_plans(store.state)
    assert f"plan:{ALL}" in missing_plans(store.state), "what failed is tried again"
    assert sweep_specs(store.state)[0] == "compile"
    assert len(sweep_specs(store.state)) == 8
    store.add_runs(scores_sweep())
    assert sweep_specs(store.state) == ()
    assert sweep_blocker(store.state) == "Every plan of this setting has run."


def test_what_hinders_a_sweep_is_said(store: Store) -> None:
    assert sweep_blocker(store.state) is None
    store.set_worker(WorkerPhase.BUSY, "measuring")
    assert "in progress" in (sweep_blocker(store.state) or "")
    store.set_worker(WorkerPhase.READY, "worker ready")
    captured = store.state.captured
    assert captured is not None
    store.set_captured(replace(captured, graph=long_graph(10)))
    assert "has 9 links that can be fused" in (sweep_blocker(store.state) or "")
    store.set_captured(None)
    assert "not known yet" in (sweep_blocker(store.state) or "")


def test_256_plans_do_not_hold_up_the_window(
    qtbot: QtBot, store: Store, details: DetailsPanel
) -> None:
    runs = many_plans(8)
    assert len(runs) == 256
    store.add_runs(runs[:1])
    # Time of the processor: a busy machine makes everything late.
    started = thread_time()
    for run in runs[1:]:
        store.add_runs([run], show=False)
    each_ms = (thread_time() - started) * 1e3 / 255
    assert each_ms < 10
    started = thread_time()
    details.sweep.refresh()
    assert (thread_time() - started) * 1e3 < 300


def test_labels_keep_clear_of_many_marks(qtbot: QtBot) -> None:
    runs = many_plans(6)
    view = shown_in(qtbot, runs, runs[20])
    view.resize(1100, 420)
    plot, picture = plot_of(view), picture_in(view)
    assert len(picture.marks) > 40
    scene = [plot.mapToScene(plot.spot(i).toPoint()) for i in range(len(picture.marks))]
    assert plot.labels
    for text, box in plot.labels:
        tight = box.adjusted(6, 6, -6, -6)
        assert not any(tight.contains(spot) for spot in scene), text
