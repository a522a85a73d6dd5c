"""Opens the window: style and fonts first, the worker and the pictures once it is on screen."""

import signal
import socket
import sys
from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication

from explorer.model.device import Abilities, DeviceKind
from explorer.ui.main_window import MainWindow, prepare_application
from explorer.ui.preload import Preload
from explorer.ui.session import Session
from explorer.ui.settings import Settings, settings_path
from explorer.ui.store import Store
from explorer.ui.worker_process import WorkerProcess
from explorer.worker.client import worker_command, worker_environment

if TYPE_CHECKING:
    from explorer.model.run import Run

SHIPPED_RECORDING = "attention-h200.kx"
SCENE, DETAILS, PLOT = (
    f"explorer.ui.{name}" for name in ("scene_panel", "details_panel", "roofline_plot")
)
"""Modules that bring numpy and pyqtgraph, in the order in which they are needed."""
PLOT_DELAY_MS = 150
"""For the scene to be drawn before the plot's import slows it down."""


def run_window(recording: Path | None, worker_python: Path | None) -> int:
    """Open the window and stay until it is closed.

    Args:
        recording: Open this one; None for the shipped one where there is no GPU.
        worker_python: Python with torch for the worker; None for the active environment's.

    Returns:
        The exit code.

    Raises:
        UsageError: ``worker_python`` cannot be run.
    """
    command = worker_command(worker_python)
    application = QApplication(sys.argv[:1])
    prepare_application(application)
    settings = Settings(settings_path())
    store = Store()
    store.set_theme(settings.theme or store.state.theme)
    worker = WorkerProcess(command, worker_environment())
    session = Session(store, worker)
    window = MainWindow(store, session, settings=settings, complete=False)
    opening = Opening(window, store, recording)
    window.first_painted.connect(opening.start)
    window.first_painted.connect(session.start)
    window.show()
    with_signals = _CloseOnSignal(window.close)
    code = application.exec()
    with_signals.restore()
    session.close()
    opening.wait()
    return code


class Opening(QObject):
    """Fills the window: scene and details, then a recording, then the plot.

    The recording is the one asked for, or the shipped one where there is no GPU.
    """

    def __init__(self, window: MainWindow, store: Store, recording: Path | None) -> None:
        super().__init__(window)
        self._window = window
        self._store = store
        self._recording = recording
        # One after the other: what is made of the first should not wait for the second's import.
        self._pictures, self._plot = Preload((SCENE, DETAILS), self), Preload((PLOT,), self)
        self._pictures.imported.connect(self._on_imported)
        self._plot.imported.connect(self._on_imported)
        store.abilities_changed.connect(self._on_abilities)

    def start(self) -> None:
        """Begin, once the window is on the screen."""
        self._pictures.start()

    def wait(self) -> None:
        """Stay until nothing is imported any more."""
        self._pictures.wait()
        self._plot.wait()

    def _on_imported(self, name: str) -> None:
        if name == DETAILS:
            self._window.complete()
            # In a later turn each, for clicks to get in between.
            self._window.turns.soon(self, self.begin)
            QTimer.singleShot(PLOT_DELAY_MS, self, self._plot.start)
        elif name == PLOT:
            self._window.results.fill()

    def begin(self) -> None:
        """Open what can be decided without the worker."""
        if self._recording is not None:
            self._open(self._recording)
        elif not has_gpu_node():
            self._open_shipped()

    def _on_abilities(self) -> None:
        abilities = self._store.state.abilities
        if self._recording is None and abilities is not None and not has_gpu(abilities):
            self._open_shipped()

    def _open_shipped(self) -> None:
        if self._store.state.runs:
            return
        with as_file(files("assets") / "recordings" / SHIPPED_RECORDING) as path:
            if path.exists():
                self._open(path, is_asked_for=False)

    def _open(self, path: Path, *, is_asked_for: bool = True) -> None:
        runs = self._window.files.read_recording(path)
        if runs:
            # In a later turn, for clicks to get in between.
            self._window.turns.soon(
                "recording", lambda: self._show(path, runs, is_asked_for=is_asked_for)
            )

    def _show(self, path: Path, runs: "Sequence[Run]", *, is_asked_for: bool) -> None:
        if self._store.state.runs and not is_asked_for:
            return
        self._window.files.show_recording(path, runs, is_asked_for=is_asked_for)
        from explorer.ui.export_views import choose_shown, telling_moment_us

        items = self._store.state.runs
        place = choose_shown([item.run for item in items])
        if place >= 0 and self._store.state.compared is None:
            self._store.show_run(items[place].key)
        shown = self._store.state.shown_run
        if shown is not None:
            # At the very start nothing has moved yet: the first picture should show something.
            self._store.set_playhead(telling_moment_us(shown.run) or 0.0)


def has_gpu(abilities: Abilities) -> bool:
    """Whether a worker found a GPU."""
    return any(ability.device.kind is DeviceKind.CUDA for ability in abilities.devices)


def has_gpu_node(devices: Path = Path("/dev")) -> bool:
    """Whether the system has a device that an NVIDIA driver made, WSL's included.

    It is a guess for the first second: what counts is what the worker says.
    """
    return any(devices.glob("nvidia[0-9]*")) or (devices / "dxg").exists()


class _CloseOnSignal(QObject):
    """Ctrl+C in the terminal closes the window as its close button does.

    Python runs a signal's handler only between its own steps, and Qt's loop takes none while it
    waits; the signal's byte on a socket wakes it.
    """

    def __init__(self, close: Callable[[], object]) -> None:
        super().__init__()
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._before_fd = signal.set_wakeup_fd(self._writer.fileno())
        self._before = {
            number: signal.signal(number, lambda *_: close())
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        self._notifier = QSocketNotifier(self._reader.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._drain)

    def restore(self) -> None:
        """Give the signals back."""
        self._notifier.setEnabled(False)
        signal.set_wakeup_fd(self._before_fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._reader.close()
        self._writer.close()

    def _drain(self) -> None:
        self._reader.recv(64)
