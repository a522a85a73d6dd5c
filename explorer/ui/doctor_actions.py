"""Opens the doctor's page and keeps it up to date."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from explorer.model.messages import Check
from explorer.ui.examination import Examination
from explorer.ui.requests import device_of
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store

if TYPE_CHECKING:
    from explorer.ui.doctor_dialog import DoctorDialog

_NO_WORKER = "This window only shows recordings, so that torch and the devices are not looked at."
_TRYING = "The worker is trying out what it needs; that takes some seconds."
_WAITING = "The worker looks at the rest when the run in progress is done."


class DoctorActions(QObject):
    """One page at a time; closing it leaves the examination to end by itself."""

    def __init__(self, store: Store, window: QWidget, examination: Examination | None) -> None:
        super().__init__(window)
        self._store = store
        self._window = window
        self._examination = examination
        self.dialog: DoctorDialog | None = None
        if examination is not None:
            examination.found.connect(self._on_found)
            examination.failed.connect(self._on_failed)

    def open(self) -> None:
        """Show the page, and have the machine examined."""
        if self.dialog is None:
            # Not needed before the window is on the screen.
            from explorer.ui.doctor_dialog import DoctorDialog

            self.dialog = DoctorDialog(self._window)
            self.dialog.examination_requested.connect(self._examine)
            self.dialog.finished.connect(self._forget)
        self._examine()
        self.dialog.open()

    def _examine(self) -> None:
        if self._examination is None:
            self._show(_with_local(), _NO_WORKER)
            return
        is_busy = self._store.state.worker.phase is WorkerPhase.BUSY
        self._examination.begin(device_of(self._store.state))
        self._show(_with_local(), _WAITING if is_busy else _TRYING)

    def _on_found(self, checks: tuple[Check, ...]) -> None:
        everything = _with_local(*checks)
        n_missing = sum(not check.ok for check in everything)
        abilities = "1 ability is" if n_missing == 1 else f"{n_missing} abilities are"
        self._show(
            everything,
            f"{abilities} missing here; beside each stand what is lost by it, and the remedy."
            if n_missing
            else "Everything that can be measured is measured here.",
        )

    def _on_failed(self, sentence: str) -> None:
        failure = Check(
            name="Worker",
            ok=False,
            sentence=sentence,
            lost="every run; recordings can be opened and exported.",
        )
        self._show(_with_local(failure), "The worker could not be asked.")

    def _show(self, checks: tuple[Check, ...], sentence: str) -> None:
        if self.dialog is not None:
            examination = self._examination
            self.dialog.show_checks(
                checks,
                sentence,
                may_ask=examination is not None and not examination.is_under_way,
            )

    def _forget(self) -> None:
        if self.dialog is not None:
            self.dialog.deleteLater()
            self.dialog = None


def _with_local(*checks: Check) -> tuple[Check, ...]:
    """The worker's checks, then those of the machine that shows them."""
    # What it asks the installed packages by is not needed before the window is on the screen.
    from explorer.ui.local_checks import local_checks

    return (*checks, *local_checks())
