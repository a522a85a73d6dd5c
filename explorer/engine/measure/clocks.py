"""Clocks, temperature, power and throttling through NVML, a few microseconds a reading."""

import importlib
from collections.abc import Callable
from typing import Any

import torch

from explorer.model.device import Clocks


def _import_pynvml() -> Any:
    """NVML's bindings, None where the worker's Python does not have them."""
    try:
        return importlib.import_module("pynvml")
    except ImportError:
        return None


pynvml = _import_pynvml()

# Numbers of NVML's enumerations, from ``nvml.h``.
_SM_CLOCK, _MEMORY_CLOCK, _GPU_SENSOR = 1, 2, 0
_THROTTLE_NAMES = {
    0x1: "idle",
    0x2: "application clocks setting",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal, by software",
    0x40: "thermal, by hardware",
    0x80: "power brake",
    0x100: "display clock setting",
}
"""Bits of ``nvmlClocksEventReasons``, from NVIDIA's ``nvml.h``."""


class Nvml:
    """NVML for one CUDA device; every reading may be None, since drivers leave parts out."""

    def __init__(self, device: torch.device) -> None:
        """Open NVML and find the device by its UUID: the two count devices differently."""
        self._handle: Any = None
        if pynvml is None:
            return
        try:
            pynvml.nvmlInit()
            uuid = str(torch.cuda.get_device_properties(device).uuid)
            name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(name)
        except (pynvml.NVMLError, AttributeError):
            # Without NVML there are no clocks; nothing else depends on it.
            self._handle = None

    @property
    def found(self) -> bool:
        """Whether NVML answers for the device."""
        return self._handle is not None

    def driver(self) -> str | None:
        """The driver's version."""
        return _text(self._ask("nvmlSystemGetDriverVersion"))

    def drives_display(self) -> bool:
        """Whether a desktop runs on it.

        NVML's display *mode* says nothing of that: data-centre parts without any output have it on.
        """
        return bool(self._ask("nvmlDeviceGetDisplayActive", self._handle))

    def full_sm_mhz(self) -> int | None:
        """The highest SM clock that the device goes up to by itself."""
        found: int | None = self._ask("nvmlDeviceGetMaxClockInfo", self._handle, _SM_CLOCK)
        return found

    def clocks(self) -> Clocks:
        """One reading."""
        power_mw = self._ask("nvmlDeviceGetPowerUsage", self._handle)
        reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", self._handle)
        return Clocks(
            sm_mhz=self._ask("nvmlDeviceGetClockInfo", self._handle, _SM_CLOCK),
            memory_mhz=self._ask("nvmlDeviceGetClockInfo", self._handle, _MEMORY_CLOCK),
            temperature_c=self._ask("nvmlDeviceGetTemperature", self._handle, _GPU_SENSOR),
            power_w=None if power_mw is None else power_mw / 1000.0,
            throttle_reasons=throttle_names(reasons or 0),
        )

    def _ask(self, question: str, *arguments: Any) -> Any:
        """What a function of NVML answers; None where it refuses or is missing."""
        if self._handle is None:
            return None
        function = getattr(pynvml, question, None)
        try:
            return None if function is None else function(*arguments)
        except pynvml.NVMLError:
            return None


def throttle_names(bits: int) -> tuple[str, ...]:
    """The reasons in words; a bit that is not known keeps its number."""
    names = []
    for position in range(bits.bit_length()):
        bit = 1 << position
        if bits & bit:
            names.append(_THROTTLE_NAMES.get(bit, f"reason 0x{bit:x}"))
    return tuple(names)


def clock_reader(device: torch.device) -> Callable[[], Clocks | None]:
    """A function that reads the device's clocks; on a CPU, or without NVML, it gives None."""
    if device.type != "cuda":
        return _no_clocks
    nvml = Nvml(device)
    return nvml.clocks if nvml.found else _no_clocks


def full_sm_mhz(device: torch.device) -> int | None:
    """The highest SM clock of a device; None on a CPU, or without NVML."""
    return Nvml(device).full_sm_mhz() if device.type == "cuda" else None


def _no_clocks() -> None:
    return None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return value.decode() if isinstance(value, bytes) else str(value)
