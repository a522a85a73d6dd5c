"""The timeline: its drawing sampled for colours, its geometry, and the widget by mouse and keys."""

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QMouseEvent, QPainter, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.model.comparison import headline
from explorer.model.lanes import Category
from explorer.model.run import Run
from explorer.model.timeline import TimeView
from explorer.ui.painting import text_width
from explorer.ui.theme import DARK, LIGHT, Theme, font, load_fonts
from explorer.ui.timeline_bars import bar_words, category_color
from explorer.ui.timeline_draw import draw_timeline, tick_labels
from explorer.ui.timeline_layout import (
    Selected,
    TimelineLayout,
    heading_hint,
    lay_out,
    whole_view,
)
from explorer.ui.timeline_view import TimelineView
from tests.fixtures_runs import (
    compiled_attention,
    eager_attention,
    failed_run,
    long_run,
    sdpa_attention,
)

RECT = QRectF(0, 0, 900, 200)


@pytest.fixture
def runs(qapp: QApplication) -> tuple[Run, ...]:
    load_fonts()
    return eager_attention(), compiled_attention(), sdpa_attention()


def picture(
    runs: tuple[Run, ...],
    *,
    selected: Selected = Selected(),  # noqa: B008 (frozen)
    t_us: float | None = None,
    view: TimeView | None = None,
    theme: Theme = DARK,
) -> QImage:
    image = QImage(900, 200, QImage.Format.Format_RGB32)
    image.fill(theme.color("panel"))
    painter = QPainter(image)
    draw_timeline(painter, RECT, runs, selected, t_us, view, theme)
    painter.end()
    return image


def middle(layout: TimelineLayout, place: int, time_us: float) -> QPoint:
    """A point in a lane just below its upper edge, where no label is."""
    band = layout.bar_band(place)
    return QPointF(layout.x(time_us), band.top() + 3).toPoint()


def is_near(found: QColor, expected: QColor) -> bool:
    pairs = ((c.red(), c.green(), c.blue()) for c in (found, expected))
    return all(abs(a - b) <= 8 for a, b in zip(*pairs, strict=True))


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_fused_plain_helper_and_idle_have_their_colours(
    runs: tuple[Run, ...], theme: Theme
) -> None:
    image, layout = picture(runs, theme=theme), lay_out(RECT, runs, None)

    fused = image.pixelColor(middle(layout, 1, 1000))
    plain = image.pixelColor(middle(layout, 0, 1000))
    beyond = image.pixelColor(middle(layout, 2, 2500))

    assert is_near(fused, theme.color("fused"))
    assert is_near(plain, category_color(theme, Category.PLAIN, False))
    assert is_near(beyond, theme.color("panel"))


def test_bars_begin_and_end_where_the_clock_says(runs: tuple[Run, ...]) -> None:
    image, layout = picture(runs), lay_out(RECT, runs, None)
    spans = layout.lanes[1].schedule
    assert spans is not None
    fused = next(s for s in spans.spans if len(runs[1].launches[s.index].ops) > 1)
    band = layout.bar_band(1)
    y = round(band.top() + 8)
    pixels = [x for x in range(900) if is_near(image.pixelColor(x, y), DARK.color("fused"))]
    assert min(pixels) == pytest.approx(layout.x(fused.start_us), abs=1.5)
    assert max(pixels) + 1 == pytest.approx(layout.x(fused.end_us), abs=2.5)


def test_the_playhead_is_in_the_selected_lane_only(runs: tuple[Run, ...]) -> None:
    image = picture(runs, selected=Selected(1), t_us=2000)
    layout = lay_out(RECT, runs, None)
    lanes = [
        place
        for place in range(3)
        if is_near(
            image.pixelColor(round(layout.x(2000)), round(layout.bar_band(place).bottom() - 6)),
            DARK.color("playhead"),
        )
    ]
    assert lanes == [1]


def test_the_drawing_is_a_function_of_its_arguments(runs: tuple[Run, ...]) -> None:
    first = picture(runs, selected=Selected(0, 2), t_us=900)
    picture(runs, selected=Selected(2), t_us=10, view=TimeView(100, 300), theme=LIGHT)
    assert picture(runs, selected=Selected(0, 2), t_us=900) == first


def test_a_failed_run_shows_its_reason_in_the_place_of_bars(runs: tuple[Run, ...]) -> None:
    with_failed = (*runs, failed_run())
    image, layout = picture(with_failed), lay_out(RECT, with_failed, None)
    band = layout.bar_band(3)
    warning = DARK.color("warning")
    row = [
        image.pixelColor(x, y)
        for y in range(round(band.top()), round(band.bottom()))
        for x in range(round(band.left()), round(band.left()) + 300)
    ]
    assert sum(is_near(color, warning) for color in row) > 20


@pytest.mark.parametrize("n_launches", [300, 5000])
def test_busy_area_is_kept_at_every_level_of_detail(qapp: QApplication, n_launches: int) -> None:
    load_fonts()
    run = long_run(n_launches)
    last = run.launches[-1]
    # Short of idle time at the end: the timed call equals the traced one.
    timing = run.timing
    assert timing is not None
    assert timing.cold is not None
    total_us = (last.start_us or 0) + (last.duration_us or 0)
    cold = replace(timing.cold, median_us=total_us, q1_us=total_us, q3_us=total_us)
    run = replace(run, timing=replace(timing, cold=cold))
    image, layout = picture((run,)), lay_out(RECT, (run,), None)
    face, ground = category_color(DARK, Category.PLAIN, False), DARK.color("panel")
    band = layout.bar_band(0)
    y = round(band.top() + 5)
    span = face.green() - ground.green()
    inked = sum(
        (image.pixelColor(x, y).green() - ground.green()) / span
        for x in range(round(band.left()), round(band.right()))
    )
    busy = 1.9 * n_launches / total_us * band.width()
    if n_launches == 5000:
        assert inked == pytest.approx(busy, rel=0.03)
    else:
        # Rectangles are a pixel wide at least, so they may only take more room.
        assert busy * 0.9 <= inked <= max(1.5 * busy, 1.2 * n_launches)


def test_the_axis_is_as_long_as_the_longest_run(runs: tuple[Run, ...]) -> None:
    assert whole_view(runs) == TimeView(0, 5350)
    assert whole_view(()) == whole_view((failed_run(),)) == TimeView(0, 1)


def test_a_bar_says_no_less_than_what_makes_sense(runs: tuple[Run, ...]) -> None:
    eager, compiled, _ = runs
    fused = next(launch for launch in compiled.launches if launch.is_fused)
    face = font(13.5, 600)
    wide = text_width(fused.title, face)
    n_ops = len(fused.ops)
    assert bar_words(fused, face, wide + 1) == fused.title
    assert bar_words(fused, face, wide - 1) == f"{n_ops} ops fused"
    assert bar_words(fused, face, text_width(f"{n_ops} ops", face)) == f"{n_ops} ops"
    assert bar_words(fused, face, 20) == ""
    plain = eager.launches[0]
    assert bar_words(plain, face, 200) == plain.ops[0]
    softmax = next(launch for launch in eager.launches if launch.ops == ("softmax",))
    assert bar_words(softmax, face, text_width("soft…", face) + 2) == "soft…"
    assert bar_words(softmax, face, text_width("so…", face) + 2) == ""


def test_ticks_name_their_unit_once() -> None:
    assert tick_labels((0, 1000, 2000)) == ["0", "1", "2 ms"]
    assert tick_labels((0, 25, 50)) == ["0", "25", "50 µs"]
    assert tick_labels((0, 0.5, 1.0)) == ["0.0", "0.5", "1.0 µs"]
    assert tick_labels((0, 200_000, 400_000)) == ["0.0", "0.2", "0.4 s"]
    assert tick_labels((1.001, 1.002)) == ["1,001", "1,002 ns"]
    assert tick_labels(()) == []


def test_the_hint_says_how_the_times_were_taken(runs: tuple[Run, ...]) -> None:
    assert heading_hint(runs) == "median of 5 calls, cold L2  ·  one shared time axis"
    assert heading_hint((failed_run(),)) == "one shared time axis"


def test_end_labels_follow_the_noise_rule(runs: tuple[Run, ...]) -> None:
    eager, compiled, _ = runs
    timing = eager.timing
    assert timing is not None
    assert timing.cold is not None
    # Quartiles that overlap eager's: no ratio, whatever the medians say.
    near = replace(timing.cold, median_us=5340, q1_us=5300, q3_us=5400)
    alike = replace(compiled, timing=replace(timing, cold=near))
    labels = lay_out(RECT, (eager, compiled, alike), None).labels
    found = headline(compiled)
    assert found is not None
    ratio = 5350 / found.samples.median_us
    assert (labels[0].time, labels[0].compared) == ("5.35 ms", "")
    assert labels[1].compared == f"{ratio:.2f}× faster"
    assert labels[2].compared == "equal within noise"


def test_a_difference_too_small_for_a_ratio_is_a_share(runs: tuple[Run, ...]) -> None:
    eager, compiled, _ = runs
    timing = eager.timing
    assert timing is not None
    assert timing.cold is not None
    sharp = replace(timing.cold, q1_us=5349.9, q3_us=5350.1)
    near = replace(sharp, median_us=5339.3, q1_us=5339.2, q3_us=5339.4)
    base = replace(eager, timing=replace(timing, cold=sharp))
    run = replace(compiled, timing=replace(timing, cold=near))
    assert lay_out(RECT, (base, run), None).labels[1].compared == "0.2 % faster"


def test_titles_are_the_tables_with_the_backend_that_ran(runs: tuple[Run, ...]) -> None:
    unknown = replace(runs[0], strategy=replace(runs[0].strategy, name="new", title="New one"))
    named = replace(runs[0], label="mine")
    titles = [label.title for label in lay_out(RECT, (*runs, unknown, named), None).labels]
    assert titles == ["eager", "torch.compile", "SDPA · cuDNN", "New one", "mine"]


def test_end_labels_have_room(runs: tuple[Run, ...]) -> None:
    from explorer.ui.painting import text_width
    from explorer.ui.theme import font

    layout = lay_out(RECT, runs, None)
    for lane, label in zip(layout.lanes, layout.labels, strict=True):
        width = text_width(f"{label.time}{label.compared}", font(14.5, 700))
        assert layout.x(lane.total_us) + width <= RECT.right()


@pytest.fixture
def view(qtbot: QtBot, runs: tuple[Run, ...]) -> TimelineView:
    made = TimelineView()
    qtbot.addWidget(made)
    made.resize(900, 200)
    made.set_runs(runs)
    return made


def test_a_click_selects_the_launch_under_it(view: TimelineView, qtbot: QtBot) -> None:
    spot = middle(view.layout_now(), 0, 1000)
    with qtbot.waitSignal(view.launch_selected) as caught:
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=spot)
    assert caught.args == [0, 2]  # At 1 ms eager adds the mask.


def test_a_click_beside_the_bars_selects_the_run(view: TimelineView, qtbot: QtBot) -> None:
    spot = QPoint(12, middle(view.layout_now(), 2, 0).y())
    with qtbot.waitSignal(view.run_selected) as caught:
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=spot)
    assert caught.args == [2]


def test_a_double_click_asks_for_the_playhead(view: TimelineView, qtbot: QtBot) -> None:
    spot = middle(view.layout_now(), 1, 2000)
    with qtbot.waitSignal(view.time_requested) as caught:
        QTest.mouseDClick(view, Qt.MouseButton.LeftButton, pos=spot)
    assert caught.args is not None
    assert caught.args[0] == 1
    assert caught.args[1] == pytest.approx(2000, abs=10)


def test_the_wheel_zooms_round_the_pointer(view: TimelineView) -> None:
    x = view.layout_now().x(2000)
    _wheel(view, QPointF(x, 60), 360)
    assert view.view.span_us < view.limit_us
    assert view.layout_now().x(2000) == pytest.approx(x, abs=0.5)
    _wheel(view, QPointF(x, 60), -1200)
    assert view.view == TimeView(0, view.limit_us)


def test_dragging_pans_and_selects_nothing(view: TimelineView, qtbot: QtBot) -> None:
    view.set_view(TimeView(1000, 3000))
    start = middle(view.layout_now(), 0, 2000)
    with qtbot.assertNotEmitted(view.launch_selected):
        QTest.mousePress(view, Qt.MouseButton.LeftButton, pos=start)
        QTest.mouseMove(view, start - QPoint(60, 0))
        _drag(view, start - QPoint(100, 0))
        QTest.mouseRelease(view, Qt.MouseButton.LeftButton, pos=start - QPoint(100, 0))
    moved_us = 100 / view.layout_now().pixels_per_us
    assert view.view.start_us == pytest.approx(1000 + moved_us)


def test_keys_pick_launches_and_runs_and_zoom(view: TimelineView) -> None:
    view.launch_selected.connect(view.set_selected)
    view.run_selected.connect(view.set_selected)
    for key, expected in (
        (Qt.Key.Key_Right, Selected(0, 0)),
        (Qt.Key.Key_Right, Selected(0, 1)),
        (Qt.Key.Key_Left, Selected(0, 0)),
        (Qt.Key.Key_Down, Selected(1)),
        (Qt.Key.Key_Left, Selected(1, 3)),
        (Qt.Key.Key_Up, Selected(0)),
    ):
        QTest.keyClick(view, key)
        assert view.selected == expected
    QTest.keyClick(view, Qt.Key.Key_Plus)
    assert view.view.span_us < view.limit_us
    before = view.view.start_us
    QTest.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert view.view.start_us > before
    QTest.keyClick(view, Qt.Key.Key_0)
    assert view.view == TimeView(0, view.limit_us)


def test_return_asks_for_the_picked_launch(view: TimelineView, qtbot: QtBot) -> None:
    view.set_selected(0, 1)
    with qtbot.waitSignal(view.time_requested) as caught:
        QTest.keyClick(view, Qt.Key.Key_Return)
    spans = view.layout_now().lanes[0].schedule
    assert spans is not None
    assert caught.args == [0, spans.spans[1].start_us]


def test_a_picked_launch_out_of_sight_is_brought_into_it(view: TimelineView) -> None:
    view.set_view(TimeView(0, 300))
    view.set_selected(0, 5)
    spans = view.layout_now().lanes[0].schedule
    assert spans is not None
    assert view.view.start_us <= spans.spans[5].end_us <= view.view.end_us + view.view.span_us


def test_tooltips_carry_pedigree_share_and_both_totals(view: TimelineView) -> None:
    text = view.tooltip_at(middle(view.layout_now(), 0, 1000))
    for words in (
        "elementwise_kernel&lt;128, 4, CUDAFunctor_add&gt;", "op: mask", "1.41 ms traced",
        "read 2.15 GB", "written 1.09 GB", "counted", "read +94 %", "TB/s",
        "54 % of the measured ceiling", "Unprofiled: median 5.35 ms", "Traced: 5",
    ):  # fmt: skip
        assert words in text
    over_title = view.tooltip_at(QPoint(12, middle(view.layout_now(), 1, 0).y()))
    assert "torch.compile" in over_title
    assert "Unprofiled: median" in over_title


def test_a_share_above_one_is_never_printed(qtbot: QtBot, runs: tuple[Run, ...]) -> None:
    view = TimelineView()
    qtbot.addWidget(view)
    view.resize(900, 200)
    launch = replace(runs[0].launches[1], duration_us=1.0)
    view.set_runs([replace(runs[0], launches=(launch,), timing=None)])
    text = view.tooltip_at(middle(view.layout_now(), 0, 0.5))
    assert "above the measured ceiling" in text
    assert "% of the measured" not in text


def test_screen_readers_hear_the_result(view: TimelineView) -> None:
    view.set_selected(1, 2)
    words = view.accessibleDescription()
    assert "eager: 5.35 ms" in words
    assert "faster" in words
    assert "Selected: torch.compile, launch scale+mask+softmax+dropout" in words


def test_many_lanes_scroll(qtbot: QtBot, runs: tuple[Run, ...]) -> None:
    view = TimelineView()
    qtbot.addWidget(view)
    view.resize(600, 120)
    view.set_runs([replace(runs[0], id=str(i)) for i in range(9)])
    shown = len(view.layout_now().visible_lanes)
    assert shown < 9
    view.set_selected(8)
    assert 8 in view.layout_now().visible_lanes
    view.set_selected(0)
    assert 0 in view.layout_now().visible_lanes


def test_no_runs_is_a_sentence_and_no_fault(qtbot: QtBot) -> None:
    view = TimelineView()
    qtbot.addWidget(view)
    view.resize(600, 120)
    image = view.grab().toImage()
    assert any(
        is_near(image.pixelColor(x, y), DARK.color("muted"))
        for x in range(100, 500)
        for y in range(40, 90)
    )
    assert view.tooltip_at(QPoint(50, 50)) == ""


def _wheel(view: TimelineView, position: QPointF, delta: int) -> None:
    event = QWheelEvent(
        position, view.mapToGlobal(position), QPoint(), QPoint(0, delta),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase,
        False,
    )  # fmt: skip
    QApplication.sendEvent(view, event)


def _drag(view: TimelineView, position: QPoint) -> None:
    """Move with the button held, which qtbot's mouseMove does not say."""
    event = QMouseEvent(
        QEvent.Type.MouseMove, QPointF(position), view.mapToGlobal(QPointF(position)),
        Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(view, event)
