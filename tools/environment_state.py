"""The project's folder and its ``.venv``: what is in it, and whether it can be used as it is.

Standard library only, and free of syntax newer than Python 3.8 (see ``system_packages``).
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Checkout:
    """Where things lie in a checkout of the project.

    Attributes:
        root: The folder that holds ``pyproject.toml``.
    """

    root: Path

    @property
    def venv(self) -> Path:
        """The virtual environment."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.venv / "bin" / "python"

    @property
    def program(self) -> Path:
        """The installed command."""
        return self.venv / "bin" / "kernel-explorer"

    @property
    def stamp(self) -> Path:
        """What was installed, written last."""
        return self.venv / "setup-stamp.json"

    @property
    def unfinished(self) -> Path:
        """A file that exists while packages are being installed."""
        return self.venv / "setup-unfinished"

    @property
    def constraints(self) -> Path:
        """The tested releases."""
        return self.root / "constraints.txt"

    def fingerprint(self, *, has_gpu: bool) -> str:
        """Digest of all that decides what belongs into the environment, the extras apart."""
        digest = hashlib.sha256()
        for path in (self.root / "pyproject.toml", self.constraints):
            digest.update(path.read_bytes())
        # A virtual environment holds absolute paths, so a copied checkout needs its own.
        digest.update(f"{self.root}\n{has_gpu}".encode())
        return digest.hexdigest()


def is_up_to_date(checkout: Checkout, fingerprint: str, *, extras: Sequence[str]) -> bool:
    """Whether an earlier set-up finished with the same project file, releases and machine.

    Args:
        checkout: The project's folder.
        fingerprint: Of :meth:`Checkout.fingerprint`.
        extras: What has to be there beside the program; more may be.
    """
    if not checkout.python.exists() or not checkout.program.exists():
        return False
    try:
        stamp = json.loads(checkout.stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(stamp, dict) or stamp.get("fingerprint") != fingerprint:
        return False
    installed = stamp.get("extras")
    return isinstance(installed, list) and set(extras) <= set(installed)


def write_stamp(checkout: Checkout, fingerprint: str, *, extras: Sequence[str]) -> None:
    """Record a finished set-up, in one step that an interruption cannot halve."""
    draft = checkout.stamp.with_suffix(".draft")
    draft.write_text(
        json.dumps({"fingerprint": fingerprint, "extras": list(extras)}), encoding="utf-8"
    )
    os.replace(draft, checkout.stamp)


def environment_fault(checkout: Checkout) -> str | None:
    """Say why ``.venv`` must be made (again), or None if it can be used as it is."""
    if not checkout.venv.exists():
        return "there is none yet"
    try:
        probe = subprocess.run(
            [
                str(checkout.python),
                "-c",
                "import pip, sys; print(sys.prefix, *sys.version_info[:2])",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return "its Python does not start"
    if probe.returncode != 0:
        return "it was left half made"
    prefix, major, minor = probe.stdout.rsplit(maxsplit=2)
    if (int(major), int(minor)) < OLDEST_PYTHON:
        return f"its Python is {major}.{minor}"
    activate = checkout.venv / "bin" / "activate"
    if not activate.is_file():
        return "it was left half made"
    # Its scripts name the folder they were made for: in a copied checkout, the old one.
    in_place = Path(prefix).resolve() == checkout.venv.resolve()
    if not in_place or str(checkout.venv) not in activate.read_text(encoding="utf-8"):
        return "it was made for another folder"
    if checkout.unfinished.exists():
        damaged = damaged_packages(checkout.venv)
        if damaged:
            return "an interrupted installation left " + ", ".join(damaged) + " incomplete"
    return None


def damaged_packages(venv: Path) -> list[str]:
    """Name the packages whose files are not all there, and what an aborted upgrade set aside.

    Args:
        venv: A virtual environment.
    """
    damaged = []
    for site in venv.glob("lib/python*/site-packages"):
        damaged += sorted(path.name for path in site.glob("~*"))
        for info in sorted(site.glob("*.dist-info")):
            if not _is_complete(site, info):
                damaged.append(info.name.partition("-")[0])
    return damaged


def _is_complete(site: Path, info: Path) -> bool:
    try:
        with (info / "RECORD").open(encoding="utf-8", newline="") as lines:
            rows = list(csv.reader(lines))
    except OSError:
        return False
    for name, _, size in (row for row in rows if len(row) == 3):
        path = site / name
        # Python rewrites its compiled files, even those that a wheel brought.
        if not size or "__pycache__" in name:
            continue
        if not path.is_file() or path.stat().st_size != int(size):
            return False
    return bool(rows)
