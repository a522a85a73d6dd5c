"""Make ``.venv`` hold the program and all it needs, and say what the system lacks.

``python3 -m tools.setup_environment [--dev]`` from the checkout, which is what ``make`` does.
Running it again costs a fraction of a second: a stamp records what was installed, and is written
last, so an interrupted set-up is finished by the next one.

Standard library only, and free of syntax newer than Python 3.8 (see ``system_packages``).
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import ctypes
import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools import system_packages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

OLDEST_PYTHON = (3, 11)
INTERRUPTED = 130


class SetupError(Exception):
    """The set-up cannot go on; the message is a sentence for the user, with the remedy."""


def say(text: str) -> None:
    """Write a line of progress; standard output is left to the program that starts next."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


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


def has_nvidia_gpu() -> bool:
    """Whether NVIDIA's driver is loaded and shows at least one GPU."""
    for name in ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"):
        try:
            nvml = ctypes.CDLL(name)
        except OSError:
            continue
        if nvml.nvmlInit_v2() != 0:
            continue
        count = ctypes.c_uint(0)
        answer = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
        nvml.nvmlShutdown()
        return bool(answer == 0 and count.value > 0)
    return False


# --- the state of .venv ---------------------------------------------------------------------


def is_up_to_date(checkout: Checkout, fingerprint: str, *, dev: bool) -> bool:
    """Whether an earlier set-up finished with the same project file, releases and machine."""
    if not checkout.python.exists() or not checkout.program.exists():
        return False
    try:
        stamp = json.loads(checkout.stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(stamp, dict) or stamp.get("fingerprint") != fingerprint:
        return False
    return stamp.get("dev") is True or not dev


def write_stamp(checkout: Checkout, fingerprint: str, *, dev: bool) -> None:
    """Record a finished set-up, in one step that an interruption cannot halve."""
    draft = checkout.stamp.with_suffix(".draft")
    draft.write_text(json.dumps({"fingerprint": fingerprint, "dev": dev}), encoding="utf-8")
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
    if Path(prefix).resolve() != checkout.venv.resolve() or not _scripts_belong_here(checkout):
        return "it was made for another folder"
    if checkout.unfinished.exists():
        damaged = damaged_packages(checkout.venv)
        if damaged:
            return "an interrupted installation left " + ", ".join(damaged) + " incomplete"
    return None


def _scripts_belong_here(checkout: Checkout) -> bool:
    """Whether the scripts in ``bin`` name this folder: a copied one still names the old."""
    activate = checkout.venv / "bin" / "activate"
    try:
        return str(checkout.venv) in activate.read_text(encoding="utf-8")
    except OSError:
        return False


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
        # Compiled files come and go; they carry no digest and no size in a RECORD.
        if size and (not path.is_file() or path.stat().st_size != int(size)):
            return False
    return bool(rows)


# --- making it ------------------------------------------------------------------------------


def run_shown(command: Sequence[str], checkout: Checkout) -> bool:
    """Run a command in the checkout, all it prints going to stderr; return whether it succeeded."""
    return subprocess.run(command, stdout=2, check=False, cwd=checkout.root).returncode == 0


def make_environment(checkout: Checkout, fault: str) -> None:
    """Make ``.venv`` anew."""
    say(f"Making {checkout.venv.name} ({fault}) ...")
    if not run_shown([sys.executable, "-m", "venv", "--clear", str(checkout.venv)], checkout):
        raise SetupError(
            f"{sys.executable} -m venv failed as shown above; remove {checkout.venv} and try again."
        )


def pip_install(checkout: Checkout, *what: str) -> None:
    """Install with the tested releases.

    Raises:
        SetupError: pip failed; its own message has been shown.
    """
    command = [*_pip(checkout), "install", "-c", str(checkout.constraints), *what]
    if not run_shown(command, checkout):
        raise SetupError(
            "pip could not install the packages; its message is above. "
            "Check the network and pip's settings, then run make again: it goes on from here."
        )


def _pip(checkout: Checkout) -> list[str]:
    return [str(checkout.python), "-m", "pip", "--disable-pip-version-check", "--no-input"]


def installed_torch(checkout: Checkout) -> str | None:
    """Return the version of torch in the environment with its build label, such as 2.13.0+cpu."""
    for info in checkout.venv.glob("lib/python*/site-packages/torch-*.dist-info"):
        return info.name[len("torch-") : -len(".dist-info")]
    return None


def tested_torch(checkout: Checkout) -> str:
    """Return the release of torch that ``constraints.txt`` names."""
    text = checkout.constraints.read_text(encoding="utf-8")
    match = re.search(r"^torch==(\S+)", text, re.MULTILINE)
    if match is None:
        raise SetupError(f"{checkout.constraints} names no release of torch (torch==...).")
    return match.group(1)


def install_cpu_torch(checkout: Checkout) -> None:
    """Install torch's CPU build where pip knows one: it saves gigabytes of CUDA libraries."""
    release = tested_torch(checkout)
    say(f"No NVIDIA GPU here: asking pip for the CPU build of torch {release} ...")
    command = [*_pip(checkout), "install", "-c", str(checkout.constraints)]
    # Only stderr is held back: a missing build is no error here, so it must not look like one.
    done = subprocess.run(
        [*command, f"torch=={release}+cpu"],
        stdout=2,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=checkout.root,
    )
    if done.returncode == 0:
        return
    if "No matching distribution found for torch" not in done.stderr:
        sys.stderr.write(done.stderr)
        raise SetupError(
            "pip could not install torch; its message is above. Run make again to go on from here."
        )
    say(
        f"pip offers no CPU build of torch {release}, so the standard one comes, on Linux with "
        "its CUDA libraries: about 3 GB to download. To avoid that, interrupt, set "
        "PIP_EXTRA_INDEX_URL to the CPU index that PyTorch's own install page gives, "
        "and run make again."
    )


def install_cuda_torch(checkout: Checkout) -> None:
    """Replace a CPU build of torch, which a local index may rank above the standard one."""
    version = installed_torch(checkout)
    if version is None or not version.endswith("+cpu"):
        return
    say(f"An NVIDIA GPU is here: replacing torch {version} by the build with CUDA ...")
    # Three equals signs compare the text, so that a build label does not satisfy it.
    pip_install(checkout, f"torch==={version[: -len('+cpu')]}")


def check_qt_starts(checkout: Checkout) -> None:
    """Start Qt without a display, the proof that its libraries are all there."""
    done = subprocess.run(
        [
            str(checkout.python),
            "-c",
            "from PySide6.QtWidgets import QApplication; QApplication([])",
        ],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise SetupError(f"Qt is installed but does not start: {lines[-1]}")


def install_everything(checkout: Checkout, fault: str | None, *, dev: bool, has_gpu: bool) -> None:
    """Bring ``.venv`` up to date and prove that Qt starts.

    Args:
        checkout: The project's folder.
        fault: What :func:`environment_fault` said.
        dev: Whether to install what the checks need as well.
        has_gpu: Whether torch should come with CUDA.
    """
    if fault is not None:
        make_environment(checkout, fault)
    checkout.unfinished.touch()
    if not has_gpu and sys.platform == "linux" and installed_torch(checkout) is None:
        install_cpu_torch(checkout)
    say("Installing the program and what it needs ...")
    pip_install(checkout, "-e", ".[dev]" if dev else ".")
    if has_gpu:
        install_cuda_torch(checkout)
    check_qt_starts(checkout)
    checkout.unfinished.unlink()


# --- the system -----------------------------------------------------------------------------


def ensure_system_packages(probes: system_packages.Probes, *, has_environment: bool) -> None:
    """Install what the system lacks where that needs no question, else say what to type.

    Args:
        probes: The machine.
        has_environment: Whether ``.venv`` can be used as it is.

    Raises:
        SetupError: Something is missing that the program cannot do without.
    """
    missing = system_packages.find_missing(probes, has_environment=has_environment)
    if not missing:
        return
    say("This system lacks:")
    for line in system_packages.describe(missing):
        say(line)
    if not system_packages.names_are_tried(probes):
        say("  (the package names were tried on Debian 12 only; yours may differ)")
    prefix = system_packages.apt_prefix(probes, os.geteuid())
    if prefix is not None:
        packages = list(dict.fromkeys(entry.package for entry in missing))
        say("Installing " + " ".join(packages) + " with apt-get ...")
        if not system_packages.install_packages(packages, prefix):
            say("apt-get failed, see above.")
        missing = system_packages.find_missing(probes, has_environment=has_environment)
        if not missing:
            return
        say("Still missing:")
        for line in system_packages.describe(missing):
            say(line)
    say("This command installs it:")
    say("  " + system_packages.by_hand_command(missing))
    if any(system_packages.is_required(entry, probes.environ) for entry in missing):
        raise SetupError("The program cannot start without these: install them and try again.")
    say("Going on without.")


@contextlib.contextmanager
def only_one(root: Path) -> Iterator[None]:
    """Hold a lock on the checkout, so that two set-ups at once take turns."""
    handle = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up is at work in this checkout; waiting for it ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def set_up(checkout: Checkout, *, dev: bool) -> None:
    """Check the system, then bring ``.venv`` up to date.

    Args:
        checkout: The project's folder.
        dev: Whether to install what the checks need as well.
    """
    started_s = time.monotonic()
    has_gpu = has_nvidia_gpu()
    fingerprint = checkout.fingerprint(has_gpu=has_gpu)
    up_to_date = is_up_to_date(checkout, fingerprint, dev=dev)
    fault = None if up_to_date else environment_fault(checkout)
    # Each time: a library or the compiler may have been removed since, and asking is cheap.
    ensure_system_packages(system_packages.machine_probes(), has_environment=fault is None)
    if up_to_date:
        return
    install_everything(checkout, fault, dev=dev, has_gpu=has_gpu)
    write_stamp(checkout, fingerprint, dev=dev)
    say(f"Set-up done in {time.monotonic() - started_s:.0f} s.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the set-up and return its exit code."""
    if sys.version_info[:2] < OLDEST_PYTHON:
        say(
            "Python 3.11 or newer is needed, and this is {}.{}: name a newer one, for example "
            "make run PYTHON=python3.12".format(*sys.version_info[:2])
        )
        return 1
    parser = argparse.ArgumentParser(prog="setup_environment", description=__doc__)
    parser.add_argument("--dev", action="store_true", help="install what the checks need as well")
    options = parser.parse_args(arguments)
    checkout = Checkout(Path(__file__).resolve().parent.parent)
    try:
        with only_one(checkout.root):
            set_up(checkout, dev=options.dev)
    except SetupError as error:
        say(f"Set-up stopped: {error}")
        return 1
    except KeyboardInterrupt:
        say("\nSet-up interrupted; run the same command again and it goes on.")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
