"""The session's runs as a table model: one row a run, the name editable."""

from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont
from typing_extensions import override

from explorer.chains.own import is_own
from explorer.model.comparison import headline
from explorer.model.param_sweep_words import value_text
from explorer.model.run import Run
from explorer.model.traffic import run_traffic
from explorer.model.units import format_us
from explorer.ui.state import SessionRun
from explorer.ui.store import Store
from explorer.ui.theme import font
from explorer.ui.words import (
    DASH,
    SEPARATOR,
    parameters_text,
    pedigree_bytes,
    timing_sentence,
    with_direction,
)

COLUMNS = ("Name", "Marks", "Time", "Traffic", "Setting", "Strategy", "Device", "Measured")
NAME, MARKS, TIME, TRAFFIC, SETTING, STRATEGY, DEVICE, MEASURED = range(len(COLUMNS))
NUMBERS = (TIME, TRAFFIC)
"""Aligned to the right, and so are their headings."""

Index = QModelIndex | QPersistentModelIndex
ROOT = QModelIndex()


class RunsModel(QAbstractTableModel):
    """Follows the store's list of runs; a name typed into it goes back to the store."""

    def __init__(self, store: Store, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._items = store.state.runs
        store.runs_changed.connect(self._refresh)
        store.shown_changed.connect(self._refresh)

    def key(self, row: int) -> str | None:
        """Key of the run in a row."""
        return self._items[row].key if 0 <= row < len(self._items) else None

    def row_of(self, key: str | None) -> int:
        """Row of the run with that key, or -1."""
        return next((i for i, item in enumerate(self._items) if item.key == key), -1)

    def _refresh(self) -> None:
        items = self._store.state.runs
        if [item.key for item in items] != [item.key for item in self._items]:
            self.beginResetModel()
            self._items = items
            self.endResetModel()
        self._items = items
        if items:
            self.dataChanged.emit(self.index(0, 0), self.index(len(items) - 1, len(COLUMNS) - 1))

    @override
    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._items)

    @override
    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        if role == Qt.ItemDataRole.TextAlignmentRole and section in NUMBERS:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        item, column = self._items[index.row()], index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return self._text(item, column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return item.run.error or timing_sentence(item.run)
        if role == Qt.ItemDataRole.FontRole and item.key == self._store.state.shown:
            return _bold()
        if role == Qt.ItemDataRole.TextAlignmentRole and column in NUMBERS:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None

    @override
    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or index.column() != NAME:
            return False
        key = self.key(index.row())
        if key is None or not str(value).strip():
            return False
        self._store.rename_run(key, str(value))
        return True

    @override
    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.column() == NAME:
            flags |= Qt.ItemFlag.ItemIsEditable
        return flags

    def _text(self, item: SessionRun, column: int) -> str:
        run = item.run
        if column == TIME:
            timed = headline(run)
            return format_us(timed.samples.median_us) if timed else "failed" if run.error else DASH
        if column == TRAFFIC:
            best = run_traffic(run).best
            return pedigree_bytes(best[0] + best[1], best[2]) if best else DASH
        return {
            NAME: item.name,
            MARKS: self._marks_text(item),
            STRATEGY: run.strategy.spec,
            SETTING: _setting(run),
            DEVICE: run.device.name,
            MEASURED: f"recorded {run.created_at[:10]} ({item.recorded_in})"
            if item.is_recorded
            else f"here, {run.created_at[11:19]} UTC",
        }[column]

    def _marks_text(self, item: SessionRun) -> str:
        state = self._store.state
        marks = []
        if item.key == state.shown:
            marks.append("shown")
        if item.key == state.compared:
            marks.append("beside")
        if item.pinned:
            marks.append("pinned")
        return ", ".join(marks)


def _setting(run: Run) -> str:
    """Chain, sizes and direction; the point of a sweep begins with what tells it from others."""
    # The whole path of own code would leave no room for anything else.
    name = run.chain.title if is_own(run.chain.name) else run.chain.name
    rest = {k: v for k, v in run.chain.parameters.items() if k != run.swept}
    setting = with_direction(f"{name} {parameters_text(rest)}".rstrip(), run.chain.direction)
    if run.swept not in run.chain.parameters:
        return setting
    return SEPARATOR.join((f"{run.swept} {value_text(run.chain.parameters[run.swept])}", setting))


def _bold() -> QFont:
    return font(13, 600)
