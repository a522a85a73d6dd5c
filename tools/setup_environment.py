"""Make ``.venv`` hold the program and all it needs, and say what the system lacks.

``python3 -m tools.setup_environment [--dev] [--modules]`` from the checkout: what ``make`` does.
Running it again costs a fraction of a second: a stamp records what was installed, and is written
last, so an interrupted set-up is finished by the next one.

Standard library only, and free of syntax newer than Python 3.8 (see ``system_packages``).
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import fcntl
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools import system_packages
from tools.environment_state import (
    OLDEST_PYTHON,
    Checkout,
    environment_fault,
    is_up_to_date,
    write_stamp,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INTERRUPTED = 130
PIP_FAILED = (
    "pip could not install the packages; its message is above. "
    "Check the network and pip's settings, then run make again: it goes on from here."
)


class SetupError(Exception):
    """The set-up cannot go on; the message is a sentence for the user, with the remedy."""


def say(text: str) -> None:
    """Write a line of progress; standard output is left to the program that starts next."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


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
        raise SetupError(PIP_FAILED)


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
    # Without the constraints, so that a missing build is told as just that; what torch needs
    # comes with the next step. Its complaint is held back: a missing build is no error here.
    done = subprocess.run(
        [*_pip(checkout), "install", "--no-deps", f"torch=={release}+cpu"],
        stdout=2,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd=checkout.root,
    )
    if done.returncode == 0:
        return
    if not is_offer_missing(done.stderr):
        sys.stderr.write(done.stderr)
        raise SetupError(PIP_FAILED)
    say(
        f"pip offers no CPU build of torch {release}, so the standard one comes, on Linux with "
        "its CUDA libraries: about 2.7 GB to download. To avoid that, interrupt, set "
        "PIP_EXTRA_INDEX_URL to the CPU index that PyTorch's own install page gives, "
        "and run make again."
    )


def is_offer_missing(complaint: str) -> bool:
    """Whether pip looked and found other builds of torch than the one it was asked for.

    Args:
        complaint: What pip wrote to stderr. Seeing no build at all means no network, or no torch
            for this Python, and is not for the next step to repeat.
    """
    # A constraint in the user's own settings turns a missing build into a conflict.
    conflict = "ResolutionImpossible" in complaint
    missing = "No matching distribution found" in complaint
    return conflict or (missing and "(from versions: none)" not in complaint)


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


def install_everything(
    checkout: Checkout, fault: str | None, *, extras: Sequence[str], has_gpu: bool
) -> None:
    """Bring ``.venv`` up to date and prove that Qt starts.

    Args:
        checkout: The project's folder.
        fault: What :func:`environment_fault` said.
        extras: What to install beside the program, by the names in ``pyproject.toml``.
        has_gpu: Whether torch should come with CUDA.
    """
    if fault is not None:
        make_environment(checkout, fault)
    checkout.unfinished.touch()
    if not has_gpu and sys.platform == "linux" and installed_torch(checkout) is None:
        install_cpu_torch(checkout)
    say("Installing the program and what it needs ...")
    pip_install(checkout, "-e", f".[{','.join(extras)}]" if extras else ".")
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
            say("apt-get failed, see above. What it left unfinished, this finishes:")
            say("  sudo dpkg --configure -a && sudo apt-get -f install")
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


def set_up(checkout: Checkout, *, extras: Sequence[str]) -> None:
    """Check the system, then bring ``.venv`` up to date.

    Args:
        checkout: The project's folder.
        extras: What to install beside the program.
    """
    started_s = time.monotonic()
    has_gpu = has_nvidia_gpu()
    fingerprint = checkout.fingerprint(has_gpu=has_gpu)
    up_to_date = is_up_to_date(checkout, fingerprint, extras=extras)
    fault = None if up_to_date else environment_fault(checkout)
    # Each time: a library or the compiler may have been removed since, and asking is cheap.
    ensure_system_packages(system_packages.machine_probes(), has_environment=fault is None)
    if up_to_date:
        return
    install_everything(checkout, fault, extras=extras, has_gpu=has_gpu)
    write_stamp(checkout, fingerprint, extras=extras)
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
    parser.add_argument("--modules", action="store_true", help="and the real modules of the tests")
    options = parser.parse_args(arguments)
    extras = [name for name in ("dev", "modules") if getattr(options, name)]
    checkout = Checkout(Path(__file__).resolve().parent.parent)
    try:
        with only_one(checkout.root):
            set_up(checkout, extras=extras)
    except SetupError as error:
        say(f"Set-up stopped: {error}")
        return 1
    except OSError as error:
        what = f"{error.filename}: " if error.filename else ""
        say(f"Set-up stopped: {what}{error.strerror or error}; mend that, then run make again.")
        return 1
    except KeyboardInterrupt:
        say("\nSet-up interrupted; run the same command again and it goes on.")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
