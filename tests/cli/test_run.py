"""``run``: one run a strategy in the order asked for, saved and printed whatever happens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from explorer import recording
from explorer.recording import load_recording
from explorer.worker.blocking import WorkerClient, WorkerEndedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from explorer.model.device import Abilities
    from tests.cli.conftest import Outcome


def specs(path: Path) -> list[str]:
    return [run.strategy.spec for run in load_recording(path)]


def test_without_a_strategy_eager_and_compile_run(cli: Callable[..., Outcome]) -> None:
    done = cli("run", "attention", "--json")
    assert done.code == 0
    document = json.loads(done.out)
    assert (document["format"], document["version"]) == ("kernel-explorer", 1)
    assert [run["strategy"]["name"] for run in document["runs"]] == ["eager", "compile"]
    assert document["runs"][0]["chain"]["name"] == "attention"
    launch = document["runs"][0]["launches"][0]
    assert launch["duration_us"] == 9800.0
    assert set(launch["bytes_read"]) >= {"planned", "modelled", "counted", "sampled"}
    assert launch["bytes_read"]["counted"] is None


def test_what_the_machine_cannot_run_is_left_out_where_nobody_named_it(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "compile=unable")
    done = cli("run", "attention", "--json")
    assert done.code == 0
    assert [run["strategy"]["name"] for run in json.loads(done.out)["runs"]] == ["eager"]
    assert "compile is left out: compile lacks a tool.\n" in done.err

    named = cli("run", "attention", "--strategy", "eager", "--strategy", "compile")
    assert (named.code, named.out) == (2, "")
    assert named.err.endswith("kernel-explorer: compile lacks a tool.\n")


def test_nothing_is_left_out_where_nothing_would_be_left(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "eager=unable compile=unable")
    done = cli("run", "attention")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("kernel-explorer: eager lacks a tool.\n")


def test_without_a_display_the_main_job_goes_on_without_a_compiler(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KX_FAKE", "compile=unable")
    monkeypatch.chdir(tmp_path)
    drawn: list[list[str]] = []
    monkeypatch.setattr(
        "explorer.cli.start.write_picture",
        lambda runs, _path, **_options: drawn.append([run.strategy.spec for run in runs]),
    )
    done = cli()
    assert done.code == 0
    assert drawn == [["eager"]]
    assert done.out.endswith(f"Picture: {tmp_path / 'kernel-explorer.png'}\n")
    assert "compile is left out: compile lacks a tool.\n" in done.err


def test_the_order_and_the_number_are_as_asked(cli: Callable[..., Outcome]) -> None:
    asked = ["sdpa", "compile:max-autotune", "eager", "eager"]
    arguments = [part for spec in asked for part in ("--strategy", spec)]
    done = cli("run", "attention", *arguments, "--json", "--seed", "7")
    runs = json.loads(done.out)["runs"]
    assert [run["id"] for run in runs] == [f"{spec} seed 7" for spec in asked]
    assert runs[1]["strategy"]["option"] == "max-autotune"


def test_progress_goes_to_stderr_and_the_table_to_stdout(cli: Callable[..., Outcome]) -> None:
    done = cli("run", "attention", "--strategy", "eager")
    assert done.code == 0
    assert done.err.splitlines() == [
        "starting: the worker loads torch",
        "eager  compile: generating kernels",
        "eager: done, 40.7 ms",
    ]
    assert done.out.startswith("Attention, as in the textbook (attention)\n")
    assert "cpp_fused__softmax" in done.out


def test_a_failed_run_stays_in_the_list(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KX_FAKE", "eager=error")
    path = tmp_path / "runs.kx"
    done = cli("run", "attention", "--json", "--save", str(path))
    assert done.code == 1
    assert [run["error"] for run in json.loads(done.out)["runs"]] == ["It did not fit.", None]
    assert done.err.splitlines()[-1] == "kernel-explorer: eager failed: It did not fit."
    assert specs(path) == ["eager", "compile"]


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("abort", "The worker crashed (aborted, SIGABRT)"),
        ("raise", "The request failed: RuntimeError: inside (fake_session.py, line "),
        ("refuse", "It will not do."),
    ],
)
def test_a_strategy_that_ends_its_worker_spoils_no_other(
    cli: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    deed: str,
    words: str,
) -> None:
    monkeypatch.setenv("KX_FAKE", f"compile={deed}")
    path = tmp_path / "runs.kx"
    three = ("--strategy", "eager", "--strategy", "compile", "--strategy", "sdpa")
    done = cli("run", "attention", *three, "--set", "seq_len=128", "--save", str(path))
    assert done.code == 1
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith(f"kernel-explorer: compile failed: {words}")
    eager, failed, sdpa = load_recording(path)
    assert eager.error is None
    assert sdpa.error is None
    assert failed.error is not None
    assert words in failed.error
    assert failed.launches == ()
    assert failed.strategy.spec == "compile"
    assert failed.graph == eager.graph
    assert failed.device.id == "cpu"
    assert failed.chain.parameters["seq_len"] == 128
    assert failed.chain.parameters["heads"] == 4


def test_a_run_that_cannot_be_read_fails_in_its_own_place(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "compile=nan")
    three = ("--strategy", "eager", "--strategy", "compile", "--strategy", "sdpa")
    done = cli("run", "attention", *three, "--json")
    assert done.code == 1
    runs = json.loads(done.out)["runs"]
    assert [run["strategy"]["name"] for run in runs] == ["eager", "compile", "sdpa"]
    assert [run["error"] for run in runs] == [
        None,
        "What the worker answered cannot be read: RunFinished: run.compile.first_call_s should be "
        "float, not nothing.",
        None,
    ]


def test_a_device_that_is_not_there_is_wrong_usage(cli: Callable[..., Outcome]) -> None:
    done = cli("run", "attention", "--device", "cuda:1")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("kernel-explorer: There is no device 'cuda:1'; there is cpu.\n")


def test_an_unwritable_file_is_refused_before_anything_runs(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    for path, words in (
        (tmp_path / "missing" / "runs.kx", "No such file or directory"),
        (tmp_path, "it is a folder"),
    ):
        done = cli("run", "attention", "--save", str(path))
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"kernel-explorer: {path} could not be written: ")
        assert words in done.err
        assert "starting" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_loses_no_result(
    cli: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spare, target = tmp_path / "spare", tmp_path / "runs.kx"
    spare.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spare))
    write, full = recording.write_atomically, [target]

    def fill_up(path: Path, data: bytes) -> None:
        if path in full or path.parent in full:
            raise OSError(28, "No space left on device")
        write(path, data)

    monkeypatch.setattr("explorer.recording.write_atomically", fill_up)
    done = cli("run", "attention", "--json", "--save", str(target))
    assert done.code == 1
    assert len(json.loads(done.out)["runs"]) == 2
    (rescued,) = spare.iterdir()
    assert done.err.splitlines()[-1] == (
        f"kernel-explorer: {target} could not be written: No space left on device; "
        f"the runs are in {rescued} instead."
    )
    assert specs(rescued) == ["eager", "compile"]

    full.append(spare)
    done = cli("run", "attention", "--json", "--save", str(target))
    assert done.code == 1
    assert done.err.endswith("runs.kx could not be written: No space left on device.\n")
    assert list(spare.iterdir()) == [rescued]


def test_what_is_done_is_told_where_no_worker_starts_again(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    start = WorkerClient.start
    started: list[WorkerClient] = []

    def start_once(client: WorkerClient) -> Abilities:
        if len(started) >= 2 and client.process_id is None:
            raise WorkerEndedError("No worker can be started any more.")
        started.append(client)
        return start(client)

    monkeypatch.setattr(WorkerClient, "start", start_once)
    monkeypatch.setenv("KX_FAKE", "compile=abort")
    path = tmp_path / "runs.kx"
    four = [part for spec in ("eager", "compile", "sdpa", "eager") for part in ("--strategy", spec)]
    done = cli("run", "attention", *four, "--json", "--save", str(path))
    assert done.code == 1
    errors = [run["error"] for run in json.loads(done.out)["runs"]]
    assert errors[0] is None
    assert "SIGABRT" in errors[1]
    assert errors[2:] == ["No worker can be started any more."] * 2
    assert specs(path) == ["eager", "compile", "sdpa", "eager"]
