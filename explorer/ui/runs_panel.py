"""The session's runs: show, compare, pin, rename, save, delete and bring back."""

from collections.abc import Callable

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from explorer.ui.kernel_table import ROW_PX
from explorer.ui.runs_model import NAME, RunsModel
from explorer.ui.sentence_table import SentenceTable
from explorer.ui.store import Store

COLUMN_PX = (150, 96, 80, 130, 330, 200, 130, 250)
NO_RUNS = "No run yet: what is measured is listed here, and the runs of recordings that you open."
NAMES_PX = (150, 250)
"""Least and greatest width of the names."""


class RunsTable(SentenceTable):
    """The table; Return shows the current run.

    Signals:
        show_requested: Return was pressed.
    """

    show_requested = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_editing = self.state() is QAbstractItemView.State.EditingState
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not is_editing:
            self.show_requested.emit()
        else:
            super().keyPressEvent(event)


class RunsPanel(QWidget):
    """The list with its actions. It acts on the store; files are the window's business.

    Signals:
        save_requested: Keys of the runs to save.
    """

    save_requested = Signal(list)

    def __init__(self, store: Store, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._selected_keys: list[str] = []
        self.model = RunsModel(store, self)
        self.table = RunsTable(NO_RUNS)
        self._set_up_table()
        self.show_button = self._action("Show", "Show this run in the scene", self._show)
        self.compare_button = self._action("Compare", "Show it beside the shown run", self._compare)
        self.pin_button = self._action("Pin", "Keep it in the timelines", self._pin)
        self.compare_button.setCheckable(True)
        self.pin_button.setCheckable(True)
        self.rename_button = self._action("Rename", "Give it a name (F2)", self._rename)
        self.save_button = self._action("Save…", "Save the selected runs (Ctrl+S)", self.save)
        self.delete_button = self._action("Delete", "Take it off the list (Del)", self._remove)
        self.undo_button = self._action("Undo", "Bring it back (Ctrl+Z)", store.undo_remove)
        actions = QHBoxLayout()
        actions.setSpacing(6)
        for button in self._buttons:
            actions.addWidget(button)
        actions.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(6)
        whole.addLayout(actions)
        whole.addWidget(self.table, 1)
        self._key("F2", self._rename)
        self._key("Del", self._remove)
        store.runs_changed.connect(self._refresh)
        store.shown_changed.connect(self._refresh)
        self._refresh()

    def selected_keys(self) -> list[str]:
        """Keys of the selected runs, in the order of the list."""
        rows = sorted(index.row() for index in self.table.selectionModel().selectedRows())
        return [key for row in rows if (key := self.model.key(row)) is not None]

    def select(self, key: str) -> None:
        """Select one run."""
        row = self.model.row_of(key)
        if row >= 0:
            self.table.selectRow(row)

    def save(self) -> None:
        """Ask for the selected runs to be saved, or for all if none is selected."""
        keys = self.selected_keys() or [item.key for item in self._store.state.runs]
        if keys:
            self.save_requested.emit(keys)
        else:
            self._store.tell("There is no run to save yet; Run measures some.")

    def _set_up_table(self) -> None:
        table = self.table
        table.setModel(self.model)
        table.setAccessibleName("Runs of this session")
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(ROW_PX)
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        # As wide as the names in sight: hundreds of plans come in one by one.
        header.setResizeContentsPrecision(0)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        for column, width in enumerate(COLUMN_PX):
            table.setColumnWidth(column, width)
        header.setStretchLastSection(True)
        table.selectionModel().selectionChanged.connect(self._on_selection)
        self.model.modelAboutToBeReset.connect(self._keep_selection)
        self.model.modelReset.connect(self._restore_selection)
        self.model.modelReset.connect(self._fit_names)
        self.model.modelReset.connect(table.show_rows)
        table.show_rows()
        table.doubleClicked.connect(self._on_double_click)
        table.show_requested.connect(self._show)

    def _key(self, keys: str, slot: Callable[[], None]) -> None:
        """Have a key act wherever in the panel the keyboard is."""
        shortcut = QShortcut(QKeySequence(keys), self)
        shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        shortcut.activated.connect(slot)

    def _action(self, text: str, tip: str, slot: Callable[[], None]) -> QPushButton:
        button = QPushButton(text)
        button.setObjectName("small")
        button.setToolTip(tip)
        button.setAccessibleName(f"{text.rstrip('…')}: {tip}")
        button.clicked.connect(slot)
        return button

    @property
    def _buttons(self) -> tuple[QPushButton, ...]:
        return (
            self.show_button,
            self.compare_button,
            self.pin_button,
            self.rename_button,
            self.save_button,
            self.delete_button,
            self.undo_button,
        )

    def _refresh(self) -> None:
        state = self._store.state
        items = [item for key in self.selected_keys() if (item := state.find_run(key))]
        only = items[0] if len(items) == 1 else None
        is_drawable = only is not None and bool(only.run.launches)
        is_shown = only is not None and only.key == state.shown
        self.show_button.setEnabled(is_drawable and not is_shown)
        self.compare_button.setEnabled(is_drawable and not is_shown)
        self.compare_button.setChecked(only is not None and only.key == state.compared)
        self.pin_button.setEnabled(bool(items))
        self.pin_button.setChecked(bool(items) and all(item.pinned for item in items))
        self.rename_button.setEnabled(only is not None)
        self.save_button.setEnabled(bool(state.runs))
        self.delete_button.setEnabled(bool(items))
        self.undo_button.setEnabled(self._store.can_undo)

    def _fit_names(self) -> None:
        """Names as wide as they are, within what leaves the rest its room."""
        if not self.isVisible():
            return
        wanted = self.table.sizeHintForColumn(NAME) + 12
        self.table.setColumnWidth(NAME, min(max(wanted, NAMES_PX[0]), NAMES_PX[1]))

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fit_names()

    def _on_selection(self) -> None:
        self._refresh()

    def _keep_selection(self) -> None:
        self._selected_keys = self.selected_keys()

    def _restore_selection(self) -> None:
        selection = self.table.selectionModel()
        flags = QItemSelectionModel.SelectionFlag
        for key in self._selected_keys:
            row = self.model.row_of(key)
            if row >= 0:
                selection.select(self.model.index(row, NAME), flags.Select | flags.Rows)
        self._refresh()

    def _on_double_click(self, index: QModelIndex) -> None:
        key = self.model.key(index.row())
        if key is not None:
            self._show_key(key)

    def _show(self) -> None:
        for key in self.selected_keys()[:1]:
            self._show_key(key)

    def _show_key(self, key: str) -> None:
        item = self._store.state.find_run(key)
        if item is not None and not item.run.launches:
            self._store.tell(item.run.error or "This run holds no launches to show.")
        else:
            self._store.show_run(key)

    def _compare(self) -> None:
        for key in self.selected_keys()[:1]:
            self._store.compare_run(None if key == self._store.state.compared else key)

    def _pin(self) -> None:
        pinned = self.pin_button.isChecked()
        for key in self.selected_keys():
            self._store.pin_run(key, pinned)

    def _rename(self) -> None:
        for key in self.selected_keys()[:1]:
            index = self.model.index(self.model.row_of(key), NAME)
            self.table.setFocus()
            self.table.edit(index)

    def _remove(self) -> None:
        for key in self.selected_keys():
            self._store.remove_run(key)
