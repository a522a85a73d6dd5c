"""The check for leftovers finds each kind of them: run by a pytest of its own, which must fail."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

SLEEPER = "import time; time.sleep(60)"
# Each leaves something behind; the orphan's parent ends at once.
CULPRITS = {
    "child": f"""
        kept.append(subprocess.Popen([sys.executable, "-c", "{SLEEPER}"]))
    """,
    "orphan": f"""
        code = 'import subprocess, sys; subprocess.Popen([sys.executable, "-c", "{SLEEPER}"])'
        subprocess.run([sys.executable, "-c", code], check=True)
    """,
    "timer": """
        timer = QTimer(qapp)
        timer.setObjectName("forgotten timer")
        timer.start(10_000)
    """,
    "thread": """
        thread = QThread()
        kept.append(thread)
        thread.setObjectName("forgotten thread")
        thread.start()
    """,
}
TELLTALE = {
    "child": "time.sleep(60)",
    "orphan": "time.sleep(60)",
    "timer": "active forgotten timer",
    "thread": "running forgotten thread",
}
HEADER = """
import subprocess, sys
import pytest
from PySide6.QtCore import QThread, QTimer
kept = []

@pytest.fixture(autouse=True, scope="module")
def end_all():
    yield
    for thing in kept:
        if isinstance(thing, QThread):
            thing.quit()
        thing.wait()

def test_culprit(qapp):
"""


@pytest.mark.parametrize("kind", CULPRITS)
def test_the_culprit_is_named(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in ("__init__.py", "conftest.py", "leftovers.py"):
        (folder / name).write_bytes((CHECKOUT / "tests" / name).read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((CHECKOUT / "pyproject.toml").read_bytes())
    (folder / "test_culprit.py").write_text(
        HEADER + indent(dedent(CULPRITS[kind]), "    "), encoding="utf-8"
    )

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 passed, 1 error" in done.stdout
    assert "left behind by this test" in done.stdout
    assert TELLTALE[kind] in done.stdout
