"""NVML's readings over a stand-in for its bindings, since there is no GPU here."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from explorer.engine.measure import clocks
from explorer.engine.measure.clocks import Nvml, clock_reader, full_sm_mhz, throttle_names

GPU = torch.device("cuda:0")


class FakeNvmlError(Exception):
    """What the bindings raise."""


def refuse(*_arguments: Any) -> Any:
    raise FakeNvmlError


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    fake = SimpleNamespace(
        NVMLError=FakeNvmlError,
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlSystemGetDriverVersion=lambda: b"580.65",
        nvmlDeviceGetDisplayActive=lambda _handle: 0,
        nvmlDeviceGetDisplayMode=lambda _handle: 0,
        nvmlDeviceGetPowerUsage=lambda _handle: 123_456,
        nvmlDeviceGetCurrentClocksThrottleReasons=lambda _handle: 0x4 | 0x40,
        nvmlDeviceGetClockInfo=lambda _handle, kind: {1: 1980, 2: 3201}[kind],
        nvmlDeviceGetMaxClockInfo=lambda _handle, kind: {1: 1980}[kind],
        nvmlDeviceGetTemperature=lambda _handle, _sensor: 41,
    )
    monkeypatch.setattr(clocks, "pynvml", fake)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda _device: SimpleNamespace(uuid="1234-ab")
    )
    return fake


@pytest.mark.usefixtures("bindings")
def test_a_reading_in_the_records_units() -> None:
    reading = clock_reader(GPU)()
    assert reading is not None
    assert (reading.sm_mhz, reading.memory_mhz, reading.temperature_c) == (1980, 3201, 41)
    assert reading.power_w == 123.456
    assert reading.throttle_reasons == ("power cap", "thermal, by hardware")
    assert Nvml(GPU).driver() == "580.65"
    assert not Nvml(GPU).drives_display()


def test_what_the_driver_does_not_give_is_none(bindings: SimpleNamespace) -> None:
    bindings.nvmlDeviceGetPowerUsage = refuse
    bindings.nvmlDeviceGetClockInfo = refuse
    reading = Nvml(GPU).clocks()
    assert (reading.sm_mhz, reading.power_w, reading.temperature_c) == (None, None, 41)


def test_the_device_is_found_by_its_uuid(bindings: SimpleNamespace) -> None:
    asked: list[str] = []
    bindings.nvmlDeviceGetHandleByUUID = asked.append
    assert not Nvml(GPU).found
    assert asked == ["GPU-1234-ab"]


def test_a_display_counts_if_it_is_active(bindings: SimpleNamespace) -> None:
    bindings.nvmlDeviceGetDisplayMode = lambda _handle: 1
    assert not Nvml(GPU).drives_display()
    bindings.nvmlDeviceGetDisplayActive = lambda _handle: 1
    assert Nvml(GPU).drives_display()


def test_without_nvml_there_are_no_clocks(
    bindings: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bindings.nvmlInit = refuse
    assert clock_reader(GPU)() is None
    monkeypatch.setattr(clocks, "pynvml", None)
    assert clock_reader(GPU)() is None
    assert Nvml(GPU).driver() is None
    assert not Nvml(GPU).drives_display()


def test_the_full_clock_is_known_beside_the_present_one(bindings: SimpleNamespace) -> None:
    assert full_sm_mhz(GPU) == 1980
    bindings.nvmlDeviceGetMaxClockInfo = refuse
    assert full_sm_mhz(GPU) is None


def test_a_cpu_has_no_clocks() -> None:
    assert clock_reader(torch.device("cpu"))() is None
    assert full_sm_mhz(torch.device("cpu")) is None


def test_reasons_in_words() -> None:
    assert throttle_names(0) == ()
    assert throttle_names(0x1) == ("idle",)
    assert throttle_names(0x8 | 0x1000) == ("hardware slowdown", "reason 0x1000")
