"""Which obstacle a device's flags name."""

import pytest

from explorer.engine.cupti import structs
from explorer.engine.cupti.errors import CounterRefused
from explorer.engine.cupti.support import cause_code, check_support
from tests.engine.cupti.fake_cupti import FakeCupti

UNKNOWN, UNSUPPORTED, DISABLED, SUPPORTED, LIMITED = range(5)


def answer(**flags: int) -> structs.DeviceSupported:
    names = [name for name, _ in structs.DeviceSupported._fields_ if name not in ("device", "api")]
    return structs.DeviceSupported(**{name: flags.get(name, SUPPORTED) for name in names})


@pytest.mark.parametrize(
    ("flag", "level", "code"),
    [
        ("architecture", UNSUPPORTED, 27),
        ("sli", UNSUPPORTED, 44),
        ("virtual_gpu", UNSUPPORTED, 33),
        ("virtual_gpu", DISABLED, 40),
        ("confidential_computing", UNSUPPORTED, 41),
        ("mining_processor", UNSUPPORTED, 42),
        ("wsl", UNSUPPORTED, 45),
        ("sku", UNSUPPORTED, 27),
        ("is_supported", UNSUPPORTED, 27),
        ("is_supported", LIMITED, None),
        ("sku", UNKNOWN, None),
        ("wsl", SUPPORTED, None),
    ],
)
def test_each_flag_has_its_cause(flag: str, level: int, code: int | None) -> None:
    assert cause_code(answer(**{flag: level})) == code


def test_a_device_without_obstacles_passes() -> None:
    check_support(FakeCupti(), 0)


def test_a_query_that_fails_decides_nothing() -> None:
    cupti = FakeCupti()
    cupti.refuse = {"cuptiProfilerDeviceSupported": 38}
    check_support(cupti, 0)


def test_an_obstacle_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = FakeCupti()

    def on_mining_processor(block: structs.DeviceSupported) -> None:
        block.mining_processor = UNSUPPORTED

    monkeypatch.setattr(cupti, "_cuptiProfilerDeviceSupported", on_mining_processor)
    with pytest.raises(CounterRefused, match="mining") as refused:
        check_support(cupti, 0)
    assert refused.value.code == 42
