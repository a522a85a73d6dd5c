"""What the operating system must offer, and the Debian packages that offer it.

Standard library only, and free of syntax newer than Python 3.8: it runs before anything is
installed, and an old Python must get as far as the sentence that says it is too old.

Package names: Debian 12, found by importing every Qt module the program uses in a bare system.
The names for Debian 13 and Ubuntu 24.04 come from their package lists and are untried.
"""

from __future__ import annotations

import ctypes
import enum
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# Shared libraries that importing Qt loads, whatever draws the window.
QT_LIBRARIES = {
    "libglib-2.0.so.0": "libglib2.0-0",
    "libGL.so.1": "libgl1",
    "libEGL.so.1": "libegl1",
    "libfontconfig.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libxkbcommon.so.0": "libxkbcommon0",
}
# Those the X11 plugin loads. Qt blames libxcb-cursor0 whichever of them is missing.
X11_LIBRARIES = {
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
}
# Renamed when 32-bit systems moved to a 64-bit clock.
RENAMED_SINCE_T64 = {"libglib2.0-0": "libglib2.0-0t64"}
FIRST_T64_RELEASE = {"debian": 13.0, "ubuntu": 24.04}
TRIED_RELEASE = ("debian", "12")


class Purpose(enum.Enum):
    """What a missing package stops from working; the value completes "without it ..."."""

    ENVIRONMENT = "no virtual environment can be made"
    QT = "neither the window nor a picture can be drawn"
    X11 = "the window cannot open on an X11 display"
    COMPILER = "only eager and the other ready-made kernels run; compiled strategies are off"


@dataclass(frozen=True)
class Missing:
    """One thing the machine lacks.

    Attributes:
        what: Its own name, such as ``libGL.so.1``.
        package: The package that brings it, under the name this system uses.
        purpose: What it is for.
    """

    what: str
    package: str
    purpose: Purpose


@dataclass(frozen=True)
class Probes:
    """Questions put to the machine, each replaceable in a test.

    Attributes:
        library_loads: Whether the dynamic loader finds a shared library of that name.
        program_path: Path of a program, or None.
        has_python_headers: Whether ``Python.h`` of the running Python is there.
        has_ensurepip: Whether ``python -m venv`` can put pip into an environment.
        apt_knows: Whether the package lists hold a package of that name.
        python_package: ``python3``, or ``python3.12`` and the like for a second system Python.
        os_release: The fields of ``/etc/os-release``.
        environ: Environment variables.
    """

    library_loads: Callable[[str], bool]
    program_path: Callable[[str], str | None]
    has_python_headers: Callable[[], bool]
    has_ensurepip: Callable[[], bool]
    apt_knows: Callable[[str], bool]
    python_package: str
    os_release: Mapping[str, str]
    environ: Mapping[str, str]


def machine_probes() -> Probes:
    """Return the probes that ask this machine."""
    return Probes(
        library_loads=_library_loads,
        program_path=shutil.which,
        has_python_headers=lambda: Path(sysconfig.get_path("include"), "Python.h").is_file(),
        has_ensurepip=lambda: importlib.util.find_spec("ensurepip") is not None,
        apt_knows=_apt_knows,
        python_package=_python_package(),
        os_release=parse_os_release(Path("/etc/os-release")),
        environ=os.environ,
    )


def _library_loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _apt_knows(package: str) -> bool:
    if shutil.which("apt-cache") is None:
        return False
    answer = subprocess.run(
        ["apt-cache", "show", "--no-all-versions", package],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return answer.returncode == 0


def _python_package() -> str:
    """Name the system's package of this Python; its -venv and -dev packages extend the name."""
    base = getattr(sys, "_base_executable", sys.executable) or sys.executable
    default = Path("/usr/bin/python3")
    if default.exists() and default.resolve() != Path(base).resolve():
        return f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return "python3"


def parse_os_release(path: Path) -> dict[str, str]:
    """Read ``KEY=value`` lines; a missing file gives an empty mapping.

    Args:
        path: A file in the format of os-release(5).
    """
    if not path.is_file():
        return {}
    pairs = (line.partition("=") for line in path.read_text(encoding="utf-8").splitlines())
    return {key.strip(): value.strip().strip("\"'") for key, sep, value in pairs if sep}


def local_package_name(package: str, probes: Probes) -> str:
    """Translate a Debian 12 package name to the one this system uses."""
    renamed = RENAMED_SINCE_T64.get(package)
    if renamed is None:
        return package
    first = FIRST_T64_RELEASE.get(probes.os_release.get("ID", ""))
    try:
        release = float(probes.os_release.get("VERSION_ID", ""))
    except ValueError:
        release = None
    if first is None or release is None:
        return renamed if probes.apt_knows(renamed) else package
    return renamed if release >= first else package


def names_are_tried(probes: Probes) -> bool:
    """Whether the package names were tried on this very system release."""
    return (probes.os_release.get("ID"), probes.os_release.get("VERSION_ID")) == TRIED_RELEASE


def find_missing(probes: Probes, *, has_environment: bool) -> list[Missing]:
    """List what the machine lacks, most necessary first.

    Args:
        probes: The machine.
        has_environment: Whether a working virtual environment is there already, so that
            nothing is needed to make one.
    """
    missing = []
    if not has_environment and not probes.has_ensurepip():
        package = f"{probes.python_package}-venv"
        missing.append(Missing("Python's ensurepip module", package, Purpose.ENVIRONMENT))
    for libraries, purpose in ((QT_LIBRARIES, Purpose.QT), (X11_LIBRARIES, Purpose.X11)):
        for library, package in libraries.items():
            if not probes.library_loads(library):
                missing.append(Missing(library, local_package_name(package, probes), purpose))
    # CXX may carry a wrapper or options: "ccache g++".
    compiler = (shlex.split(probes.environ.get("CXX", "")) or ["g++"])[0]
    if probes.program_path(compiler) is None:
        missing.append(Missing(f"the C++ compiler {compiler}", "g++", Purpose.COMPILER))
    if not probes.has_python_headers():
        package = f"{probes.python_package}-dev"
        missing.append(Missing("Python.h, Python's headers", package, Purpose.COMPILER))
    return missing


def is_required(missing: Missing, environ: Mapping[str, str]) -> bool:
    """Whether the main job cannot go on without it.

    A machine with no X11 display does without the X11 plugin, and eager runs without a compiler.
    """
    if missing.purpose is Purpose.X11:
        return bool(environ.get("DISPLAY")) and not environ.get("WAYLAND_DISPLAY")
    return missing.purpose is not Purpose.COMPILER


def apt_prefix(probes: Probes, user_id: int) -> list[str] | None:
    """Return what to put before ``apt-get`` to install without a question, or None.

    Args:
        probes: The machine.
        user_id: The effective user; 0 is root.
    """
    if probes.program_path("apt-get") is None:
        return None
    if user_id == 0:
        return []
    if probes.program_path("sudo") is None:
        return None
    allowed = subprocess.run(
        ["sudo", "-n", "true"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return ["sudo", "-n"] if allowed.returncode == 0 else None


def install_packages(packages: Sequence[str], prefix: Sequence[str]) -> bool:
    """Install packages with apt-get, all it prints going to stderr.

    Args:
        packages: Package names.
        prefix: What :func:`apt_prefix` returned.

    Returns:
        Whether apt-get reported success.
    """
    # Through sudo the variable has to be set on the far side.
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    # Another installer may hold the lock for a moment, as on a machine that has just started.
    wait = ["-o", "DPkg::Lock::Timeout=120"]
    # Old lists name versions the archive no longer has. A failure here need not be one below.
    subprocess.run([*apt, *wait, "-qq", "update"], stdout=2, check=False)
    command = [*apt, *wait, "-q", "-y", "install", "--no-install-recommends", *packages]
    return subprocess.run(command, stdout=2, check=False).returncode == 0


def by_hand_command(missing: Sequence[Missing]) -> str:
    """Return the one shell command that installs everything listed."""
    packages = " ".join(dict.fromkeys(entry.package for entry in missing))
    return "sudo apt-get update && sudo apt-get install -y --no-install-recommends " + packages


def describe(missing: Sequence[Missing]) -> list[str]:
    """Return one line for each missing thing, and what each group of them stops."""
    lines = []
    for purpose in Purpose:
        entries = [entry for entry in missing if entry.purpose is purpose]
        lines += [f"  missing: {entry.what} (package {entry.package})" for entry in entries]
        if entries:
            lines.append(f"  without {'it' if len(entries) == 1 else 'them'}: {purpose.value}")
    return lines
