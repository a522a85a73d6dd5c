"""The wheel carries all the program needs: a shipped recording opens from an installed one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from explorer.model.strategies import SDPA, specs_for_every_chain

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.slow

# Run where the checkout is out of sight, with nothing of the project but the installed wheel.
READ_RECORDING = """
import json
from importlib import resources
import explorer
from explorer.recording import load_recording
entry = resources.files("assets") / "recordings" / "attention-h200.kx"
with resources.as_file(entry) as path:
    runs = load_recording(path)
    counted = [any(launch.bytes_read.counted for launch in run.launches) for run in runs]
    specs = [run.strategy.spec for run in runs]
    print(json.dumps([explorer.__file__, str(path), specs, runs[0].device.name, counted]))
"""


@pytest.fixture
def wheel(checkout_copy: Path, tmp_path: Path) -> Path:
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            # The environment's own setuptools will do, and needs no network.
            *("--no-build-isolation", "--wheel-dir", str(tmp_path / "wheels"), "."),
        ],
        cwd=checkout_copy,
        check=True,
    )
    (path,) = (tmp_path / "wheels").glob("kernel_explorer-*.whl")
    return path


def test_every_source_and_asset_is_in_the_wheel(wheel: Path, checkout_copy: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        str(path.relative_to(checkout_copy))
        for package, pattern in (("explorer", "*.py"), ("kernels", "*.py"), ("assets", "*"))
        for path in (checkout_copy / package).rglob(pattern)
        if path.is_file()
    }

    assert expected - packed == set()
    assert not [name for name in packed if name.startswith(("tests/", "tools/"))]


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Path:
    """A virtual environment that has the wheel, and from this one the packages it needs."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--python", str(python)),
            *("install", "--quiet", "--no-deps", str(wheel)),
        ],
        check=True,
    )
    (site,) = home.glob("lib/python*/site-packages")
    # The folder is searched, but path files in it are not read: no editable checkout comes along.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return home


def run_there(command: Sequence[str | Path], folder: Path) -> str:
    """Run a command in a folder with nothing of these tests' own surroundings; give its stdout."""
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_shipped_recording_opens_from_an_installed_wheel(
    environment: Path, tmp_path: Path
) -> None:
    told = run_there([environment / "bin" / "python", "-c", READ_RECORDING], tmp_path)

    module, path, specs, device, counted = json.loads(told)
    assert Path(module).is_relative_to(environment)
    assert Path(path).is_relative_to(environment)
    assert specs == [*specs_for_every_chain(), SDPA, "plan:scale+mask+softmax"]
    assert device == "NVIDIA H200"
    assert all(counted)

    # The commands that the wheel installs: one reads the recording, one draws with its fonts.
    program = environment / "bin" / "kernel-explorer"
    table = run_there([program, "show", path], tmp_path)
    assert table.startswith("Attention, as in the textbook (attention)\n")
    run_there([program, "export", path, "scene.png", "--view", "scene"], tmp_path)
    assert (tmp_path / "scene.png").read_bytes().startswith(b"\x89PNG")
    run_there([environment / "bin" / "kernel-explorer-window", "--version"], tmp_path)
