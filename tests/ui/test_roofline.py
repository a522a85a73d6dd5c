"""The roofline widget: marks where the arithmetic says, or a sentence."""

import math
import subprocess
import sys
from dataclasses import replace

import pytest
from pyqtgraph import PlotCurveItem, TextItem
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer.model.device import Ceilings
from explorer.model.roofline import roofline_point
from explorer.model.run import Run
from explorer.ui.line_widths import widened
from explorer.ui.roofline_plot import RooflinePlot
from explorer.ui.roofline_view import RooflineView
from explorer.ui.theme import DARK, LIGHT, Theme
from tests.conftest import CHECKOUT
from tests.fixtures_runs import (
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    sdpa_attention,
)

CEILINGS = Ceilings(
    copy_bytes_per_s=4e12,
    read_bytes_per_s=4.2e12,
    write_bytes_per_s=3e12,
    flops_per_s={"bf16": 840e12, "fp32": 42e12},
    measured_at="2026-01-01T00:00:00+00:00",
)


def measured(run: Run) -> Run:
    return replace(run, device=replace(run.device, ceilings=CEILINGS))


RUNS = tuple(map(measured, (eager_attention(), compiled_attention(), sdpa_attention())))


@pytest.fixture
def view(qtbot: QtBot) -> RooflineView:
    made = RooflineView()
    qtbot.addWidget(made)
    made.resize(300, 440)
    made.set_runs(RUNS, 1)
    return made


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_every_run_has_its_mark_where_the_arithmetic_says(view: RooflineView, theme: Theme) -> None:
    view.set_theme(theme)
    view.fill_now()
    image = view.grab().toImage()
    plot = view.plot
    assert plot is not None
    box = plot.getPlotItem().getViewBox()
    for run, color in zip(RUNS, ("plain", "fused", "fused"), strict=True):
        point = roofline_point(run)
        assert point is not None
        where = QPointF(math.log10(point.flops_per_byte), math.log10(point.flops_per_s))
        spot = plot.mapFromScene(box.mapViewToScene(where))
        found = image.pixelColor(plot.mapTo(view, spot))
        wanted = theme.color(color)
        assert abs(found.red() - wanted.red()) + abs(found.green() - wanted.green()) < 12


def test_words_for_screen_readers(view: RooflineView) -> None:
    view.fill_now()
    words = view.accessibleDescription()
    assert "Ceilings: 4.20 TB/s memory" in words
    assert "840 TFLOP/s bf16 from 200 FLOP per byte on" in words
    assert "42.0 TFLOP/s fp32 from 10.0 FLOP per byte on" in words
    assert "eager: 26.1 TFLOP/s at 11.2 FLOP per byte, bytes counted" in words
    assert view.hint == "TFLOP/s  ·  bytes counted"


def test_there_is_a_frame_until_the_plot_is_made(view: RooflineView) -> None:
    frame = view.grab().toImage()
    assert view.plot is None
    assert view.sentence == ""
    view.fill_now()
    assert view.plot is not None
    assert view.grab().toImage() != frame


def test_nothing_of_it_is_imported_with_the_widget() -> None:
    code = "import sys, explorer.ui.roofline_view; sys.exit('pyqtgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False)
    assert done.returncode == 0


def test_unknown_ceilings_are_a_sentence_with_a_button(qtbot: QtBot, view: RooflineView) -> None:
    view.set_runs((cpu_attention(),), 0)
    view.show()
    assert "ceilings of Two-core test processor are not known" in view.sentence
    with qtbot.waitSignal(view.measure_requested):
        QTest.mouseClick(view.measure_button, Qt.MouseButton.LeftButton)
    view.set_can_measure(False, "A run is in progress.")
    assert not view.measure_button.isEnabled()
    assert view.measure_button.toolTip() == "A run is in progress."


def test_no_ceilings_of_the_chains_type_nor_fp32_is_unknown_too(view: RooflineView) -> None:
    other = replace(CEILINGS, flops_per_s={"fp16": 800e12})
    run = replace(RUNS[0], device=replace(RUNS[0].device, ceilings=other))
    view.set_runs((run,), 0)
    assert "not known" in view.sentence


def test_a_failed_run_alone_is_told(view: RooflineView) -> None:
    view.set_runs((measured(failed_run()),), 0)
    assert view.sentence.startswith("No run can be placed. CUDA ran out of memory")
    view.set_runs((), -1)
    assert "No run is shown" in view.sentence
    assert view.hint == ""


def test_runs_without_a_mark_are_named(view: RooflineView) -> None:
    view.set_runs((*RUNS, measured(failed_run()), cpu_attention()), 0)
    view.fill_now()
    words = view.accessibleDescription()
    assert "eager has no mark: CUDA ran out of memory" in words
    assert "1 of another device left out" in words


def test_marks_on_each_other_share_a_label_that_counts_them(view: RooflineView) -> None:
    near = [replace(run, id=str(i)) for i, run in enumerate((RUNS[1], RUNS[1], RUNS[0]))]
    view.set_runs(near, 1)
    view.fill_now()
    view.grab()
    assert view.plot is not None
    assert [words for words, _ in view.plot.labels] == ["torch.compile +1", "eager"]


def test_the_same_runs_are_not_plotted_anew(
    view: RooflineView, monkeypatch: pytest.MonkeyPatch
) -> None:
    view.fill_now()
    view.grab()
    assert view.plot is not None
    monkeypatch.setattr(view.plot, "_show_marks", lambda *_: pytest.fail("plotted anew"))
    view.set_runs(RUNS, 1)
    assert len(view.plot.labels) == 3


def test_labels_do_not_cover_each_other(view: RooflineView) -> None:
    view.fill_now()
    view.grab()
    plot = view.plot
    assert plot is not None
    boxes = [box for _, box in plot.labels]
    assert len(boxes) == 3
    for i, first in enumerate(boxes):
        for second in boxes[i + 1 :]:
            shared = first.intersected(second)
            assert shared.height() < 0.5 * first.height() or shared.width() <= 0


@pytest.mark.parametrize("width", [200, 230, 262, 284, 300, 360, 460])
def test_the_slope_crosses_no_roofs_label(view: RooflineView, width: int) -> None:
    near = replace(CEILINGS, flops_per_s={"bf16": 840e12, "fp32": 280e12})
    view.set_runs([replace(run, device=replace(run.device, ceilings=near)) for run in RUNS[:2]], 1)
    view.resize(width, 440)
    view.fill_now()
    view.grab()
    plot = view.plot
    assert plot is not None
    box = plot.getPlotItem().getViewBox()
    labels = plot.roof_labels
    assert labels[0][0] == "840 TFLOP/s bf16"
    assert len(labels) == 2 or width < 284
    slope, ridge = math.log10(near.memory_bytes_per_s), math.log10(840e12 / near.memory_bytes_per_s)
    for text, place in labels:
        tight = place.adjusted(3, 4, -3, -4)
        for i in range(400):
            x = ridge * i / 400
            spot = box.mapViewToScene(QPointF(x, x + slope))
            assert not tight.contains(spot), text


@pytest.mark.parametrize("height", [185, 210, 240])
def test_the_highest_roofs_label_is_whole_in_a_low_plot(view: RooflineView, height: int) -> None:
    # Three decades between the roofs leave little above the highest.
    apart = replace(CEILINGS, flops_per_s={"bf16": 840e12, "fp32": 0.8e12})
    view.set_runs([replace(run, device=replace(run.device, ceilings=apart)) for run in RUNS[:2]], 1)
    view.resize(300, height)
    view.fill_now()
    view.grab()
    plot = view.plot
    assert plot is not None
    text, place = plot.roof_labels[0]
    assert text == "840 TFLOP/s bf16"
    room = plot.getPlotItem().getViewBox().sceneBoundingRect()
    assert room.contains(place.adjusted(4, 4, -4, -4))


def test_lines_are_as_wide_on_a_fine_screen(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    plot = RooflinePlot()
    holder = QWidget()
    qtbot.addWidget(holder)
    plot.setParent(holder)
    color = DARK.color("text")
    assert plot.line_pen(color, 1.4).widthF() == pytest.approx(1.4)
    monkeypatch.setattr(plot, "devicePixelRatioF", lambda: 2.0)
    assert plot.line_pen(color, 1.4).widthF() == pytest.approx(2.8)


@pytest.mark.parametrize("size", [(300, 440), (300, 180), (220, 160), (180, 120)], ids=str)
def test_the_bandwidth_is_written_whole_or_not_at_all(
    view: RooflineView, size: tuple[int, int]
) -> None:
    view.resize(*size)
    view.fill_now()
    view.grab()
    plot = view.findChild(RooflinePlot)
    assert isinstance(plot, RooflinePlot)
    label = next(
        item
        for item in plot.items()
        if isinstance(item, TextItem) and item.toPlainText().endswith("HBM")
    )
    QApplication.processEvents()
    view.grab()  # Painted once, it knows where it is.
    inside = plot.getPlotItem().getViewBox().sceneBoundingRect().adjusted(-1, -1, 1, 1)
    assert label.isVisible() == (size[1] > 160)
    assert not label.isVisible() or inside.contains(label.sceneBoundingRect())


def test_in_a_larger_picture_lines_are_wider(view: RooflineView) -> None:
    view.fill_now()
    plot = view.plot
    assert plot is not None

    def widths() -> list[float]:
        curves = [item for item in plot.items() if isinstance(item, PlotCurveItem)]
        return [curve.opts["pen"].widthF() for curve in curves]

    before = widths()
    image = QImage(10, 10, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    painter.scale(2, 2)
    with widened(view, painter):
        assert widths() == pytest.approx([2 * width for width in before])
    painter.end()
    assert widths() == before
    assert max(before) > 2
