"""Imports what takes long while the window is on the screen already, beside the event loop."""

import importlib
import threading
from collections.abc import Sequence
from contextlib import suppress

from PySide6.QtCore import QObject, Signal


class Preload(QObject):
    """Imports modules one after the other in a thread, so that clicks are heard meanwhile.

    numpy and pyqtgraph take a quarter of a second each. Only importing happens in the thread:
    widgets are made by whoever hears of it.

    Signals:
        imported: Name of a module that can now be used at once.
    """

    imported = Signal(str)

    def __init__(self, names: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._names = tuple(names)
        self._thread = threading.Thread(target=self._import_all, name="preload")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self) -> None:
        """Stay until nothing is left to import."""
        if self._thread.ident is not None:
            self._thread.join()

    def _import_all(self) -> None:
        for name in self._names:
            # One that cannot be imported fails again, and is told, where it is used.
            with suppress(ImportError):
                importlib.import_module(name)
            self.imported.emit(name)
