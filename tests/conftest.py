"""What every test gets: an offscreen Qt, Triton's interpreter, and a check for leftovers.

The environment is set here, at import, because Qt and Triton read theirs when first imported.
"""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
os.environ.setdefault("TRITON_INTERPRET", "1")
# One pixel is one pixel, whatever the desktop that runs the tests is set to.
os.environ["QT_SCALE_FACTOR"] = "1"

import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator

# A shell ignores SIGINT for what it runs in the background, and so would the programs under test.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CHECKOUT = Path(__file__).resolve().parent.parent
NOT_COPIED = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "shots"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as ``gui`` every test that uses a Qt application, directly or not."""
    for item in items:
        if "qapp" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gui)


@pytest.fixture(autouse=True)
def no_leftovers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that leaves a child process, a running QThread or an active QTimer.

    What a fixture of a wider scope started before the test is not the test's own.
    """
    before = leftovers.Snapshot.take(with_qt="qapp" in request.fixturenames)
    yield
    left = leftovers.wait_until_gone(before)
    if left:
        leftovers.end_processes(before)
        pytest.fail("left behind by this test: " + "; ".join(left), pytrace=False)


@pytest.fixture
def checkout_copy(tmp_path: Path) -> Path:
    """A copy of the checkout's sources, with nothing built or installed in it."""
    copy = tmp_path / "checkout"
    shutil.copytree(CHECKOUT, copy, ignore=NOT_COPIED)
    return copy
