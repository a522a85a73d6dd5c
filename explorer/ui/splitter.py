"""A splitter that shares its length out by a rule until someone moves a handle."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget
from typing_extensions import override

HANDLE_PX = 10


class SharingSplitter(QSplitter):
    """Qt's own rule would scale every part with the window; here side columns keep their width."""

    def __init__(
        self,
        orientation: Qt.Orientation,
        share: Callable[[int], list[int]],
        parent: QWidget | None = None,
    ) -> None:
        """Make an empty one.

        Args:
            orientation: Which way the parts lie.
            share: Length without the handles to the length of each part.
            parent: Owner.
        """
        super().__init__(orientation, parent)
        self._share = share
        self._was_moved = False
        self._kept: list[float] = []
        self.setHandleWidth(HANDLE_PX)
        self.setChildrenCollapsible(False)
        self.splitterMoved.connect(self._on_moved)

    def shares(self) -> list[float] | None:
        """Each part's share of the whole length; None while the rule holds."""
        whole = sum(self.sizes())
        return [size / whole for size in self.sizes()] if self._was_moved and whole else None

    def set_shares(self, shares: Sequence[float]) -> None:
        """Share the length out like this instead of by the rule, as if a handle had been moved."""
        self._was_moved = True
        self._kept = list(shares)
        self._apply_kept()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._kept:
            self._apply_kept()
        elif not self._was_moved and self.count():
            self.setSizes(self._share(self._length))

    @property
    def _length(self) -> int:
        """Without the handles."""
        is_wide = self.orientation() is Qt.Orientation.Horizontal
        whole = self.width() if is_wide else self.height()
        return whole - HANDLE_PX * (self.count() - 1)

    def _apply_kept(self) -> None:
        self.setSizes([round(share * self._length) for share in self._kept])

    def _on_moved(self) -> None:
        self._was_moved = True
        # From now on Qt's own rule: every part scales with the window.
        self._kept = []
