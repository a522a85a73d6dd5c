"""Standard streams that are closed, full, narrow or left by their reader; hostile texts."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from explorer.cli.progress import ProgressDisplay
from explorer.cli.report import report
from explorer.cli.terminal import MOST_CHARACTERS, one_line
from explorer.model.messages import Progress, Stage
from explorer.recording import load_recording, save_recording
from tests.cli.fake_session import program
from tests.conftest import CHECKOUT
from tests.fixtures_runs import eager_attention

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Outcome

RUN = ("run", "attention", "--json")
FULL = "The result could not be written to stdout: No space left on device."


def redirected(redirections: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What the program leaves when a shell starts it with these redirections."""
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirections}', "sh", *program(*arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )


@pytest.mark.parametrize("redirections", ["2>&-", "2>/dev/full", "<&-", "2>&- <&-"])
def test_results_do_not_need_stderr_or_stdin(redirections: str) -> None:
    done = redirected(redirections, *RUN)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["runs"]) == 2


def test_results_do_not_need_a_reader_of_stderr() -> None:
    """It ends after the first line, long before the worker is up."""
    started = subprocess.Popen(
        program(*RUN),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    assert started.stderr is not None
    assert started.stdout is not None
    with started.stdout:
        started.stderr.readline()
        started.stderr.close()
        assert len(json.loads(started.stdout.read())["runs"]) == 2
    assert started.wait() == 0


def test_a_recording_needs_no_stream_at_all(tmp_path: Path) -> None:
    path = tmp_path / "runs.kx"
    assert redirected("<&- >&- 2>&-", *RUN, "--save", str(path)).returncode == 0
    assert len(load_recording(path)) == 2


def test_results_that_cannot_be_written_are_an_error() -> None:
    done = redirected(">/dev/full", "chains")
    assert (done.returncode, done.stderr) == (1, f"kernel-explorer: {FULL}\n")
    done = redirected(">/dev/full", *RUN)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"kernel-explorer: {FULL}"


def test_a_reader_that_has_had_enough_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "many.kx"
    save_recording(path, (eager_attention(),) * 100)
    for command in (("show", str(path)), ("show", str(path), "--json")):
        done = redirected("| head -c 9", *command)
        assert (done.stderr, len(done.stdout)) == ("", 9)


def test_json_is_whole_in_any_locale() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "explorer", "chains", "attention", "--json"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONIOENCODING": "ascii"},
    )
    assert json.loads(done.stdout)["ops"][0]["detail"] == "q · kᵀ"


def test_a_text_is_one_line_that_a_terminal_only_shows() -> None:
    assert (
        one_line("a\r\n\tb\x1b[31mc\x9bd\u2028e\u202ef µ×") == "a b\ufffd[31mc\ufffdd e\ufffdf µ×"
    )


def test_a_name_cannot_break_the_sentence(cli: Callable[..., Outcome]) -> None:
    done = cli("show", "a\nb\x1b[2Jc")
    assert done.err == (
        "kernel-explorer: a b\ufffd[2Jc could not be read: No such file or directory.\n"
    )
    done = cli("run", "attention", "--strategy", "x" * 100_000)
    assert len(done.err) < MOST_CHARACTERS + 10


def test_a_file_cannot_break_the_table() -> None:
    run = eager_attention()
    launches = tuple(
        replace(launch, title=f"{launch.title}\n\x1b[2J" + "x" * 1000) for launch in run.launches
    )
    hostile = replace(
        run, chain=replace(run.chain, title="a\nb"), launches=launches, warnings=("c\r\x07d",)
    )
    text = report((hostile,))
    assert len(text.splitlines()) == len(report((replace(run, warnings=("w",)),)).splitlines())
    assert not any(character in text for character in "\x1b\x07\r")
    assert max(len(line) for line in text.splitlines()) < 300


def terminal_shows(columns: int, monkeypatch: pytest.MonkeyPatch, **environ: str) -> str:
    """What a progress display writes to a terminal of its own, stdout being another."""
    monkeypatch.delenv("COLUMNS", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    reading, writing = pty.openpty()
    fcntl.ioctl(writing, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with os.fdopen(writing, "w") as terminal, os.fdopen(reading, "rb", buffering=0) as screen:
        display = ProgressDisplay(terminal)
        display.update(Progress(stage=Stage.COMPILE, sentence="generating kernels " * 9))
        display.close()
        return screen.read(4096).decode()


def test_the_rewritten_line_fits_the_terminal_it_is_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for columns, width in ((30, 29), (1, 9), (0, 79)):
        shown = terminal_shows(columns, monkeypatch, TERM="xterm").split("\r\x1b[K")
        assert len(shown[1]) == width
        assert shown[1].endswith("…")


def test_a_terminal_that_cannot_erase_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal_shows(80, monkeypatch, TERM="dumb")
    assert shown.startswith("compile: generating kernels")
    assert shown.endswith("\n")
    assert "\x1b" not in shown
