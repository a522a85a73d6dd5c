"""``--sweep``: the points that are run, in order, and what becomes of those that cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from explorer.chains import CHAINS
from explorer.recording import load_recording

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Outcome

SWEEP = ("run", "attention", "--sweep", "seq_len=256:1024:x2")


def runs_of(outcome: Outcome) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(outcome.out)["runs"]
    return runs


def places(outcome: Outcome) -> list[tuple[int, str]]:
    return [
        (run["chain"]["parameters"]["seq_len"], run["strategy"]["name"]) for run in runs_of(outcome)
    ]


def test_each_strategy_runs_once_at_each_point_before_the_next(cli: Callable[..., Outcome]) -> None:
    outcome = cli(*SWEEP, "--json")

    assert outcome.code == 0
    assert places(outcome) == [
        (256, "eager"), (256, "compile"), (512, "eager"), (512, "compile"),
        (1024, "eager"), (1024, "compile"),
    ]  # fmt: skip
    assert {run["swept"] for run in runs_of(outcome)} == {"seq_len"}


def test_every_point_is_timed_for_a_short_while(cli: Callable[..., Outcome]) -> None:
    labels = [run["label"] for run in runs_of(cli(*SWEEP, "--json"))]

    assert all(label.endswith("timed 0.3 s") for label in labels)


def test_later_points_keep_the_defaults_of_the_first(cli: Callable[..., Outcome]) -> None:
    labels = [run["label"] for run in runs_of(cli(*SWEEP, "--strategy", "eager", "--json"))]
    n_parameters = len(CHAINS["attention"].parameters)

    assert [int(label.split()[0]) for label in labels] == [1, n_parameters, n_parameters]


def test_progress_says_which_point_it_is(cli: Callable[..., Outcome]) -> None:
    told = cli(*SWEEP).err

    assert "point 2 of 3: seq_len=512, compile  compile: generating kernels" in told
    assert "point 3 of 3: seq_len=1024, compile: done" in told
    assert told.count("the worker loads torch") == 1


def test_the_table_has_a_row_a_point(cli: Callable[..., Outcome]) -> None:
    out = cli(*SWEEP).out

    assert "swept: seq_len 256, 512, 1,024" in out
    rows = [line.split()[0] for line in out.splitlines() if "µs" in line or " ms" in line]
    assert rows[:3] == ["256", "512", "1,024"]


@pytest.mark.parametrize("deed", ["error", "abort", "raise", "refuse"])
def test_a_point_that_fails_is_kept_and_the_sweep_goes_on(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    monkeypatch.setenv("KX_FAKE", f"compile@512={deed}")

    outcome = cli(*SWEEP, "--json")

    failed = [run for run in runs_of(outcome) if run["error"]]
    assert outcome.code == 1
    assert len(places(outcome)) == 6
    assert [run["chain"]["parameters"]["seq_len"] for run in failed] == [512]
    assert failed[0]["swept"] == "seq_len"
    assert "compile at seq_len=512 failed" in outcome.err


def test_a_point_that_the_worker_refuses_is_a_failed_one(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "compile@256=unable")

    outcome = cli(*SWEEP, "--json")

    assert outcome.code == 1
    assert [bool(run["error"]) for run in runs_of(outcome)] == [True] * 2 + [False] * 4
    assert places(outcome)[:2] == [(256, "eager"), (256, "compile")]


def test_a_sweep_whose_every_point_is_refused_is_wrong_usage(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KX_FAKE", "compile=unable")
    path = tmp_path / "none.kx"

    outcome = cli(*SWEEP, "--strategy", "compile", "--save", str(path))

    assert outcome.code == 2
    assert outcome.err.endswith("compile lacks a tool.\n")
    assert not path.exists()


def test_strategies_that_nobody_named_are_left_out_once(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "compile=unable")

    outcome = cli(*SWEEP, "--json")

    assert outcome.code == 0
    assert [name for _, name in places(outcome)] == ["eager"] * 3
    assert outcome.err.count("compile is left out") == 1


def test_a_recording_of_a_sweep_shows_the_same_table(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "sweep.kx"

    done = cli(*SWEEP, "--save", str(path))
    shown = cli("show", str(path))

    assert shown.out == done.out
    assert len(load_recording(path)) == 6


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--sweep", "k=1:8:x2", "--sweep", "elements=1,2"), "goes over one parameter"),
        (("--sweep", "k=1:8:x2", "--set", "k=3"), "k is both set and swept"),
        (("--sweep", "rows=1:8:x2"), "elementwise has no parameter 'rows'"),
        (("--sweep", "k=1:8:x2", "--strategy", "plan:*"), "do not go together"),
        (("--sweep", "k=1:64:x2"), "k=64 is out of range"),
        (("--sweep", "k"), "is no sweep"),
        (("--sweep", "k=1:4:+1", "--strategy", "plan:mul1+add2"), "no op 'add2' with k=1"),
    ],
)  # fmt: skip
def test_a_sweep_that_cannot_be_is_wrong_usage(
    cli: Callable[..., Outcome], arguments: tuple[str, ...], sentence: str
) -> None:
    outcome = cli("run", "elementwise", *arguments)

    assert outcome.code == 2
    assert outcome.out == ""
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain whose dtypes are the point."""
    chain = replace(CHAINS["elementwise"], compared="dtype", compared_values=("fp32", "bf16"))
    monkeypatch.setitem(CHAINS, "elementwise", chain)


def dtypes(outcome: Outcome) -> list[tuple[str, str]]:
    return [
        (run["chain"]["parameters"]["dtype"], run["strategy"]["name"]) for run in runs_of(outcome)
    ]


@pytest.mark.usefixtures("compared")
def test_a_chain_sets_its_compared_values_side_by_side(cli: Callable[..., Outcome]) -> None:
    outcome = cli("run", "elementwise", "--json")

    assert dtypes(outcome) == [
        ("fp32", "eager"), ("fp32", "compile"), ("bf16", "eager"), ("bf16", "compile"),
    ]  # fmt: skip
    assert "sets dtype=fp32, bf16 side by side; --set dtype=… runs one alone" in outcome.err
    assert {run["swept"] for run in runs_of(outcome)} == {"dtype"}


@pytest.mark.usefixtures("compared")
@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (("--set", "dtype=fp16"), [None]),
        (("--sweep", "dtype=fp16"), ["dtype"]),
        (("--sweep", "k=1,2"), ["k", "k"]),
    ],
)
def test_a_compared_value_that_is_chosen_runs_alone(
    cli: Callable[..., Outcome], arguments: tuple[str, ...], found: list[str | None]
) -> None:
    outcome = cli("run", "elementwise", "--strategy", "eager", *arguments, "--json")

    assert [run["swept"] for run in runs_of(outcome)] == found
    assert "side by side" not in outcome.err


@pytest.mark.usefixtures("compared")
def test_a_compared_value_that_is_refused_here_is_left_out(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "eager@fp32=unable")

    outcome = cli("run", "elementwise", "--json")

    assert outcome.code == 0
    assert [dtype for dtype, _ in dtypes(outcome)] == ["bf16", "bf16"]
    assert "dtype=fp32 is left out: eager lacks a tool." in outcome.err


@pytest.mark.usefixtures("compared")
def test_what_every_compared_value_refuses_is_told_once(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "eager=unable")

    outcome = cli("run", "elementwise", "--strategy", "eager", "--json")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("eager lacks a tool.") == 1


@pytest.mark.usefixtures("compared")
def test_the_launches_of_compared_variants_are_told(cli: Callable[..., Outcome]) -> None:
    out = cli("run", "elementwise").out

    titles = [line for line in out.splitlines() if line.endswith(":") and " at dtype=" in line]
    assert titles == [
        "eager at dtype=fp32:", "compile at dtype=fp32:",
        "eager at dtype=bf16:", "compile at dtype=bf16:",
    ]  # fmt: skip


def test_a_sweep_is_exported_as_a_table_of_its_points(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    path, out = tmp_path / "sweep.kx", tmp_path / "sweep.csv"
    cli(*SWEEP, "--save", str(path))

    done = cli("export", str(path), str(out), "--view", "sweep")

    assert (done.code, done.err) == (0, f"wrote {out}\n")
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 6
    assert lines[1].startswith("attention,forward,")


def test_a_table_of_launches_is_what_a_csv_file_holds_by_itself(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    path, out = tmp_path / "runs.kx", tmp_path / "runs.csv"
    cli("run", "attention", "--strategy", "eager", "--save", str(path))

    assert cli("export", str(path), str(out)).code == 0

    (run,) = load_recording(path)
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1 + len(run.launches)


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        ("sweep", "holds no parameter sweep; measure one with --sweep NAME=RANGE"),
        ("scene", "The view scene cannot be a .csv file; table and sweep can"),
    ],
)
def test_a_view_that_is_no_table_is_wrong_usage(
    cli: Callable[..., Outcome], tmp_path: Path, view: str, sentence: str
) -> None:
    path, out = tmp_path / "runs.kx", tmp_path / "runs.csv"
    cli("run", "attention", "--strategy", "eager", "--save", str(path))

    done = cli("export", str(path), str(out), "--view", view)

    assert done.code == 2
    assert sentence in done.err
    assert not out.exists()


@pytest.mark.usefixtures("compared")
def test_a_chain_says_what_is_compared_and_what_it_takes(cli: Callable[..., Outcome]) -> None:
    plain = json.loads(cli("chains", "elementwise", "--json").out)

    assert plain["compared"] == {"parameter": "dtype", "values": ["fp32", "bf16"]}
    assert plain["dtypes"][:2] == ["fp32", "bf16"]
    assert plain["trains"] is True
    assert json.loads(cli("chains", "attention", "--json").out)["compared"] is None
    text = cli("chains", "elementwise").out
    assert "with --backward: forward and backward" in text
    assert "side by side unless --set: dtype=fp32 and dtype=bf16" in text


def test_the_launches_of_a_long_sweep_are_not_told(cli: Callable[..., Outcome]) -> None:
    assert " at seq_len=256:" not in cli(*SWEEP).out
    assert "\neager at seq_len=8:\n" in cli("run", "attention", "--sweep", "seq_len=8,16").out
