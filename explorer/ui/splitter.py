"""A splitter that shares its length out by a rule until someone moves a handle."""

from collections.abc import Callable

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
        self.setHandleWidth(HANDLE_PX)
        self.setChildrenCollapsible(False)
        self.splitterMoved.connect(self._on_moved)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._was_moved and self.count():
            is_wide = self.orientation() is Qt.Orientation.Horizontal
            length = self.width() if is_wide else self.height()
            self.setSizes(self._share(length - HANDLE_PX * (self.count() - 1)))

    def _on_moved(self) -> None:
        self._was_moved = True
