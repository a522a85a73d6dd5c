"""The middle of the window: the traffic scene under its headline, with the transport below."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QWidget

from explorer.ui.panel import Panel, label
from explorer.ui.state import SessionRun
from explorer.ui.store import Store


class ScenePanel(Panel):
    """Names the shown run, and says RECORDED with device and day if it was not measured here."""

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__("Memory traffic", parent=parent)
        self._store = store
        self._badge = label("RECORDED", "badge")
        self._origin = label("", "badgeOrigin")
        self.head.insertWidget(1, self._badge, 0, Qt.AlignmentFlag.AlignVCenter)
        self.head.insertWidget(2, self._origin)
        store.shown_changed.connect(self._show_headline)
        store.runs_changed.connect(self._show_headline)
        self._show_headline()

    @property
    def badge(self) -> str:
        """The words of the badge with device and day, empty for a run measured here."""
        return f"{self._badge.text()} {self._origin.text()}" if self._is_recorded() else ""

    def _is_recorded(self) -> bool:
        state = self._store.state
        return any(
            item is not None and item.is_recorded for item in (state.shown_run, state.compared_run)
        )

    def _show_headline(self) -> None:
        state = self._store.state
        shown, compared = state.shown_run, state.compared_run
        names = [item.name for item in (shown, compared) if item is not None]
        self.set_title(" — ".join(["Memory traffic", " beside ".join(names)]) if names else
                       "Memory traffic")  # fmt: skip
        recorded = [i for i in (shown, compared) if i is not None and i.is_recorded]
        origins = dict.fromkeys(_origin(item) for item in recorded)
        self._origin.setText(" and ".join(origins))
        for part in (self._badge, self._origin):
            _show(part, bool(recorded))


def _origin(item: SessionRun) -> str:
    return item.origin


def _show(part: QLabel, visible: bool) -> None:
    part.setVisible(visible)
