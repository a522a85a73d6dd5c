"""Every recording that ships opens in the window without a GPU, badged as recorded."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from explorer.model.run import Direction
from explorer.recording import load_recording
from explorer.ui.main_window import MainWindow
from explorer.ui.store import Store
from tests.conftest import CHECKOUT

RECORDINGS_FOLDER = CHECKOUT / "assets" / "recordings"
RECORDINGS = sorted(RECORDINGS_FOLDER.glob("*.kx"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_shipped_recording_opens_and_can_be_played(qtbot: QtBot, path: Path) -> None:
    runs = load_recording(path)
    assert {run.device.name for run in runs} == {"NVIDIA H200"}
    assert all(run.error is None for run in runs)
    store = Store()
    window = MainWindow(store)
    qtbot.addWidget(window)
    window.show()
    store.add_runs(runs, recorded_in=path.name)
    shown = store.state.shown_run
    assert shown is not None
    assert shown.is_recorded
    for item in store.state.runs:
        store.show_run(item.key)
        store.set_playhead(1.0)
        assert not window.grab().isNull()


def test_the_next_run_is_of_the_recording_s_chain_and_its_variants_stand_side_by_side(
    qtbot: QtBot,
) -> None:
    store = Store()
    window = MainWindow(store)
    qtbot.addWidget(window)
    assert window.files.open_recording(RECORDINGS_FOLDER / "rmsnorm-fp8-h200.kx")
    state = store.state
    assert state.chain == "rmsnorm-fp8"
    assert state.swept == "dtype"
    assert state.shown_run is not None
    assert state.compared_run is not None
    sides = [each.run for each in (state.shown_run, state.compared_run)]
    assert [run.chain.parameters["dtype"] for run in sides] == ["bf16", "fp8"]
    # Compiled the two differ most: 414 against 263 us, eager 581 against 674.
    assert {run.strategy.spec for run in sides} == {"compile"}
    assert window.files.open_recording(RECORDINGS_FOLDER / "swiglu-backward-h200.kx")
    assert (store.state.chain, store.state.direction) == ("swiglu", Direction.FORWARD_BACKWARD)
    assert store.state.compared is None


def test_a_recording_of_a_swept_parameter_opens_at_its_curves(qtbot: QtBot) -> None:
    window = MainWindow(Store())
    qtbot.addWidget(window)
    tabs = window.details.tabs
    assert window.files.open_recording(RECORDINGS_FOLDER / "rmsnorm-fp8-h200.kx")
    assert tabs.tabText(tabs.currentIndex()) == "Timelines"
    assert window.files.open_recording(RECORDINGS_FOLDER / "elementwise-k-sweep-h200.kx")
    assert tabs.tabText(tabs.currentIndex()) == "Sweep"


def test_what_the_user_set_is_not_changed_by_a_recording(qtbot: QtBot) -> None:
    store = Store()
    window = MainWindow(store)
    qtbot.addWidget(window)
    store.choose_chain("rmsnorm")
    store.set_parameter("rows", "64")
    assert window.files.open_recording(RECORDINGS_FOLDER / "swiglu-backward-h200.kx")
    assert (store.state.chain, store.state.direction) == ("rmsnorm", Direction.FORWARD)
    assert store.state.parameters.values["rows"] == 64
