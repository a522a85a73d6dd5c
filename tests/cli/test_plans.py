"""Fusion plans from the command line: refused or run, swept, shown, and taken home."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from explorer.chains import find_chain
from explorer.cli.plans import check_plan, steps
from explorer.cli.report import report
from explorer.model.errors import UsageError
from explorer.model.fusion import sweep_plans
from explorer.model.run import CompileCost, Direction, FusionRefusal, RefusalReason
from explorer.recording import load_recording, save_recording
from tests.cli.fake_session import program
from tests.conftest import CHECKOUT
from tests.fixtures_runs import CPU_GRAPH, eager_attention
from tests.fixtures_sweep import plan_run, scores_sweep

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Outcome

EACH = "qk|scale|mask|softmax|dropout|pv"
SWEPT = [plan.text for plan in sweep_plans(CPU_GRAPH, "attention")]


def test_a_plan_runs_and_is_told_by_its_whole_text(cli: Callable[..., Outcome]) -> None:
    done = cli("run", "attention", "--strategy", "plan:scale+mask")
    assert done.code == 0
    assert "\nqk|scale+mask|softmax|dropout|pv  40.7 ms" in done.out
    assert "\nThe plan qk|scale+mask|softmax|dropout|pv (plan:scale+mask)\n" in done.out


def test_the_worker_refuses_what_only_the_graph_tells(cli: Callable[..., Outcome]) -> None:
    done = cli("run", "attention", "--strategy", "eager", "--strategy", "plan:scale+softmax")
    assert (done.code, done.out) == (2, "")
    assert "kernel-explorer: scale and softmax cannot share a kernel without mask" in done.err
    assert "Traceback" not in done.err


def test_a_plan_of_ops_that_one_kind_of_device_lacks_is_left_to_the_worker() -> None:
    attention = find_chain("attention")
    for device in ("auto", "cpu", "cuda:1"):
        check_plan("plan:mask+softmax", attention, {}, device)
        with pytest.raises(UsageError, match="no op 'mask' with mask=none; its ops are qk"):
            check_plan("plan:mask+softmax", attention, {"mask": "none"}, device)


def test_ops_of_the_backward_pass_are_left_to_the_worker() -> None:
    attention = find_chain("attention")
    plan = "plan:softmax+dropout|d_softmax+d_scale"
    check_plan(plan, attention, {}, "cpu", Direction.FORWARD_BACKWARD)
    with pytest.raises(UsageError, match="d_softmax"):
        check_plan(plan, attention, {}, "cpu")
    with pytest.raises(UsageError, match="softmaxx"):
        check_plan("plan:softmaxx+d_scale", attention, {}, "cpu", Direction.FORWARD_BACKWARD)


def test_a_sweep_stands_where_it_was_asked_for(cli: Callable[..., Outcome]) -> None:
    asked = ("--strategy", "eager", "--strategy", "plan:*", "--strategy", "sdpa")
    done = cli("run", "attention", *asked, "--json")
    assert done.code == 0
    runs = json.loads(done.out)["runs"]
    assert [run["strategy"]["name"] for run in runs] == ["eager", *["plan"] * 8, "sdpa"]
    assert [run["strategy"]["plan"] for run in runs[1:-1]] == SWEPT
    assert len(set(SWEPT)) == 8
    assert (SWEPT[0], SWEPT[-1]) == (EACH, "qk|scale+mask+softmax+dropout|pv")
    lines = done.err.splitlines()
    assert f"plan 1 of 8: {EACH}  compile: generating kernels" in lines
    assert f"plan 1 of 8: {EACH}: done, 40.7 ms" in lines
    assert f"plan 8 of 8: {SWEPT[-1]}: done, 40.7 ms" in lines
    assert "eager: done, 40.7 ms" in lines


def test_a_sweep_keeps_its_titles_when_a_worker_ends(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KX_FAKE", f"plan:{SWEPT[2]}=abort")
    done = cli("run", "attention", "--strategy", "plan:*", "--json")
    assert done.code == 1
    errors = [run["error"] for run in json.loads(done.out)["runs"]]
    assert [error is None for error in errors] == [i != 2 for i in range(8)]
    assert f"plan 3 of 8: {SWEPT[2]}: failed" in done.err
    assert f"plan 8 of 8: {SWEPT[7]}: done, 40.7 ms" in done.err


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("", r"^\*?I +qk\|scale\+mask\+softmax\+dropout\|pv "),
        ("grouping=refuse", "^Inductor's own grouping is not known here"),
    ],
)
def test_a_sweep_marks_inductors_own_plan(
    cli: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, deed: str, words: str
) -> None:
    monkeypatch.setenv("KX_FAKE", deed)
    done = cli("run", "attention", "--strategy", "plan:*")
    assert done.code == 0
    assert re.search(words, done.out, re.MULTILINE)
    assert ("is not known: It will not do." in done.err) is bool(deed)


def test_an_interrupted_sweep_keeps_what_is_done(tmp_path: Path) -> None:
    path = tmp_path / "runs.kx"
    started = subprocess.Popen(
        program("run", "attention", "--strategy", "plan:*", "--save", str(path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT), "KX_FAKE": f"plan:{SWEPT[5]}=hang"},
    )
    assert started.stderr is not None
    told = ""
    while "plan 6 of 8: " not in told:
        line = started.stderr.readline()
        assert line, told
        told += line
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=10)
    assert started.returncode == 130
    assert err.endswith("kernel-explorer: interrupted after 5 of 8 runs.\n")
    assert [run.strategy.plan for run in load_recording(path)] == SWEPT[:5]
    assert "5 of 8 plans done." in out


def test_steps_number_the_plans_of_a_sweep_alone() -> None:
    plans = sweep_plans(CPU_GRAPH, "attention")[:2]
    made = steps(("plan:each", " plan: * ".replace(" ", ""), "eager"), plans)
    assert [step.title for step in made] == [
        "plan:each", f"plan 1 of 2: {SWEPT[0]}", f"plan 2 of 2: {SWEPT[1]}", "eager",
    ]  # fmt: skip
    assert [step.spec for step in made][1:3] == [f"plan:{SWEPT[0]}", f"plan:{SWEPT[1]}"]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.kx"
    save_recording(path, scores_sweep())
    return path


def test_show_picks_one_plan_with_its_launches(
    cli: Callable[..., Outcome], recording: Path
) -> None:
    done = cli("show", str(recording), "--plan", "scale+mask|softmax+dropout")
    assert done.code == 0
    assert "The plan scale+mask|softmax+dropout\n" in done.out
    assert "triton_fused_softmax_dropout" in done.out
    assert "triton_fused_scale_mask_softmax" not in done.out
    each = cli("show", str(recording), "--plan", "each", "--json")
    assert [run["strategy"]["plan"] for run in json.loads(each.out)["runs"]] == [
        "scale|mask|softmax|dropout"
    ]


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("scale+mask|softmax|relu", "attention-scores has no op 'relu'; its ops are scale,"),
        ("scale+softmax", "holds no run of the plan scale+softmax; it holds scale|mask|softmax"),
    ],
)
@pytest.mark.parametrize("command", ["show", "export"])
def test_a_plan_that_did_not_run_is_refused_with_those_that_did(
    cli: Callable[..., Outcome], recording: Path, tmp_path: Path, command: str, plan: str,
    words: str,
) -> None:  # fmt: skip
    out = [str(tmp_path / "plan.py")] if command == "export" else []
    done = cli(command, str(recording), *out, "--plan", plan)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_export_writes_the_last_plan_or_the_one_that_was_named(
    cli: Callable[..., Outcome], recording: Path, tmp_path: Path
) -> None:
    out = tmp_path / "plan.py"
    for options, plan in (
        ((), "mul+add+softmax+native_dropout"),
        (("--plan", "scale+mask"), "mul+add|softmax|native_dropout"),
    ):
        done = cli("export", str(recording), str(out), *options)
        assert (done.code, done.out) == (0, "")
        assert f"wrote {out}: the plan scale+mask" in done.err
        assert f'\nPLAN = "{plan}"\n' in out.read_text(encoding="utf-8")
    told = subprocess.run(
        [sys.executable, str(out)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
    )
    assert told.stdout.startswith("The fusion plan scale+mask|softmax|dropout of attention-scores")


def test_a_recording_without_plans_has_none_to_take_home(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    path = tmp_path / "runs.kx"
    save_recording(path, (eager_attention(),))
    for options in ((), ("--plan", "each")):
        done = cli("export", str(path), str(tmp_path / "plan.py"), *options)
        assert done.code == 2
        assert "holds no run of a fusion plan" in done.err
    assert [file.name for file in tmp_path.iterdir()] == ["runs.kx"]


def test_a_module_that_cannot_be_written_is_told(
    cli: Callable[..., Outcome], recording: Path, tmp_path: Path
) -> None:
    done = cli("export", str(recording), str(tmp_path / "missing" / "plan.py"))
    assert done.code == 1
    assert "plan.py could not be written: No such file or directory." in done.err


def test_reasons_against_fusing_are_told_and_raw_on_request(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    refusals = (
        FusionRefusal(
            first="scale", second="softmax", sentence="It works along another axis.",
            raw="cannot fuse op0 with op2: numel", reason=RefusalReason.OTHER_AXIS,
        ),
        FusionRefusal(
            first="softmax", second="dropout", sentence="The plan has a boundary there.",
            reason=RefusalReason.DRAWN,
        ),
    )  # fmt: skip
    run = replace(
        plan_run("scale+mask+softmax|dropout"),
        compile=CompileCost(first_call_s=1.5, refusals=refusals),
    )
    path = tmp_path / "runs.kx"
    save_recording(path, (run,))
    spec = "plan:scale+mask+softmax|dropout"
    plain, raw = cli("show", str(path)).out, cli("show", str(path), "--raw").out
    assert f"  {spec}: not fused: scale and softmax: It works along another axis.\n" in plain
    assert "boundary" not in plain
    assert "cannot fuse" not in plain
    assert "      cannot fuse op0 with op2: numel\n" in raw


def test_an_op_apart_from_itself_is_told_of_its_parts_and_missing_words_are_said_to_be(
    cli: Callable[..., Outcome], tmp_path: Path
) -> None:
    apart = FusionRefusal(
        first="softmax", second="softmax", sentence="Its loops do not fit.",
        reason=RefusalReason.OTHER_AXIS,
    )  # fmt: skip
    run = replace(
        plan_run("scale+mask+softmax|dropout"),
        compile=CompileCost(first_call_s=1.5, refusals=(apart,)),
    )
    save_recording(tmp_path / "runs.kx", (run,))
    done = cli("show", str(tmp_path / "runs.kx"), "--raw")
    assert ": not fused: parts of softmax: Its loops do not fit.\n" in done.out
    assert done.err == "No words of the compiler's own are recorded in these runs.\n"
    assert cli("show", str(tmp_path / "runs.kx")).err == ""


def test_presets_of_the_same_plan_keep_their_names_apart() -> None:
    run = plan_run("scale+mask+softmax+dropout")
    presets = [
        replace(run, id=name, strategy=replace(run.strategy, option=name))
        for name in ("inductor", "all")
    ]
    text = report(presets)
    for spec in ("plan:inductor", "plan:all"):
        assert re.search(rf"^{spec} +2.82 ms", text, re.MULTILINE)
        assert f"\nThe plan scale+mask+softmax+dropout ({spec})\n" in text
