"""What the window's side of the program needs of this machine; asks neither Qt nor the worker."""

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

from explorer.model.messages import Check
from explorer.model.places import cache_folder, nearest_existing
from explorer.model.units import format_bytes

_FONTS = ("Inter", "JetBrainsMono", "NotoSansCJKsc")
_LEAST_FREE_BYTES = 1_000_000_000


def local_checks(environ: Mapping[str, str] = os.environ) -> tuple[Check, ...]:
    """Look at what the window, pictures and files depend on, on the machine that shows them.

    Args:
        environ: The environment variables.
    """
    return (_qt(), _display(environ), _fonts(), _disk())


def _qt() -> Check:
    try:
        found = version("PySide6-Essentials")
    except PackageNotFoundError:
        return Check(
            name="Qt",
            ok=False,
            sentence="PySide6 is not installed beside this program.",
            lost="the window and every picture; `run`, `show` and `check` work without it.",
            remedy="`pip install PySide6-Essentials`.",
        )
    return Check(name="Qt", ok=True, sentence=f"PySide6 {found}.")


def _display(environ: Mapping[str, str]) -> Check:
    if not sys.platform.startswith("linux"):
        return Check(name="Display", ok=True, sentence="The desktop's own.")
    wayland, x11 = environ.get("WAYLAND_DISPLAY"), environ.get("DISPLAY")
    if wayland or x11:
        where = f"Wayland ({wayland})" if wayland else f"X11 ({x11})"
        return Check(name="Display", ok=True, sentence=f"{where}.")
    return Check(
        name="Display",
        ok=False,
        sentence="Neither WAYLAND_DISPLAY nor DISPLAY is set: there is no screen to draw on.",
        lost="the window; `export` draws the same pictures without one.",
        remedy="Start it from a desktop, or with `ssh -X`; or save a recording here with "
        "`run --save FILE` and open it where there is a screen.",
    )


def _fonts() -> Check:
    folder = files("assets") / "fonts"
    there = {each.name.partition("-")[0] for each in folder.iterdir()} if folder.is_dir() else set()
    missing = [name for name in _FONTS if name not in there]
    if not missing:
        return Check(name="Fonts", ok=True, sentence=f"{', '.join(_FONTS)}, which ship with it.")
    return Check(
        name="Fonts",
        ok=False,
        sentence=f"{', '.join(missing)} is not in {folder}.",
        lost="pictures that look alike on every machine: the system's fonts stand in.",
        remedy="Install the program anew.",
    )


def _disk() -> Check:
    folder = cache_folder()
    free_bytes = shutil.disk_usage(nearest_existing(folder)).free
    sentence = f"{format_bytes(free_bytes)} free where {folder} is."
    if free_bytes >= _LEAST_FREE_BYTES:
        return Check(name="Disk", ok=True, sentence=sentence)
    return Check(
        name="Disk",
        ok=False,
        sentence=sentence,
        lost="compiled kernels are not kept from start to start, and recordings may not be saved.",
        remedy="Free some of it, or let XDG_CACHE_HOME name a folder on a larger disk.",
    )
