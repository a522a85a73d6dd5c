"""Ctrl-C and SIGTERM at any moment: what is done is saved and told, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from explorer.cli import run
from explorer.recording import load_recording, save_recording
from tests.cli.fake_session import program
from tests.conftest import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from explorer.model.run import Run
    from tests.cli.conftest import Outcome

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
EAGER, COMPILE = ("--strategy", "eager"), ("--strategy", "compile")


def specs(path: Path) -> list[str]:
    return [run.strategy.spec for run in load_recording(path)]


def interrupt(
    *arguments: str,
    number: signal.Signals = signal.SIGINT,
    again: bool = False,
    deeds: str = "compile=hang",
    until: str = "compile  compile: ",
) -> tuple[int, str, str]:
    """Run the program, signal it while a strategy hangs, and collect what it left.

    Args:
        arguments: The command line.
        number: The signal.
        again: Whether it is sent over and over until the program ends.
        deeds: What the strategies do.
        until: What progress says when it is time to signal.
    """
    started = subprocess.Popen(
        program(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**ENVIRONMENT, "KX_FAKE": deeds},
    )
    assert started.stderr is not None
    told = ""
    while until not in told:
        line = started.stderr.readline()
        assert line, told
        told += line
    started.send_signal(number)
    while again and started.poll() is None:
        started.send_signal(number)
    out, err = started.communicate(timeout=10)
    return started.returncode, out, told + err


@pytest.mark.parametrize("again", [False, True], ids=["once", "over and over"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_done_is_saved_and_printed(
    tmp_path: Path, number: signal.Signals, again: bool
) -> None:
    path = tmp_path / "runs.kx"
    code, out, err = interrupt(
        "run", "attention", "--json", "--save", str(path), number=number, again=again
    )
    assert code == 130
    assert err.endswith("kernel-explorer: interrupted after 1 of 2 runs.\n")
    assert "Traceback" not in err
    assert [run["strategy"]["name"] for run in json.loads(out)["runs"]] == ["eager"]
    assert specs(path) == ["eager"]
    # The fixture that looks for leftovers finds the worker or its child if either still runs.


def test_a_sweep_that_is_interrupted_keeps_the_points_that_are_done(tmp_path: Path) -> None:
    path = tmp_path / "runs.kx"
    code, out, err = interrupt(
        *("run", "attention", "--sweep", "seq_len=8,16", "--json", "--save", str(path)),
        deeds="compile@16=hang",
        until="seq_len=16, compile  compile: ",
    )
    assert code == 130
    assert err.endswith("kernel-explorer: interrupted after 3 of 4 runs.\n")
    assert [run["strategy"]["name"] for run in json.loads(out)["runs"]] == [
        "eager", "compile", "eager",
    ]  # fmt: skip
    assert specs(path) == ["eager", "compile", "eager"]


def test_before_anything_is_done_nothing_is_printed() -> None:
    code, out, err = interrupt("run", "attention", *COMPILE)
    assert (code, out) == (130, "")
    assert err.endswith("interrupted after 0 of 1 runs.\n")


@pytest.mark.parametrize(
    ("strategies", "code", "words"),
    [((*EAGER, *COMPILE), 130, "interrupted after 1 of 2 runs."), (EAGER, 0, "eager: done")],
    ids=["half way", "at the end"],
)
def test_an_interrupt_while_saving_saves_again(
    cli: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    strategies: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    interrupts = [KeyboardInterrupt]

    def save(path: Path, runs: Sequence[Run]) -> None:
        if interrupts:
            raise interrupts.pop()
        save_recording(path, runs)

    monkeypatch.setattr(run, "save_recording", save)
    path = tmp_path / "runs.kx"
    done = cli("run", "attention", *strategies, "--json", "--save", str(path))
    assert done.code == code
    assert words in done.err.splitlines()[-1]
    assert len(json.loads(done.out)["runs"]) == 1
    assert specs(path) == ["eager"]


WHILE_LOADING = """
import sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "explorer.cli.arguments":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupting())
from explorer.cli import main
sys.exit(main())
"""

AT_THE_END = """
import atexit, os, signal, sys
from explorer.cli import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("code", "returncode", "words"),
    [(WHILE_LOADING, 130, "kernel-explorer: interrupted.\n"), (AT_THE_END, 0, "")],
    ids=["while loading", "at the end"],
)
def test_no_traceback_at_either_end(code: str, returncode: int, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code, "chains"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert (done.returncode, done.stderr) == (returncode, words)


def test_what_is_ignored_from_outside_stays_so() -> None:
    """``nohup`` and a shell's background jobs start programs with signals ignored."""
    asked = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    code = f"from explorer.cli import interrupts; interrupts.hear_once(); {asked}"
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    assert done.stdout == "True\n"
