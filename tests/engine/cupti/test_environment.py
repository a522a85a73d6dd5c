"""What the system's own files say."""

from pathlib import Path

import pytest

from explorer.engine.cupti.environment import counters_admin_only, is_wsl


@pytest.mark.parametrize(
    ("text", "admin_only"),
    [
        ("Mobile: 4294967295\nRmProfilingAdminOnly: 1\n", True),
        ("RmProfilingAdminOnly: 0\nEnableMSI: 1\n", False),
        ("EnableMSI: 1\n", None),
        ("", None),
    ],
)
def test_the_module_option_is_read(tmp_path: Path, text: str, admin_only: bool | None) -> None:
    parameters = tmp_path / "params"
    parameters.write_text(text)
    assert counters_admin_only(parameters) is admin_only


def test_without_a_driver_nothing_is_known(tmp_path: Path) -> None:
    assert counters_admin_only(tmp_path / "params") is None
    assert not is_wsl(tmp_path / "version")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Linux version 5.15.153.1-microsoft-standard-WSL2 (root@builder)", True),
        ("Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)", True),
        ("Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)", False),
    ],
)
def test_wsl_is_told_by_its_kernel(tmp_path: Path, text: str, expected: bool) -> None:
    version = tmp_path / "version"
    version.write_text(text)
    assert is_wsl(version) is expected
