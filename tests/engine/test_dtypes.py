"""Which dtypes a device computes in, and tf32 while a chain runs."""

import pytest
import torch

from explorer.chains import find_chain
from explorer.engine import dtypes
from explorer.engine.dtypes import (
    CHAIN_DTYPES,
    dtype_abilities,
    precision_of,
    rounding_of,
    settings_refusal,
)
from explorer.model.device import DeviceKind

CPU = torch.device("cpu")


def test_a_cpu_says_of_each_dtype_whether_it_has_it() -> None:
    abilities = {ability.name: ability for ability in dtype_abilities(CPU)}
    assert tuple(abilities) == CHAIN_DTYPES
    assert abilities["fp32"].available
    assert abilities["bf16"].available
    assert not abilities["tf32"].available
    assert abilities["tf32"].reason == (
        "tf32 is a precision of NVIDIA's tensor cores, which a CPU does not have; use fp32."
    )
    assert all(ability.available == (ability.reason is None) for ability in abilities.values())


@pytest.mark.parametrize(
    ("capability", "lacking"),
    [
        ((7, 5), ("tf32", "bf16", "fp8")),
        ((8, 0), ("fp8",)),
        ((8, 6), ("fp8",)),
        ((8, 9), ()),
        ((9, 0), ()),
        ((12, 0), ()),
    ],
    ids=str,
)
def test_a_gpus_capability_decides(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], lacking: tuple[str, ...]
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    abilities = dtype_abilities(torch.device("cuda", 0))
    assert {ability.name for ability in abilities if not ability.available} == set(lacking)
    for ability in abilities:
        if not ability.available:
            assert f"this GPU has {capability[0]}.{capability[1]}; use " in str(ability.reason)


def test_a_torch_that_cannot_multiply_a_dtype_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    dtypes._multiplies_on_cpu.cache_clear()
    monkeypatch.delattr(torch, "_scaled_mm")
    try:
        reason = dtypes.dtype_refusal("fp8", CPU)
    finally:
        dtypes._multiplies_on_cpu.cache_clear()
    assert reason is not None
    assert "does not multiply fp8 on this CPU" in reason


def test_settings_are_refused_for_any_choice_of_a_dtype() -> None:
    matmul = find_chain("matmul")
    assert settings_refusal(matmul, matmul.resolve({}, DeviceKind.CPU), CPU) is None
    tf32 = matmul.resolve({"dtype": "tf32"}, DeviceKind.CPU)
    assert "tensor cores" in str(settings_refusal(matmul, tf32, CPU))


def test_tf32_holds_while_a_chain_runs_and_is_put_back() -> None:
    assert torch.get_float32_matmul_precision() == "highest"
    with precision_of({"dtype": "tf32"}):
        assert torch.get_float32_matmul_precision() == "high"
        assert torch.backends.cuda.matmul.allow_tf32
    assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(KeyError), precision_of({"dtype": "tf32"}):
        raise KeyError
    assert not torch.backends.cuda.matmul.allow_tf32


def test_other_dtypes_leave_the_precision_alone() -> None:
    with precision_of({"dtype": "fp32"}):
        assert torch.get_float32_matmul_precision() == "highest"


def test_a_rounding_of_tf32_is_that_of_its_ten_bits() -> None:
    assert rounding_of("tf32", torch.float32) == 2.0**-11
    assert rounding_of("fp32", torch.float32) == 2.0**-23
    assert rounding_of("bf16", torch.bfloat16) == 2.0**-7
