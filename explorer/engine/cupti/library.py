"""Finding and opening libcupti, and calling it."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from explorer.engine.cupti.errors import CounterRefused, refusal
from explorer.engine.cupti.structs import NEWEST_RELEASE, Block, Release, block_size, release_of

MEMORY_MAP = Path("/proc/self/maps")
# Below an entry of sys.path: where the wheels of CUDA 13, of CUDA 12, and old torch builds keep it.
_WHEEL_FOLDERS = ("nvidia/cu13/lib", "nvidia/cuda_cupti/lib", "torch/lib")
_TOOLKIT_FOLDER = "extras/CUPTI/lib64"
# What libcupti itself opens, by bare names that the loader looks up in the system's folders only.
_HELPERS = ("libnvperf_host.so", "libnvperf_target.so")

AnyBlock = TypeVar("AnyBlock", bound=Block)


def find_libcupti(memory_map: Path = MEMORY_MAP, search_path: Iterable[str] | None = None) -> Path:
    """The libcupti to use: the one torch has loaded, else the one installed beside torch.

    Two copies in one process would fight over the driver's hooks, so a loaded one always wins.

    Args:
        memory_map: The process's memory map, in the form of ``/proc/self/maps``.
        search_path: Folders that may hold wheels; ``sys.path`` when None.

    Raises:
        CounterRefused: There is none.
    """
    try:
        mapped = memory_map.read_text(encoding="utf-8", errors="replace")
    except OSError:
        mapped = ""
    for line in mapped.splitlines():
        # address, permissions, offset, device, inode, then the path, which may hold spaces
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and Path(fields[5]).name.startswith("libcupti.so"):
            return Path(fields[5])
    roots = [Path(entry or ".") for entry in (sys.path if search_path is None else search_path)]
    folders = [root / folder for folder in _WHEEL_FOLDERS for root in roots]
    toolkit = os.environ.get("CUDA_HOME")
    if toolkit and search_path is None:
        folders.append(Path(toolkit) / _TOOLKIT_FOLDER)
    for folder in folders:
        found = sorted(folder.glob("libcupti.so*"))
        if found:
            return found[-1]
    raise CounterRefused(
        "DRAM bytes are not counted: no libcupti was found; install torch's CUDA build, whose "
        "wheels bring it (package nvidia-cuda-cupti)."
    )


class CuptiLibrary:
    """An opened libcupti that knows its release.

    Attributes:
        path: The file.
        release: The CUDA release it belongs to; argument blocks are sized by it.
        api_version: ``cuptiGetVersion``'s number.
    """

    def __init__(self, path: Path) -> None:
        """Open the library.

        Args:
            path: A ``libcupti.so`` file, e.g. from :func:`find_libcupti`.

        Raises:
            CounterRefused: It cannot be opened, cannot reach the driver, or is older than 12.6.
        """
        self.path = path
        self._helpers = _open_helpers(path.parent)
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise CounterRefused(
                f"DRAM bytes are not counted: {path} cannot be opened ({error}); reinstall torch's "
                "package nvidia-cuda-cupti."
            ) from error
        version = ctypes.c_uint32()
        code = int(self._function("cuptiGetVersion")(ctypes.byref(version)))
        if code:
            raise refusal(code, "cuptiGetVersion", "of unknown release")
        self.api_version = version.value
        release = release_of(version.value)
        if release is None:
            raise CounterRefused(
                "DRAM bytes are not counted: this torch brings a CUPTI from before CUDA 12.6, "
                "which has no range profiler; use a torch built for CUDA 12.6 or newer."
            )
        self.release: Release = release

    @property
    def release_text(self) -> str:
        """The release as one writes it, e.g. ``13.0``."""
        return f"{self.release[0]}.{self.release[1]}"

    @property
    def is_known(self) -> bool:
        """Whether the layouts of this release were compared with its headers."""
        return self.release <= NEWEST_RELEASE

    def call(self, function: str, block: AnyBlock) -> AnyBlock:
        """Call a function that takes one argument block.

        Args:
            function: Its name in the library.
            block: The arguments; its head is filled in here.

        Returns:
            ``block``, with what the function wrote into it.

        Raises:
            CounterRefused: The function is missing or its result is not 0.
        """
        code = self.result(function, block)
        if code:
            raise refusal(code, function, self.release_text, known_release=self.is_known)
        return block

    def result(self, function: str, block: Block) -> int:
        """As :meth:`call`, but give the result code back instead of raising it."""
        block.block_size = block_size(type(block), self.release)
        return int(self._function(function)(ctypes.byref(block)))

    def _function(self, name: str) -> "ctypes._NamedFuncPointer":
        try:
            function: ctypes._NamedFuncPointer = getattr(self._library, name)
        except AttributeError as error:
            raise CounterRefused(
                f"DRAM bytes are not counted: {self.path} has no function {name}; use a torch "
                "built for CUDA 12.6 or newer.",
                call=name,
            ) from error
        function.restype = ctypes.c_int
        return function


def _open_helpers(folder: Path) -> tuple[ctypes.CDLL, ...]:
    """Open what libcupti needs, so that it finds its own copies and not a toolkit's or none.

    Without them it says that it is not initialized, as it does where there is no driver.
    """
    opened = []
    for name in _HELPERS:
        # One that is missing or broken is for CUPTI to complain of.
        with contextlib.suppress(OSError):
            opened.append(ctypes.CDLL(str(folder / name)))
    return tuple(opened)
