"""What the window's side needs of the machine, and what is said where it lacks it."""

import shutil
from collections import namedtuple
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from explorer.model.messages import Check
from explorer.ui import local_checks as module
from explorer.ui.local_checks import local_checks

Usage = namedtuple("Usage", "total used free")


def by_name(environ: dict[str, str] | None = None) -> dict[str, Check]:
    return {check.name: check for check in local_checks(environ or {})}


def test_everything_is_here_but_a_screen() -> None:
    checks = by_name()
    assert list(checks) == ["Qt", "Display", "Fonts", "Disk"]
    assert [check.name for check in checks.values() if not check.ok] == ["Display"]
    assert "the window" in (checks["Display"].lost or "")
    assert "ssh -X" in (checks["Display"].remedy or "")


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"DISPLAY": ":7"}, "X11 (:7)."),
        ({"DISPLAY": ":7", "WAYLAND_DISPLAY": "wayland-0"}, "Wayland (wayland-0)."),
    ],
)
def test_the_screen_is_named(environ: dict[str, str], said: str) -> None:
    assert by_name(environ)["Display"].sentence == said


def test_what_is_missing_says_what_is_lost_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(module, "version", absent)
    monkeypatch.setattr(module, "files", lambda _name: tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(9, 9, 2_000_000))
    checks = by_name({"DISPLAY": ":0"})
    ill = [check for check in checks.values() if not check.ok]
    assert [check.name for check in ill] == ["Qt", "Fonts", "Disk"]
    assert all(check.lost and check.remedy for check in ill)
    assert checks["Disk"].sentence.startswith("2.00 MB free")
