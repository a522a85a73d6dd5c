"""``check``: what a recording holds, measured again; exit 1 where it got worse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from explorer.cli.check import runs_to_check
from explorer.model.run import StrategyInfo
from explorer.recording import save_recording
from tests.cli.fake_session import program
from tests.conftest import CHECKOUT
from tests.fixtures_runs import H200, cpu_attention, failed_run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from explorer.model.run import Run
    from tests.cli.conftest import Outcome

FUSED = "qk|scale+mask+softmax|dropout|pv"
ALONE = "qk|scale|mask|softmax|dropout|pv"


def planned(option: str, plan: str) -> Run:
    strategy = StrategyInfo(name="plan", option=option, title=option, plan=plan)
    return replace(cpu_attention(f"plan {plan}"), strategy=strategy)


def recorded(folder: Path, *runs: Run) -> str:
    path = folder / "runs.kx"
    save_recording(path, runs)
    return str(path)


def test_what_is_as_it_was_passes(cli: Callable[..., Outcome], tmp_path: Path) -> None:
    path = recorded(tmp_path, cpu_attention(), planned("each", ALONE), planned("x", FUSED))
    done = cli("check", path)
    assert done.code == 0
    assert "No run got worse." in done.out
    assert done.out.startswith("attention on Two-core test processor, as recorded and now\n\n")
    assert max(map(len, done.out.splitlines())) <= 120
    rows = [line.split() for line in done.out.splitlines() if line.startswith("qk|")]
    # The plans alone, each by its text rather than by what its preset means today.
    assert [row[0] for row in rows] == [ALONE, FUSED]
    assert all(row[-1] == "ok" for row in rows)
    assert f"plan:{ALONE}: done" in done.err


def test_what_got_worse_fails_with_a_sentence_each(
    cli: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", f"plan:{FUSED}=worse plan:{ALONE}=error")
    path = recorded(tmp_path, planned("each", ALONE), planned("x", FUSED))
    done = cli("check", path, "--bytes", "1%", "--time", "3%")
    assert done.code == 1
    assert "2 of 2 runs got worse." in done.out
    told = [line for line in done.err.splitlines() if line.startswith("kernel-explorer: ")]
    # Read: q, k and v of 1.05 MB each, the mask of 4.19 MB, scores and dropped of 16.78 MB each;
    # written: scores and dropped again, out of 1.05 MB: 34.6 MB of it, of which half comes on top.
    assert told == [
        f"kernel-explorer: {ALONE}: It could not be measured again: It did not fit.",
        f"kernel-explorer: {FUSED}: It reads and writes 22.9% more: 92.8 MB instead of 75.5 MB "
        "(modelled); at most 1% more is allowed.",
        f"kernel-explorer: {FUSED}: It takes 100% longer: 81.4 ms instead of 40.7 ms (cold L2); "
        "at most 3% longer is allowed.",
    ]
    assert cli("check", path, "--bytes", "25%", "--time", "100.1%").code == 1
    monkeypatch.setenv("KX_FAKE", f"plan:{FUSED}=worse")
    assert cli("check", path, "--bytes", "25%", "--time", "101%").code == 0


def test_another_device_says_nothing_of_the_time(
    cli: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", f"plan:{FUSED}=worse")
    run = planned("x", FUSED)
    path = recorded(tmp_path, replace(run, device=replace(run.device, name="Another processor")))
    done = cli("check", path, "--bytes", "25%")
    assert done.code == 0
    assert (
        "Times are not comparable: recorded on Another processor, now on Two-core test processor."
        in done.out
    )
    path = recorded(tmp_path, replace(run, device=H200))
    done = cli("check", path)
    # A check that compares nothing must not pass.
    assert done.code == 1
    assert "not compared" in done.out
    assert "No run got worse" not in done.out
    assert "the runs were recorded on NVIDIA H200 and measured again on Two-core" in done.err


def test_json_holds_the_same_and_nothing_else(
    cli: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", "compile=worse")
    path = recorded(tmp_path, cpu_attention())
    done = cli("check", path, "--json", "--time", "200%")
    assert done.code == 1
    document = json.loads(done.out)
    assert document["passed"] is False
    assert document["limits"] == {"bytes": 0.01, "time": 2.0}
    (checked,) = document["checks"]
    assert checked["strategy"] == "compile"
    assert checked["bytes"]["pedigree"] == "modelled"
    assert checked["time"]["now_us"] == 2 * checked["time"]["before_us"]
    assert len(checked["faults"]) == 1


def test_the_newest_of_each_is_checked_and_failed_ones_are_left_out() -> None:
    first, again = cpu_attention("first"), cpu_attention("again")
    other = replace(again, seed=7)
    chosen, left_out = runs_to_check([first, other, failed_run(), again])
    assert [run.id for run in chosen] == ["again", "again"]
    assert [run.seed for run in chosen] == [0, 7]
    assert left_out == ["eager"]
    plan = planned("each", ALONE)
    assert runs_to_check([first, plan, again])[0] == [plan]


@pytest.mark.parametrize("runs", [(), (failed_run(),)], ids=["empty", "failed"])
def test_nothing_to_check_is_wrong_usage(
    cli: Callable[..., Outcome], tmp_path: Path, runs: Sequence[Run]
) -> None:
    done = cli("check", recorded(tmp_path, *runs))
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith("runs.kx holds no run that could be measured again.\n")


def test_what_this_release_does_not_know_is_wrong_usage(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    run = cpu_attention()
    for wrong, words in (
        (replace(run, chain=replace(run.chain, name="other")), "There is no chain 'other'"),
        (replace(run, strategy=StrategyInfo(name="other")), "There is no strategy 'other'"),
    ):
        done = cli("check", recorded(tmp_path, wrong))
        assert (done.code, done.out) == (2, "")
        assert words in done.err
    assert cli("check", str(tmp_path / "missing.kx")).code == 1


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    path = recorded(tmp_path, planned("each", ALONE), planned("x", FUSED))
    started = subprocess.Popen(
        program("check", path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "KX_FAKE": f"plan:{FUSED}=hang"},
    )
    assert started.stderr is not None
    told = ""
    while f"plan:{FUSED}  compile: " not in told:
        line = started.stderr.readline()
        assert line, told
        told += line
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=10)
    assert started.returncode == 130
    assert err.endswith("kernel-explorer: interrupted after 1 of 2 runs.\n")
    assert ALONE in out
    assert FUSED not in out
