"""Own code in the window: named, agreed to once, captured and run; recordings never run any."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.model.errors import UsageError
from explorer.model.own_code import OwnCode
from explorer.model.run import Run
from explorer.ui.export import export_png
from explorer.ui.header import OPEN_OWN, Header
from explorer.ui.main_window import MainWindow
from explorer.ui.own_actions import OwnActions
from explorer.ui.own_dialog import OwnDialog
from explorer.ui.own_form import Field
from explorer.ui.session import Session
from explorer.ui.settings import MOST_RECENT, Settings
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from tests.fixtures_runs import compiled_attention
from tests.ui.conftest import MakeWorker
from tests.ui.drive import click, press, write

WAIT_MS = 10_000
OWN = OwnCode(inputs="x=dtype[rows=8,64]")


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text("class Block: ...\n", encoding="utf-8")
    return path


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "window.ini")


@pytest.fixture
def session(store: Store, make_worker: MakeWorker) -> Iterator[Session]:
    session = Session(store, make_worker())
    yield session
    session.close()


@pytest.fixture
def window(qtbot: QtBot, store: Store, session: Session, settings: Settings) -> MainWindow:
    window = MainWindow(store, session, settings=settings)
    qtbot.addWidget(window)
    window.show()
    return window


def recorded(chain: str) -> Run:
    run = compiled_attention("own")
    return replace(run, chain=replace(run.chain, name=chain, title="Block", own=OWN))


def in_dialog(act: Callable[[OwnDialog], None]) -> list[str]:
    """Have the next dialog used; returns what it said of running code, once it was there."""
    said: list[str] = []

    def use() -> None:
        dialog = QApplication.activeModalWidget()
        assert isinstance(dialog, OwnDialog)
        said.append(dialog.consent)
        act(dialog)
        if dialog.isVisible():
            dialog.reject()

    QTimer.singleShot(0, use)
    return said


def test_own_code_is_picked_with_its_parameters(store: Store) -> None:
    store.open_own("net.py:Block", OWN)
    state = store.state
    assert (state.chain, state.chain_descriptor.title) == ("net.py:Block", "Block")
    assert state.parameters.values == {"rows": 8, "dtype": "fp32"}
    store.set_parameter("rows", "16")
    assert store.state.parameters.values["rows"] == 16
    store.choose_chain("rmsnorm")
    assert store.state.own is None
    assert store.state.chain_descriptor.id == "rmsnorm"


def test_a_text_that_cannot_be_read_changes_nothing(store: Store) -> None:
    before = store.state
    with pytest.raises(UsageError, match="bf17"):
        store.open_own("net.py:Block", OwnCode(inputs="x=bf17[3]"))
    assert store.state == before


def test_own_code_opened_again_is_captured_again(qtbot: QtBot, store: Store) -> None:
    store.open_own("net.py:Block", OWN)
    store.set_captured(None, "It failed.")
    with qtbot.waitSignals([store.chain_changed, store.captured_changed]):
        store.open_own("net.py:Block", OWN)
    assert store.state.capture_failure == ""


def test_the_graph_is_captured_and_a_run_is_made(
    qtbot: QtBot, store: Store, session: Session
) -> None:
    session.start()
    store.open_own("net.py:Block", OWN)
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    session.run()
    qtbot.waitUntil(
        lambda: bool(store.state.runs) and store.state.worker.phase is WorkerPhase.READY,
        timeout=WAIT_MS,
    )
    run = store.state.runs[0].run
    assert (run.chain.name, run.chain.own) == ("net.py:Block", store.state.own)


def test_code_that_cannot_be_captured_is_told_once_and_not_tried_over_and_over(
    qtbot: QtBot, store: Store, session: Session, window: MainWindow
) -> None:
    session.start()
    store.open_own("net.py:Broken", OWN)
    qtbot.waitUntil(lambda: store.state.capture_failure != "", timeout=WAIT_MS)
    sentence = "net.py, line 3: ZeroDivisionError: division by zero; attempt 1."
    assert store.state.capture_failure == sentence
    notice = store.state.notice
    assert notice is not None
    assert notice.sentence == sentence
    assert sentence in window.graph.view.accessibleDescription()
    # A failure of one is none of another; and the worker counts.
    store.set_parameter("rows", "9")
    qtbot.waitUntil(lambda: "attempt 2" in store.state.capture_failure, timeout=WAIT_MS)
    store.open_own("net.py:Block", OWN)
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    assert store.state.capture_failure == ""


def test_code_that_ends_the_worker_ends_one_worker(
    qtbot: QtBot, store: Store, make_worker: MakeWorker
) -> None:
    worker = make_worker()
    session = Session(store, worker)
    ends: list[str] = []
    worker.failed.connect(ends.append)
    session.start()
    store.open_own("net.py:Deadly", OWN)
    qtbot.waitUntil(lambda: bool(ends), timeout=WAIT_MS)
    # The next worker is up and waits for another choice.
    qtbot.waitUntil(lambda: store.state.worker.phase is WorkerPhase.READY, timeout=WAIT_MS)
    assert store.state.capture_failure == ends[0]
    store.open_own("net.py:Block", OWN)
    qtbot.waitUntil(lambda: store.state.captured is not None, timeout=WAIT_MS)
    assert len(ends) == 1
    session.close()


def test_the_picker_offers_to_open_ones_own(qtbot: QtBot, store: Store) -> None:
    header = Header(store)
    qtbot.addWidget(header)
    with qtbot.waitSignal(header.own_requested):
        header.chain.activated.emit(header.chain.findData(OPEN_OWN))
    assert header.chain.currentData() == "attention"
    count = header.chain.count()
    store.open_own("net.py:Block", OWN)
    store.open_own("net.py:Other", OWN)
    assert header.chain.count() == count + 1
    assert header.chain.currentData() == "net.py:Other"
    assert header.chain.currentText() == "Other"
    store.choose_chain("rmsnorm")
    assert header.chain.currentData() == "rmsnorm"
    with qtbot.waitSignal(header.own_requested):
        header.chain.activated.emit(header.chain.findData("net.py:Other"))
    assert store.state.chain == "rmsnorm"


def test_a_window_that_only_shows_opens_none(qtbot: QtBot, store: Store) -> None:
    header = Header(store, can_run=False)
    qtbot.addWidget(header)
    assert header.chain.findData(OPEN_OWN) == -1


def test_the_dialog_asks_once_for_a_file(
    store: Store, window: MainWindow, path: Path, settings: Settings
) -> None:
    def fill_in(dialog: OwnDialog) -> None:
        dialog.edit(Field.WHERE).clear()
        write(dialog.edit(Field.WHERE), str(path))
        write(dialog.edit(Field.INPUTS), "x=fp32[rows=4]")
        assert dialog.edit(Field.WHAT).text() == "Block"
        said.append(dialog.consent)
        assert dialog.agree.text() == "Run it and open"
        press(dialog, Qt.Key.Key_Return)

    said = in_dialog(fill_in)
    window.own.ask_for_any()
    assert f"{path} will be run on this machine, in the worker" in said[-1]
    assert store.state.chain == f"{path}:Block"
    assert settings.recent_own == ((f"{path}:Block", OwnCode(inputs="x=fp32[rows=4]")),)

    def change(dialog: OwnDialog) -> None:
        assert dialog.agree.text() == "Open"
        dialog.edit(Field.INPUTS).setText("x=fp32[rows=5]")
        click(dialog.agree)

    said = in_dialog(change)
    window.own.ask_for_any()
    assert "you agreed to that before" in said[0]
    assert store.state.parameters.values == {"rows": 5}
    # Another window, another session.
    assert not OwnActions(Store(), window, settings).is_allowed(str(path))


def test_a_dialog_that_is_left_runs_nothing(store: Store, window: MainWindow, path: Path) -> None:
    in_dialog(lambda dialog: press(dialog, Qt.Key.Key_Escape))
    window.own.ask(f"{path}:Block", OWN)
    assert store.state.own is None
    assert not window.own.is_allowed(str(path))


def test_what_cannot_be_opened_keeps_the_dialog_open(
    qtbot: QtBot, store: Store, path: Path
) -> None:
    dialog = OwnDialog(store.theme, [], lambda _: False)
    qtbot.addWidget(dialog)
    dialog.show()
    assert not dialog.agree.isEnabled()
    dialog.edit(Field.WHERE).setText(str(path))
    dialog.edit(Field.INPUTS).setText("x=bf17[3]")
    assert "bf17 is no dtype" in dialog.message(Field.INPUTS)
    assert not dialog.agree.isEnabled()
    dialog.accept()
    assert dialog.isVisible()
    dialog.edit(Field.INPUTS).setText("x=bf16[3]")
    assert dialog.agree.isEnabled()


def test_what_was_opened_before_fills_the_form_in(qtbot: QtBot, store: Store, path: Path) -> None:
    own = OwnCode(inputs="x=bf16[3]", init="n=3", training=True)
    dialog = OwnDialog(store.theme, [(f"{path}:Block", own)], lambda _: False)
    qtbot.addWidget(dialog)
    dialog.recent.activated.emit(1)
    assert (dialog.fields.chain, dialog.fields.own) == (f"{path}:Block", own)


def test_everything_in_the_dialog_is_reached_by_tab(qtbot: QtBot, store: Store) -> None:
    dialog = OwnDialog(store.theme, [("a.py:f", OwnCode())], lambda _: False)
    qtbot.addWidget(dialog)
    wanted = {*(dialog.edit(name) for name in Field), dialog.browse, dialog.training}
    wanted |= {dialog.agree, dialog.cancel, dialog.recent}
    found = set()
    widget = dialog.nextInFocusChain()
    while widget is not None and widget is not dialog and widget not in found:
        found.add(widget)
        widget = widget.nextInFocusChain()
    assert wanted <= found
    assert all(each.accessibleName() or each.text() for each in wanted)  # type: ignore[attr-defined]


def test_a_recording_of_own_code_runs_nothing_until_one_agrees(
    qtbot: QtBot, store: Store, window: MainWindow, path: Path
) -> None:
    store.add_runs([recorded(f"{path}:Block")], recorded_in="talk.kx")
    assert store.state.own is None
    assert store.state.chain == "attention"
    said = in_dialog(lambda dialog: dialog.reject())
    store.plan.set_link("scale", "mask", fused=False)
    assert f"{path} will be run" in said[0]
    assert store.state.chain == "attention"
    assert not store.state.plans

    in_dialog(lambda dialog: dialog.accept())
    store.plan.set_link("scale", "mask", fused=False)
    assert store.state.chain == f"{path}:Block"
    assert store.state.own == OWN


@pytest.mark.parametrize("name", ["gone.py:Block", "no name at all:", "a b:c"])
def test_a_picture_of_own_code_is_of_that_code_alone(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    chosen: list[str] = []
    lay_out = MainWindow._lay_out

    def keep(window: MainWindow) -> None:
        chosen.append(window._store.state.chain)
        lay_out(window)

    monkeypatch.setattr(MainWindow, "_lay_out", keep)
    out = tmp_path / "window.png"
    export_png(
        [recorded(name)], out, view="window", size=(1440, 900), scale=1, theme="dark", at_us=None
    )
    assert out.exists()
    assert chosen == [name if name == "gone.py:Block" else "attention"]


def test_the_last_five_are_kept(settings: Settings) -> None:
    for i in [*range(7), 3]:
        settings.remember_own(f"net{i}.py:f", OwnCode(inputs=f"x={i}"))
    chains = [chain for chain, _ in settings.recent_own]
    assert chains == [f"net{i}.py:f" for i in (3, 6, 5, 4, 2)]
    assert len(chains) == MOST_RECENT


@pytest.mark.parametrize(
    "kept",
    ["nonsense", "{}", "[1, null]", json.dumps([{"chain": "a:f"}]),
     json.dumps([{"chain": 3, "inputs": "", "init": "", "training": False}])],
)  # fmt: skip
def test_damaged_notes_are_ignored(tmp_path: Path, kept: str) -> None:
    settings = Settings(tmp_path / "window.ini")
    settings._kept.setValue("own/recent", kept)
    assert settings.recent_own == ()
