"""The README's commands do what it says, in a copy of the checkout with nothing built."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from fnmatch import fnmatch
from typing import TYPE_CHECKING

import pytest

from explorer.chains import CHAINS
from explorer.cli.plans import PLAN_FORMS
from explorer.model.strategies import all_specs, plan_spec
from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
# What the tests set for themselves, and what a person at a terminal without a display lacks.
NOT_PASSED_ON = {
    *("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "QT_SCALE_FACTOR", "TRITON_INTERPRET"),
    *("PYTHONPATH", "VIRTUAL_ENV", "MAKEFLAGS", "MAKELEVEL", "MFLAGS"),
}
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def shell_blocks() -> list[list[str]]:
    """The command lines of each sh block in the README."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return [block.strip().splitlines() for block in blocks]


def examples() -> list[str]:
    """The commands that come after the set-up, in order."""
    return [line for block in shell_blocks()[1:] for line in block]


def run_command(
    command: str, folder: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        shlex.split(command),
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )


def test_the_first_two_commands_are_run_and_test() -> None:
    assert shell_blocks()[0] == ["make run", "make test"]


def test_linked_files_are_there() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", README)

    assert targets
    assert [target for target in targets if not (CHECKOUT / target).exists()] == []


def test_the_list_of_chains_is_complete() -> None:
    listed = README.partition("**Chains** are ")[2].partition(";")[0]

    assert re.findall(r"`([^`]+)`", listed) == list(CHAINS)


def test_the_table_of_strategies_is_complete() -> None:
    table = README.partition("`--strategy`")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    listed = re.findall(r"`([^`]+)`", " ".join(rows))

    assert listed == [*all_specs(), "plan:TEXT", *map(plan_spec, PLAN_FORMS)]


def test_what_the_commands_write_is_left_out_of_the_checks() -> None:
    """Ruff looks at every module that git does not ignore, an exported one as well."""
    commands = [shlex.split(line) for line in examples()]
    written = {words[words.index("--save") + 1] for words in commands if "--save" in words}
    written |= {words[3] for words in commands if words[1] == "export"}
    ignored = (CHECKOUT / ".gitignore").read_text(encoding="utf-8").splitlines()

    assert {"plan.py", "plan.kx", "scene.png", "k.csv"} <= written
    assert [name for name in written if not any(fnmatch(f"/{name}", i) for i in ignored)] == []


@pytest.mark.slow
def test_make_run_and_the_examples(checkout_copy: Path) -> None:
    """One test, because each step needs the one before: set-up, main job, again, examples."""
    environ = {key: value for key, value in os.environ.items() if key not in NOT_PASSED_ON}

    first = run_command("make run", checkout_copy, environ)

    assert first.returncode == 0, first.stdout + first.stderr
    assert "Set-up done" in first.stderr
    picture = checkout_copy / "kernel-explorer.png"
    assert picture.read_bytes().startswith(PNG_SIGNATURE)
    assert "kernel-explorer.png" in first.stdout + first.stderr
    # The table names the ops' kernels and what the bytes are worth.
    assert "softmax" in first.stdout
    assert "modelled" in first.stdout or "counted" in first.stdout

    picture.unlink()
    second = run_command("make run", checkout_copy, environ)

    assert second.returncode == 0, second.stdout + second.stderr
    assert "Set-up done" not in second.stderr
    assert picture.exists()

    environ["PATH"] = f"{checkout_copy / '.venv' / 'bin'}{os.pathsep}{environ['PATH']}"
    for command in examples():
        done = run_command(command, checkout_copy, environ)
        # On a machine that does other things too, a time may well be worse than a minute ago.
        may_be_worse = " check " in command and "runs got worse." in done.stdout
        assert done.returncode == int(may_be_worse), f"{command}\n{done.stdout}{done.stderr}"
        assert done.stdout.strip() or " export " in command, f"{command} printed nothing"
    assert (checkout_copy / "scene.png").read_bytes().startswith(PNG_SIGNATURE)
    rows = (checkout_copy / "k.csv").read_text(encoding="utf-8").splitlines()
    # A heading, and eager and compile at k of 1, 2, 4 and 8.
    assert len(rows) == 1 + 2 * 4
    assert "explorer.backend(PLAN)" in (checkout_copy / "plan.py").read_text(encoding="utf-8")
