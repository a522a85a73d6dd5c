"""What the window remembers, and what it makes of a damaged file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QStandardPaths
from pytestqt.qtbot import QtBot

from explorer.ui.main_window import FIRST_SIZE, MainWindow
from explorer.ui.settings import Settings, settings_path
from explorer.ui.store import Store

Open = Callable[[], MainWindow]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "window.ini"


@pytest.fixture
def open_window(qtbot: QtBot, path: Path) -> Open:
    """Opens the window as a new start of the program would."""

    def make() -> MainWindow:
        settings, store = Settings(path), Store()
        store.set_theme(settings.theme or store.state.theme)
        window = MainWindow(store, settings=settings)
        qtbot.addWidget(window)
        with qtbot.waitSignal(window.first_painted):
            window.show()
        return window

    return make


def test_size_shares_and_theme_are_kept(open_window: Open, path: Path) -> None:
    window = open_window()
    window.resize(1300, 760)
    window._splitters["centre"].set_shares([0.55, 0.45])
    window._store.set_theme("light")
    window.close()
    assert "light" in path.read_text()

    again = open_window()
    assert (again.width(), again.height()) == (1300, 760)
    assert again._store.state.theme == "light"
    upper, lower = again._splitters["centre"].sizes()
    assert upper / (upper + lower) == pytest.approx(0.55, abs=0.01)
    # Another size has the same shares; what nobody moved follows the rule.
    again.resize(1700, 1000)
    upper, lower = again._splitters["centre"].sizes()
    assert upper / (upper + lower) == pytest.approx(0.55, abs=0.01)
    assert Settings(path).shares("columns", 3) is None


def test_a_full_screen_window_keeps_its_size_for_later(open_window: Open, path: Path) -> None:
    window = open_window()
    window.resize(1300, 760)
    window.close()
    window = open_window()
    window.showMaximized()
    window.close()
    kept = Settings(path)
    assert kept.is_maximized
    assert kept.size == (1300, 760)


@pytest.mark.parametrize(
    "damaged",
    [
        b"",
        b"\x00\xff\xfe garbage [[[ == \n\x80",
        b"[General]\ntheme=purple\nsize=wide high\nmaximized=perhaps\n",
        b"[General]\nsize=-5 100000\n[shares]\ncentre=nan inf\ncolumns=1 1 1\nleft=0.5\n",
        b"[General]\ntheme=@ByteArray(light)\nsize=@Size(10 10)\n",
    ],
    ids=["empty", "binary", "other words", "out of range", "other types"],
)
def test_damaged_settings_are_ignored(open_window: Open, path: Path, damaged: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(damaged)
    window = open_window()
    assert (window.width(), window.height()) == FIRST_SIZE
    assert window._store.state.theme == "dark"
    assert not window.isMaximized()
    assert all(splitter.shares() is None for splitter in window._splitters.values())


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path: Path, open_window: Open) -> None:
    (tmp_path / "folder").write_text("a file where the folder would be")
    window = open_window()
    window.close()
    assert not window.isVisible()


def test_a_window_without_settings_writes_none(qtbot: QtBot, tmp_path: Path) -> None:
    window = MainWindow(Store())
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.first_painted):
        window.show()
    window.close()
    assert list(tmp_path.iterdir()) == []


def test_they_lie_in_the_users_folder_for_settings() -> None:
    location = QStandardPaths.StandardLocation.GenericConfigLocation
    folder = Path(QStandardPaths.writableLocation(location))
    assert settings_path() == folder / "kernel-explorer" / "window.ini"
