"""The few calls of the CUDA driver that the counters need: a device's primary context.

The primary context is the one that torch's runtime uses, so work that torch launches is counted.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.engine.cupti.errors import CounterRefused


class PrimaryContext:
    """A device's primary context, kept alive until :meth:`close`.

    Attributes:
        device: The driver's handle of the device.
        handle: The context, for CUPTI.
    """

    def __init__(self, device_index: int) -> None:
        """Retain the context.

        Args:
            device_index: As torch and the driver count, after ``CUDA_VISIBLE_DEVICES``.

        Raises:
            CounterRefused: There is no driver or no such device.
        """
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CounterRefused(
                "DRAM bytes are not counted: there is no NVIDIA driver here (libcuda.so.1 was not "
                "found); counters need an NVIDIA GPU with its driver."
            ) from error
        self._call("cuInit", ctypes.c_uint(0))
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(device_index))
        self.device = device.value
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.handle = int(context.value or 0)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context this thread's current one for a while."""
        before = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(before))
        self._call("cuCtxSetCurrent", ctypes.c_void_p(self.handle))
        try:
            yield
        finally:
            self._call("cuCtxSetCurrent", before)

    def synchronize(self) -> None:
        """Wait for all work in the current context.

        Raises:
            CounterRefused: The work failed on the device.
        """
        self._call("cuCtxSynchronize")

    def close(self) -> None:
        """Let go of the context; torch's own hold on it remains."""
        if self.handle:
            self._driver.cuDevicePrimaryCtxRelease_v2(ctypes.c_int(self.device))
            self.handle = 0

    def _call(self, function: str, *arguments: object) -> None:
        code = int(getattr(self._driver, function)(*arguments))
        if code:
            name = ctypes.c_char_p()
            self._driver.cuGetErrorName(ctypes.c_int(code), ctypes.byref(name))
            text = name.value.decode() if name.value else str(code)
            raise CounterRefused(
                f"DRAM bytes are not counted: the NVIDIA driver answered {function} with {text}; "
                "check that `nvidia-smi` works and start the worker again.",
                code=code,
                call=function,
            )
