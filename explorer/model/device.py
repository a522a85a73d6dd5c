"""The device a run took place on, its measured ceilings and its clocks."""

from dataclasses import dataclass, field
from enum import StrEnum

_LEAST_COPY_SHARE, _MOST_COPY_SHARE = 0.5, 0.75
"""Share of reads in the mixes that the copy ceiling is measured with: 1:1 to 3:1."""


class DeviceKind(StrEnum):
    """The two kinds of device a chain can run on."""

    CUDA = "cuda"
    CPU = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """What the device reached in our own measurement, not what a datasheet says.

    Attributes:
        copy_bytes_per_s: Best kernel that reads and writes (1:1 to 3:1), both counted.
        read_bytes_per_s: Best read-only kernel (a sum).
        write_bytes_per_s: Best write-only kernel (a fill).
        flops_per_s: Best matmul rate by dtype name.
        measured_at: ISO 8601 time of the measurement, UTC.
    """

    copy_bytes_per_s: float
    read_bytes_per_s: float
    write_bytes_per_s: float
    flops_per_s: dict[str, float]
    measured_at: str

    @property
    def memory_bytes_per_s(self) -> float:
        """The highest rate any of the three patterns reached: the roofline's slope.

        One slope is drawn for runs of every mix, so it is the one that bounds them all.
        """
        return max(self.copy_bytes_per_s, self.read_bytes_per_s, self.write_bytes_per_s)

    def bytes_per_s(self, bytes_read: int, bytes_written: int) -> float:
        """The rate that memory reaches at a mix of reads and writes.

        From 1:1 to 3:1 it is the copy's. Beyond that the time of a byte goes over to that of the
        read-only or write-only kernel. What only reads never turns the bus round, so it is not
        held to a sum that happens to be slower than a copy.
        """
        whole = bytes_read + bytes_written
        share = bytes_read / whole if whole else 0.5
        if share < _LEAST_COPY_SHARE:
            end, weight = self.write_bytes_per_s, 1 - share / _LEAST_COPY_SHARE
        else:
            end = max(self.read_bytes_per_s, self.copy_bytes_per_s)
            weight = max(0.0, (share - _MOST_COPY_SHARE) / (1 - _MOST_COPY_SHARE))
        if min(end, self.copy_bytes_per_s) <= 0:
            return 0.0
        return 1 / (weight / end + (1 - weight) / self.copy_bytes_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """One reading through NVML; a field the driver does not give is None."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device as the worker found it.

    Attributes:
        id: ``cpu`` or ``cuda:N``, as torch spells it.
        name: As the driver gives it, e.g. ``NVIDIA H200``.
        kind: CUDA or CPU.
        memory_bytes: Total memory.
        free_bytes: Free when it was looked at.
        l2_bytes: Last-level cache.
        sm_count: Streaming multiprocessors, or cores of a CPU.
        driver: Driver version, None on a CPU.
        ceilings: Measured once per device and driver, None until then.
        drives_display: Whether a display is attached, which limits how long one launch may take.
    """

    id: str
    name: str
    kind: DeviceKind
    memory_bytes: int
    free_bytes: int
    l2_bytes: int
    sm_count: int
    driver: str | None = None
    ceilings: Ceilings | None = None
    drives_display: bool = False

    @property
    def memory_name(self) -> str:
        """What its memory is called on screen: HBM on data-centre parts, else DRAM."""
        data_centre = ("H100", "H200", "H20", "A100", "A30", "B200", "B100", "B300", "GB200",
                       "GH200", "V100", "P100", "MI2", "MI3")  # fmt: skip
        is_hbm = self.kind is DeviceKind.CUDA and any(part in self.name for part in data_centre)
        return "HBM" if is_hbm else "DRAM"


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Everything that can change a number: torch, triton, CUDA, python and this program."""

    explorer: str
    python: str
    torch: str
    triton: str | None = None
    cuda: str | None = None
    cupti: str | None = None
    platform: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyAbility:
    """Whether a strategy can run on a device, and if not, why (one sentence)."""

    spec: str
    title: str
    available: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeAbility:
    """Whether a device computes in a dtype, and if not, why (one sentence)."""

    name: str
    available: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAbility:
    """A device with what can be measured on it.

    Attributes:
        device: The device.
        counters: Whether DRAM bytes can be counted.
        counters_sentence: How they are counted, or why not with the remedy.
        strategies: Each known strategy, available or not; those of libraries that are not
            installed are left out.
        dtypes: Each dtype that a chain may take, available or not.
    """

    device: Device
    counters: bool
    counters_sentence: str
    strategies: tuple[StrategyAbility, ...] = ()
    dtypes: tuple[DtypeAbility, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a worker says of itself when it is ready."""

    versions: Versions
    devices: tuple[DeviceAbility, ...]
    default_device: str
    warnings: tuple[str, ...] = field(default=())
