"""The wheel carries all the program needs: a shipped recording opens from an installed one."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# Run where the checkout is out of sight, with nothing of the project but the installed wheel.
READ_RECORDINGS = """
import json, sys
from importlib import resources
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import explorer
from explorer.recording import load_recording
found = {}
for entry in resources.files("assets").joinpath("recordings").iterdir():
    if entry.name.endswith(".kx"):
        with resources.as_file(entry) as path:
            found[entry.name] = [run.strategy.name for run in load_recording(path)]
print(json.dumps({"explorer": explorer.__file__, "recordings": found}))
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


def test_a_shipped_recording_opens_from_an_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--target", str(site), str(wheel)], check=True)

    done = subprocess.run(
        [sys.executable, "-c", READ_RECORDINGS, str(site)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert Path(answer["explorer"]).is_relative_to(site)
    assert answer["recordings"], "the wheel holds no recording"
    assert all("eager" in strategies for strategies in answer["recordings"].values())
    assert (site / "bin" / "kernel-explorer").is_file()
