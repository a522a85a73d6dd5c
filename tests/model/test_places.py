"""Where the program keeps things: in the user's cache, whatever is or is not set."""

import os
from pathlib import Path

import pytest

from explorer.model.places import cache_folder


def test_the_cache_lies_where_the_user_wants_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/somewhere"}) == Path("/somewhere/kernel-explorer")
    relative = cache_folder({"XDG_CACHE_HOME": "not/absolute"})
    assert relative == Path.home() / ".cache" / "kernel-explorer" == cache_folder({})
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_folder() == Path("/elsewhere/kernel-explorer")


def test_a_user_without_a_home_has_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    name = f"kernel-explorer-{os.getuid()}"
    assert cache_folder({"TMPDIR": "/spare"}) == Path("/spare", name)
    assert cache_folder({}) == Path("/tmp", name)
