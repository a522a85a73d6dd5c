from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QHelpEvent, QImage, QPainter
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from explorer.ui.scene.draw import SceneOptions, draw, layout_of, playback_of, still_picture
from explorer.ui.scene.hit import Hit
from explorer.ui.scene.layout import Lane
from explorer.ui.scene.still_picture import StillPicture
from explorer.ui.scene.words import tooltip
from explorer.ui.scene_view import SceneView
from explorer.ui.theme import DARK, LIGHT, load_fonts
from explorer.ui.turns import Turns
from tests.fixtures_runs import (
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    sdpa_attention,
)


@pytest.fixture
def turns(qtbot: QtBot) -> Iterator[Turns]:
    made = Turns()
    yield made
    made.finish()


@pytest.fixture
def view(qtbot: QtBot, turns: Turns) -> SceneView:
    load_fonts()
    made = SceneView(turns=turns)
    qtbot.addWidget(made)
    made.resize(823, 571)
    made.show()
    return made


def lane_of(view: SceneView) -> Lane:
    return layout_of(view.playback, QRectF(view.rect()), view.t_us).lanes[0]


def test_it_paints_the_pure_scene(view: SceneView) -> None:
    run = eager_attention()
    view.set_runs([run], recorded=True)
    view.set_slowdown(500.0)
    view.set_time(1600.0)
    shown = view.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    image = QImage(823, 571, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    options = SceneOptions(recorded=True, slowdown=500.0)
    draw(painter, QRectF(0, 0, 823, 571), (run,), 1600.0, DARK, options)
    painter.end()
    assert shown == image


@pytest.mark.parametrize("ratio", [1.0, 1.5])
def test_what_stands_still_can_be_drawn_in_slices(qtbot: QtBot, ratio: float) -> None:
    runs = (compiled_attention(), eager_attention())
    whole, sliced = (
        still_picture(QRectF(20, 10, 840, 505), runs, 1600.0, DARK, SceneOptions(), ratio)
        for _ in range(2)
    )
    n_slices = 1
    while (image := sliced.advance(0.0)) is None:
        n_slices += 1
    assert n_slices > 20
    assert image == whole.finish()
    assert sliced.key == whole.key


def test_other_runs_appear_when_they_are_drawn(view: SceneView, turns: Turns) -> None:
    view.set_runs([eager_attention()])
    before = view.grab().toImage()
    view.set_runs([compiled_attention()])
    view.set_time(1600.0)
    assert not turns.is_idle
    turns.finish()
    ahead = view.grab().toImage()
    assert ahead != before
    view.resize(view.width() + 1, view.height())
    view.resize(view.width() - 1, view.height())
    assert view.grab().toImage() == ahead


def test_states_to_come_are_drawn_ahead(
    view: SceneView, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    view.set_runs([eager_attention()])
    turns.finish()
    drawn: list[float] = []
    advance = StillPicture.advance

    def counted(self: StillPicture, budget_s: float) -> QImage | None:
        drawn.append(budget_s)
        return advance(self, budget_s)

    monkeypatch.setattr(StillPicture, "advance", counted)
    for t_us in view.playback.lanes[0].change_times()[1:3]:
        view.set_time(t_us)
        assert view.grab().toImage() == fresh(view)
        assert not any(budget_s > 1 for budget_s in drawn), "drawn while it was painted"
        turns.finish()
    # Too far on to be drawn ahead: it is drawn as it is painted.
    view.set_time(view.playback.total_us)
    view.grab()
    assert any(budget_s > 1 for budget_s in drawn)


def fresh(view: SceneView) -> QImage:
    """The view's picture painted by the pure function, without anything kept."""
    image = QImage(view.size(), QImage.Format.Format_RGB32)
    painter = QPainter(image)
    runs = tuple(lane.run for lane in view.playback.lanes)
    draw(painter, QRectF(view.rect()), runs, view.t_us, DARK)
    painter.end()
    return image


def test_it_repaints_with_time_and_theme(view: SceneView) -> None:
    view.set_runs([eager_attention()])
    pictures = []
    for t_us in (100.0, 101.0, 3000.0):
        view.set_time(t_us)
        pictures.append(view.grab().toImage())
    view.set_theme(LIGHT)
    pictures.append(view.grab().toImage())
    assert all(pictures[i] != pictures[j] for i in range(4) for j in range(i))


def test_a_screen_reader_is_told_the_state(view: SceneView) -> None:
    assert view.accessibleName() == "Memory traffic"
    assert "No run to show yet" in view.accessibleDescription()
    view.set_runs([eager_attention()])
    assert "Kernel 1 of 6, qk, 0 % done" in view.accessibleDescription()
    view.set_time(3000.0)
    assert "Kernel 4 of 6, softmax" in view.accessibleDescription()
    view.set_time(5350.0)
    assert "finished" in view.accessibleDescription()


def test_pointing_at_a_kernel_says_which(view: SceneView, qtbot: QtBot) -> None:
    view.set_runs([eager_attention()])
    card = lane_of(view).cards[3]
    with qtbot.waitSignal(view.kernel_hovered) as told:
        QTest.mouseMove(view, card.rect.center().toPoint())
    assert told.args == [0, 3]
    with qtbot.waitSignal(view.kernel_hovered) as told:
        QTest.mouseMove(view, QPoint(3, 3))
    assert told.args == [-1, -1]


def test_clicking_a_kernel_says_which(view: SceneView, qtbot: QtBot) -> None:
    view.set_runs([eager_attention(), compiled_attention()])
    right = layout_of(view.playback, QRectF(view.rect()), view.t_us).lanes[1]
    card = right.cards[-1]
    with qtbot.waitSignal(view.kernel_clicked) as told:
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=card.rect.center().toPoint())
    assert told.args == [1, card.slot.index]
    with qtbot.assertNotEmitted(view.kernel_clicked):
        QTest.mouseClick(view, Qt.MouseButton.LeftButton, pos=QPoint(3, 3))


def test_return_chooses_the_kernel_under_way(view: SceneView, qtbot: QtBot) -> None:
    view.set_runs([eager_attention()])
    view.set_time(3000.0)
    assert view.focusPolicy() == Qt.FocusPolicy.StrongFocus
    with qtbot.waitSignal(view.kernel_clicked) as told:
        QTest.keyClick(view, Qt.Key.Key_Return)
    assert told.args == [0, 3]


def test_the_keyboards_place_is_ringed(view: SceneView) -> None:
    view.set_runs([eager_attention()])
    view.clearFocus()
    plain = view.grab().toImage()
    view.setFocus(Qt.FocusReason.MouseFocusReason)
    assert view.grab().toImage() == plain
    view.clearFocus()
    view.setFocus(Qt.FocusReason.TabFocusReason)
    assert view.grab().toImage() != plain


def test_other_runs_begin_at_their_start(view: SceneView) -> None:
    view.set_runs([eager_attention()])
    view.set_time(3000.0)
    view.set_runs([sdpa_attention()])
    assert view.t_us == 0.0
    assert view.playback.total_us == 1140.0
    view.set_runs([])
    assert view.hit_at(QPointF(100, 100)) is None
    assert "No run" in view.accessibleDescription()


def test_a_failed_run_has_nothing_to_point_at(view: SceneView) -> None:
    view.set_runs([failed_run()])
    view.grab()
    assert view.hit_at(QPointF(400, 300)) is None
    assert "out of memory" in view.accessibleDescription()


def test_a_tooltip_appears_over_a_tensor_and_goes_elsewhere(view: SceneView) -> None:
    view.set_runs([eager_attention()])
    view.set_time(1600.0)
    point = lane_of(view).boxes["mask"].block.center().toPoint()
    QApplication.sendEvent(
        view, QHelpEvent(QHelpEvent.Type.ToolTip, point, view.mapToGlobal(point))
    )
    assert "33.6 MB" in QToolTip.text()
    QToolTip.hideText()


def test_tooltips_have_numbers_with_pedigrees() -> None:
    run = eager_attention()
    playback = playback_of((run,))
    slot = playback.lanes[0].slots[2]
    reread = next(s for s in slot.traffic.streams if s.kind.value == "re-read")
    words = tooltip(Hit(lane=0, rect=QRectF(), slot=slot, stream=reread), playback, 0.0)
    assert "re-read · 1.04 GB read by Kernel 3" in words
    assert "asked for more than once" in words
    assert "all reads of the launch: 2.15 GB counted" in words
    assert "105 dots of 10.0 MB, the last one smaller" in words
    kernel = tooltip(Hit(lane=0, rect=QRectF(), slot=slot), playback, 0.0)
    assert kernel.startswith("<b>Kernel 3: add</b>")
    assert "reads scaled: 1.07 GB" in kernel
    assert "counted" in kernel
    tensor = tooltip(Hit(lane=0, rect=QRectF(), tensor=run.tensor("masked")), playback, 0.0)
    assert "bf16 [32 × 4,096 × 4,096], intermediate" in tensor
    assert "written by Kernel 3" in tensor
    assert "read by Kernel 4" in tensor
    assert "not yet there" in tensor
    cache = tooltip(Hit(lane=0, rect=QRectF(), is_cache=True), playback, 0.0)
    assert "served 2.42 GB of requests in this run, counted" in cache
    memory = tooltip(Hit(lane=0, rect=QRectF(), is_memory=True), playback, 0.0)
    assert memory.startswith("<b>HBM</b>")
    assert "tensors in use 1.16 GB, at most 2.77 GB, modelled" in memory


def test_a_tooltip_lists_loop_nests_without_times() -> None:
    run = cpu_attention()
    playback = playback_of((run,))
    slot = playback.lanes[0].slots[1]
    words = tooltip(Hit(lane=0, rect=QRectF(), slot=slot), playback, 0.0)
    assert words.count("no time of its own") == 3
    assert "loop 3: softmax + dropout" in words
    assert "0 bytes: scaled, masked, probs stay on chip" in words


def test_names_from_a_file_are_no_markup() -> None:
    run = eager_attention()
    playback = playback_of((run,))
    hit = Hit(lane=0, rect=QRectF(), slot=playback.lanes[0].slots[1])
    assert "vectorized_elementwise_kernel&lt;4, MulScalar&gt;" in tooltip(hit, playback, 0.0)
