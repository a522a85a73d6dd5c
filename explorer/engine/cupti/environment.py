"""What the operating system says about who may read the GPU's counters."""

from pathlib import Path

DRIVER_PARAMETERS = Path("/proc/driver/nvidia/params")
KERNEL_VERSION = Path("/proc/version")


def counters_admin_only(parameters: Path = DRIVER_PARAMETERS) -> bool | None:
    """Whether the driver keeps the counters from ordinary users.

    Args:
        parameters: The driver's list of its module options, one ``Name: value`` a line.

    Returns:
        The value of ``RmProfilingAdminOnly``, or None where the driver does not say.
    """
    for line in _text(parameters).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "RmProfilingAdminOnly":
            return value.strip() != "0"
    return None


def is_wsl(kernel_version: Path = KERNEL_VERSION) -> bool:
    """Whether this Linux is the Windows Subsystem for Linux (its kernel names Microsoft)."""
    return "microsoft" in _text(kernel_version).lower()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
