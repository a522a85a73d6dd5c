"""Finding libcupti, and opening what is not one."""

import ctypes.util
import shutil
from pathlib import Path

import pytest

from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.cupti.library import MEMORY_MAP, CuptiLibrary, find_libcupti

MAPS = """\
7f0000000000-7f0000001000 r-xp 00000000 fe:00 131 /usr/lib/x86_64-linux-gnu/libc.so.6
7f0000002000-7f0000003000 rw-p 00000000 00:00 0
7f0000004000-7f0000005000 r-xp 00000000 fe:00 132 /opt/my env/nvidia/cu13/lib/libcupti.so.13
"""


def wheel_library(root: Path, folder: str, name: str) -> Path:
    path = root / folder / name
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def test_the_copy_that_torch_has_loaded_is_taken(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(MAPS)
    wheel_library(tmp_path, "nvidia/cu13/lib", "libcupti.so.13")
    found = find_libcupti(maps, [str(tmp_path)])
    assert found == Path("/opt/my env/nvidia/cu13/lib/libcupti.so.13")


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("nvidia/cu13/lib", "libcupti.so.13"),
        ("nvidia/cuda_cupti/lib", "libcupti.so.12"),
        ("torch/lib", "libcupti.so.12"),
    ],
)
def test_otherwise_the_wheels_are_searched(tmp_path: Path, folder: str, name: str) -> None:
    expected = wheel_library(tmp_path, folder, name)
    empty = tmp_path / "empty"
    assert find_libcupti(tmp_path / "maps", [str(empty), str(tmp_path)]) == expected


def test_none_at_all_is_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(CounterRefused, match="install torch's CUDA build"):
        find_libcupti(tmp_path / "maps", [str(tmp_path)])


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "libcupti.so.13"
    path.write_text("not a library")
    with pytest.raises(CounterRefused, match="cannot be opened"):
        CuptiLibrary(path)


def test_a_library_that_is_not_cupti_is_refused() -> None:
    name = ctypes.util.find_library("m")
    assert name is not None
    with pytest.raises(CounterRefused, match="no function cuptiGetVersion") as refused:
        CuptiLibrary(Path(name))
    assert refused.value.call == "cuptiGetVersion"


def test_the_libraries_it_opens_by_name_are_those_beside_it(tmp_path: Path) -> None:
    ctypes.CDLL(ctypes.util.find_library("m"))
    mapped = (line.split(maxsplit=5) for line in MEMORY_MAP.read_text().splitlines())
    any_library = next(fields[5] for fields in mapped if "/libm.so" in fields[-1])
    # By another name than CUPTI's: it stays in this process, where other tests look for CUPTI.
    for name in ("libother.so", "libnvperf_host.so", "libnvperf_target.so"):
        shutil.copy(any_library, tmp_path / name)
    # It is no CUPTI and is refused, but by then what lies beside it has been opened.
    with pytest.raises(CounterRefused):
        CuptiLibrary(tmp_path / "libother.so")
    found = MEMORY_MAP.read_text()
    assert str(tmp_path / "libnvperf_host.so") in found
    assert str(tmp_path / "libnvperf_target.so") in found
