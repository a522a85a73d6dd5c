"""Every recording that ships opens in the window without a GPU, badged as recorded."""

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from explorer.recording import load_recording
from explorer.ui.main_window import MainWindow
from explorer.ui.store import Store
from tests.conftest import CHECKOUT

RECORDINGS = sorted((CHECKOUT / "assets" / "recordings").glob("*.kx"))


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
