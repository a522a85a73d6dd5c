"""What compiling needs on this machine: a compiler, Python's headers, Triton."""

import importlib.util
import os
import shutil
import sys
import sysconfig
from pathlib import Path

import torch

_REMEDY = "on Debian or Ubuntu: `apt install g++ python3-dev`"


def cxx_compiler() -> str | None:
    """Path of the C++ compiler that Inductor's CPU back end would use, None if there is none.

    It takes no other than these: with clang alone on Linux, ``CXX`` has to name it.
    """
    usual = "clang++" if sys.platform == "darwin" else "g++"
    return shutil.which(os.environ.get("CXX", usual))


def c_compiler() -> str | None:
    """Path of the C compiler that Triton would use, None if there is none."""
    named = os.environ.get("CC")
    if named is not None:
        return shutil.which(named)
    return shutil.which("gcc") or shutil.which("clang")


def python_headers() -> Path | None:
    """Path of ``Python.h`` for the running interpreter, None if it is not installed."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return header if header.is_file() else None


def compile_refusal(device: torch.device) -> str | None:
    """Why ``torch.compile`` cannot work on a device: one sentence with the remedy, or None."""
    compiler = c_compiler() if device.type == "cuda" else cxx_compiler()
    missing = []
    if compiler is None:
        missing.append("a C++ compiler" if device.type != "cuda" else "a C compiler")
    if python_headers() is None:
        missing.append("Python's headers (Python.h)")
    if missing:
        return f"torch.compile needs {' and '.join(missing)}; {_REMEDY}."
    if device.type != "cuda":
        return None
    if importlib.util.find_spec("triton") is None:
        return (
            "torch.compile needs Triton on a GPU, and it is not installed; "
            "install the triton release that this torch names: `pip install triton`."
        )
    major, minor = torch.cuda.get_device_capability(device)
    if major < 7:
        return (
            f"torch.compile needs a GPU of compute capability 7.0 or newer, and this one has "
            f"{major}.{minor}; run eager on it."
        )
    return None
