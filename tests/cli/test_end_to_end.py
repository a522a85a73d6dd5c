"""The whole path on this machine's processor: the command line, a real worker, a recording."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.model.run import Pedigree
from explorer.model.traffic import run_traffic
from explorer.recording import load_recording, runs_to_plain, save_recording

SMALL = ("--set", "seq_len=128", "--set", "heads=2", "--device", "cpu")


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "explorer", *arguments]


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "XDG_CACHE_HOME": str(cache)}


def assert_whole(path: Path, strategies: list[str]) -> None:
    """Every run has what a CPU can measure, and names no tensor it does not hold."""
    runs = load_recording(path)
    assert [run.strategy.spec for run in runs] == strategies
    for run in runs:
        assert run.error is None
        assert run.chain.parameters["seq_len"] == 128
        assert [op.name for op in run.graph.ops] == [
            "qk", "scale", "mask", "softmax", "dropout", "pv",
        ]  # fmt: skip
        done = {op for launch in run.launches for op in launch.ops}
        assert done == {op.name for op in run.graph.ops}
        assert run.timing is not None
        assert run.timing.cold is not None
        assert 0 < run.timing.cold.q1_us <= run.timing.cold.median_us <= run.timing.cold.q3_us
        assert run.accuracy is not None
        assert run.accuracy.passed
        assert run_traffic(run).pedigree is Pedigree.MODELLED
        for launch in run.launches:
            for access in launch.accesses:
                assert run.tensor(access.tensor).n_bytes > 0


def test_a_run_from_the_command_line_to_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "runs.kx"
    done = subprocess.run(
        program(
            "run", "attention", *SMALL, "--strategy", "eager", "--strategy", "sdpa", "--json",
            "--save", str(path), "--seed", "3",
        ),
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert_whole(path, ["eager", "sdpa"])
    assert json.loads(done.stdout) == json.loads(json.dumps(runs_to_plain(load_recording(path))))
    assert json.loads(done.stdout)["runs"][1]["seed"] == 3
    assert "Traceback" not in done.stderr


def test_a_sweep_is_run_checked_again_and_taken_home(tmp_path: Path) -> None:
    path, module = tmp_path / "sweep.kx", tmp_path / "plan.py"
    swept = subprocess.run(
        program(
            "run", "swiglu", "--set", "rows=8", "--set", "columns=64", "--device", "cpu",
            "--strategy", "plan:*", "--save", str(path),
        ),
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path / "cache"),
    )  # fmt: skip
    assert swept.returncode == 0, swept.stderr
    assert "plan 2 of 2: silu+multiply: done" in swept.stderr
    runs = load_recording(path)
    assert [run.strategy.plan for run in runs] == ["silu|multiply", "silu+multiply"]
    assert [len(run.groups) for run in runs] == [2, 1]
    assert all(run.accuracy is not None and run.accuracy.passed for run in runs)
    # On a busy machine only the bytes say whether anything changed.
    elsewhere = tuple(replace(run, device=replace(run.device, name="Another")) for run in runs)
    save_recording(path, elsewhere)
    checked = subprocess.run(
        program("check", str(path), "--device", "cpu", "--json"),
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path / "cache"),
    )
    assert checked.returncode == 0, checked.stderr
    document = json.loads(checked.stdout)
    assert [each["bytes"]["before"] for each in document["checks"]] == [
        each["bytes"]["now"] for each in document["checks"]
    ]
    assert [each["accuracy_passed"] for each in document["checks"]] == [True, True]
    exported = subprocess.run(
        program("export", str(path), str(module)), capture_output=True, text=True, check=False
    )
    assert exported.returncode == 0, exported.stderr
    assert 'PLAN = "silu+mul"' in module.read_text(encoding="utf-8")


@pytest.mark.slow
def test_another_pythons_packages_are_used_and_ours_provided(tmp_path: Path) -> None:
    """An environment that has torch and its needs, and nothing of this program."""
    venv.create(tmp_path / "env", with_pip=False)
    theirs = next((tmp_path / "env" / "lib").glob("python3*")) / "site-packages"
    ours = Path(pytest.__file__).parent.parent
    for entry in ours.iterdir():
        if not entry.name.startswith(("__editable__", "kernel_explorer", "pynvml", "PySide6")):
            (theirs / entry.name).symlink_to(entry)
    path = tmp_path / "runs.kx"
    done = subprocess.run(
        program(
            "run", "attention", *SMALL, "--strategy", "eager", "--strategy", "compile",
            "--save", str(path), "--worker-python", str(tmp_path / "env"),
        ),
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path / "cache"),
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert_whole(path, ["eager", "compile"])


@pytest.mark.slow
def test_an_interrupted_compile_leaves_no_compiler(tmp_path: Path) -> None:
    run = subprocess.Popen(
        program("run", "attention", *SMALL, "--strategy", "eager", "--strategy", "compile"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path / "cache"),
    )
    assert run.stderr is not None
    told = ""
    while "compile  compile: " not in told:
        line = run.stderr.readline()
        assert line, told
        told += line
    wait_for_compiler(run.pid)
    began_s = time.monotonic()
    run.send_signal(signal.SIGINT)
    out, _ = run.communicate(timeout=10)
    assert time.monotonic() - began_s < 3
    assert run.returncode == 130
    assert "eager: " in out
    # The fixture that looks for leftovers finds any compiler that still runs.


def wait_for_compiler(program_id: int) -> None:
    """Wait until the worker below has started g++, which a cold cache makes it do."""
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s:
        for folder in Path("/proc").iterdir():
            try:
                name = (folder / "comm").read_text().strip()
                mark = (folder / "environ").read_bytes()
            except OSError:
                continue
            if name == "cc1plus" and os.environ["KERNEL_EXPLORER_TEST_RUN"].encode() in mark:
                return
    pytest.fail(f"no compiler was started by process {program_id}")
