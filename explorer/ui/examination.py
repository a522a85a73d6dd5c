"""The worker's part of the doctor's report: asked for, and told when it comes or does not."""

from PySide6.QtCore import QObject, Signal

from explorer.model.messages import DoctorReport, DoctorRequest, Reply, RequestDone, RequestFailed
from explorer.ui.worker_process import WorkerProcess


class Examination(QObject):
    """One examination at a time.

    Signals:
        found: The checks.
        failed: One sentence: there are none.
    """

    found = Signal(tuple)
    failed = Signal(str)

    def __init__(self, worker: WorkerProcess, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self.is_under_way = False
        worker.failed.connect(self._give_up)
        worker.cancelled.connect(lambda: self._give_up("The examination was cancelled."))

    def begin(self, device: str) -> None:
        """Ask for it, behind whatever the worker is at; nothing if it was asked for already.

        Args:
            device: Id of the device to look at closely, or ``auto``.
        """
        if not self.is_under_way:
            self.is_under_way = True
            self._worker.send(DoctorRequest(device=device))

    def take(self, reply: Reply) -> bool:
        """Take a reply; false if it belongs to another request."""
        if not isinstance(self._worker.current, DoctorRequest):
            return False
        if isinstance(reply, DoctorReport):
            self.is_under_way = False
            self.found.emit(reply.checks)
        elif isinstance(reply, RequestFailed):
            self._give_up(reply.sentence)
        elif isinstance(reply, RequestDone):
            self._give_up("The worker said nothing of this machine.")
        return True

    def _give_up(self, sentence: str) -> None:
        if self.is_under_way:
            self.is_under_way = False
            self.failed.emit(sentence)
