"""The plans of a sweep as a table: each with its kernels, time, traffic and peak memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget
from typing_extensions import override

from explorer.model.run import Run
from explorer.model.sweep import Sweep, SweepPoint
from explorer.model.sweep_words import point_words
from explorer.model.units import format_bytes, format_us
from explorer.ui.painting import text_width
from explorer.ui.panel import wrapped
from explorer.ui.plan_delegate import PLAN_ROLE, PlanDelegate
from explorer.ui.plan_strip import PlanOps, order_words
from explorer.ui.theme import DARK, Theme, font
from explorer.ui.words import DASH

Index = QModelIndex | QPersistentModelIndex
ROW_PX = 20
PLAN_PX = 210
"""What the names of plans are given at most before another column is left out."""
LEAST_PLAN_PX = 110
"""What they are cut to before the time is left out."""
CELL_AIR_PX = 16
_ROOT = QModelIndex()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column: its title, what is sorted by, and what stands in the cell."""

    title: str
    value: Callable[[SweepPoint], float | str | None]
    text: Callable[[SweepPoint], str]
    widest: str = ""


def _time_text(point: SweepPoint) -> str:
    if point.run.error is not None:
        return "failed"
    return DASH if point.time is None else format_us(point.median_us)


def _bytes_text(n_bytes: int | None) -> str:
    return DASH if n_bytes is None else format_bytes(n_bytes)


COLUMNS = (
    _Column(title="Plan", value=lambda p: p.text, text=lambda p: p.text),
    _Column(
        title="Kernels",
        value=lambda p: p.launches or None,
        text=lambda p: str(p.launches) if p.launches else DASH,
        widest="Kernels",
    ),
    _Column(
        title="Time",
        value=lambda p: None if p.time is None else p.median_us,
        text=_time_text,
        widest="88.88 ms",
    ),
    _Column(
        title="Traffic",
        value=lambda p: p.traffic,
        text=lambda p: _bytes_text(p.traffic),
        widest="88.88 GB",
    ),
    _Column(
        title="Peak",
        value=lambda p: p.peak_bytes,
        text=lambda p: _bytes_text(p.peak_bytes),
        widest="88.88 GB",
    ),
)
PLAN, KERNELS, TIME, TRAFFIC, PEAK = range(len(COLUMNS))
KEPT_FIRST = (TIME, KERNELS, TRAFFIC, PEAK)
"""Columns beside the plan in the order in which they get room; the plot tells the traffic too."""


class SweepListModel(QAbstractTableModel):
    """A row a plan."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._sweep: Sweep | None = None
        self._points: list[SweepPoint] = []
        self._order = (TIME, Qt.SortOrder.AscendingOrder)
        self._shown: Run | None = None
        self._theme, self._zoom = DARK, 1.0

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """The rows from top to bottom."""
        return tuple(self._points)

    def row_shown(self) -> int:
        """Row of the run that the window shows, -1 if it is not here."""
        return next((i for i, point in enumerate(self._points) if point.run is self._shown), -1)

    def set_sweep(self, sweep: Sweep | None, shown: Run | None) -> None:
        """Take another sweep, and which of its runs the window shows."""
        points = self._sorted(sweep.points if sweep else ())
        is_same = len(points) == len(self._points)
        if not is_same:
            self.beginResetModel()
        self._sweep, self._shown, self._points = sweep, shown, points
        if not is_same:
            self.endResetModel()
        else:
            self._tell()

    @override
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        self._order = (column, order)
        self._points = self._sorted(self._points)
        self._tell()

    def _sorted(self, points: Sequence[SweepPoint]) -> list[SweepPoint]:
        """By the chosen column; what has no value there comes last either way."""
        column, order = self._order
        value = COLUMNS[column].value
        there = [
            (known, i) for i, point in enumerate(points) if (known := value(point)) is not None
        ]
        there.sort(key=_first, reverse=order is Qt.SortOrder.DescendingOrder)
        missing = [point for point in points if value(point) is None]
        return [points[i] for _, i in there] + missing

    def set_looks(self, theme: Theme, zoom: float) -> None:
        """Take another theme or font size."""
        self._theme, self._zoom = theme, zoom
        self._tell()

    def _tell(self) -> None:
        if self.points:
            last = self.index(len(self.points) - 1, len(COLUMNS) - 1)
            self.dataChanged.emit(self.index(0, 0), last)

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self.points)

    @override
    def columnCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(COLUMNS)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or self._sweep is None or index.row() >= len(self.points):
            return None
        point, column = self.points[index.row()], COLUMNS[index.column()]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.text(point)
        if role == Qt.ItemDataRole.ToolTipRole:
            return wrapped("\n".join(point_words(self._sweep, point)))
        if role == PLAN_ROLE:
            return _plan_ops(point) if index.column() == PLAN else None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(index.column())
        if role == Qt.ItemDataRole.FontRole:
            return self._font(point, index.column())
        if role == Qt.ItemDataRole.ForegroundRole:
            return self._theme.color(self._color(self._sweep, point, index.column()))
        return None

    @override
    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal or not 0 <= section < len(COLUMNS):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section].title
        if role == Qt.ItemDataRole.ToolTipRole and section == PLAN:
            return wrapped(self._order_words())
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _side(section)
        if role == Qt.ItemDataRole.FontRole:
            return font(12 * self._zoom, 500)
        return None

    def _order_words(self) -> str:
        found = (_plan_ops(point) for point in self.points)
        return next((order_words(shown.ops) for shown in found if shown is not None), "")

    def _font(self, point: SweepPoint, column: int) -> QFont:
        weight = 600 if point.run is self._shown else 400
        return cell_font(column, self._zoom, weight)

    def _color(self, sweep: Sweep, point: SweepPoint, column: int) -> str:
        if point.distrust:
            return "warning"
        if column == TIME and point is sweep.fastest:
            return "compute"
        if column == TRAFFIC and point is sweep.leanest:
            return "compute"
        if column == PLAN and point is sweep.inductor_point:
            return "read"
        return "text"


def _plan_ops(point: SweepPoint) -> PlanOps | None:
    """What a strip of the plan needs; None for a run that is no plan's."""
    if point.plan is None:
        return None
    return PlanOps(point.plan, tuple(op.name for op in point.run.graph.ops))


def cell_font(column: int, zoom: float, weight: int = 400) -> QFont:
    """The font of a column's cells."""
    return font(12.5 * zoom, weight, tabular=column != PLAN)


class SweepList(QTableView):
    """The table; a click on a row or Enter picks its plan, a click on a header sorts.

    Where it is narrow, columns are left out from the right: the plot and the tooltip tell them.
    Where a plan's text would have to be cut, every plan is drawn as a strip instead.

    Signals:
        run_picked: The run of the row that was picked.
    """

    run_picked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._zoom = 1.0
        self._model = SweepListModel(self)
        self.setModel(self._model)
        self._delegate = PlanDelegate(self)
        self.setItemDelegateForColumn(PLAN, self._delegate)
        self.setSortingEnabled(True)
        self.sortByColumn(TIME, Qt.SortOrder.AscendingOrder)
        self.horizontalHeader().sortIndicatorChanged.connect(self._select_shown)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setWordWrap(False)
        self.setShowGrid(False)
        self.verticalHeader().hide()
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.horizontalHeader().setHighlightSections(False)
        self.horizontalHeader().setSortIndicatorShown(False)
        self.setAccessibleName("Plans of the sweep")
        self.clicked.connect(self._pick)

    @property
    def points(self) -> tuple[SweepPoint, ...]:
        """The rows from top to bottom."""
        return self._model.points

    def set_sweep(self, sweep: Sweep | None, shown: Run | None) -> None:
        """Show another sweep; the row of the shown run is selected."""
        self._model.set_sweep(sweep, shown)
        self._select_shown()
        self._fit_columns()

    def _select_shown(self, *_: object) -> None:
        row = self._model.row_shown()
        if row < 0:
            self.clearSelection()
        elif self.currentIndex().row() != row or not self.selectionModel().hasSelection():
            self.selectRow(row)

    def set_looks(self, theme: Theme, zoom: float) -> None:
        """Take another theme and font size."""
        if zoom != self._zoom:
            size = f"QHeaderView::section {{ font-size: {round(13 * zoom)}px; }}"
            self.horizontalHeader().setStyleSheet(size)
        self._zoom = zoom
        self.verticalHeader().setMinimumSectionSize(1)
        self.verticalHeader().setDefaultSectionSize(round(ROW_PX * zoom))
        self._model.set_looks(theme, zoom)
        self._delegate.set_looks(theme, zoom)
        self._fit_columns()

    def wanted_px(self) -> int:
        """How wide it would like to be, with every column."""
        return self._plan_px() + sum(self._column_px(i) for i in range(1, len(COLUMNS))) + 12

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._pick(self.currentIndex())
        else:
            super().keyPressEvent(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_columns()

    def _pick(self, index: QModelIndex) -> None:
        if index.isValid():
            self.run_picked.emit(self._model.points[index.row()].run)

    @property
    def as_strips(self) -> bool:
        """Whether plans are drawn as strips, because the text of one of them does not fit."""
        return self._delegate.as_strips

    def _widest_px(self) -> int:
        """What the texts of all plans need."""
        face = cell_font(PLAN, self._zoom, 600)
        widest = max((text_width(point.text, face) for point in self._model.points), default=0)
        return round(widest + CELL_AIR_PX)

    def _plan_px(self) -> int:
        return min(self._widest_px(), round(PLAN_PX * self._zoom))

    def _column_px(self, column: int) -> int:
        wide = text_width(COLUMNS[column].widest, cell_font(column, self._zoom, 600))
        return round(wide + CELL_AIR_PX)

    def _fit_columns(self) -> None:
        left = self.viewport().width() - self._plan_px()
        least = min(self._plan_px(), round(LEAST_PLAN_PX * self._zoom))
        for column in KEPT_FIRST:
            width = self._column_px(column)
            room = self.viewport().width() - least if column == KEPT_FIRST[0] else left
            self.setColumnHidden(column, width > room)
            self.setColumnWidth(column, width)
            left -= width if width <= room else 0
        others = sum(
            self.columnWidth(i) for i in range(1, len(COLUMNS)) if not self.isColumnHidden(i)
        )
        self.setColumnWidth(PLAN, max(self.viewport().width() - others, 1))
        as_strips = self._widest_px() > self.columnWidth(PLAN)
        if as_strips != self._delegate.as_strips:
            self._delegate.as_strips = as_strips
            self.viewport().update()


def _side(column: int) -> int:
    side = Qt.AlignmentFlag.AlignLeft if column == PLAN else Qt.AlignmentFlag.AlignRight
    return int(side | Qt.AlignmentFlag.AlignVCenter)


def _first(pair: tuple[Any, int]) -> Any:
    return pair[0]
