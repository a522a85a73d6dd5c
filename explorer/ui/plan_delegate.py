"""Paints the plans in a table's cells: as strips where their texts would have to be cut."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem, QWidget
from typing_extensions import override

from explorer.ui.plan_strip import PlanOps, draw_strip
from explorer.ui.theme import DARK, Theme

PLAN_ROLE = Qt.ItemDataRole.UserRole
"""Under which a model tells the :class:`PlanOps` of a cell; None for one without."""
SIDE_PX = 7.0
"""Left free beside a strip, at zoom 1."""


class PlanDelegate(QStyledItemDelegate):
    """The texts stay what the model says, for screen readers and for sorting.

    A cell whose foreground is not the text's colour has a ring of that colour.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.as_strips = False
        self.theme, self.zoom = DARK, 1.0

    def set_looks(self, theme: Theme, zoom: float) -> None:
        """Take another theme or font size."""
        self.theme, self.zoom = theme, zoom

    @override
    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        if self.as_strips and index.data(PLAN_ROLE) is not None:
            option.text = ""

    @override
    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)
        shown = index.data(PLAN_ROLE)
        if not self.as_strips or not isinstance(shown, PlanOps):
            return
        side = SIDE_PX * self.zoom
        color = index.data(Qt.ItemDataRole.ForegroundRole)
        ring = color if color != self.theme.color("text") else None
        rect = QRectF(option.rect).adjusted(side, 0, -side, 0)
        draw_strip(painter, rect, shown, self.theme, self.zoom, ring)
