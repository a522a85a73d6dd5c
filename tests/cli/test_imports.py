"""What a command loads: showing and listing no torch, measuring no Qt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from explorer.recording import save_recording
from tests.cli.fake_session import SESSION
from tests.conftest import CHECKOUT
from tests.fixtures_runs import cpu_attention, eager_attention
from tests.fixtures_sweep import plan_run

if TYPE_CHECKING:
    from pathlib import Path

PROBE = """
import functools, json, sys
from explorer.cli import check, main, run, doctor
from explorer.worker.blocking import WorkerClient
for module in (check, run, doctor):
    module.WorkerClient = functools.partial(
        WorkerClient, server_arguments=("--session", {session!r})
    )
code = main(sys.argv[1:])
loaded = {{name.partition(".")[0] for name in sys.modules}}
sys.stderr.write("\\n" + json.dumps([code, sorted(loaded)]))
"""


def loaded_by(*arguments: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(session=SESSION), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    code, loaded = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(loaded)


HEAVY = {"torch", "triton", "numpy", "kernels", "PySide6", "pyqtgraph"}


@pytest.mark.parametrize("command", ["show", "chains", "run", "doctor", "check", "export"])
def test_a_command_loads_neither_torch_nor_qt(command: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.kx"
    save_recording(path, (eager_attention(), plan_run("scale+mask|softmax|dropout")))
    save_recording(tmp_path / "small.kx", (cpu_attention(),))
    arguments = {
        "show": ["show", str(path)],
        "chains": ["chains", "attention"],
        "run": ["run", "attention", "--strategy", "plan:*"],
        "check": ["check", str(tmp_path / "small.kx")],
        "export": ["export", str(path), str(tmp_path / "plan.py")],
        "doctor": ["doctor"],
    }
    assert not loaded_by(*arguments[command]) & HEAVY
