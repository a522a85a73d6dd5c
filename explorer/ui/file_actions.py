"""Opening, saving and exporting from the window: dialogs, and one sentence on what came of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from explorer.chains import CHAINS
from explorer.chains.own import is_own
from explorer.model.errors import ExplorerError, UsageError
from explorer.model.param_sweep import is_point, sweeps_in
from explorer.recording import SUFFIX, load_recording, save_recording
from explorer.ui.plan_state import plan_to_export
from explorer.ui.side_by_side import telling_pair, variants_among
from explorer.ui.state import WorkerPhase, drawn
from explorer.ui.store import Store

if TYPE_CHECKING:
    from explorer.model.run import Run

EXPORT_SCALE = 2.0
"""Pixels of the exported picture to one of the window's: sharp on a slide."""
RECORDINGS = f"Recordings (*{SUFFIX})"


class FileActions(QObject):
    """Everything with a file in it; whatever goes wrong is told in the message bar."""

    sweep_opened = Signal()
    """A recording was opened that is one sweep of a parameter."""

    def __init__(self, store: Store, window: QWidget) -> None:
        super().__init__(window)
        self._store = store
        self._window = window

    def ask_to_open(self) -> None:
        """Let the user pick recordings, and open them."""
        names, _ = QFileDialog.getOpenFileNames(self._window, "Open a recording", "", RECORDINGS)
        self.open_paths([Path(name) for name in names])

    def open_paths(self, paths: Sequence[Path]) -> None:
        """Add the runs of recordings to the session; a file that is none changes nothing."""
        for path in paths:
            self.open_recording(path)

    def open_recording(self, path: Path, *, is_asked_for: bool = True) -> bool:
        """Add a recording's runs and show the first, or two variants of a chain that compares some.

        Args:
            path: The recording.
            is_asked_for: The user wants to see it; then the next run is of the same chain.

        Returns:
            False, after telling why, if it cannot be opened.
        """
        runs = self.read_recording(path)
        if runs:
            self.show_recording(path, runs, is_asked_for=is_asked_for)
        return bool(runs)

    def read_recording(self, path: Path) -> "tuple[Run, ...]":
        """A recording's runs; none, after telling why, if it cannot be opened."""
        try:
            runs = load_recording(path)
        except ExplorerError as error:
            self._store.tell(str(error))
            return ()
        if not runs:
            self._store.tell(f"{path.name} holds no runs.")
        return runs

    def show_recording(
        self, path: Path, runs: "Sequence[Run]", *, is_asked_for: bool = True
    ) -> None:
        """What `open_recording` does with runs that were read."""
        self._store.dismiss_notice()
        self._store.add_runs(runs, recorded_in=path.name)
        pair = telling_pair(self._store.state, variants_among(runs))
        if pair is not None:
            self._store.show_run(pair[0])
            self._store.compare_run(pair[1])
        elif is_asked_for and all(map(is_point, runs)) and len(sweeps_in(runs)) == 1:
            self.sweep_opened.emit()
        if is_asked_for:
            self._take_up()

    def _take_up(self) -> None:
        """Have the next run be of what is looked at now, in the sizes that suit the device.

        What the user set, drew or started stays, and own code is not opened by a recording.
        """
        state = self._store.state
        shown = state.shown_run
        is_free = not (state.parameters.texts or state.swept_texts or state.planning)
        is_idle = state.worker.phase is not WorkerPhase.BUSY and not state.asking
        if shown is None or is_own(state.chain) or not (is_free and is_idle):
            return
        chain = shown.run.chain
        if chain.name in CHAINS:
            self._store.choose_chain(chain.name)
            self._store.set_direction(chain.direction)
            if shown.run.swept is not None:
                self._store.choose_swept(shown.run.swept)

    def ask_to_save(self, keys: Sequence[str]) -> None:
        """Let the user name a file for these runs, and write it."""
        name, _ = QFileDialog.getSaveFileName(
            self._window, "Save runs", f"runs{SUFFIX}", RECORDINGS
        )
        if name:
            path = Path(name)
            self.save_runs(path if path.suffix else path.with_suffix(SUFFIX), keys)

    def save_runs(self, path: Path, keys: Sequence[str]) -> bool:
        """Write runs to a recording; tells what came of it."""
        found = [self._store.state.find_run(key) for key in keys]
        runs = [item.run for item in found if item is not None]
        try:
            save_recording(path, runs)
        except ExplorerError as error:
            self._store.tell(str(error))
            return False
        n = len(runs)
        self._store.tell(f"{n} run{'s' if n != 1 else ''} saved to {path}.", is_error=False)
        return True

    def ask_to_export_plan(self) -> None:
        """Let the user name a file for a module that applies the plan, and write it."""
        from explorer.model.plan_module import MODULE_SUFFIX

        run = plan_to_export(self._store.state)
        if run is None:
            self._store.tell(
                "This plan has not been run in this setting; Run measures it, then it can be "
                "exported with what was measured."
            )
            return
        name, _ = QFileDialog.getSaveFileName(
            self._window, "Export the fusion plan", f"plan{MODULE_SUFFIX}",
            f"Python modules (*{MODULE_SUFFIX})",
        )  # fmt: skip
        if name:
            path = Path(name)
            self.export_plan(path if path.suffix else path.with_suffix(MODULE_SUFFIX), run)

    def export_plan(self, path: Path, run: "Run") -> bool:
        """Write a module that applies a run's plan; tells what came of it."""
        # Not needed before the window is on the screen.
        from explorer.model.plan_module import plan_module

        try:
            path.write_text(plan_module(run), encoding="utf-8")
        except UsageError as error:
            self._store.tell(str(error))
            return False
        except OSError as error:
            self._store.tell(f"{path} could not be written: {error.strerror or error}.")
            return False
        self._store.tell(f"The module that applies the plan is in {path}.", is_error=False)
        return True

    def ask_to_export(self) -> None:
        """Let the user name a PNG file for the window's picture, and write it."""
        name, _ = QFileDialog.getSaveFileName(
            self._window, "Export the window", "kernel-explorer.png", "Pictures (*.png)"
        )
        if name:
            path = Path(name)
            self.export_window(path if path.suffix else path.with_suffix(".png"))

    def export_window(self, path: Path) -> bool:
        """Write the window as it is to a PNG file; tells what came of it."""
        from explorer.ui.export import save_widget_png

        items = drawn(self._store.state)
        try:
            save_widget_png(
                self._window,
                path,
                [item.run for item in items],
                theme=self._store.theme,
                scale=EXPORT_SCALE,
                recorded=any(item.is_recorded for item in items),
            )
        except ExplorerError as error:
            self._store.tell(str(error))
            return False
        self._store.tell(f"The window's picture is in {path}.", is_error=False)
        return True
