"""``export``, and the program without a command: pictures with and without a display."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from explorer.cli import arguments
from explorer.recording import save_recording
from tests.cli.fake_session import SESSION
from tests.cli.test_imports import PROBE
from tests.conftest import CHECKOUT
from tests.fixtures_runs import compiled_attention, eager_attention

if TYPE_CHECKING:
    from collections.abc import Callable

    from explorer.model.run import Run
    from tests.cli.conftest import Outcome

RUNS = (eager_attention(), compiled_attention())


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "runs.kx"
    save_recording(path, RUNS)
    return path


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the drawing was asked for, drawing nothing."""
    asked: list[dict[str, Any]] = []

    def export_png(runs: tuple[Run, ...], out: Path, **options: Any) -> None:
        asked.append({"runs": runs, "out": out, **options})

    monkeypatch.setattr("explorer.ui.export.export_png", export_png)
    return asked


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return width, height


def test_the_options_reach_the_drawing(
    cli: Callable[..., Outcome], recording: Path, drawn: list[dict[str, Any]]
) -> None:
    out = str(recording.with_name("a.png"))
    line = "--view scene --size 800x600 --scale 2 --theme light --at 1.5ms"
    assert cli("export", str(recording), out, *line.split()).code == 0
    assert cli("export", str(recording), out).code == 0
    assert drawn == [
        {
            "runs": RUNS, "out": Path(out), "view": "scene", "size": (800, 600), "scale": 2.0,
            "theme": "light", "at_us": 1500.0, "recorded": True,
        },
        {
            "runs": RUNS, "out": Path(out), "view": "window", "size": (1440, 900), "scale": 1.0,
            "theme": "dark", "at_us": None, "recorded": True,
        },
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "at_us"),
    [("350", 350.0), ("350us", 350.0), (".5ms", 500.0), ("2 ms", 2000.0), ("1s", 1e6)],
)
def test_a_moment_has_a_unit(
    cli: Callable[..., Outcome],
    recording: Path,
    drawn: list[dict[str, Any]],
    text: str,
    at_us: float,
) -> None:
    assert cli("export", str(recording), str(recording.parent / "a.png"), "--at", text).code == 0
    assert drawn[0]["at_us"] == at_us


def test_a_picture_that_cannot_be_written_is_told(
    cli: Callable[..., Outcome], recording: Path
) -> None:
    done = cli("export", str(recording), str(recording.parent / "no" / "a.png"))
    assert done.code == 1
    assert "a.png could not be written: No such file or directory" in done.err
    empty = recording.with_name("empty.kx")
    save_recording(empty, ())
    done = cli("export", str(empty), str(recording.parent / "a.png"))
    assert done.code == 1
    assert "empty.kx holds no run" in done.err


def test_the_views_offered_are_those_that_can_be_drawn() -> None:
    from explorer.ui.export import LATER_VIEWS, VIEWS

    assert sorted(arguments.BUILT_VIEWS) == sorted(VIEWS)
    assert set(arguments.VIEWS) == {*VIEWS, *LATER_VIEWS}


@pytest.mark.parametrize("view", ["heartbeat", "comparison"])
def test_a_view_of_a_later_release_is_wrong_usage(
    cli: Callable[..., Outcome], recording: Path, view: str
) -> None:
    out = recording.with_name("a.png")
    done = cli("export", str(recording), str(out), "--view", view)
    assert done.code == 2
    assert f"The view '{view}' is not yet built" in done.err
    assert not out.exists()


def test_a_sweep_without_plans_is_wrong_usage(cli: Callable[..., Outcome], recording: Path) -> None:
    out = recording.with_name("a.png")
    done = cli("export", str(recording), str(out), "--view", "sweep")
    assert done.code == 2
    assert "there is no sweep to draw" in done.err
    assert not out.exists()


def without_display(folder: Path, *arguments: str) -> tuple[int, str, str, set[str]]:
    """Run the program in a folder of its own, on a machine without a display."""
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(session=SESSION), *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={**environ, "PYTHONPATH": str(CHECKOUT)},
    )
    code, loaded = json.loads(done.stderr.splitlines()[-1])
    return code, done.stdout, done.stderr, set(loaded)


def test_a_picture_is_drawn_without_a_display_and_without_torch(recording: Path) -> None:
    out = recording.with_name("a.png")
    code, _, told, loaded = without_display(
        recording.parent, "export", "runs.kx", "a.png", "--view", "table", "--size", "600x300"
    )
    assert code == 0
    assert "wrote a.png" in told
    assert png_size(out) == (600, 300)
    assert not loaded & {"torch", "triton", "kernels"}


def test_alone_and_without_a_display_it_measures_and_draws(tmp_path: Path) -> None:
    code, out, told, loaded = without_display(tmp_path)
    assert code == 0
    assert told.startswith("No display: measuring attention here.")
    assert "eager: done, 40.7 ms\ncompile  compile: generating kernels" in told
    assert out.startswith("Attention, as in the textbook (attention)\n")
    picture = tmp_path / "kernel-explorer.png"
    assert out.endswith(f"\nPicture: {picture}\n")
    assert png_size(picture) == (1440, 900)
    assert not loaded & {"torch", "triton", "kernels"}


def test_where_the_picture_cannot_be_written_nothing_is_measured(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A folder of that name: unlike a folder without write permission it stops root as well.
    (tmp_path / "kernel-explorer.png").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    done = cli()
    assert (done.code, done.out) == (1, "")
    assert f"kernel-explorer: {tmp_path / 'kernel-explorer.png'} could not be written" in done.err
    assert done.err.endswith("Start it in a folder where you may write.\n")
    assert "starting" not in done.err


def test_with_a_display_the_window_opens(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Path | None, Path | None]] = []

    def run_window(recording: Path | None, python: Path | None) -> int:
        asked.append((recording, python))
        return 0

    monkeypatch.setattr("explorer.ui.app.run_window", run_window)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    assert cli().code == 0
    assert cli("--worker-python", "/some/python").code == 0
    assert asked == [(None, None), (None, Path("/some/python"))]


WINDOW = """
import sys
from PySide6.QtWidgets import QApplication
from explorer.worker import client
# The worker of this window is a program that ends at once.
client.BOOTSTRAP = "/dev/null"
QApplication.exec = lambda *_: QApplication.processEvents() or 0
from explorer.cli import main
code = main([])
print(code, *sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_the_window_starts_without_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WINDOW],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        cwd=CHECKOUT,
    )
    code, *loaded = done.stdout.split()
    assert code == "0", done.stderr
    assert "PySide6" in loaded
    assert not set(loaded) & {"torch", "triton", "kernels"}
