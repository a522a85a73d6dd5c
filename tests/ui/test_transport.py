import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QWidget
from pytestqt.qtbot import QtBot

from explorer.model.playback import play
from explorer.ui.theme import load_fonts
from explorer.ui.transport import FIT_SECONDS, Player, Transport
from explorer.ui.transport_button import Sign
from tests.fixtures_runs import compiled_attention, eager_attention, failed_run

EAGER = play([eager_attention()])


@pytest.fixture
def transport(qtbot: QtBot) -> Transport:
    load_fonts()
    made = Transport()
    qtbot.addWidget(made)
    made.resize(800, 40)
    made.show()
    made.set_playback(EAGER)
    return made


@pytest.fixture
def player(qapp: object) -> Player:
    made = Player()
    made.set_total(1000.0)
    made.set_slowdown(2000.0)
    return made


def test_time_passes_slower_by_the_factor(player: Player) -> None:
    player.advance(0.5)
    assert player.t_us == 250.0
    player.set_slowdown(10_000.0)
    player.advance(0.5)
    assert player.t_us == 300.0


def test_it_stops_at_the_end(player: Player, qtbot: QtBot) -> None:
    player.play()
    assert player.is_playing
    with qtbot.waitSignal(player.playing_changed) as told:
        player.advance(60.0)
    assert told.args == [False]
    assert player.t_us == 1000.0
    assert not player.is_playing


def test_it_begins_again_only_when_told_to(player: Player) -> None:
    player.loops = True
    player.seek(900.0)
    player.advance(0.5)
    assert player.t_us == pytest.approx(150.0)


def test_play_at_the_end_starts_over(player: Player) -> None:
    player.seek(1000.0)
    player.play()
    assert player.t_us == 0.0
    player.pause()


def test_seeking_stays_within_the_run(player: Player) -> None:
    player.seek(-4.0)
    assert player.t_us == 0.0
    player.seek(4e9)
    assert player.t_us == 1000.0


def test_nothing_plays_without_a_run(player: Player) -> None:
    player.set_total(0.0)
    player.play()
    assert not player.is_playing


def test_the_timer_moves_the_moment(transport: Transport, qtbot: QtBot) -> None:
    with qtbot.waitSignals([transport.time_changed] * 3):
        transport.toggle()
    assert 0 < transport.player.t_us < 5350.0
    transport.toggle()
    assert not transport.player.is_playing


def test_steps_go_from_kernel_to_kernel(transport: Transport) -> None:
    starts = [slot.start_us for slot in EAGER.lanes[0].slots]
    for start in starts[1:]:
        transport.next_button.click()
        assert transport.player.t_us == start
    transport.next_button.click()
    assert transport.player.t_us == 5350.0
    for start in reversed(starts):
        transport.previous_button.click()
        assert transport.player.t_us == start
    transport.previous_button.click()
    assert transport.player.t_us == 0.0


def test_back_from_within_a_kernel_goes_to_its_start(transport: Transport) -> None:
    starts = [slot.start_us for slot in EAGER.lanes[0].slots]
    transport.seek(starts[3] + 100.0)
    transport.step(-1)
    assert transport.player.t_us == starts[3]


def test_two_runs_are_stepped_through_together(transport: Transport) -> None:
    both = play([eager_attention(), compiled_attention()])
    transport.set_playback(both)
    starts = sorted({slot.start_us for lane in both.lanes for slot in lane.slots})
    visited = [0.0]
    while visited[-1] < both.total_us:
        transport.step(1)
        visited.append(transport.player.t_us)
    assert visited == [*starts, both.total_us]


@pytest.mark.parametrize("on_slider", [False, True])
def test_keys(transport: Transport, on_slider: bool) -> None:
    target: QWidget = transport.slider if on_slider else transport
    starts = [slot.start_us for slot in EAGER.lanes[0].slots]
    QTest.keyClick(target, Qt.Key.Key_Right)
    assert transport.player.t_us == starts[1]
    QTest.keyClick(target, Qt.Key.Key_Left)
    assert transport.player.t_us == 0.0
    QTest.keyClick(target, Qt.Key.Key_End)
    assert transport.player.t_us == 5350.0
    QTest.keyClick(target, Qt.Key.Key_Home)
    assert transport.player.t_us == 0.0
    QTest.keyClick(target, Qt.Key.Key_Space)
    assert transport.player.is_playing
    QTest.keyClick(target, Qt.Key.Key_Space)
    assert not transport.player.is_playing


def test_another_widget_can_lend_its_keys(transport: Transport, qtbot: QtBot) -> None:
    other = QWidget()
    qtbot.addWidget(other)
    transport.listen_to(other)
    QTest.keyClick(other, Qt.Key.Key_End)
    assert transport.player.t_us == 5350.0


def test_keys_with_modifiers_are_left_to_the_window(transport: Transport) -> None:
    QTest.keyClick(transport, Qt.Key.Key_End, Qt.KeyboardModifier.ControlModifier)
    assert transport.player.t_us == 0.0


def test_typing_elsewhere_is_not_taken(transport: Transport, qtbot: QtBot) -> None:
    line = QLineEdit()
    qtbot.addWidget(line)
    QTest.keyClick(line, Qt.Key.Key_Space)
    assert line.text() == " "
    assert not transport.player.is_playing


def test_the_slider_scrubs_and_follows(transport: Transport, qtbot: QtBot) -> None:
    with qtbot.waitSignal(transport.time_changed) as told:
        transport.slider.setValue(2500)
    assert told.args == [5350.0 / 4]
    assert transport.label.text() == "1.34 / 5.35 ms"
    transport.seek(2675.0)
    assert transport.slider.value() == 5000
    assert transport.player.t_us == 2675.0


def test_the_run_fits_ten_seconds_unless_a_factor_is_chosen(
    transport: Transport, qtbot: QtBot
) -> None:
    assert transport.slowdown == FIT_SECONDS * 1e6 / 5350.0
    assert transport.speed.currentText() == "in 10 s · 1,870× slower"
    place = transport.speed.findData(5000.0)
    with qtbot.waitSignal(transport.slowdown_changed) as told:
        transport.speed.setCurrentIndex(place)
    assert told.args == [5000.0]
    assert transport.speed.currentText() == "5,000× slower"
    transport.player.advance(1.0)
    assert transport.player.t_us == pytest.approx(200.0)
    # The choice stays when another run comes.
    transport.set_playback(play([compiled_attention()]))
    assert transport.slowdown == 5000.0
    assert transport.player.t_us == 0.0


def test_the_play_button_says_what_it_will_do(transport: Transport) -> None:
    assert transport.play_button.accessibleName() == "Play"
    transport.play_button.click()
    assert transport.play_button.accessibleName() == "Pause"
    shown = [transport.play_button.sign]
    transport.play_button.click()
    shown.append(transport.play_button.sign)
    assert shown == [Sign.PAUSE, Sign.PLAY]


def test_everything_has_a_name(transport: Transport) -> None:
    for part in (
        transport.previous_button,
        transport.play_button,
        transport.next_button,
        transport.slider,
        transport.speed,
    ):
        assert part.accessibleName()


def test_without_a_run_nothing_can_be_pressed(transport: Transport) -> None:
    for playback in (None, play([failed_run()]), play([])):
        transport.set_playback(playback)
        assert transport.label.text() == "no run"
        assert not transport.play_button.isEnabled()
        assert not transport.slider.isEnabled()
        assert transport.slowdown == 0.0
        QTest.keyClick(transport, Qt.Key.Key_Space)
        assert not transport.player.is_playing


def test_another_run_stops_the_clock(transport: Transport) -> None:
    transport.toggle()
    transport.set_playback(play([compiled_attention()]))
    assert not transport.player.is_playing
    assert transport.player.t_us == 0.0
