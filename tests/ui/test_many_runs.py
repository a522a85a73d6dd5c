"""A long session: the window neither grows much nor slows down."""

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import CHECKOUT


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_thousand_runs_cost_little_memory_and_the_last_takes_no_longer_than_the_first() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.ui.many_runs"],
        cwd=CHECKOUT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["runs"] == 1000
    assert found["growth_bytes"] < 50_000_000
    assert found["last_s"] < 2 * found["first_s"]
