"""The sheet of chains: families in order, search, keys, and what is picked."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from explorer.chains import CHAINS
from explorer.chains.descriptor import Family
from explorer.ui.chain_picker import FORMULA, PLACE, ChainSheet
from explorer.ui.controls import TEXT_MARGIN_PX
from explorer.ui.header import Header
from explorer.ui.store import Store
from explorer.ui.style_sheet import style_sheet
from explorer.ui.theme import DARK
from tests.ui.drive import press, write

KEY = Qt.Key


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def header(qtbot: QtBot, store: Store) -> Header:
    header = Header(store)
    qtbot.addWidget(header)
    header.show()
    return header


@pytest.fixture
def sheet(header: Header) -> ChainSheet:
    header.chain.showPopup()
    return header.chain.sheet


def titles(sheet: ChainSheet) -> list[str]:
    """The choices on screen, families left out."""
    items = [sheet.list.item(row) for row in range(sheet.list.count())]
    return [item.text() for item in items if item.data(PLACE) is not None]


def families(sheet: ChainSheet) -> list[str]:
    items = [sheet.list.item(row) for row in range(sheet.list.count())]
    return [item.text() for item in items if item.data(PLACE) is None]


def test_every_chain_has_a_family() -> None:
    assert [chain.id for chain in CHAINS.values() if chain.family is Family.OTHER] == []


def test_all_chains_are_listed_by_family(sheet: ChainSheet) -> None:
    assert set(titles(sheet)) == {chain.title for chain in CHAINS.values()} | {"Open your own…"}
    assert families(sheet) == [
        "Attention", "Normalisation", "Gates and activations", "Matmul", "Losses", "Optimizers",
        "Whole blocks", "Your own",
    ]  # fmt: skip


def test_every_chain_shows_its_formula(sheet: ChainSheet) -> None:
    items = [sheet.list.item(row) for row in range(sheet.list.count())]
    shown = {item.text(): item.data(FORMULA) for item in items}
    assert all(shown[chain.title] == chain.formula for chain in CHAINS.values())


def test_typing_narrows_the_list_and_enter_picks(store: Store, sheet: ChainSheet) -> None:
    write(sheet.search, "residual-rms")
    assert titles(sheet) == [CHAINS["residual-rmsnorm"].title]
    press(sheet.search, KEY.Key_Return)
    assert store.state.chain == "residual-rmsnorm"
    assert not sheet.isVisible()


def test_an_op_finds_the_chains_that_have_it(sheet: ChainSheet) -> None:
    write(sheet.search, "softmax")
    assert CHAINS["attention"].title in titles(sheet)
    assert CHAINS["rmsnorm"].title not in titles(sheet)


def test_arrows_pass_families_over(store: Store, sheet: ChainSheet) -> None:
    start = titles(sheet).index(CHAINS[store.state.chain].title)
    for _ in range(4):
        press(sheet.search, KEY.Key_Down)
    current = sheet.list.currentItem()
    assert current is not None
    assert current.text() == titles(sheet)[start + 4]
    assert current.text() in sheet.search.accessibleDescription()
    press(sheet.search, KEY.Key_Return)
    assert CHAINS[store.state.chain].title == titles(sheet)[start + 4]


def test_what_nobody_has_is_said(sheet: ChainSheet) -> None:
    write(sheet.search, "zzz")
    assert sheet.nothing.text() == "No chain is about 'zzz'."
    press(sheet.search, KEY.Key_Return)
    assert sheet.isVisible()


def test_escape_leaves_the_chain(store: Store, sheet: ChainSheet) -> None:
    before = store.state.chain
    press(sheet.search, KEY.Key_Down)
    press(sheet, KEY.Key_Escape)
    assert not sheet.isVisible()
    assert store.state.chain == before


def test_a_wide_bar_shows_every_title_whole_and_nothing_moves_with_it(
    qtbot: QtBot, store: Store
) -> None:
    header = Header(store)
    holder = QWidget()
    qtbot.addWidget(holder)
    header.setParent(holder)
    holder.setStyleSheet(style_sheet(DARK))
    for width, is_whole in ((1892, True), (1412, False)):
        holder.resize(width, 40)
        header.resize(width, 40)
        holder.show()
        places = set()
        for chain in CHAINS.values():
            store.choose_chain(chain.id)
            QApplication.processEvents()
            room = header.chain.width() - TEXT_MARGIN_PX
            fits = header.chain.fontMetrics().horizontalAdvance(chain.title) <= room
            assert fits or not is_whole, chain.title
            places.add((header.direction.x(), header.device.x(), header.worker.x()))
        assert len(places) == 1
