"""The argument blocks of CUPTI's profiling calls, for every release that has them.

Each block starts with its own size, by which the library tells which release the caller was built
for. That size is the end of the last field the release knows, not ``sizeof``: the padding behind it
does not count, and a size of another release is refused. So a block lists all fields known so far,
and where later releases appended some, ``ENDS`` says where it ended from which release on.

Source: headers of the ``nvidia-cuda-cupti`` wheels 13.0 to 13.5 and ``nvidia-cuda-cupti-cu12`` 12.6
to 12.9, compared field by field.
"""

import ctypes
from collections.abc import Sequence
from ctypes import c_char_p, c_double, c_int, c_size_t, c_uint8, c_uint16, c_uint32, c_void_p
from typing import Any, ClassVar

Release = tuple[int, int]

OLDEST_RELEASE: Release = (12, 6)
NEWEST_RELEASE: Release = (13, 5)

# Values of the enumerations in cupti_profiler_target.h and cupti_profiler_host.h.
RANGE_PROFILER = 0
COUNTER_METRICS = 0
AUTO_RANGE = 1
USER_RANGE = 2
KERNEL_REPLAY = 2
USER_REPLAY = 3
SUPPORT_UNSUPPORTED = 1
SUPPORT_DISABLED = 2

# 12.x numbered its releases one by one; 13.0 and later spell them out as xxyyzz.
_SMALL_API_NUMBERS: dict[int, Release] = {
    24: (12, 6),
    25: (12, 6),
    26: (12, 8),
    27: (12, 9),
    28: (12, 9),
}


def release_of(api_version: int) -> Release | None:
    """The CUDA release that ``cuptiGetVersion``'s number belongs to.

    Returns:
        Major and minor, or None before 12.6, which has no range profiler. Numbers between 28 and
        130000 have not been given out; they count as the last 12.x.
    """
    if api_version < min(_SMALL_API_NUMBERS):
        return None
    if api_version < 130000:
        return _SMALL_API_NUMBERS.get(api_version, (12, 9))
    return api_version // 10000, api_version // 100 % 100


class Block(ctypes.Structure):
    """Head of every argument block; subclasses append their fields."""

    ENDS: ClassVar[tuple[tuple[Release, str], ...]] = ()

    _fields_: ClassVar[Sequence[tuple[str, Any]]] = (
        ("block_size", c_size_t),
        ("private", c_void_p),
    )


def block_size(block: type[Block], release: Release) -> int:
    """The size in bytes that a release expects in ``block_size``.

    Args:
        block: A subclass of :class:`Block`.
        release: A release newer than all known ones gets the newest known layout.
    """
    last_field = ""
    for since, field in block.ENDS:
        if release >= since:
            last_field = field
    if not last_field:
        last_field = block._fields_[-1][0]
    field_place = getattr(block, last_field)
    return int(field_place.offset) + int(field_place.size)


class Initialize(Block):
    """``cuptiProfilerInitialize``: the head alone."""


class DeviceSupported(Block):
    """``cuptiProfilerDeviceSupported``: which of the machine's features forbid profiling."""

    ENDS = (((12, 6), "api"), ((13, 1), "sku"))

    _fields_ = (
        ("device", c_int),
        ("is_supported", c_int),
        ("architecture", c_int),
        ("sli", c_int),
        ("virtual_gpu", c_int),
        ("confidential_computing", c_int),
        ("mining_processor", c_int),
        ("wsl", c_int),
        ("api", c_int),
        ("sku", c_int),
    )


class ChipName(Block):
    """``cuptiDeviceGetChipName``."""

    _fields_ = (("device_index", c_size_t), ("chip_name", c_char_p))


class SupportedChips(Block):
    """``cuptiProfilerHostGetSupportedChips``."""

    _fields_ = (("chip_count", c_size_t), ("chip_names", ctypes.POINTER(c_char_p)))


class HostInitialize(Block):
    """``cuptiProfilerHostInitialize``."""

    ENDS = (((12, 6), "host"), ((13, 2), "single_pass_set_name"))

    _fields_ = (
        ("profiler_type", c_int),
        ("chip_name", c_char_p),
        ("availability_image", c_void_p),
        ("host", c_void_p),
        ("single_pass_set_name", c_char_p),
    )


class HostDeinitialize(Block):
    """``cuptiProfilerHostDeinitialize``."""

    _fields_ = (("host", c_void_p),)


class BaseMetrics(Block):
    """``cuptiProfilerHostGetBaseMetrics``."""

    _fields_ = (
        ("host", c_void_p),
        ("metric_type", c_int),
        ("metric_names", ctypes.POINTER(c_char_p)),
        ("metric_count", c_size_t),
    )


class AddMetrics(Block):
    """``cuptiProfilerHostConfigAddMetrics``."""

    _fields_ = (("host", c_void_p), ("metric_names", c_void_p), ("metric_count", c_size_t))


class ConfigImageSize(Block):
    """``cuptiProfilerHostGetConfigImageSize``."""

    _fields_ = (("host", c_void_p), ("image_size", c_size_t))


class ConfigImage(Block):
    """``cuptiProfilerHostGetConfigImage``."""

    _fields_ = (("host", c_void_p), ("image_size", c_size_t), ("image", c_void_p))


class PassCount(Block):
    """``cuptiProfilerHostGetNumOfPasses``."""

    _fields_ = (("image_size", c_size_t), ("image", c_void_p), ("pass_count", c_size_t))


class Evaluate(Block):
    """``cuptiProfilerHostEvaluateToGpuValues``."""

    _fields_ = (
        ("host", c_void_p),
        ("data_image", c_void_p),
        ("data_image_size", c_size_t),
        ("range_index", c_size_t),
        ("metric_names", c_void_p),
        ("metric_count", c_size_t),
        ("values", ctypes.POINTER(c_double)),
    )


class RangeEnable(Block):
    """``cuptiRangeProfilerEnable``. A cache mode of 0 leaves the caches alone."""

    ENDS = (((12, 6), "profiler"), ((13, 4), "cache_control_mode"))

    _fields_ = (("context", c_void_p), ("profiler", c_void_p), ("cache_control_mode", c_int))


class RangeObject(Block):
    """``cuptiRangeProfilerDisable``, ``...Start`` and ``...PopRange``: nothing but the profiler."""

    _fields_ = (("profiler", c_void_p),)


class RangeDataSize(Block):
    """``cuptiRangeProfilerGetCounterDataSize``."""

    _fields_ = (
        ("profiler", c_void_p),
        ("metric_names", c_void_p),
        ("metric_count", c_size_t),
        ("max_ranges", c_size_t),
        ("max_tree_nodes", c_uint32),
        ("data_image_size", c_size_t),
    )


class RangeDataInitialize(Block):
    """``cuptiRangeProfilerCounterDataImageInitialize``."""

    _fields_ = (("profiler", c_void_p), ("data_image_size", c_size_t), ("data_image", c_void_p))


class RangeConfig(Block):
    """``cuptiRangeProfilerSetConfig``."""

    _fields_ = (
        ("profiler", c_void_p),
        ("config_size", c_size_t),
        ("config", c_void_p),
        ("data_image_size", c_size_t),
        ("data_image", c_void_p),
        ("range_mode", c_int),
        ("replay_mode", c_int),
        ("max_ranges_per_pass", c_size_t),
        ("nesting_levels", c_uint16),
        ("min_nesting_level", c_uint16),
        ("pass_index", c_size_t),
        ("target_nesting_level", c_uint16),
    )


class RangePush(Block):
    """``cuptiRangeProfilerPushRange``."""

    _fields_ = (("profiler", c_void_p), ("range_name", c_char_p))


class RangeStop(Block):
    """``cuptiRangeProfilerStop``."""

    _fields_ = (
        ("profiler", c_void_p),
        ("pass_index", c_size_t),
        ("target_nesting_level", c_size_t),
        ("all_passes_submitted", c_uint8),
    )


class RangeDecode(Block):
    """``cuptiRangeProfilerDecodeData``."""

    _fields_ = (("profiler", c_void_p), ("dropped_ranges", c_size_t))


class RangeDataInfo(Block):
    """``cuptiRangeProfilerGetCounterDataInfo``."""

    _fields_ = (
        ("data_image", c_void_p),
        ("data_image_size", c_size_t),
        ("range_count", c_size_t),
    )
