"""How a worker is started and how its end is told: no process, no Qt, no torch.

Both the command line's blocking client and the window's use them.
"""

import os
import platform
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from importlib import util
from pathlib import Path

from explorer.model.errors import UsageError
from explorer.model.places import cache_folder
from explorer.worker.protocol import (
    CANNOT_START_EXIT,
    END_SIGNALS,
    RESTART_EXIT,
    signal_exit,
)

BOOTSTRAP = Path(__file__).with_name("bootstrap.py")
CPU_FLAGS = Path("/proc/cpuinfo")
DEBUG_VARIABLE = "KERNEL_EXPLORER_DEBUG"
"""Set to anything, it lets tracebacks and the worker's stderr through."""

_PROGRAM = BOOTSTRAP.parents[1]
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)
# What Python's own modules and installed packages lie in.
_PYTHONS = re.compile(r"python3(\.\d+)?|(site|dist)-packages")
_KEEP_MEMORY_BYTES = 64 * 1024**3


def default_python(environ: Mapping[str, str] = os.environ) -> Path:
    """The Python a worker runs on unless the user names one.

    Returns:
        That of the active virtual environment if torch is installed there, else our own.
    """
    active = environ.get("VIRTUAL_ENV", "")
    if active:
        root = Path(active)
        has_torch = any(root.glob("lib*/python3*/site-packages/torch/__init__.py"))
        python = root / "bin" / "python"
        if has_torch and python.exists():
            return python
    return Path(sys.executable)


def find_python(named: Path) -> Path:
    """Make sure that what the user named can be run, and return where it lies.

    Args:
        named: A path, a name to look up in ``PATH``, or the folder of a virtual environment.

    Raises:
        UsageError: It is not there or cannot be run.
    """
    # Asked of os, which unlike Path answers for any text: a name too long, a user not there.
    named = Path(os.path.expanduser(named))
    if os.path.isdir(named):
        inside = named / "bin" / "python"
        if inside.exists():
            return inside.absolute()
        raise UsageError(
            f"{named} is a folder without bin/python; name a Python interpreter with "
            "--worker-python."
        )
    found = shutil.which(named)
    if found is not None:
        # Not resolved: a virtual environment's Python is a link, and its place is what counts.
        return Path(found).absolute()
    what = "is not an executable file" if os.path.exists(named) else "does not exist"
    raise UsageError(f"{named} {what}; name a Python interpreter with --worker-python.")


def worker_command(python: Path | None = None) -> list[str]:
    """Program and arguments of a worker's stdio loop.

    Args:
        python: The interpreter with torch, None for :func:`default_python`.

    Raises:
        UsageError: ``python`` is there in name only.
    """
    interpreter = default_python() if python is None else find_python(python)
    command = [str(interpreter), str(BOOTSTRAP)]
    ours = util.find_spec("pynvml")
    if ours is not None and ours.origin is not None:
        origin = Path(ours.origin)
        is_package = bool(ours.submodule_search_locations)
        folder = origin.parent.parent if is_package else origin.parent
        command += ["--pynvml", str(folder)]
    return command


def worker_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment of a worker: the user's, with what honest measuring needs.

    A variable that the user set is kept, the folder of Inductor's cache apart: ours alone, it is
    known to be made under these settings, and stays warm.
    """
    made = {
        # Inductor then says which operator each generated kernel comes from.
        "INDUCTOR_PROVENANCE": "1",
        "PYTHONUNBUFFERED": "1",
        # Inductor writes its code in the locale's encoding, and what another wrote is read again.
        "PYTHONUTF8": "1",
        # A waiting OpenMP thread that spins takes the core that the next kernel needs.
        "OMP_WAIT_POLICY": "passive",
        # glibc otherwise maps every large tensor afresh, and its page faults are timed as work.
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": str(_KEEP_MEMORY_BYTES),
    }
    if _compiler_knows_vectors(environ):
        made["TORCHINDUCTOR_VEC_ISA_OK"] = "1"
    inductor_cache = cache_folder(environ) / "inductor"
    if _can_be_written(inductor_cache):
        return {**made, **environ, "TORCHINDUCTOR_CACHE_DIR": str(inductor_cache)}
    # A home that is read-only or missing: torch's own choice lies among the temporary files.
    return {**made, **environ}


def _can_be_written(folder: Path) -> bool:
    """Whether the folder is there, made if need be, and takes new files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _compiler_knows_vectors(environ: Mapping[str, str]) -> bool:
    """Whether Inductor's test compile of vector code (11 s with a cold cache) can be skipped.

    It tells whether compiler and headers can use AVX at all. That holds for every g++ that can
    compile torch's headers, on a processor that has it; elsewhere the test stays.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    if environ.get("CXX", "g++") != "g++" or shutil.which("g++", path=environ.get("PATH")) is None:
        return False
    try:
        with CPU_FLAGS.open(encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return "avx2" in flags.split()


def exit_sentence(returncode: int, stderr_tail: str) -> str:
    """Say why a worker that nobody told to end has ended, and what to do.

    Args:
        returncode: Its exit code; the negative number of the signal that killed it.
        stderr_tail: The end of what it wrote to stderr.
    """
    if returncode == -signal.SIGKILL:
        return (
            "The worker was killed from outside (signal 9), as the system does when memory runs "
            "out; choose a smaller size or close other programs, then run again."
        )
    if returncode in [signal_exit(number) for number in END_SIGNALS]:
        returncode = 128 - returncode
    if returncode in (-signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP):
        return (
            f"The worker was told to end from outside ({_signal_name(returncode)}); run again to "
            "start a new one."
        )
    if returncode < 0:
        place = _place_of_crash(stderr_tail)
        to_leave = "the strategy that was running" if place is None else "that line"
        return (
            f"The worker crashed ({_signal_name(returncode)})"
            f"{_last_words(stderr_tail) if place is None else f' at {place}'}; run again "
            f"to start a new one, and leave out {to_leave} if it crashes again."
        )
    if returncode == RESTART_EXIT:
        return "The worker gave up a device that a kernel had faulted on; run again on a new one."
    if returncode == CANNOT_START_EXIT:
        return (
            f"The worker could not start{_last_words(stderr_tail)}; kernel-explorer doctor "
            "says what is missing."
        )
    return (
        f"The worker ended by itself (exit code {returncode}){_last_words(stderr_tail)}; run again "
        "to start a new one."
    )


def start_sentence(python: str, returncode: int, stderr_tail: str) -> str:
    """Say why a worker ended before it said that it was ready.

    Args:
        python: The interpreter it was started with.
        returncode: As for :func:`exit_sentence`.
        stderr_tail: As for :func:`exit_sentence`.
    """
    if returncode < 0:
        return exit_sentence(returncode, stderr_tail)
    return (
        f"{python} did not become a worker (exit code {returncode}){_last_words(stderr_tail)}; "
        "name a Python 3.11 or newer that has torch with --worker-python."
    )


def _signal_name(returncode: int) -> str:
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"
    words = {"SIGABRT": "aborted", "SIGSEGV": "segmentation fault", "SIGFPE": "arithmetic fault"}
    return f"{words[name]}, {name}" if name in words else name


def _place_of_crash(stderr_tail: str) -> str | None:
    """The user's innermost line when C code crashed, as Python's fault handler tells it."""
    _, _, stack = stderr_tail.rpartition("Current thread ")
    for file, line in _FRAME.findall(stack.partition("\nThread ")[0]):
        path = Path(file)
        is_pythons = any(_PYTHONS.fullmatch(part) for part in path.parts[:-1])
        if not (is_pythons or path.is_relative_to(_PROGRAM) or file.startswith("<")):
            return f"{path.name}:{line}"
    return None


def _last_words(stderr_tail: str) -> str:
    """The line of stderr that says most: an error's if there is one, otherwise the last."""
    lines = [line.strip() for line in stderr_tail.splitlines() if line.strip()]
    # A crash in C code is followed by the stack and the list of extension modules.
    fatal = [line for line in lines if line.startswith(("Fatal Python error", "terminate called"))]
    if not lines or (fatal and fatal[-1].startswith("Fatal")):
        return ""
    words = (fatal or lines)[-1].rstrip(".;")
    return f", its last words being '{words[:200]}'"
