"""The kernel table: the twin of the pictures, for reading, sorting and copying."""

from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QPersistentModelIndex,
    QSize,
    QSortFilterProxyModel,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QGuiApplication, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QWidget
from typing_extensions import override

from explorer.model.run import Run
from explorer.model.traffic import run_traffic
from explorer.model.units import format_bytes
from explorer.ui.kernel_columns import COLUMNS, Column, Entry, as_tsv, cell_text, entries_of
from explorer.ui.sentence_table import SentenceTable
from explorer.ui.theme import DARK, Theme, font

Index = QModelIndex | QPersistentModelIndex
VALUE_ROLE = Qt.ItemDataRole.UserRole
NO_RUN = "No run is shown yet: each of its launches will have a row here."
WIDEST_COLUMN = 240
ROW_PX = 25

_ROOT = QModelIndex()


class KernelTableModel(QAbstractTableModel):
    """A run's launches as rows; the columns are :data:`COLUMNS`."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: tuple[Entry, ...] = ()
        self._theme, self._zoom = DARK, 1.0

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The rows, in launch order."""
        return self._entries

    def set_run(self, run: Run | None) -> None:
        """Show another run; None empties the table."""
        self.beginResetModel()
        self._entries = entries_of(run) if run else ()
        self.endResetModel()

    def set_looks(self, theme: Theme, zoom: float) -> None:
        """Take another theme or font size."""
        self._theme, self._zoom = theme, zoom
        if self._entries:
            last = self.index(len(self._entries) - 1, len(COLUMNS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._entries)

    @override
    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self._entries):
            return None
        entry, column = self._entries[index.row()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return cell_text(column, entry)
        if role == VALUE_ROLE:
            return column.value(entry)
        if role == Qt.ItemDataRole.ToolTipRole:
            value = column.value(entry)
            return column.missing(entry) if value is None else str(column.text(value))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.FontRole:
            return cell_font(column, self._zoom)
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._color(entry, column.value(entry) is None)
        return None

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        column = COLUMNS[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.about
        if role == Qt.ItemDataRole.TextAlignmentRole:
            side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
            return int(side | Qt.AlignmentFlag.AlignVCenter)
        if role == Qt.ItemDataRole.FontRole:
            return font(12 * self._zoom, 500)
        return None

    def _color(self, entry: Entry, is_missing: bool) -> Any:
        if is_missing:
            return self._theme.color("faint")
        dimmed = entry.nest is not None or entry.of_launch.is_helper
        return self._theme.color("muted" if dimmed else "text")


def cell_font(column: Column, zoom: float = 1.0) -> QFont:
    """The font of a column's cells."""
    size = (12 if column.is_code else 13) * zoom
    return font(size, mono=column.is_code, tabular=column.is_number)


class _Sorted(QSortFilterProxyModel):
    """Sorts by value, with missing values at the end whichever way it goes."""

    @override
    def lessThan(self, left: Index, right: Index) -> bool:
        first, second = left.data(VALUE_ROLE), right.data(VALUE_ROLE)
        if first is None or second is None:
            rising = self.sortOrder() is Qt.SortOrder.AscendingOrder
            return (
                (second is None and first is not None)
                if rising
                else (first is None and second is not None)
            )
        return bool(first < second)


class KernelTable(SentenceTable):
    """One run's launches, a row each; loop nests of a C++ function below their launch.

    The run comes in through :meth:`set_run`, the picked launch through :meth:`set_selected`.
    A click on a header sorts; Ctrl+C copies the selected rows, or all, as tab-separated text.

    Signals:
        launch_selected: Index of the launch whose row was picked by the user.
    """

    launch_selected = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(NO_RUN, parent)
        self._run: Run | None = None
        self._theme, self._zoom = DARK, 1.0
        self._following = False
        self._model = KernelTableModel(self)
        self._sorted = _Sorted(self)
        self._sorted.setSourceModel(self._model)
        self.setModel(self._sorted)
        self.setSortingEnabled(True)
        self.sortByColumn(0, Qt.SortOrder.AscendingOrder)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.setAlternatingRowColors(True)
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setHighlightSections(False)
        self.setAccessibleName("Kernel table")
        self.selectionModel().currentRowChanged.connect(self._on_row_changed)
        self.show_rows()

    @property
    def hint(self) -> str:
        """Totals with their pedigree, for the panel's heading."""
        if self._run is None or self._run.error:
            return ""
        words = f"{len(self._run.launches):,} launches"
        best = run_traffic(self._run).best
        if best is None:
            return words
        read, written, pedigree = best
        return (
            f"{pedigree.value}: read {format_bytes(read)}, written {format_bytes(written)}"
            f"  ·  {words}"
        )

    def set_run(self, run: Run | None) -> None:
        """Show another run's launches."""
        if run is self._run:
            return
        self._run = run
        self._following = True
        self._model.set_run(run)
        self._following = False
        self.show_rows((run.error if run else None) or NO_RUN)
        self._hide_empty()
        self._fit_columns()

    def set_selected(self, launch: int | None) -> None:
        """Pick a launch's row without telling so."""
        self._following = True
        row = self._row_of(launch)
        if row is None:
            self.clearSelection()
            self.setCurrentIndex(QModelIndex())
        else:
            self.selectRow(row)
            self.scrollTo(self._sorted.index(row, 0))
        self._following = False

    def set_theme(self, theme: Theme) -> None:
        """Take another theme's colours."""
        self._theme = theme
        self._model.set_looks(theme, self._zoom)

    def set_zoom_factor(self, zoom: float) -> None:
        """Enlarge the text, for a talk."""
        self._zoom = zoom
        self._model.set_looks(self._theme, zoom)
        self._fit_columns()

    def copied_text(self) -> str:
        """The selected rows, or all of them, as tab-separated text in the order shown."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        shown = rows or range(self._sorted.rowCount())
        return as_tsv(tuple(self._entry(row) for row in shown))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.copied_text())
            event.accept()
        else:
            super().keyPressEvent(event)

    @override
    def sizeHint(self) -> QSize:
        return QSize(760, 240)

    def _entry(self, row: int) -> Entry:
        return self._model.entries[self._sorted.mapToSource(self._sorted.index(row, 0)).row()]

    def _row_of(self, launch: int | None) -> int | None:
        for place, entry in enumerate(self._model.entries):
            if entry.launch == launch and entry.nest is None:
                return self._sorted.mapFromSource(self._model.index(place, 0)).row()
        return None

    def _on_row_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if not self._following and current.isValid():
            self.launch_selected.emit(self._entry(current.row()).launch)

    def _hide_empty(self) -> None:
        """A column without any value takes room from those that have some: counters on a CPU."""
        entries = self._model.entries
        for place, column in enumerate(COLUMNS):
            is_empty = all(column.value(entry) is None for entry in entries)
            self.setColumnHidden(place, bool(entries) and is_empty)

    def _fit_columns(self) -> None:
        self.resizeColumnsToContents()
        for column in range(len(COLUMNS)):
            widest = round(WIDEST_COLUMN * self._zoom)
            self.setColumnWidth(column, min(self.columnWidth(column), widest))
        # The sort arrow would cover the one letter of the first header.
        self.setColumnWidth(0, max(self.columnWidth(0), round(58 * self._zoom)))
        self.verticalHeader().setDefaultSectionSize(round(ROW_PX * self._zoom))
