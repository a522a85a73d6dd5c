"""Opening own code from the window: the dialog, whom the user trusts, and what was opened last."""

from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDialog, QWidget

from explorer.chains.own import is_own, read_name
from explorer.model.errors import UsageError
from explorer.model.own_code import OwnCode
from explorer.ui.settings import Settings
from explorer.ui.store import Store


class OwnActions(QObject):
    """Everything about own code that needs the user; nothing is run that nobody agreed to.

    That a file may be run is remembered while the window is open, and not beyond: what a recording
    names is asked for like anything else.
    """

    def __init__(self, store: Store, window: QWidget, settings: Settings | None = None) -> None:
        super().__init__(window)
        self._store = store
        self._window = window
        self._settings = settings
        self._allowed: set[str] = set()
        store.own_requested.connect(self.ask)

    def ask_for_any(self) -> None:
        """Let the user name own code; what is chosen or was opened last is filled in."""
        state = self._store.state
        recent = self._settings.recent_own if self._settings else ()
        if is_own(state.chain):
            self.ask(state.chain, state.own or OwnCode())
        elif recent:
            self.ask(*recent[0])
        else:
            self.ask("", OwnCode())

    def ask(self, chain: str, own: OwnCode) -> None:
        """Let the user look at what is to be opened, change it, and agree that it is run.

        Args:
            chain: Its name, empty for none yet.
            own: How it is called.
        """
        # Not needed before the window is on the screen.
        from explorer.ui.own_dialog import OwnDialog
        from explorer.ui.own_form import OwnFields

        recent = self._settings.recent_own if self._settings else ()
        dialog = OwnDialog(self._store.theme, recent, self.is_allowed, self._window)
        dialog.fill(OwnFields.of(chain, own))
        if dialog.exec() == QDialog.DialogCode.Accepted:
            self.open(dialog.fields.chain, dialog.fields.own)
        dialog.deleteLater()

    def is_allowed(self, where: str) -> bool:
        """Whether the user agreed that a file or module is run."""
        return _key(where) in self._allowed

    def open(self, chain: str, own: OwnCode) -> bool:
        """Open own code that the user agreed to run; tells and returns False if it cannot be."""
        try:
            name = read_name(chain)
            name.check_there()
            self._store.open_own(chain, own)
        except UsageError as error:
            self._store.tell(str(error))
            return False
        self._allowed.add(_key(name.where))
        if self._settings is not None:
            self._settings.remember_own(chain, own)
        self._store.dismiss_notice()
        return True


def _key(where: str) -> str:
    """A file by its whole path, however it was written; a module by its name."""
    path = Path(where)
    return str(path.resolve()) if path.is_file() else where
