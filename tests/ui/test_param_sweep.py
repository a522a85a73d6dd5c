"""A parameter swept in the window: what is drawn, what is said, and what a pick shows."""

import math
from dataclasses import replace

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from explorer.chains import find_chain
from explorer.model.messages import GraphCaptured
from explorer.model.param_sweep import ParameterSweep, sweeps_in
from explorer.model.run import Run
from explorer.ui.details_panel import SWEEP_TAB, DetailsPanel
from explorer.ui.main_window import MainWindow
from explorer.ui.param_sweep_picture import (
    BASE_SYMBOL,
    SYMBOLS,
    Measure,
    ParamPicture,
    neighbour,
    picture_of,
)
from explorer.ui.param_sweep_plot import ParamSweepPlot
from explorer.ui.param_sweep_state import shown_param_sweep, suggested_text, swept_parameter
from explorer.ui.param_sweep_view import ParamSweepView
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from explorer.ui.sweep_switch import SweepKind
from explorer.ui.theme import DARK, THEMES
from tests.fixtures_param_sweep import k_sweep, seq_len_sweep, timed, variant_sweep, wrong
from tests.fixtures_sweep import long_graph, scores_sweep
from tests.ui.drive import click, press, write

KEY = Qt.Key


def sweep_of(runs: list[Run]) -> ParameterSweep:
    (found,) = sweeps_in(runs)
    return found


def drawn(runs: list[Run], measure: Measure, shown: Run | None = None) -> ParamPicture:
    picture = picture_of(sweep_of(runs), measure, shown)
    assert picture is not None
    return picture


def shown_panel(qtbot: QtBot, store: Store, size: tuple[int, int] = (900, 300)) -> DetailsPanel:
    panel = DetailsPanel(store)
    qtbot.addWidget(panel)
    panel.resize(*size)
    panel.show()
    panel.tabs.setCurrentIndex(SWEEP_TAB)
    panel.sweep.show_kind(SweepKind.PARAMETER)
    return panel


class TestPicture:
    def test_numbers_stand_on_log_axes(self) -> None:
        picture = drawn(k_sweep(), Measure.TIME)
        assert [text for _, text in picture.ticks] == ["1", "2", "4", "8", "16", "32"]
        assert [place for place, _ in picture.ticks] == pytest.approx(
            [math.log10(k) for k in (1, 2, 4, 8, 16, 32)]
        )
        eager, compiled = picture.lines
        # 2^26 numbers of two bytes, read and written by each op, at 4 TB/s: 67.1 us.
        assert eager.dots[0].y == pytest.approx(math.log10(2 * (1 << 27) / 4e6))
        assert eager.dots[-1].y == pytest.approx(math.log10(32 * 2 * (1 << 27) / 4e6))
        assert compiled.dots[-1].y == compiled.dots[0].y

    def test_values_that_are_no_numbers_stand_side_by_side(self) -> None:
        picture = drawn(variant_sweep(), Measure.TRAFFIC)
        assert picture.ticks == ((0.0, "three"), (1.0, "one"))

    def test_quartiles_are_the_bars_of_a_time(self) -> None:
        dot = drawn([timed(run, 200.0, 0.1) for run in k_sweep([4, 8])], Measure.TIME).dots[0]
        assert (dot.low, dot.high) == pytest.approx((math.log10(180.0), math.log10(220.0)))

    def test_a_failed_point_is_there_without_a_value_and_says_why(self) -> None:
        picture = drawn(seq_len_sweep(), Measure.TIME)
        failed = [dot for dot in picture.dots if dot.y is None]
        assert [(dot.line, dot.label) for dot in failed] == [(0, "out of memory")]
        assert "190 GB" in failed[0].words[-1]
        assert failed[0].x == picture.ticks[-1][0]

    def test_a_speed_up_is_drawn_of_all_but_the_baseline(self) -> None:
        picture = drawn(k_sweep(), Measure.SPEED_UP)
        assert [line.title for line in picture.lines] == ["torch.compile"]
        assert picture.even == 0.0
        assert picture.lines[0].dots[-1].y == pytest.approx(math.log10(32))
        # Within noise there is no ratio: it stands at one.
        assert picture.lines[0].dots[0].y == 0.0

    def test_where_a_strategy_pays_is_marked(self) -> None:
        picture = drawn(k_sweep(), Measure.TIME)
        assert [(found.x, found.words) for found in picture.pays] == [
            (math.log10(2), "torch.compile pays from 2")
        ]
        assert drawn(k_sweep(), Measure.TRAFFIC).pays == ()

    def test_eager_alone_looks_as_it_does_everywhere(self) -> None:
        alone = [run for run in k_sweep() if run.strategy.name == "eager"]
        assert [line.color for line in drawn(alone, Measure.TIME).lines] == ["plain"]

    def test_marks_are_told_apart_without_their_colours(self) -> None:
        lines = drawn(k_sweep(), Measure.TIME).lines
        assert len({line.symbol for line in lines}) == len(lines)
        assert BASE_SYMBOL not in SYMBOLS

    def test_a_wrong_result_is_crossed_out(self) -> None:
        runs = k_sweep()
        runs[3] = wrong(runs[3])
        picture = drawn(runs, Measure.TIME)
        assert [dot.is_wrong for dot in picture.lines[1].dots] == [False, True, *[False] * 4]

    def test_no_value_no_picture(self) -> None:
        runs = [run for run in seq_len_sweep([8192]) if run.strategy.name == "eager"]
        assert picture_of(sweep_of(runs), Measure.SPEED_UP) is None

    def test_arrows_go_along_a_line_and_from_line_to_line(self) -> None:
        picture = drawn(k_sweep(), Measure.TIME)
        assert neighbour(picture, 0, (1, 0)) == 1
        assert neighbour(picture, 5, (1, 0)) == 5
        # At 32 torch.compile lies below eager.
        assert neighbour(picture, 5, (0, -1)) == 11
        assert neighbour(picture, 11, (0, 1)) == 5

    @pytest.mark.parametrize("measure", Measure)
    def test_every_axis_has_a_few_round_numbers(self, measure: Measure) -> None:
        for runs in (k_sweep(), seq_len_sweep(), variant_sweep(), k_sweep([8, 9])):
            picture = drawn(runs, measure)
            assert 2 <= len(picture.y_ticks) <= 6
            low, high = picture.y_range
            assert all(low <= place <= high for place, _ in picture.y_ticks)


class TestPlot:
    @pytest.fixture
    def holder(self, qtbot: QtBot) -> QWidget:
        # Within another widget, as everywhere: pyqtgraph takes a plot apart that is closed itself.
        holder = QWidget()
        qtbot.addWidget(holder)
        holder.resize(480, 260)
        return holder

    @pytest.fixture
    def plot(self, holder: QWidget) -> ParamSweepPlot:
        plot = ParamSweepPlot(holder)
        plot.resize(holder.size())
        holder.show()
        return plot

    def test_lines_are_named_and_nothing_covers_a_name(self, plot: ParamSweepPlot) -> None:
        plot.show_picture(drawn(seq_len_sweep(), Measure.TIME), DARK, 1.0)
        names = [text for text, _ in plot.labels]
        assert {"eager", "torch.compile", "out of memory"} <= set(names)
        boxes = [box.adjusted(2, 3, -2, -3) for _, box in plot.labels]
        assert not any(a.intersects(b) for i, a in enumerate(boxes) for b in boxes[:i])

    def test_no_name_is_struck_through_by_a_line(self, plot: ParamSweepPlot) -> None:
        times = [time for ratio in (1, 2, 30, 3, 10, 1) for time in (100.0, 100.0 / ratio)]
        runs = [timed(run, time) for run, time in zip(k_sweep(), times, strict=True)]
        picture = drawn(runs, Measure.SPEED_UP)
        plot.resize(360, 260)
        plot.show_picture(picture, DARK, 1.0)
        assert picture.even is not None
        view = plot.getPlotItem().getViewBox()
        even = view.mapViewToScene(QPointF(0.0, picture.even)).y()
        assert plot.labels
        for text, box in plot.labels:
            core = box.adjusted(0, 0.2 * box.height(), 0, -0.2 * box.height())
            assert not core.top() < even < core.bottom(), text

    def test_every_line_has_its_name_though_strokes_are_everywhere(
        self, plot: ParamSweepPlot
    ) -> None:
        runs = [timed(run, 100.0 if i % 4 < 2 else 300.0, 0.9) for i, run in enumerate(k_sweep())]
        picture = drawn(runs, Measure.TIME)
        plot.show_picture(picture, DARK, 1.0)
        assert {line.title for line in picture.lines} <= {text for text, _ in plot.labels}

    @pytest.mark.parametrize("name", THEMES)
    def test_lines_have_the_theme_s_colours(self, plot: ParamSweepPlot, name: str) -> None:
        theme = THEMES[name]
        plot.show_picture(drawn(k_sweep(), Measure.TIME), theme, 1.0)
        image = plot.grab().toImage()
        seen = {
            QColor(image.pixel(x, y)).name().upper()
            for x in range(0, image.width(), 2)
            for y in range(image.height())
        }
        assert theme.plain.upper() in seen
        assert theme.fused.upper() in seen

    def test_a_click_picks_a_point(self, qtbot: QtBot, plot: ParamSweepPlot) -> None:
        plot.show_picture(drawn(k_sweep(), Measure.TIME), DARK, 1.0)
        with qtbot.waitSignal(plot.dot_picked) as picked:
            click(plot.viewport(), plot.spot(4))
        assert picked.args == [4]

    def test_the_keyboard_goes_to_a_failed_point_and_says_why(self, plot: ParamSweepPlot) -> None:
        plot.show_picture(drawn(seq_len_sweep(), Measure.TIME), DARK, 1.0)
        for _ in range(6):
            press(plot, KEY.Key_Right)
        assert "190 GB" in plot.accessibleDescription()


class TestView:
    def test_as_many_plots_as_can_be_read(self, qtbot: QtBot) -> None:
        view = ParamSweepView()
        qtbot.addWidget(view)
        view.set_sweep(sweep_of(k_sweep()))
        view.show()
        seen = []
        for size in ((360, 190), (760, 190), (1100, 190), (760, 500)):
            view.resize(*size)
            seen.append(len(view.shown_cells))
        assert seen == [1, 2, 3, 4]

    def test_a_picked_measure_changes_places(self, qtbot: QtBot) -> None:
        view = ParamSweepView()
        qtbot.addWidget(view)
        view.resize(360, 190)
        view.set_sweep(sweep_of(k_sweep()))
        view.show()
        view.fill_now()
        (cell,) = view.shown_cells
        cell.picker.textActivated.emit("Traffic")
        assert [each.measure for each in view.cells] == [
            Measure.TRAFFIC, Measure.SPEED_UP, Measure.TIME, Measure.PEAK,
        ]  # fmt: skip
        assert cell.caption.whole == "over k · counted"

    def test_findings_stand_above_the_plots_at_length_where_there_is_room(
        self, qtbot: QtBot
    ) -> None:
        view = ParamSweepView()
        qtbot.addWidget(view)
        view.set_sweep(sweep_of(k_sweep()))
        view.show()
        view.resize(800, 150)
        assert view.finding == (
            "torch.compile is faster than eager from k 2 on (2.00× there, 32.0× at 32)."
        )
        view.resize(800, 500)
        assert "torch.compile stays at 268 MB (counted)" in view.finding


class TestPanel:
    @pytest.fixture
    def store(self) -> Store:
        store = Store()
        store.choose_chain("elementwise")
        store.set_worker(WorkerPhase.READY, "worker ready")
        return store

    def test_the_length_is_swept_unless_another_is_picked(self, qtbot: QtBot, store: Store) -> None:
        details = shown_panel(qtbot, store)
        panel = details.sweep.parameter
        assert panel.parameter.currentText() == "k"
        assert panel.values.placeholderText() == "1:32:x2"
        assert panel.about.whole == "6 values × 2 strategies"
        assert "k 1:32:x2: 1, 2, 4, 8, 16, 32" in panel.view.sentence
        panel.parameter.textActivated.emit("dtype")
        assert store.state.swept == "dtype"
        panel.refresh()
        assert panel.values.placeholderText().split(",") == list(
            find_chain("elementwise").parameter("dtype").choices
        )

    def test_what_is_typed_is_checked_at_once(self, qtbot: QtBot, store: Store) -> None:
        details = shown_panel(qtbot, store)
        panel = details.sweep.parameter
        panel.values.setFocus()
        write(panel.values, "1:64:x2")
        panel.refresh()
        assert "64 is out of range" in panel.about.whole
        assert not panel.run.isEnabled()
        assert "64 is out of range" in panel.run.toolTip()
        panel.values.selectAll()
        write(panel.values, "4,8")
        panel.refresh()
        assert panel.about.whole == "2 values × 2 strategies"
        assert panel.run.isEnabled()

    def test_enter_asks_for_the_sweep_and_cancel_gives_it_up(
        self, qtbot: QtBot, store: Store
    ) -> None:
        details = shown_panel(qtbot, store)
        panel = details.sweep.parameter
        with qtbot.waitSignal(store.param_sweep_requested):
            press(panel.values, KEY.Key_Return)
        store.set_worker(WorkerPhase.BUSY, "measuring")
        panel.refresh()
        assert panel.run.text() == "Cancel"
        with qtbot.waitSignal(store.cancel_requested):
            click(panel.run)

    def test_a_pick_shows_the_run_and_marks_it(self, qtbot: QtBot, store: Store) -> None:
        store.add_runs(k_sweep())
        details = shown_panel(qtbot, store)
        panel = details.sweep.parameter
        plot = panel.view.shown_cells[0].plot
        assert plot is not None
        assert plot.picture is not None
        plot.dot_picked.emit(4)
        panel.refresh()
        shown = store.state.shown_run
        assert shown is not None
        assert shown.run is plot.picture.dots[4].run
        assert plot.picture.dots[4].is_shown

    def test_a_point_of_a_sweep_is_shown_among_the_points(self, qtbot: QtBot, store: Store) -> None:
        store.add_runs([*scores_sweep(), *seq_len_sweep(), *k_sweep()])
        panel = DetailsPanel(store)
        qtbot.addWidget(panel)
        assert panel.sweep.kind == SweepKind.PLANS.value
        store.show_run(next(i.key for i in store.state.runs if i.run.swept == "seq_len"))
        assert panel.sweep.kind is SweepKind.PARAMETER
        found = shown_param_sweep(store.state)
        assert found is not None
        assert found.name == "seq_len"

    def test_what_would_run_is_named_where_another_chain_s_sweep_is_drawn(
        self, qtbot: QtBot, store: Store
    ) -> None:
        store.add_runs(k_sweep())
        details = shown_panel(qtbot, store)
        panel = details.sweep.parameter
        assert panel.about.whole == "6 values × 2 strategies"
        store.choose_chain("rmsnorm")
        panel.refresh()
        assert panel.about.whole.endswith(" × 2 strategies of RMSNorm, op by op")

    def test_a_chain_with_too_many_plans_has_its_parameters_swept(
        self, qtbot: QtBot, store: Store
    ) -> None:
        panel = DetailsPanel(store)
        qtbot.addWidget(panel)
        assert panel.sweep.kind == SweepKind.PLANS.value
        captured = GraphCaptured(
            graph=long_graph(10), parameters={}, estimate_bytes=1, device="cpu"
        )
        store.set_captured(captured)
        assert panel.sweep.kind == SweepKind.PARAMETER.value
        store.set_captured(replace(captured, graph=long_graph(4)))
        assert panel.sweep.kind == SweepKind.PLANS.value

    def test_who_asks_for_a_sweep_sees_it(self, qtbot: QtBot, store: Store) -> None:
        panel = DetailsPanel(store)
        qtbot.addWidget(panel)
        store.request_param_sweep("k")
        assert panel.tabs.currentIndex() == SWEEP_TAB
        assert panel.sweep.kind is SweepKind.PARAMETER

    def test_suggestions_stay_in_range_and_are_sizes(self) -> None:
        store = Store()
        parameter = swept_parameter(store.state)
        assert parameter is not None
        assert parameter.name == "seq_len"
        # The CPU's default is 1,024: three doublings below it and one above.
        assert suggested_text(store.state, parameter) == "128:2048:x2"


def test_tab_comes_to_the_plots_behind_what_stands_above_them(qtbot: QtBot) -> None:
    store = Store()
    window = MainWindow(store)
    qtbot.addWidget(window)
    window.show()
    store.add_runs(k_sweep())
    window.details.tabs.setCurrentIndex(SWEEP_TAB)
    panel = window.details.sweep.parameter
    cell = panel.view.shown_cells[0]
    assert cell.plot is not None
    order: list[QWidget] = []
    widget: QWidget | None = window.header.chain
    while widget is not None and widget not in order:
        order.append(widget)
        widget = widget.nextInFocusChain()
    stops = (window.details.tabs, panel.values, panel.run, cell.picker, cell.plot,
             window.status.more_button)  # fmt: skip
    places = [order.index(stop) for stop in stops]
    assert places == sorted(places)
    assert "<" not in panel.run.accessibleDescription()
