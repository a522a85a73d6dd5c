"""Spreads work over turns of the event loop, so that clicks and frames get in between."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer

Work = Callable[[], object]


class Turns(QObject):
    """Does one piece of waiting work every second turn of the event loop.

    What a piece repaints is painted in the turn between. Views of one window share one queue:
    with a timer each, all of them would compute, and then paint, in the same turn.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: dict[object, Work] = {}
        self._is_resting = False
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._on_turn)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits."""
        return not self._waiting

    def soon(self, key: object, work: Work) -> None:
        """Do a piece of work in a turn of its own.

        Args:
            key: Whose work it is; later work replaces what waits under the same key.
            work: Called without arguments. Returning True means that there is more to do: it is
                called again after what else waits.
        """
        self._waiting[key] = work
        if not self._timer.isActive():
            # What asks for work has mostly changed something that is painted first.
            self._is_resting = True
            self._timer.start()

    def drop(self, key: object) -> None:
        """Forget what waits under a key."""
        self._waiting.pop(key, None)

    def finish(self) -> None:
        """Do everything that waits at once."""
        while self._waiting:
            self._do_first()
        self._timer.stop()

    def _on_turn(self) -> None:
        if self._is_resting:
            self._is_resting = False
        elif self._waiting:
            self._is_resting = True
            self._do_first()
        else:
            self._timer.stop()

    def _do_first(self) -> None:
        key = next(iter(self._waiting))
        work = self._waiting.pop(key)
        if work() is True:
            # What was asked for meanwhile under this key is newer.
            self._waiting.setdefault(key, work)
