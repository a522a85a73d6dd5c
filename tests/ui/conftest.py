"""A worker process without torch, closed again whatever the test does."""

import os
import sys
from collections.abc import Callable, Iterator

import pytest
from pytestqt.qtbot import QtBot

from explorer.ui.worker_process import WorkerProcess
from tests.conftest import CHECKOUT

MakeWorker = Callable[..., WorkerProcess]


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
