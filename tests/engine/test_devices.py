"""The devices of this machine and what a request's device means; GPUs are made up."""

from pathlib import Path

import pytest
import torch

from explorer.engine import devices
from explorer.engine.devices import (
    describe,
    last_level_cache_bytes,
    list_devices,
    resolve_device,
    versions,
)
from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError


def pretend_gpus(monkeypatch: pytest.MonkeyPatch, n_gpus: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: n_gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: n_gpus)


def test_there_is_always_a_cpu() -> None:
    cpu = list_devices()[-1]
    assert (cpu.id, cpu.kind) == ("cpu", DeviceKind.CPU)
    assert 0 < cpu.free_bytes <= cpu.memory_bytes
    assert cpu.l2_bytes >= 1 << 18
    assert cpu.sm_count >= 1
    assert cpu.name
    assert describe(torch.device("cpu")).name == cpu.name


@pytest.mark.parametrize(
    ("name", "n_gpus", "meant"),
    [
        ("auto", 0, "cpu"),
        ("auto", 2, "cuda:0"),
        ("cpu", 2, "cpu"),
        ("cuda", 2, "cuda:0"),
        ("cuda:1", 2, "cuda:1"),
    ],
)
def test_what_a_name_means(
    monkeypatch: pytest.MonkeyPatch, name: str, n_gpus: int, meant: str
) -> None:
    pretend_gpus(monkeypatch, n_gpus)
    assert str(resolve_device(name)) == meant


@pytest.mark.parametrize(
    ("name", "n_gpus", "there_is"),
    [
        ("cuda", 0, "there is cpu."),
        ("cuda:2", 2, "there is cuda:0, cuda:1, cpu."),
        ("cuda:x", 1, "there is cuda:0, cpu."),
        ("tpu", 0, "there is cpu."),
        ("", 1, "there is cuda:0, cpu."),
    ],
)
def test_a_device_that_is_not_there_is_refused_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch, name: str, n_gpus: int, there_is: str
) -> None:
    pretend_gpus(monkeypatch, n_gpus)
    with pytest.raises(UsageError) as caught:
        resolve_device(name)
    assert there_is in str(caught.value)


def test_the_last_level_cache_is_the_largest(tmp_path: Path) -> None:
    for index, size in enumerate(("32K", "1M", "260M", "garbage")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(size + "\n")
    assert last_level_cache_bytes(tmp_path) == 260 << 20
    assert last_level_cache_bytes(tmp_path / "none") == 32 << 20


def test_a_containers_limit_bounds_what_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"memory.max": 1 << 20, "memory.current": 1 << 18}
    monkeypatch.setattr(devices, "_cgroup_bytes", limits.get)
    cpu = list_devices()[-1]
    assert cpu.memory_bytes == 1 << 20
    assert cpu.free_bytes == (1 << 20) - (1 << 18)


def test_versions_name_what_can_change_a_number() -> None:
    found = versions(cupti="13.0")
    assert found.torch == torch.__version__
    assert found.cupti == "13.0"
    assert found.python.count(".") == 2
