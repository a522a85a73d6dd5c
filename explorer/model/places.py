"""Where this program keeps things of its own: one answer for the window's side and the worker's."""

import os
from collections.abc import Mapping
from pathlib import Path

APPLICATION_FOLDER = "kernel-explorer"


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """The program's folder in the user's cache, which need not exist yet."""
    named = environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore a relative path.
    if named.startswith("/"):
        return Path(named) / APPLICATION_FOLDER
    try:
        return Path.home() / ".cache" / APPLICATION_FOLDER
    except RuntimeError:
        # No HOME, and a user whom the system does not know, as in a container.
        temporary = Path(environ.get("TMPDIR") or "/tmp")
        return temporary / f"{APPLICATION_FOLDER}-{os.getuid()}"


def nearest_existing(folder: Path) -> Path:
    """The folder itself if it exists, else the nearest above it that does."""
    return next(path for path in (folder, *folder.parents) if path.exists())
