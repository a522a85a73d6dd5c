"""The list of chains: opens as a sheet with families, titles and formulas, and can be searched."""

from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from explorer.chains import CHAINS
from explorer.chains.descriptor import Family
from explorer.chains.own import is_own, read_name
from explorer.ui.controls import Picker
from explorer.ui.panel import label, wrapped
from explorer.ui.theme import DARK, Theme, font

Index = QModelIndex | QPersistentModelIndex
WIDTH_PX, MOST_HEIGHT_PX = 560, 640
WIDEST = "Attention, as in the textbook"
"""The closed list is as wide as this where there is room; a longer title is cut."""
FAMILY_PX, ROW_PX, PLAIN_PX = 28, 46, 32
PLACE = Qt.ItemDataRole.UserRole
"""Place of a row's choice in the closed list; of a family's heading None."""
FORMULA = Qt.ItemDataRole.UserRole + 1
_MOVES = (Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)
_MORE = "Your own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What can be picked: its place in the closed list, title, formula, family, words to search."""

    place: int
    title: str
    formula: str
    family: str
    words: str

    def fits(self, text: str) -> bool:
        """Whether every word that was typed occurs in it."""
        return all(word in self.words for word in text.lower().split())


class _Rows(QStyledItemDelegate):
    """Draws a family's heading, or a title above its formula."""

    theme = DARK

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        if index.data(PLACE) is None:
            return QSize(100, FAMILY_PX)
        return QSize(100, ROW_PX if index.data(FORMULA) else PLAIN_PX)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inner = rect.adjusted(12, 0, -12, 0)
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        if index.data(PLACE) is None:
            painter.setFont(font(12.5, 600))
            painter.setPen(self.theme.color("muted"))
            painter.drawText(inner.adjusted(0, 5, 0, 0), left, str(index.data()))
            painter.restore()
            return
        view = self.parent()
        if isinstance(view, QListWidget) and view.currentIndex() == index:
            painter.setPen(self.theme.color("memory_line"))
            painter.setBrush(self.theme.color("memory_top"))
            painter.drawRoundedRect(rect.adjusted(2, 1, -2, -1), 6, 6)
        title, formula = font(14, 600), font(12.5)
        formula_text = str(index.data(FORMULA) or "")
        upper = inner.adjusted(0, 4, 0, -rect.height() // 2 + 1) if formula_text else inner
        painter.setFont(title)
        painter.setPen(self.theme.color("text"))
        painter.drawText(upper, left, _cut(painter, str(index.data()), inner.width()))
        painter.setFont(formula)
        painter.setPen(self.theme.color("muted"))
        lower = inner.adjusted(0, rect.height() // 2, 0, -4)
        painter.drawText(lower, left, _cut(painter, formula_text, inner.width()))
        painter.restore()


class ChainSheet(QFrame):
    """The open list: what is typed narrows it, arrows go through it, Enter and a click pick.

    Signals:
        picked: Place of the choice in the closed list.
    """

    picked = Signal(int)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("popup")
        self.setAccessibleName("Chains")
        self._choices: tuple[Choice, ...] = ()
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search: softmax, adam, matmul…")
        self.search.setAccessibleName("Search chains")
        self.search.textChanged.connect(self._list)
        self.list = QListWidget()
        self.list.setObjectName("sheet")
        self.list.setAccessibleName("Chains")
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.list.setMouseTracking(True)
        self.list.itemEntered.connect(self._on_entered)
        self.list.itemClicked.connect(self._pick)
        self.list.currentItemChanged.connect(self._describe)
        self._rows = _Rows(self.list)
        self.list.setItemDelegate(self._rows)
        self.nothing = label("", "sentence")
        self.nothing.setWordWrap(True)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 10, 10)
        column.setSpacing(8)
        column.addWidget(self.search)
        column.addWidget(self.nothing)
        column.addWidget(self.list, 1)

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme."""
        self._rows.theme = theme
        self.list.viewport().update()

    def open_below(self, widget: QWidget, choices: tuple[Choice, ...], current: int) -> None:
        """Open under a widget with these choices, the current one marked."""
        self._choices = choices
        self.search.clear()
        self._list("")
        for row in range(self.list.count()):
            if self.list.item(row).data(PLACE) == current:
                self.list.setCurrentRow(row)
                self.list.scrollToItem(self.list.item(row), self.list.ScrollHint.PositionAtCenter)
        corner = widget.mapToGlobal(widget.rect().bottomLeft())
        room = widget.screen().availableGeometry().bottom() - corner.y() - 8
        wanted = sum(self.list.sizeHintForRow(row) for row in range(self.list.count())) + 80
        self.resize(WIDTH_PX, min(wanted, MOST_HEIGHT_PX, max(room, 200)))
        self.move(corner)
        self.show()
        self.search.setFocus(Qt.FocusReason.PopupFocusReason)

    def _list(self, text: str) -> None:
        """Show what fits, under its families."""
        self.list.clear()
        family = ""
        for choice in self._choices:
            if not choice.fits(text):
                continue
            if choice.family != family:
                family = choice.family
                heading = QListWidgetItem(family.capitalize())
                heading.setFlags(Qt.ItemFlag.NoItemFlags)
                self.list.addItem(heading)
            item = QListWidgetItem(choice.title)
            item.setData(PLACE, choice.place)
            item.setData(FORMULA, choice.formula)
            item.setToolTip(wrapped(choice.formula))
            item.setData(Qt.ItemDataRole.AccessibleDescriptionRole, choice.formula)
            self.list.addItem(item)
        is_empty = self.list.count() == 0
        self.nothing.setText(f"No chain is about {text.strip()!r}." if is_empty else "")
        self.nothing.setVisible(is_empty)
        self.list.setVisible(not is_empty)
        if not is_empty:
            self.list.setCurrentRow(1)

    def _describe(self) -> None:
        """The keyboard stays in the search: it says what Enter would pick."""
        item = self.list.currentItem()
        self.search.setAccessibleDescription(
            f"{item.text()}: {item.data(FORMULA)}" if item is not None else self.nothing.text()
        )

    def _on_entered(self, item: QListWidgetItem) -> None:
        if item.data(PLACE) is not None:
            self.list.setCurrentItem(item)

    def _pick(self, item: QListWidgetItem | None) -> None:
        if item is not None and item.data(PLACE) is not None:
            self.hide()
            self.picked.emit(int(item.data(PLACE)))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        # What the search does not want: it has the keyboard, the list is moved from here.
        if event.key() in _MOVES:
            self._move(Qt.Key(event.key()))
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._pick(self.list.currentItem())
        else:
            super().keyPressEvent(event)

    def _move(self, key: Qt.Key) -> None:
        rows = [i for i in range(self.list.count()) if self.list.item(i).data(PLACE) is not None]
        if not rows:
            return
        by = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1, Qt.Key.Key_PageUp: -6}.get(key, 6)
        at = self.list.currentRow()
        place = rows.index(at) + by if at in rows else 0
        self.list.setCurrentRow(rows[min(max(place, 0), len(rows) - 1)])


class ChainPicker(Picker):
    """The closed list; what opens is a :class:`ChainSheet`."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, widest=WIDEST, parent=parent)
        # Otherwise it would ask for room for the longest title of all.
        self.setSizeAdjustPolicy(self.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._sheet: ChainSheet | None = None
        self._theme = DARK

    @property
    def sheet(self) -> ChainSheet:
        """What opens; made when it is first asked for."""
        if self._sheet is None:
            # Within a combo box the style sheet would dress it as part of one.
            self._sheet = ChainSheet(self.window())
            self._sheet.set_theme(self._theme)
            self._sheet.picked.connect(self._on_picked)
        return self._sheet

    def set_theme(self, theme: Theme) -> None:
        """Paint in another theme."""
        self._theme = theme
        if self._sheet is not None:
            self._sheet.set_theme(theme)

    @override
    def showPopup(self) -> None:
        self.sheet.open_below(self, self.choices(), self.currentIndex())

    @override
    def hidePopup(self) -> None:
        if self._sheet is not None:
            self._sheet.hide()

    def choices(self) -> tuple[Choice, ...]:
        """What can be picked, family by family."""
        found = [self._choice(i) for i in range(self.count()) if self.itemText(i)]
        order = [*(family.value for family in Family if family is not Family.OTHER), "other", _MORE]
        return tuple(sorted(found, key=lambda choice: (order.index(choice.family), choice.place)))

    def _choice(self, place: int) -> Choice:
        title = self.itemText(place)
        name = str(self.itemData(place))
        chain = CHAINS.get(name)
        if chain is None:
            where = read_name(name).where if is_own(name) else ""
            words = f"{title} {where}".lower()
            return Choice(place=place, title=title, formula=where, family=_MORE, words=words)
        ops = " ".join(op.name for op in chain.all_ops)
        words = f"{chain.title} {chain.id} {chain.formula} {chain.family.value} {ops}".lower()
        return Choice(
            place=place,
            title=title,
            formula=chain.formula,
            family=chain.family.value,
            words=words,
        )

    def _on_picked(self, place: int) -> None:
        self.setCurrentIndex(place)
        self.setFocus(Qt.FocusReason.PopupFocusReason)
        self.activated.emit(place)

    @override
    def _widest_text(self) -> int:
        # Twenty titles: not as wide as the longest of them.
        return self.fontMetrics().horizontalAdvance(self._widest)


def _cut(painter: QPainter, text: str, width: int) -> str:
    # A path's end says more than its middle.
    is_path = "/" in text and " " not in text
    mode = Qt.TextElideMode.ElideMiddle if is_path else Qt.TextElideMode.ElideRight
    return painter.fontMetrics().elidedText(text, mode, width)
