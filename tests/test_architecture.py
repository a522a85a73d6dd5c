"""What keeps the project in shape: import directions, sizes, clean commits, a sound Qt binding."""

from __future__ import annotations

import gc
import gzip
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from PySide6.QtGui import QColor, QImage, QPainter

from tests.conftest import CHECKOUT
from tools import check_sources

LINT_IMPORTS = str(Path(sys.executable).with_name("lint-imports"))


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_imports_point_one_way() -> None:
    done = lint_imports(CHECKOUT)

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("explorer/ui/__init__.py", "import torch", "window's side imports no torch"),
        ("explorer/recording.py", "import triton", "window's side imports no torch"),
        ("explorer/engine/__init__.py", "from PySide6 import QtCore", "Only the window imports Qt"),
        ("explorer/model/__init__.py", "import explorer.recording", "Imports point one way"),
        ("explorer/worker/client.py", "import explorer.engine", "Imports point one way"),
        ("explorer/worker/server.py", "import kernels", "Only the engine imports the hand-written"),
        ("kernels/__init__.py", "import explorer.model", "Kernels know nothing of the explorer"),
        ("explorer/unlisted.py", "", "Imports point one way"),
    ],
    ids=lambda value: value.replace("/", ".") if str(value).endswith(".py") else "",
)
def test_a_wrong_import_breaks_its_contract(
    module: str, line: str, contract: str, tmp_path: Path
) -> None:
    for package in ("explorer", "kernels"):
        shutil.copytree(CHECKOUT / package, tmp_path / package)
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    # Inside a function: a lazy import counts as well.
    with (tmp_path / module).open("a", encoding="utf-8") as file:
        file.write(f"\n\ndef _late() -> None:\n    {line or 'pass'}\n")

    done = lint_imports(tmp_path)

    assert done.returncode == 1, done.stdout
    broken = [name for name in done.stdout.splitlines() if contract in name and "BROKEN" in name]
    assert broken or (module == "explorer/unlisted.py" and "unlisted" in done.stdout), done.stdout


def test_what_no_contract_sees_is_loaded_by_name_in_one_place() -> None:
    """The package loads the engine for ``explorer.backend``; the window's side must not ask it."""
    by_name, asking = set(), set()
    for path in (CHECKOUT / "explorer").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(CHECKOUT).as_posix()
        if re.search(r"import_module\(\s*[\"']explorer\.engine", text):
            by_name.add(name)
        if re.search(r"from explorer import .*\b(backend|plan_ops)\b|\bexplorer\.backend\(", text):
            asking.add(name)

    assert by_name == {"explorer/__init__.py"}
    # As an example, and in the text of the module that a plan is exported to.
    assert asking == {"explorer/__init__.py", "explorer/model/plan_module.py"}


def test_sources_are_small_and_name_no_host_or_machine() -> None:
    assert check_sources.check_checkout(CHECKOUT) == []


class TestCheckSources:
    def test_a_long_file_and_a_long_function_are_found(self) -> None:
        body = "    x = 1\n" * check_sources.MAX_FUNCTION_LINES
        text = f"def long():\n{body}" + "\n" * check_sources.MAX_FILE_LINES

        breaches = list(check_sources.check_sizes(Path("a.py"), text))

        assert breaches == [
            "a.py: 581 lines, at most 500 allowed",
            "a.py:1: long has 81 lines, at most 80 allowed",
        ]

    def test_what_just_fits_passes(self) -> None:
        body = "    x = 1\n" * (check_sources.MAX_FUNCTION_LINES - 1)
        text = f"def fits():\n{body}".ljust(len(body) + 12)
        text += "\n" * (check_sources.MAX_FILE_LINES - text.count("\n"))

        assert list(check_sources.check_sizes(Path("a.py"), text)) == []

    # Put together at run time, or this file would break the rule it tests.
    @pytest.mark.parametrize(
        "text",
        [
            "pip install -i https://py" + "pi.org/simple",
            "/wo" + "rk/main",
            "open('/ho" + "me/ann/x')",
        ],
    )
    @pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
    def test_a_host_or_a_machine_path_is_found(
        self, text: str, pack: type[bytes], tmp_path: Path
    ) -> None:
        (tmp_path / "notes.kx").write_bytes(pack(f"first line\n{text}\n".encode()))

        (breach,) = check_sources.check_checkout(tmp_path)

        assert breach.startswith("notes.kx:2: ")

    def test_ordinary_text_passes(self) -> None:
        text = dedent("""
            docs/work/notes ~/work/x ./home/ann /usr/lib/python3 homework/ /proc/self
        """)

        assert list(check_sources.check_contents(Path("a.md"), text.encode())) == []


def test_the_qt_binding_keeps_its_hands_off_none() -> None:
    """PySide6 6.12.0 dropped a reference to None a call before Python 3.12: a crash, but later."""
    image = QImage(8, 8, QImage.Format.Format_RGB32)
    colour = QColor(1, 2, 3)
    painter = QPainter(image)
    painter.setPen(colour)  # The first call of a kind fills PySide6's own tables.
    gc.collect()
    gc.disable()  # Collecting other tests' garbage would change the count.
    try:
        before = sys.getrefcount(None)
        for _ in range(1000):
            painter.setPen(colour)
        lost = before - sys.getrefcount(None)
    finally:
        gc.enable()
    painter.end()

    assert abs(lost) < 10
