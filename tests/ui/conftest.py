"""An application with our looks, and a worker process without torch."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from explorer.ui.main_window import prepare_application
from explorer.ui.worker_process import WorkerProcess
from tests.conftest import CHECKOUT

MakeWorker = Callable[..., WorkerProcess]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the offscreen platform say what it cannot do; it is no fault of ours."""
    here = Path(__file__).parent
    ignored = pytest.mark.qt_log_ignore("This plugin does not support", extend=True)
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(ignored)


@pytest.fixture(scope="session")
def qapp(qapp: QApplication) -> QApplication:
    """The application with the program's style and fonts."""
    prepare_application(qapp)
    return qapp


def fake_command(mode: str = "") -> list[str]:
    """Program and arguments of the fake worker."""
    return [sys.executable, "-m", "tests.ui.fake_worker", *([mode] if mode else [])]


def fake_environment() -> dict[str, str]:
    """This process's environment, with the checkout to import from."""
    return {**os.environ, "PYTHONPATH": str(CHECKOUT)}


@pytest.fixture
def make_worker(qtbot: QtBot) -> Iterator[MakeWorker]:
    """Makes a WorkerProcess round the fake worker in some mode."""
    made: list[WorkerProcess] = []

    def make(mode: str = "") -> WorkerProcess:
        worker = WorkerProcess(fake_command(mode), fake_environment())
        made.append(worker)
        return worker

    yield make
    for worker in made:
        worker.close()
        worker.deleteLater()
