"""What a device reaches at best: rates of memory and of matmuls, measured once and kept.

Not a datasheet's figures: a share of what was measured on this very device is a share of something
that can be reached. Memory is read and written by torch's own kernels in several mixes, on tensors
many times the last-level cache; each rate is the best of all samples. They follow each other, so
that a fill pays for what the one before left dirty in the cache: 16 in one timed span came to the
same rate on an H200 (4,666 and 4,686 GB/s).
"""

import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from explorer.engine.chain_functions.base import DTYPES
from explorer.model.codec import DecodeError, from_plain, to_plain
from explorer.model.device import Ceilings, Device, DeviceKind
from explorer.model.places import cache_folder

_logger = logging.getLogger(__name__)

_LEAST_SAMPLES = 2
_MOST_SAMPLES = 200
_WARM_UP_S = {"cuda": 0.5, "cpu": 0.0}
_PATTERN_BUDGET_S = {"cuda": 0.15, "cpu": 0.2}
_MATMUL_BUDGET_S = {"cuda": 4.0, "cpu": 2.0}
_TIMES_CACHE = {DeviceKind.CUDA: (16, 32), DeviceKind.CPU: (4, 8)}
_CUDA_SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (8192, 4096, 8192), (16384, 8192, 4096))
_CPU_SHAPES = ((512, 512, 512), (1024, 1024, 1024), (2048, 1024, 2048))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    """Work of known bytes."""

    name: str
    n_bytes: int
    work: Callable[[], object]


def measure_ceilings(device: Device) -> Ceilings:
    """Measure afresh; takes less than ten seconds.

    Raises:
        torch.OutOfMemoryError: Not even an eighth of the free memory could be had.
    """
    where = torch.device(device.id)
    rates: dict[str, float] = {}
    with torch.no_grad():
        _warm_up(where)
        for n_bytes in _tensor_sizes(device):
            for pattern in _memory_patterns(where, n_bytes):
                seconds = _best_seconds(pattern.work, where, _PATTERN_BUDGET_S[where.type])
                rate = pattern.n_bytes / seconds
                rates[pattern.name] = max(rates.get(pattern.name, 0.0), rate)
        flops = dict(_matmul_rates(where, _MATMUL_BUDGET_S[where.type]))
    return Ceilings(
        copy_bytes_per_s=max(rates["1:1"], rates["2:1"], rates["3:1"], rates["copy"]),
        read_bytes_per_s=rates["read"],
        write_bytes_per_s=rates["write"],
        flops_per_s=flops,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _warm_up(where: torch.device) -> None:
    """Keep the device busy until its clocks have risen; an idle GPU runs at a fifth of them."""
    busy = torch.ones(1 << 22, device=where)
    started_s = time.perf_counter()
    while time.perf_counter() - started_s < _WARM_UP_S[where.type]:
        for _ in range(100):
            busy.mul_(1.0)
        if where.type == "cuda":
            torch.cuda.synchronize(where)


def _tensor_sizes(device: Device) -> Iterator[int]:
    """Bytes of a tensor: many times the last-level cache, four of them in an eighth of free."""
    most = device.free_bytes // 32
    for times in _TIMES_CACHE[device.kind]:
        yield min(times * max(device.l2_bytes, 4 << 20), most) // 4096 * 4096


def _memory_patterns(where: torch.device, n_bytes: int) -> Iterator[_Pattern]:
    n_elements = n_bytes // 4
    first, second, third, result = (
        torch.ones(n_elements, dtype=torch.float32, device=where) for _ in range(4)
    )
    total = torch.empty((), dtype=torch.float32, device=where)
    yield _Pattern(name="copy", n_bytes=2 * n_bytes, work=lambda: result.copy_(first))
    yield _Pattern(name="1:1", n_bytes=2 * n_bytes, work=lambda: torch.neg(first, out=result))
    yield _Pattern(
        name="2:1", n_bytes=3 * n_bytes, work=lambda: torch.add(first, second, out=result)
    )
    yield _Pattern(
        name="3:1",
        n_bytes=4 * n_bytes,
        work=lambda: torch.addcmul(first, second, third, out=result),
    )
    yield _Pattern(name="read", n_bytes=n_bytes, work=lambda: torch.sum(first, 0, out=total))
    yield _Pattern(name="write", n_bytes=n_bytes, work=lambda: result.fill_(2.0))


def _matmul_rates(where: torch.device, budget_s: float) -> Iterator[tuple[str, float]]:
    on_cuda = where.type == "cuda"
    names = ("bf16", "fp16", "tf32", "fp32") if on_cuda else ("fp32", "bf16")
    shapes = _CUDA_SHAPES if on_cuda else _CPU_SHAPES
    for name in names:
        started_s = time.perf_counter()
        best = 0.0
        for m, n, k in shapes:
            left_s = budget_s / len(names) - (time.perf_counter() - started_s)
            # The first shape is always tried; a larger one only if it can be had in time.
            if best and 4 * 2 * m * n * k / best > left_s:
                continue
            seconds = _matmul_seconds(name, (m, n, k), where, max(left_s, 0.0) / 4)
            best = max(best, 2 * m * n * k / seconds)
        yield name, best


def _matmul_seconds(
    name: str, shape: tuple[int, int, int], where: torch.device, budget_s: float
) -> float:
    m, n, k = shape
    dtype = DTYPES["fp32" if name == "tf32" else name]
    # Real numbers: with zeros a GPU draws less power and clocks higher than it ever will.
    left = torch.randn(m, k, dtype=dtype, device=where)
    right = torch.randn(k, n, dtype=dtype, device=where)
    result = torch.empty(m, n, dtype=dtype, device=where)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    try:
        return _best_seconds(lambda: torch.mm(left, right, out=result), where, budget_s)
    finally:
        torch.set_float32_matmul_precision(before)


def _best_seconds(work: Callable[[], object], where: torch.device, budget_s: float) -> float:
    """The shortest of as many runs as fit the budget; at least two, however long they take."""
    work()
    clock = _cuda_seconds if where.type == "cuda" else _host_seconds
    started_s = time.perf_counter()
    best = clock(work, where)
    for n_samples in range(1, _MOST_SAMPLES):
        if n_samples >= _LEAST_SAMPLES and time.perf_counter() - started_s > budget_s:
            break
        best = min(best, clock(work, where))
    return best


def _host_seconds(work: Callable[[], object], _where: torch.device) -> float:
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def _cuda_seconds(work: Callable[[], object], where: torch.device) -> float:
    new_event: Callable[..., Any] = torch.cuda.Event
    with torch.cuda.device(where):
        start, end = new_event(enable_timing=True), new_event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


class CeilingsStore:
    """Ceilings by device, driver and torch, in one JSON file of the user's cache."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or cache_folder() / "ceilings.json"

    def load(self, device: Device) -> Ceilings | None:
        """What was measured before, None if nothing was or the file cannot be read."""
        entry = self._read().get(_key(device))
        if entry is None:
            return None
        try:
            return from_plain(Ceilings, entry)
        except DecodeError:
            return None

    def save(self, device: Device, ceilings: Ceilings) -> None:
        """Keep it; a cache that cannot be written costs a measurement later, nothing else."""
        entries = {**self._read(), _key(device): to_plain(ceilings)}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix="ceilings-")
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(entries, file, indent=1)
            Path(name).replace(self._path)
        except OSError as error:
            _logger.warning("the ceilings could not be kept in %s: %s", self._path, error)

    def _read(self) -> dict[str, Any]:
        try:
            entries = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return entries if isinstance(entries, dict) else {}


def _key(device: Device) -> str:
    return f"{device.name} | driver {device.driver or 'none'} | torch {torch.__version__}"
