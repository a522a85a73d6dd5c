"""Which displays a window can open on: asked of sockets and servers, not of variables alone."""

from __future__ import annotations

import ctypes
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from explorer.cli import display
from explorer.cli.display import display_fault, wayland_answers, x11_answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="a Mac always has a display")
# Server n listens on TCP port 6000 + n, and this one would be above the highest port.
NO_SERVER = ":59999"


@pytest.fixture
def wayland(tmp_path: Path) -> Iterator[Path]:
    """The socket of a Wayland display that takes connections."""
    path = tmp_path / "wayland-7"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen()
        yield path


@pytest.mark.parametrize("environ", [{}, {"DISPLAY": "", "WAYLAND_DISPLAY": ""}])
def test_without_a_display(environ: dict[str, str]) -> None:
    assert display_fault(environ) == "No display"


def test_qt_may_be_told_what_to_draw_on() -> None:
    assert display_fault({"QT_QPA_PLATFORM": "offscreen"}) is None


def test_a_wayland_display_is_found_by_name_and_by_path(wayland: Path) -> None:
    runtime = str(wayland.parent)
    environ = {"WAYLAND_DISPLAY": wayland.name, "XDG_RUNTIME_DIR": runtime}
    assert display_fault(environ) is None
    assert wayland_answers(str(wayland), "/nowhere")
    assert not wayland_answers("wayland-8", runtime)


def test_a_wayland_display_that_is_gone(wayland: Path) -> None:
    environ = {"WAYLAND_DISPLAY": "wayland-8", "XDG_RUNTIME_DIR": str(wayland.parent)}
    assert display_fault(environ) == "The display wayland-8 does not answer"


def test_an_x_display_without_a_server() -> None:
    try:
        ctypes.CDLL("libxcb.so.1")
    except OSError:
        pytest.skip("there is no libxcb to ask with")
    assert not x11_answers(NO_SERVER)
    assert display_fault({"DISPLAY": NO_SERVER}) == f"The display {NO_SERVER} does not answer"


@pytest.mark.parametrize("environ", [{}, {"WAYLAND_DISPLAY": "wayland-8"}])
def test_an_x_display_with_a_server(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def answers(name: str) -> bool:
        asked.append(name)
        return True

    monkeypatch.setattr(display, "x11_answers", answers)
    full = {"DISPLAY": ":3", "XDG_RUNTIME_DIR": str(tmp_path), **environ}
    assert display_fault(full) is None
    assert asked == [":3"]
