"""Opening the window: what it shows first, what it does not load, how it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from explorer.recording import save_recording
from explorer.ui import app
from explorer.ui.app import Opening, has_gpu, has_gpu_node
from explorer.ui.main_window import MainWindow
from explorer.ui.store import Store
from tests.conftest import CHECKOUT
from tests.fixtures_runs import compiled_attention, cpu_attention, eager_attention
from tests.ui.fake_worker import ABILITIES

SHIPPED = "hand-made.kx"

WINDOW = """
import sys
from explorer.ui import app
start, begin = app.Preload.start, app.Opening.begin
def tell(what, names):
    heavy = [name for name in names if name in sys.modules]
    sys.stdout.write(f"{what} {heavy}\\n")
    sys.stdout.flush()
def painted(self):
    tell("painted", ("torch", "triton", "numpy", "pyqtgraph", "explorer.model.sweep",
        "explorer.model.plan_module", "explorer.ui.chain_picture"))
    start(self)
def opened(self):
    begin(self)
    tell("opened", ("torch", "triton"))
app.Preload.start, app.Opening.begin = painted, opened
sys.exit(app.run_window(None, None))
"""


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def open_window(
    qtbot: QtBot, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Opening]:
    """Makes what decides on the first picture, with a shipped recording of our own."""
    (tmp_path / "recordings").mkdir()
    shipped = tmp_path / "recordings" / SHIPPED
    save_recording(shipped, [compiled_attention(), eager_attention()])
    monkeypatch.setattr(app, "files", lambda _: tmp_path)
    monkeypatch.setattr(app, "SHIPPED_RECORDING", SHIPPED)

    def make(recording: Path | None = None, *, gpu_node: bool = False) -> Opening:
        monkeypatch.setattr(app, "has_gpu_node", lambda: gpu_node)
        window = MainWindow(store)
        qtbot.addWidget(window)
        return Opening(window, store, recording)

    return make


def test_without_a_gpu_the_shipped_recording_is_shown_as_recorded(
    store: Store, open_window: Callable[..., Opening], qtbot: QtBot
) -> None:
    open_window().begin()
    qtbot.waitUntil(lambda: bool(store.state.runs))
    shown = store.state.shown_run
    assert shown is not None
    assert shown.recorded_in == SHIPPED
    assert shown.origin == "NVIDIA H200 · 2026-01-01"
    assert 0 < store.state.playhead_us < 3810
    assert not store.state.playing


def test_with_a_gpu_nothing_is_opened_for_the_user(
    store: Store, open_window: Callable[..., Opening]
) -> None:
    opening = open_window(gpu_node=True)
    opening.begin()
    gpu = replace(ABILITIES.devices[0], device=eager_attention().device)
    store.set_abilities(replace(ABILITIES, devices=(gpu,), default_device="cuda:0"))
    assert store.state.runs == ()


def test_a_driver_without_a_gpu_is_found_out_by_the_worker(
    store: Store, open_window: Callable[..., Opening], qtbot: QtBot
) -> None:
    opening = open_window(gpu_node=True)
    opening.begin()
    assert store.state.runs == ()
    store.set_abilities(ABILITIES)
    qtbot.waitUntil(lambda: bool(store.state.runs))
    assert store.state.shown == "compile"


def test_the_recording_asked_for_comes_first(
    store: Store, open_window: Callable[..., Opening], tmp_path: Path, qtbot: QtBot
) -> None:
    path = tmp_path / "mine.kx"
    save_recording(path, [cpu_attention()])
    opening = open_window(path)
    opening.begin()
    store.set_abilities(ABILITIES)
    qtbot.waitUntil(lambda: bool(store.state.runs))
    assert [item.recorded_in for item in store.state.runs] == ["mine.kx"]


def test_a_recording_that_is_not_there_is_told(
    store: Store, open_window: Callable[..., Opening], tmp_path: Path
) -> None:
    open_window(tmp_path / "missing.kx").begin()
    assert store.state.notice is not None
    assert "missing.kx could not be read" in store.state.notice.sentence


@pytest.mark.parametrize(
    ("node", "found"), [("nvidia0", True), ("dxg", True), ("nvidiactl", False), ("null", False)]
)
def test_a_gpu_shows_as_a_device_node(tmp_path: Path, node: str, found: bool) -> None:
    (tmp_path / node).touch()
    assert has_gpu_node(tmp_path) is found


def test_a_worker_without_cuda_has_no_gpu() -> None:
    assert not has_gpu(ABILITIES)


def test_the_window_comes_up_light_and_ctrl_c_ends_it_with_its_worker(tmp_path: Path) -> None:
    # What the window keeps must not land in the user's own folder.
    environment = {
        **os.environ,
        "QT_LOGGING_RULES": "default.warning=false",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", WINDOW], cwd=CHECKOUT, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "painted []\n"
        assert process.stdout.readline() == "opened []\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert "dark" in (tmp_path / "kernel-explorer" / "window.ini").read_text()
