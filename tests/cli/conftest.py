"""Runs the command line in this process, with a worker that measures nothing."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from explorer.cli import check, doctor, main, run
from explorer.worker.blocking import WorkerClient
from tests.cli.fake_session import SESSION
from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Outcome:
    """What a command line left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def cli(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """The command line; its worker is the fake one."""
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.delenv("KX_FAKE", raising=False)
    made = functools.partial(WorkerClient, server_arguments=("--session", SESSION))
    for module in (run, doctor, check):
        monkeypatch.setattr(module, "WorkerClient", made)

    def call(*arguments: str) -> Outcome:
        code = main(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call
