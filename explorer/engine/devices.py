"""The devices of this machine as records, and which one a request means."""

import os
import platform
import re
import sys
from pathlib import Path

import torch

from explorer import __version__
from explorer.engine.measure.clocks import Nvml
from explorer.model.device import Device, DeviceKind, Versions
from explorer.model.errors import UsageError

_UNKNOWN_CACHE_BYTES = 32 << 20
_SIZE_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "": 1}


def list_devices() -> tuple[Device, ...]:
    """Every device a chain can run on, the CPU last."""
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return (*(_cuda_device(index) for index in range(n_gpus)), _cpu_device())


def resolve_device(name: str) -> torch.device:
    """The device that ``auto``, ``cpu``, ``cuda`` or ``cuda:N`` means here.

    Raises:
        UsageError: It is not there; the sentence lists what is.
    """
    n_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if name == "cpu" or (name == "auto" and n_gpus == 0):
        return torch.device("cpu")
    index = int(match[1] or 0) if match else 0
    if (name == "auto" or match) and index < n_gpus:
        return torch.device("cuda", index)
    known = ", ".join([*(f"cuda:{i}" for i in range(n_gpus)), "cpu"])
    why = "" if n_gpus or not match else f" {_why_no_cuda()}"
    raise UsageError(f"There is no device {name!r} here; there is {known}.{why}")


def _why_no_cuda() -> str:
    if torch.version.cuda is None:
        return f"This torch ({torch.__version__}) is built without CUDA."
    return "torch finds no NVIDIA GPU; `nvidia-smi` shows whether the driver does."


def describe(device: torch.device) -> Device:
    """The record of a device, its free memory as of now."""
    if device.type == "cuda":
        return _cuda_device(device.index or 0)
    return _cpu_device()


def versions(cupti: str | None = None) -> Versions:
    """Everything that can change a number."""
    return Versions(
        explorer=__version__,
        python=platform.python_version(),
        torch=str(torch.__version__),
        triton=triton_version(),
        cuda=torch.version.cuda,
        cupti=cupti,
        platform=platform.platform(),
    )


def triton_version() -> str | None:
    """Triton's release, None where it is not installed."""
    from importlib import metadata

    for package in ("triton", "pytorch-triton", "triton-windows"):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return None


def free_bytes(device: torch.device) -> int:
    """Memory that a run could take: on a GPU with what torch's allocator holds unused."""
    if device.type != "cuda":
        return _cpu_free_bytes()
    free, _ = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(free) + unused


def _cuda_device(index: int) -> Device:
    device = torch.device("cuda", index)
    properties = torch.cuda.get_device_properties(device)
    nvml = Nvml(device)
    return Device(
        id=f"cuda:{index}",
        name=properties.name,
        kind=DeviceKind.CUDA,
        memory_bytes=int(properties.total_memory),
        free_bytes=free_bytes(device),
        l2_bytes=int(properties.L2_cache_size),
        sm_count=int(properties.multi_processor_count),
        driver=nvml.driver(),
        drives_display=nvml.drives_display(),
    )


def _cpu_device() -> Device:
    return Device(
        id="cpu",
        name=_cpu_name(),
        kind=DeviceKind.CPU,
        memory_bytes=_cpu_memory_bytes(),
        free_bytes=_cpu_free_bytes(),
        l2_bytes=last_level_cache_bytes(),
        sm_count=_cpu_count(),
    )


def _cpu_count() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_name() -> str:
    info = _lines(Path("/proc/cpuinfo"))
    for line in info:
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or platform.machine() or "CPU"


def _cpu_memory_bytes() -> int:
    total = _meminfo("MemTotal")
    if total is None:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _cgroup_bytes("memory.max")
    return total if limit is None else min(total, limit)


def _cpu_free_bytes() -> int:
    free = _meminfo("MemAvailable")
    if free is None:
        # Where the system does not say, half of everything is a cautious guess.
        return _cpu_memory_bytes() // 2
    limit, used = _cgroup_bytes("memory.max"), _cgroup_bytes("memory.current")
    if limit is not None and used is not None:
        free = min(free, max(limit - used, 0))
    return free


def _meminfo(key: str) -> int | None:
    for line in _lines(Path("/proc/meminfo")):
        name, _, value = line.partition(":")
        if name == key:
            return int(value.split()[0]) * 1024
    return None


def _cgroup_bytes(name: str) -> int | None:
    """A container's limit, where it has one."""
    lines = _lines(Path("/sys/fs/cgroup") / name)
    return int(lines[0]) if lines and lines[0].strip().isdigit() else None


def last_level_cache_bytes(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """The largest cache of the first core, 32 MiB where the system does not say."""
    sizes = []
    for index in sorted(root.glob("index*")):
        lines = _lines(index / "size")
        match = re.fullmatch(r"(\d+)([KMG]?)", lines[0].strip()) if lines else None
        if match:
            sizes.append(int(match[1]) * _SIZE_UNITS[match[2]])
    return max(sizes, default=_UNKNOWN_CACHE_BYTES)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
