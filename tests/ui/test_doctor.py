"""The doctor's page: at once with what the window knows, then with what the worker found."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.ui.doctor_dialog import DoctorDialog
from explorer.ui.main_window import MainWindow
from explorer.ui.session import Session
from explorer.ui.store import Store
from tests.ui.conftest import MakeWorker
from tests.ui.drive import click, press

WAIT_MS = 10_000


def opened(window: MainWindow) -> DoctorDialog:
    click(window.status.doctor_button)
    dialog = window.doctor.dialog
    assert dialog is not None
    return dialog


def names(dialog: DoctorDialog) -> list[str]:
    return [check.name for check in dialog.checks]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")


@pytest.mark.usefixtures("screen")
def test_what_is_missing_stands_first_and_the_table_is_copied(
    qtbot: QtBot, make_worker: MakeWorker
) -> None:
    store = Store()
    session = Session(store, make_worker("doctor"))
    window = MainWindow(store, session)
    qtbot.addWidget(window)
    window.show()
    dialog = opened(window)
    assert names(dialog) == ["Qt", "Display", "Fonts", "Disk"]
    assert not dialog.again.isEnabled()
    qtbot.waitUntil(lambda: len(dialog.checks) == 6, timeout=WAIT_MS)
    assert names(dialog) == ["NVML", "torch", "Qt", "Display", "Fonts", "Disk"]
    assert dialog.sentence.text().startswith("1 ability is missing here")
    click(dialog.copy)
    copied = QApplication.clipboard().text().splitlines()
    assert copied[2:5] == [
        "NVML     missing  It is silent.",
        "                  Lost: clocks.",
        "                  Remedy: Wake it.",
    ]
    click(dialog.again)
    assert names(dialog) == ["Qt", "Display", "Fonts", "Disk"]
    qtbot.waitUntil(lambda: len(dialog.checks) == 6, timeout=WAIT_MS)
    click(dialog.done_button)
    assert window.doctor.dialog is None


def test_a_key_opens_it(qtbot: QtBot) -> None:
    window = MainWindow(Store())
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    press(window, Qt.Key.Key_F1)
    assert window.doctor.dialog is not None


@pytest.mark.usefixtures("screen")
@pytest.mark.parametrize(
    ("mode", "said"), [("ill", "The doctor is ill."), ("dies", "no worker today")]
)
def test_a_worker_that_cannot_tell_is_a_row_of_its_own(
    qtbot: QtBot, make_worker: MakeWorker, mode: str, said: str
) -> None:
    store = Store()
    window = MainWindow(store, Session(store, make_worker(mode)))
    qtbot.addWidget(window)
    dialog = opened(window)
    qtbot.waitUntil(lambda: names(dialog)[:1] == ["Worker"], timeout=WAIT_MS)
    assert said in dialog.checks[0].sentence
    assert dialog.again.isEnabled()


def test_given_up_it_says_so_and_can_be_asked_again(qtbot: QtBot, make_worker: MakeWorker) -> None:
    store = Store()
    worker = make_worker()
    window = MainWindow(store, Session(store, worker))
    qtbot.addWidget(window)
    dialog = opened(window)
    qtbot.waitUntil(lambda: worker.current is not None, timeout=WAIT_MS)
    worker.cancel()
    assert dialog.checks[0].sentence == "The examination was cancelled."
    assert dialog.again.isEnabled()


def test_a_window_without_a_worker_says_what_it_did_not_look_at(qtbot: QtBot) -> None:
    window = MainWindow(Store())
    qtbot.addWidget(window)
    dialog = opened(window)
    assert sorted(names(dialog)) == ["Disk", "Display", "Fonts", "Qt"]
    assert "only shows recordings" in dialog.sentence.text()
    assert not dialog.again.isEnabled()
