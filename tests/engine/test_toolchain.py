"""Which compilers count: those that Inductor and Triton would call, and no others."""

from pathlib import Path

import pytest
import torch

from explorer.engine.toolchain import c_compiler, compile_refusal, cxx_compiler


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH, empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "CXX"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def install(folder: Path, name: str) -> str:
    path = folder / name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def test_without_any_compiler_there_is_none(folder: Path) -> None:
    assert cxx_compiler() is None
    assert c_compiler() is None
    assert "needs a C++ compiler" in str(compile_refusal(torch.device("cpu")))
    assert list(folder.iterdir()) == []


def test_the_usual_names_count(folder: Path) -> None:
    installed = install(folder, "g++")
    assert cxx_compiler() == installed
    clang = install(folder, "clang")
    assert c_compiler() == clang
    gcc = install(folder, "gcc")
    assert c_compiler() == gcc


def test_what_inductor_does_not_look_for_does_not_count(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clang = install(folder, "clang++")
    install(folder, "g++-13")
    install(folder, "cc")
    assert cxx_compiler() is None
    assert c_compiler() is None
    monkeypatch.setenv("CXX", "clang++")
    assert cxx_compiler() == clang


def test_a_compiler_that_is_named_and_not_there_is_not_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(folder, "g++")
    install(folder, "gcc")
    monkeypatch.setenv("CXX", "icpx")
    monkeypatch.setenv("CC", "icx")
    assert cxx_compiler() is None
    assert c_compiler() is None
