"""Whether a device's configuration lets CUPTI count at all, and if not, what stands in the way."""

from explorer.engine.cupti import errors, structs
from explorer.engine.cupti.errors import refusal
from explorer.engine.cupti.library import CuptiLibrary

# Flag of the answer, result code whose sentence explains it.
_CAUSES = (
    ("architecture", errors.NOT_SUPPORTED),
    ("sli", errors.SLI),
    ("virtual_gpu", errors.VIRTUALIZED),
    ("confidential_computing", errors.CONFIDENTIAL_COMPUTING),
    ("mining_processor", errors.MINING_PROCESSOR),
    ("wsl", errors.WSL),
    ("sku", errors.NOT_SUPPORTED),
)


def check_support(library: CuptiLibrary, device: int) -> None:
    """Raise if one of the device's features forbids profiling.

    A query that itself fails decides nothing: the first real call will tell the cause.

    Args:
        library: The opened and initialized CUPTI.
        device: The driver's handle of the device.

    Raises:
        CounterRefused: With the sentence for the first feature in the way.
    """
    block = structs.DeviceSupported(device=device)
    if library.result("cuptiProfilerDeviceSupported", block):
        return
    cause = cause_code(block)
    if cause is not None:
        raise refusal(cause, "cuptiProfilerDeviceSupported", library.release_text)


def cause_code(answer: structs.DeviceSupported) -> int | None:
    """The result code that fits the answer's first obstacle, or None if there is none.

    Args:
        answer: The filled block; releases before 13.1 leave ``sku`` at 0 (unknown), no obstacle.
    """
    obstacles = (structs.SUPPORT_UNSUPPORTED, structs.SUPPORT_DISABLED)
    for flag, code in _CAUSES:
        level = int(getattr(answer, flag))
        if flag == "virtual_gpu" and level == structs.SUPPORT_DISABLED:
            return errors.VIRTUALIZED_PRIVILEGES
        if level in obstacles:
            return code
    return errors.NOT_SUPPORTED if int(answer.is_supported) in obstacles else None
