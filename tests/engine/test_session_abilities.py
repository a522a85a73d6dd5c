"""What a session says of itself: its abilities, the doctor's report, where it keeps ceilings."""

import os
from pathlib import Path

import pytest
import torch

from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.session import Session
from explorer.engine.strategies import STRATEGIES
from explorer.model.device import Device, DeviceKind
from explorer.model.messages import DoctorReport, DoctorRequest
from explorer.model.places import cache_folder
from tests.engine.test_session import FOUND, replies


@pytest.fixture
def engine(tmp_path: Path) -> Session:
    """A session whose cache is empty."""
    return Session(CeilingsStore(tmp_path / "ceilings.json"))


def test_abilities_say_which_strategies_run_here(engine: Session) -> None:
    abilities = engine.abilities()
    assert abilities.default_device == "cpu"
    cpu = abilities.devices[-1]
    assert not cpu.counters
    assert "modelled" in cpu.counters_sentence
    available = {s.spec: s.available for s in cpu.strategies}
    assert list(available) == [s.spec for s in STRATEGIES if s.missing() is None]
    assert available["eager"]
    assert available["sdpa"]
    assert not available["cudagraph"]
    assert all(s.available or s.reason for s in cpu.strategies)


def test_the_doctor_looks_at_what_a_cpu_has(
    engine: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    [report] = replies(engine, DoctorRequest())
    assert isinstance(report, DoctorReport)
    checks = {check.name: check for check in report.checks}
    assert list(checks) == [
        "Python",
        "torch",
        "C++ compiler",
        "Python headers",
        "torch.compile",
        "cpu",
        "Cache",
        "DRAM counters",
    ]
    assert [check.name for check in report.checks if not check.ok] == ["DRAM counters"]
    assert all(check.ok or check.lost for check in report.checks)
    assert torch.__version__ in checks["torch"].sentence


def test_the_doctor_names_the_remedy(
    engine: Session, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    [report] = replies(engine, DoctorRequest())
    assert isinstance(report, DoctorReport)
    ill = {check.name: check for check in report.checks if not check.ok}
    # Nothing is compiled where it is known not to be possible.
    assert list(ill) == ["C++ compiler", "Cache", "DRAM counters"]
    assert "apt install g++" in str(ill["C++ compiler"].remedy)
    assert "XDG_CACHE_HOME" in str(ill["Cache"].remedy)


def test_the_doctor_tells_what_a_compiler_raises(
    engine: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_function: object) -> object:
        raise RuntimeError("no kernels today\nand more")

    monkeypatch.setattr(torch, "compile", refuse)
    [report] = replies(engine, DoctorRequest())
    assert isinstance(report, DoctorReport)
    [check] = [check for check in report.checks if check.name == "torch.compile"]
    assert not check.ok
    assert check.sentence == (
        "A kernel could not be compiled and run (RuntimeError: no kernels today)."
    )
    assert check.lost
    assert check.remedy


def test_the_store_is_the_users_unless_another_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    device = Device(
        id="cpu", name="x", kind=DeviceKind.CPU, memory_bytes=1, free_bytes=1, l2_bytes=1,
        sm_count=1,
    )  # fmt: skip
    Session()._store.save(device, FOUND)
    assert (cache_folder() / "ceilings.json").is_file()
