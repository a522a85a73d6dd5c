"""Whether a window can open. Asked before Qt is, which ends the program where it cannot."""

import ctypes
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path


def display_fault(environ: Mapping[str, str]) -> str | None:
    """Say why no window can open, without a full stop, or None if one can.

    Args:
        environ: Environment variables.
    """
    if sys.platform == "darwin" or environ.get("QT_QPA_PLATFORM"):
        # A Mac always has a display, and Qt may have been told what to draw on.
        return None
    wayland, x11 = environ.get("WAYLAND_DISPLAY"), environ.get("DISPLAY")
    if not wayland and not x11:
        return "No display"
    if wayland and wayland_answers(wayland, environ.get("XDG_RUNTIME_DIR", "")):
        return None
    if x11 and x11_answers(x11):
        return None
    return f"The display {x11 or wayland} does not answer"


def wayland_answers(display: str, runtime_folder: str) -> bool:
    """Whether something listens on a Wayland display's socket.

    Args:
        display: Name of the socket, or its path.
        runtime_folder: Where a socket with a bare name lies.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(Path(runtime_folder, display)))
        except OSError:
            return False
    return True


def x11_answers(display: str) -> bool:
    """Whether an X server lets us in; True where the library to ask it with cannot be loaded.

    Args:
        display: As in ``DISPLAY``: ``:0``, ``host:10.0``.
    """
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True
    xcb.xcb_connect.restype = ctypes.c_void_p
    xcb.xcb_connect.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    xcb.xcb_connection_has_error.argtypes = [ctypes.c_void_p]
    xcb.xcb_disconnect.argtypes = [ctypes.c_void_p]
    connection = xcb.xcb_connect(os.fsencode(display), None)
    try:
        return bool(xcb.xcb_connection_has_error(connection) == 0)
    finally:
        xcb.xcb_disconnect(connection)
