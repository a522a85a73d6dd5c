"""The whole window: wiring, keys, files, faults, names for screen readers."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QRect, QRectF, Qt, QUrl
from PySide6.QtGui import QAccessible, QDragEnterEvent, QDropEvent, QImage
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from explorer.model.strategies import parse_spec, specs_for_every_chain
from explorer.recording import load_recording, save_recording
from explorer.ui.main_window import MainWindow
from explorer.ui.scene.draw import layout_of
from explorer.ui.scene_view import SceneView
from explorer.ui.session import Session
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from explorer.ui.theme import DARK, LIGHT
from tests.fixtures_runs import (
    compiled_attention,
    cpu_attention,
    eager_attention,
    sdpa_attention,
)
from tests.ui.conftest import MakeWorker
from tests.ui.drive import click, press
from tests.ui.test_worker_process import is_alive

WAIT_MS = 10_000
CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def show(qtbot: QtBot, store: Store) -> Callable[..., MainWindow]:
    """Opens the window round the store and waits until it is on the screen."""

    def make(session: Session | None = None) -> MainWindow:
        window = MainWindow(store, session)
        qtbot.addWidget(window)
        with qtbot.waitSignal(window.first_painted):
            window.show()
        return window

    return make


@pytest.fixture
def window(store: Store, show: Callable[..., MainWindow]) -> MainWindow:
    """The window with three runs of a recording."""
    runs = [eager_attention(), compiled_attention(), sdpa_attention()]
    store.add_runs(runs, recorded_in="attention-h200.kx")
    return show()


@pytest.fixture
def live(
    store: Store, show: Callable[..., MainWindow], make_worker: MakeWorker
) -> Iterator[MainWindow]:
    """The window with a worker."""
    session = Session(store, make_worker())
    window = show(session)
    session.start()
    yield window
    session.close()


def focusable(window: QWidget) -> list[QWidget]:
    """Every widget that Tab or a click can reach."""
    return [
        widget
        for widget in window.findChildren(QWidget)
        if widget.focusPolicy() is not Qt.FocusPolicy.NoFocus and not is_viewport(widget)
    ]


def is_viewport(widget: QWidget) -> bool:
    """Whether it is the inside of a scroll area, which has the name."""
    parent = widget.parentWidget()
    return isinstance(parent, QAbstractScrollArea) and parent.viewport() is widget


def accessible_name(widget: QWidget) -> str:
    interface = QAccessible.queryAccessibleInterface(widget)
    return interface.text(QAccessible.Text.Name) if interface else ""


def described(widget: QWidget) -> str:
    return f"{type(widget).__name__} in {type(widget.parent()).__name__}"


class TestSight:
    def test_it_fits_a_laptop_and_a_projector(self, window: MainWindow) -> None:
        for width, height in ((1440, 900), (1920, 1080), (1280, 720)):
            window.resize(width, height)
            assert (window.width(), window.height()) == (width, height)

    def test_at_1440x900_nothing_important_is_scrolled(
        self, store: Store, window: MainWindow
    ) -> None:
        for spec in specs_for_every_chain():
            if spec not in ("eager", "compile", "sdpa"):
                run = compiled_attention(spec)
                store.add_runs([replace(run, strategy=parse_spec(spec))], show=False)
        rows = window.strategies.rows
        assert all(row.text_shown.time for spec, row in rows.items() if spec != "plan")
        QApplication.processEvents()
        assert window.graph.view.visibleRegion().boundingRect() == window.graph.view.rect()
        for row in window.strategies.rows.values():
            assert row.visibleRegion().boundingRect() == row.rect(), row.spec

    @pytest.mark.parametrize("size", [(1120, 690), (1280, 720), (1440, 900)], ids=str)
    def test_the_scene_has_room_for_readable_text(
        self, window: MainWindow, size: tuple[int, int]
    ) -> None:
        window.resize(*size)
        scene = window.findChild(SceneView)
        assert isinstance(scene, SceneView)
        layout = layout_of(scene.playback, QRectF(scene.rect()), 0.0, False)
        assert layout.u >= 0.885, "13 units are 12 pixels then"

    def test_a_recorded_run_is_badged_in_the_scene(self, window: MainWindow) -> None:
        assert color_share(headline(window), DARK.write) > 0.03
        assert "RECORDED" in window.status.source
        assert "NVIDIA H200" in window.status.source

    def test_a_run_measured_here_is_not(self, store: Store, window: MainWindow) -> None:
        store.add_runs([cpu_attention()])
        assert color_share(headline(window), DARK.write) < 0.003
        assert "RECORDED" not in window.status.source
        store.compare_run("eager")
        assert "RECORDED" not in window.status.source

    def test_side_by_side_only_what_was_recorded_is_badged(
        self, store: Store, window: MainWindow
    ) -> None:
        store.add_runs([cpu_attention()])
        store.compare_run("eager")
        strip = headline(window)
        half = strip.width() // 2
        measured, recorded = strip.copy(0, 0, half, 34), strip.copy(half, 0, half, 34)
        assert color_share(measured, DARK.write) < 0.003
        assert color_share(recorded, DARK.write) > 0.05

    def test_both_themes_reach_every_part(self, store: Store, window: MainWindow) -> None:
        for name, theme in (("light", LIGHT), ("dark", DARK)):
            store.set_theme(name)
            for part in (window.graph, window.strategies, window.scene.scene, window.details):
                image = part.grab().toImage()
                assert color_share(image, theme.panel) > 0.2, (name, type(part).__name__)

    def test_every_focusable_widget_has_a_name(self, window: MainWindow) -> None:
        nameless = [described(w) for w in focusable(window) if not accessible_name(w).strip()]
        assert "; ".join(nameless) == ""

    def test_tab_reaches_every_control(self, window: MainWindow) -> None:
        window.activateWindow()
        reached = set()
        widget: QWidget | None = window.header.chain
        for _ in range(500):
            assert widget is not None
            reached.add(widget)
            widget = widget.nextInFocusChain()
        wanted = (window.header.run, window.graph.view, window.strategies.rows["sdpa"],
                  window.strategies.rows["sdpa"].box, window.scene.scene,
                  window.scene.transport.slider, window.details.timeline)  # fmt: skip
        assert set(wanted) <= reached

    def test_tab_goes_through_the_panels_as_one_reads(self, window: MainWindow) -> None:
        order: list[QWidget] = []
        widget: QWidget | None = window.header.chain
        while widget is not None and widget not in order:
            order.append(widget)
            widget = widget.nextInFocusChain()
        stops = (window.header.run, window.graph.view, window.strategies.rows["eager"],
                 window.scene.scene, window.scene.transport.play_button, window.details.tabs,
                 window.details.timeline, window.status.more_button)  # fmt: skip
        places = [order.index(stop) for stop in stops]
        assert places == sorted(places)


def headline(window: MainWindow) -> QImage:
    """The strip at the top of the scene."""
    scene = window.scene.scene
    return scene.grab(QRect(0, 0, scene.width(), 34)).toImage()


def color_share(image: QImage, name: str) -> float:
    """Share of pixels of exactly that colour, on a grid of samples."""
    samples = [
        image.pixelColor(x, y).name().upper()
        for x in range(0, image.width(), 3)
        for y in range(0, image.height(), 3)
    ]
    return samples.count(name.upper()) / len(samples)


class TestTime:
    def test_the_playhead_is_one_for_all_views(self, store: Store, window: MainWindow) -> None:
        store.show_run("compile")
        store.set_playhead(1000.0)
        assert window.scene.scene.t_us == 1000.0
        assert window.scene.transport.player.t_us == 1000.0
        window.scene.transport.step(1)
        assert store.state.playhead_us == window.scene.scene.t_us > 1000.0

    def test_playing_moves_the_store(self, qtbot: QtBot, store: Store, window: MainWindow) -> None:
        press(window.scene.scene, Qt.Key.Key_Space)
        assert store.state.playing
        qtbot.waitUntil(lambda: store.state.playhead_us > 0)
        store.set_playing(False)
        assert not window.scene.transport.player.is_playing

    def test_another_run_begins_at_its_start_and_goes_on_playing(
        self, store: Store, window: MainWindow
    ) -> None:
        store.set_playhead(500.0)
        store.set_playing(True)
        store.show_run("sdpa")
        assert window.scene.transport.player.is_playing
        assert store.state.playhead_us == 0.0
        assert store.state.playing
        store.set_playing(False)

    def test_renaming_keeps_the_moment(self, store: Store, window: MainWindow) -> None:
        store.set_playhead(700.0)
        store.rename_run("eager", "As written")
        assert window.scene.scene.t_us == store.state.playhead_us == 700.0

    def test_comparing_keeps_the_moment(self, store: Store, window: MainWindow) -> None:
        store.set_playhead(700.0)
        store.compare_run("sdpa")
        assert len(window.scene.scene.playback.lanes) == 2
        assert window.scene.scene.t_us == store.state.playhead_us == 700.0

    def test_an_op_leads_to_its_launch_in_every_view(
        self, store: Store, window: MainWindow
    ) -> None:
        store.show_run("compile")
        rect = window.graph.view.layout_now().op_rect(3)
        click(window.graph.view, rect.center())
        assert store.state.launch == 2
        assert store.state.playhead_us == pytest.approx(
            window.scene.scene.playback.lanes[0].slots[2].start_us
        )
        assert window.details.timeline.selected.launch == 2
        window.details.tabs.setCurrentIndex(1)
        assert window.details.kernels.currentIndex().row() == 2
        store.pick_launch(0)
        assert window.details.kernels.currentIndex().row() == 0

    def test_a_lane_of_the_timelines_leads_to_its_run(
        self, store: Store, window: MainWindow
    ) -> None:
        window.details.timeline.launch_selected.emit(2, 0)
        assert store.state.shown == "sdpa"
        assert store.state.launch == 0
        window.details.timeline.time_requested.emit(1, 42.0)
        assert store.state.shown == "compile"
        assert store.state.playhead_us == 42.0


class TestFiles:
    def drop(self, window: MainWindow, path: Path) -> bool:
        """Drag a file onto the window and let go; returns whether it was welcome."""
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        arguments = (Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
                     Qt.KeyboardModifier.NoModifier)  # fmt: skip
        enter = QDragEnterEvent(QPoint(5, 5), *arguments)
        window.dragEnterEvent(enter)
        window.dropEvent(QDropEvent(QPointF(5, 5), *arguments))
        return enter.isAccepted()

    def test_a_dropped_recording_is_added_and_shown(
        self, store: Store, window: MainWindow, tmp_path: Path
    ) -> None:
        path = tmp_path / "cpu.kx"
        save_recording(path, [cpu_attention()])
        assert self.drop(window, path)
        assert store.state.shown == "cpu-compile"
        assert len(store.state.runs) == 4
        assert store.state.runs[-1].recorded_in == "cpu.kx"
        assert "RECORDED" in window.status.source

    def test_a_damaged_file_is_told_and_nothing_is_lost(
        self, store: Store, window: MainWindow, tmp_path: Path
    ) -> None:
        path = tmp_path / "broken.kx"
        save_recording(path, [cpu_attention()])
        path.write_bytes(path.read_bytes()[:-40])
        self.drop(window, path)
        assert "broken.kx" in window.message.sentence
        assert window.message.isVisible()
        assert len(store.state.runs) == 3
        assert store.state.shown == "eager"

    def test_a_foreign_file_is_told(self, window: MainWindow, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("hello")
        self.drop(window, path)
        assert "notes.txt is not a recording" in window.message.sentence

    def test_saved_runs_open_again_with_their_names(
        self,
        store: Store,
        window: MainWindow,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        store.rename_run("sdpa", "Best")
        target = tmp_path / "mine"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
        window.details.runs.save()
        assert "3 runs saved" in window.message.sentence
        saved = load_recording(tmp_path / "mine.kx")
        assert [run.label for run in saved] == [None, None, "Best"]

    def test_a_folder_that_is_not_there(
        self, store: Store, window: MainWindow, tmp_path: Path
    ) -> None:
        path = tmp_path / "nowhere" / "runs.kx"
        assert not window.files.save_runs(path, ["eager"])
        assert "could not be written" in window.message.sentence
        assert store.state.notice is not None
        assert store.state.notice.is_error

    def test_export_writes_a_sharp_picture(
        self, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = tmp_path / "window.png"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
        click(window.header.export)
        image = QImage(str(target))
        assert image.width() == 2 * window.width()
        assert str(target) in window.message.sentence

    def test_the_open_button_takes_several(
        self,
        store: Store,
        window: MainWindow,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        path = tmp_path / "cpu.kx"
        save_recording(path, [cpu_attention()])
        names = [str(path), str(tmp_path / "missing.kx")]
        monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *_: (names, ""))
        click(window.header.open)
        assert store.state.shown == "cpu-compile"
        assert "missing.kx" in window.message.sentence


class TestPlan:
    def test_keys_take_edits_back_and_do_them_again(self, store: Store, window: MainWindow) -> None:
        shift = Qt.KeyboardModifier.ShiftModifier
        store.plan.set_link("scale", "mask", fused=True)
        drawn = store.state.plans["attention"]
        store.remove_run("sdpa")
        press(window, Qt.Key.Key_Z, CTRL)
        assert len(store.state.runs) == 3
        press(window, Qt.Key.Key_Z, CTRL)
        assert store.state.plans == {}
        press(window, Qt.Key.Key_Z, CTRL | shift)
        assert store.state.plans["attention"] == drawn
        press(window, Qt.Key.Key_Y, CTRL)
        assert len(store.state.runs) == 2

    def test_the_plans_text_undoes_its_own_typing(self, store: Store, window: MainWindow) -> None:
        store.plan.set_link("scale", "mask", fused=True)
        field = window.graph.text.field
        window.activateWindow()
        field.setFocus()
        press(field, Qt.Key.Key_End)
        press(field, Qt.Key.Key_X)
        press(field, Qt.Key.Key_Z, CTRL)
        assert store.state.plans["attention"].shares("scale", "mask")

    def test_escape_ends_asking_inductor(
        self, qtbot: QtBot, store: Store, live: MainWindow
    ) -> None:
        qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
        object.__setattr__(store.state.parameters, "values", {"way": "hang"})
        live.graph.inductor_requested.emit()
        assert store.state.asking
        assert live.header.run.isVisible()
        press(live, Qt.Key.Key_Escape)
        assert not store.state.asking

    def test_a_plan_that_ran_is_exported_as_a_module(
        self,
        store: Store,
        window: MainWindow,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        target = tmp_path / "mine"
        monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(target), ""))
        store.plan.set_link("scale", "mask", fused=True)
        window.graph.export_action.trigger()
        assert "Run measures it" in window.message.sentence
        text = store.state.plans["attention"].text
        strategy = replace(parse_spec(f"plan:{text}"), plan=text)
        store.add_runs([replace(compiled_attention("planned"), strategy=strategy)])
        window.graph.export_action.trigger()
        assert "explorer.backend" in (tmp_path / "mine.py").read_text()
        assert "mine.py" in window.message.sentence


class TestRunning:
    def test_run_by_key_and_by_button(self, qtbot: QtBot, store: Store, live: MainWindow) -> None:
        press(live, Qt.Key.Key_R, CTRL)
        assert store.state.worker.phase is WorkerPhase.BUSY
        assert live.header.cancel.isVisible()
        qtbot.waitUntil(lambda: len(store.state.runs) == 2, timeout=WAIT_MS)
        qtbot.waitUntil(live.header.run.isVisible, timeout=WAIT_MS)
        click(live.header.run)
        qtbot.waitUntil(lambda: len(store.state.runs) == 4, timeout=WAIT_MS)
        assert live.strategies.rows["eager"].text_shown.time
        assert len(live.scene.scene.playback.lanes) == 1

    def hang(self, qtbot: QtBot, store: Store, live: MainWindow) -> int:
        """Start a run that never ends; returns the id of what it started."""
        qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
        object.__setattr__(store.state.parameters, "values", {"way": "hang"})
        click(live.header.run)

        def sentence() -> str:
            return store.state.progress.sentence if store.state.progress else ""

        qtbot.waitUntil(lambda: sentence().startswith("grandchild"), timeout=WAIT_MS)
        return int(sentence().split()[1])

    def test_escape_cancels_within_a_second(
        self, qtbot: QtBot, store: Store, live: MainWindow
    ) -> None:
        grandchild = self.hang(qtbot, store, live)
        assert "25 %" in live.status.stage
        before_s = time.monotonic()
        press(live, Qt.Key.Key_Escape)
        assert live.header.run.isVisible()
        assert "Cancelled" in live.message.sentence
        qtbot.waitUntil(lambda: not is_alive(grandchild), timeout=WAIT_MS)
        assert time.monotonic() - before_s < 1.0

    def test_closing_during_a_compile_ends_everything_in_time(
        self, qtbot: QtBot, store: Store, live: MainWindow
    ) -> None:
        grandchild = self.hang(qtbot, store, live)
        before_s = time.monotonic()
        live.close()
        qtbot.waitUntil(lambda: not is_alive(grandchild), timeout=WAIT_MS)
        assert time.monotonic() - before_s < 3.0

    def test_the_window_is_usable_before_the_worker_is_up(
        self, store: Store, show: Callable[..., MainWindow], make_worker: MakeWorker
    ) -> None:
        session = Session(store, make_worker("never-ready"))
        window = show(session)
        session.start()
        assert window.header.worker.text() == "● worker starting"
        assert window.header.run.isEnabled()
        click(window.strategies.rows["sdpa"].box)
        assert "sdpa" in store.state.strategies
        window.close()
