"""The ceilings of this machine's CPU, and the file they are kept in."""

import dataclasses
from pathlib import Path

import pytest
import torch

from explorer.engine.measure import ceilings
from explorer.engine.measure.ceilings import CeilingsStore, measure_ceilings
from explorer.model.device import Ceilings, Device, DeviceKind

DEVICE = Device(
    id="cpu",
    name="a small CPU",
    kind=DeviceKind.CPU,
    memory_bytes=1 << 30,
    free_bytes=64 << 20,
    l2_bytes=1 << 20,
    sm_count=1,
)
SOME = Ceilings(
    copy_bytes_per_s=3e9,
    read_bytes_per_s=4e9,
    write_bytes_per_s=2e9,
    flops_per_s={"fp32": 1e11},
    measured_at="2026-01-02T03:04:05+00:00",
)


def test_rates_are_bytes_over_the_best_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([9.0, 0.5, 0.25, 0.75] * 1000)
    monkeypatch.setattr(ceilings, "_host_seconds", lambda work, _where: (work(), next(times))[1])
    monkeypatch.setattr(ceilings, "_CPU_SHAPES", ((8, 8, 8),))
    monkeypatch.setattr(ceilings, "_MOST_SAMPLES", 4)
    found = measure_ceilings(DEVICE)
    n_bytes = 2 << 20  # free memory / 32 bounds a tensor
    assert found.read_bytes_per_s == n_bytes / 0.25
    assert found.write_bytes_per_s == n_bytes / 0.25
    # The best mix has three reads to a write.
    assert found.copy_bytes_per_s == 4 * n_bytes / 0.25
    assert found.memory_bytes_per_s == found.copy_bytes_per_s
    assert found.flops_per_s == {"fp32": 2 * 8**3 / 0.25, "bf16": 2 * 8**3 / 0.25}


def test_this_cpu_reaches_something_and_matmul_precision_is_put_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ceilings, "_CPU_SHAPES", ((64, 64, 64),))
    before = torch.get_float32_matmul_precision()
    found = measure_ceilings(DEVICE)
    assert min(found.read_bytes_per_s, found.write_bytes_per_s, found.copy_bytes_per_s) > 1e7
    assert min(found.flops_per_s.values()) > 1e5
    assert torch.get_float32_matmul_precision() == before


def test_what_was_measured_is_found_again_for_that_device_and_driver(tmp_path: Path) -> None:
    store = CeilingsStore(tmp_path / "deep" / "ceilings.json")
    assert store.load(DEVICE) is None
    store.save(DEVICE, SOME)
    assert CeilingsStore(tmp_path / "deep" / "ceilings.json").load(DEVICE) == SOME
    assert store.load(dataclasses.replace(DEVICE, driver="580.1")) is None
    assert store.load(dataclasses.replace(DEVICE, name="another")) is None
    other = dataclasses.replace(SOME, copy_bytes_per_s=9e9)
    store.save(dataclasses.replace(DEVICE, name="another"), other)
    assert store.load(DEVICE) == SOME
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["ceilings.json"]


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a small CPU | driver none | torch X": 3}'])
def test_a_damaged_file_only_costs_a_measurement(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ceilings.json"
    path.write_text(text.replace("torch X", f"torch {torch.__version__}"))
    store = CeilingsStore(path)
    assert store.load(DEVICE) is None
    store.save(DEVICE, SOME)
    assert store.load(DEVICE) == SOME


def test_a_cache_that_cannot_be_written_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    CeilingsStore(tmp_path / "file" / "ceilings.json").save(DEVICE, SOME)
    assert "could not be kept" in caplog.text
