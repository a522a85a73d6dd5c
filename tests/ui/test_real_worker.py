"""The window with the worker that users get: a chain measured on this machine's CPU."""

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from explorer.model.run import Pedigree
from explorer.model.traffic import run_traffic
from explorer.ui.main_window import MainWindow
from explorer.ui.session import Session
from explorer.ui.state import WorkerPhase
from explorer.ui.store import Store
from explorer.ui.worker_process import WorkerProcess
from explorer.worker.client import worker_command, worker_environment
from tests.ui.drive import press

START_MS = 120_000
RUN_MS = 180_000
# fp32: 4 heads of 128 × 64, their scores and the mask.
HEADS, SCORES, MASK = 4 * 128 * 64 * 4, 4 * 128 * 128 * 4, 128 * 128 * 4
# Both matmuls with two tensors of the heads and one of scores; between them each op reads and
# writes the scores.
SIX_KERNELS = 2 * (2 * HEADS + SCORES) + 4 * 2 * SCORES + MASK
# On a CPU eager's dropout draws into a tensor, scales that, and multiplies: four tensors more.
DROPOUT_OF_THREE = 4 * SCORES


@pytest.mark.slow
def test_a_small_chain_is_measured_and_shown(qtbot: QtBot) -> None:
    store = Store()
    session = Session(store, WorkerProcess(worker_command(), worker_environment()))
    window = MainWindow(store, session)
    qtbot.addWidget(window)
    try:
        window.show()
        session.start()
        store.toggle_strategy("compile", on=False)
        store.set_parameter("seq_len", "128")
        qtbot.waitUntil(lambda: store.state.abilities is not None, timeout=START_MS)
        store.choose_device("cpu")
        qtbot.waitUntil(lambda: store.state.captured is not None, timeout=START_MS)
        assert window.graph.hint == f"{SIX_KERNELS / 1e6:.2f} MB planned"
        press(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
        qtbot.waitUntil(
            lambda: store.state.worker.phase is WorkerPhase.READY and bool(store.state.runs),
            timeout=RUN_MS,
        )
        (item,) = store.state.runs
        assert item.run.error is None
        assert not item.is_recorded
        traffic = run_traffic(item.run).best
        assert traffic is not None
        assert traffic[2] is Pedigree.MODELLED
        assert window.graph.hint == f"{(SIX_KERNELS + DROPOUT_OF_THREE) / 1e6:.2f} MB modelled"
        assert window.strategies.rows["eager"].text_shown.time
        assert window.scene.scene.playback.total_us > 0
    finally:
        session.close()
