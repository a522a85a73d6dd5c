"""The rows of the tab "Fusion" as a tree: groups in columns, what explains them unfolds below."""

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QPainter,
    QPolygonF,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)
from typing_extensions import override

from explorer.ui.fusion_rows import COLUMN_TIPS, COLUMNS, Row
from explorer.ui.panel import wrapped
from explorer.ui.theme import DARK, Theme, font
from explorer.ui.words import DASH

WIDTHS = (64, 68, 72, 70, 68, 70, 66, 72)
"""Of the columns with numbers."""
LEAST_GROUP_PX = 130
"""What the names of the groups keep; columns that they need are left out, the last first."""
ROW_PX = 24
INDENT_PX = 16
PADDING_PX = 8
ARROW_PX = 8

_LAUNCH = Qt.ItemDataRole.UserRole
_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter


class _Wrapping(QStyledItemDelegate):
    """Makes a row that spans all columns as high as its text needs."""

    @override
    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        tree = self.parent()
        hint = QSize(super().sizeHint(option, index).width(), ROW_PX)
        if index.column() or not isinstance(tree, FusionTree) or not tree.spans(index):
            return hint
        face = index.data(Qt.ItemDataRole.FontRole)
        width = tree.text_width(index)
        rect = QFontMetrics(face).boundingRect(
            0, 0, width, 10_000, int(Qt.TextFlag.TextWordWrap), str(index.data())
        )
        return QSize(hint.width(), max(ROW_PX, rect.height() + PADDING_PX))


class FusionTree(QTreeWidget):
    """Rows come in through :meth:`set_rows`, the picked launch through :meth:`set_selected`.

    Arrows move and unfold, Ctrl+C copies the picked row with all below it, or everything.

    Signals:
        launch_selected: Index of the launch that a picked row is about.
    """

    launch_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[Row, ...] = ()
        self._items: list[tuple[QTreeWidgetItem, Row]] = []
        self._theme = DARK
        self._following = False
        self.setAccessibleName("Fusion groups with what explains their bytes")
        self.setColumnCount(len(COLUMNS))
        self.setItemDelegate(_Wrapping(self))
        self.setIndentation(INDENT_PX)
        self.setWordWrap(True)
        self.setUniformRowHeights(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setExpandsOnDoubleClick(True)
        self._set_up_header()
        self.currentItemChanged.connect(self._on_current)
        self.itemExpanded.connect(self._on_expanded)

    @property
    def rows(self) -> tuple[Row, ...]:
        """What is shown."""
        return self._rows

    def set_rows(self, rows: Sequence[Row]) -> None:
        """Show other rows; what was unfolded among the same rows stays so."""
        if tuple(rows) == self._rows:
            return
        self._rows = tuple(rows)
        self._following = True
        self.clear()
        self._items = []
        for row in self._rows:
            self._add(self.invisibleRootItem(), row)
        self._fit_columns()
        self._following = False

    def _fit_columns(self) -> None:
        """Spare columns of nothing but dashes, and where it is narrow those told of last."""
        groups = [row for row in self._rows if row.is_group]
        left = self.viewport().width() - LEAST_GROUP_PX
        for column, width in enumerate(WIDTHS, start=1):
            is_bare = all(row.cells[column].text in ("", DASH) for row in groups)
            if not is_bare:
                left -= width
            self.setColumnHidden(column, bool(groups) and (is_bare or left < 0))

    def set_selected(self, launch: int | None) -> None:
        """Pick the group of a launch without telling so; a row of it that is picked stays."""
        current = self.currentItem()
        if current is not None and launch is not None and _launch_of(current) == launch:
            return
        found = next(
            (
                item
                for item, row in self._items
                if launch is not None and item.parent() is None and row.launch == launch
            ),
            None,
        )
        self._following = True
        if found is None:
            self.clearSelection()
            self.selectionModel().clearCurrentIndex()
        else:
            self.setCurrentItem(found)
        self._following = False

    def explain(self, launch: int | None, text: str) -> None:
        """Unfold the row about a launch that holds a text, and go to it."""
        for item, row in self._items:
            if row.launch == launch and not row.is_group and text in row.cells[0].text:
                item.setExpanded(True)
                self.setCurrentItem(item)
                self.scrollToItem(item, QAbstractItemView.ScrollHint.PositionAtTop)
                return

    def set_theme(self, theme: Theme) -> None:
        """Take another theme's colours."""
        self._theme = theme
        for item, row in self._items:
            self._color(item, row)

    def copied_text(self) -> str:
        """The picked row with all below it, or everything, columns parted by tabs."""
        picked = [row for item, row in self._items if item.isSelected()]
        lines = [] if picked else ["\t".join(COLUMNS)]
        for row in picked or self._rows:
            lines += row.lines()
        return "\n".join(lines) + "\n"

    def spans(self, index: QModelIndex | QPersistentModelIndex) -> bool:
        """Whether a row is one text across all columns."""
        item = self.itemFromIndex(index)
        return item is not None and item.isFirstColumnSpanned()

    def text_width(self, index: QModelIndex | QPersistentModelIndex) -> int:
        """The room for the text of such a row."""
        depth, parent = 1, index.parent()
        while parent.isValid():
            depth, parent = depth + 1, parent.parent()
        return max(60, self.viewport().width() - depth * INDENT_PX - 2 * PADDING_PX)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        current = self.currentItem()
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.copied_text())
            event.accept()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and current is not None:
            current.setExpanded(not current.isExpanded())
            event.accept()
        else:
            super().keyPressEvent(event)

    @override
    def drawBranches(
        self, painter: QPainter, rect: QRect, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        item = self.itemFromIndex(index)
        if item is None or not item.childCount():
            return
        x = rect.right() - INDENT_PX / 2
        y, half = rect.center().y() + 1, ARROW_PX / 2
        tips = ((-half, -half / 2), (half, -half / 2), (0.0, half / 2 + 1))
        if not item.isExpanded():
            tips = ((-half / 2, -half), (half / 2 + 1, 0.0), (-half / 2, half))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("muted"))
        painter.drawPolygon(QPolygonF([QPointF(x + dx, y + dy) for dx, dy in tips]))
        painter.restore()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()
        # The heights of wrapped rows follow the width.
        self.scheduleDelayedItemsLayout()

    def _set_up_header(self) -> None:
        names = QTreeWidgetItem(list(COLUMNS))
        for column, tip in enumerate(COLUMN_TIPS):
            names.setToolTip(column, wrapped(tip))
            names.setTextAlignment(column, _RIGHT if column else _LEFT)
        self.setHeaderItem(names)
        header = self.header()
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(40)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column, width in enumerate(WIDTHS, start=1):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
            header.resizeSection(column, width)

    def _add(self, parent: QTreeWidgetItem, row: Row) -> None:
        # Filled before the tree knows it, which would lay all rows out anew at every change.
        item = QTreeWidgetItem()
        item.setData(0, _LAUNCH, row.launch)
        for column, cell in enumerate(row.cells):
            item.setText(column, cell.text)
            item.setToolTip(column, wrapped(cell.tip))
            face = font(12 if row.is_code else 13, mono=row.is_code, tabular=column > 0)
            item.setFont(column, face)
            if column:
                item.setTextAlignment(column, _RIGHT)
        self._items.append((item, row))
        self._color(item, row)
        parent.addChild(item)
        if not row.is_group:
            item.setFirstColumnSpanned(True)
        for child in row.children:
            self._add(item, child)
        if row.is_open:
            item.setExpanded(True)

    def _color(self, item: QTreeWidgetItem, row: Row) -> None:
        for column, cell in enumerate(row.cells):
            item.setForeground(column, self._theme.color(cell.color))

    def _on_current(self, current: QTreeWidgetItem | None, _: QTreeWidgetItem | None) -> None:
        if current is None or self._following:
            return
        launch = _launch_of(current)
        if launch is not None:
            self.launch_selected.emit(launch)

    def _on_expanded(self, item: QTreeWidgetItem) -> None:
        """Bring what was unfolded into sight, as much of it as there is room for."""
        last = item.child(item.childCount() - 1)
        if self._following or last is None:
            return
        self.scrollToItem(last)
        self.scrollToItem(item)


def _launch_of(item: QTreeWidgetItem) -> int | None:
    """The launch of a row, or of the nearest row above that has one."""
    at: QTreeWidgetItem | None = item
    while at is not None:
        launch = at.data(0, _LAUNCH)
        if launch is not None:
            return int(launch)
        at = at.parent()
    return None
