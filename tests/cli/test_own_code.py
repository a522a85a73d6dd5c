"""Somebody's own code on the command line: what is asked of the worker, refused, and told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from explorer.cli.arguments import make_parser
from explorer.cli.report import report
from explorer.cli.run import make_request
from explorer.model.opgraph import GraphBreak
from explorer.model.own_code import OwnCode
from explorer.model.run import CompileCost, Direction, Run
from explorer.recording import save_recording
from tests.fixtures_runs import cpu_attention

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from explorer.model.messages import RunRequest
    from tests.cli.conftest import Outcome

BREAK = GraphBreak(place="net.py:7", reason="print() cannot be traced.")


@pytest.fixture
def code(tmp_path: Path) -> str:
    path = tmp_path / "net.py"
    path.write_text("raise SystemExit('nobody runs this')\n", encoding="utf-8")
    return f"{path}:Block"


def request(*arguments: str) -> RunRequest:
    return make_request(make_parser().parse_args(["run", *arguments]))


def own_run(code: str) -> Run:
    """A run of own code in two pieces, each op with its line."""
    run = cpu_attention()
    half = len(run.graph.ops) // 2
    ops = tuple(
        replace(
            op,
            source_place=f"net.py:{i + 3}",
            source_line=f"y = {op.name}(y)",
            piece=int(i >= half),
        )
        for i, op in enumerate(run.graph.ops)
    )
    return replace(
        run,
        chain=replace(
            run.chain, name=code, title="Block", parameters={},
            own=OwnCode(inputs="x=fp32[4]", init="width=4", training=True),
        ),
        graph=replace(run.graph, ops=ops, breaks=(BREAK,)),
        compile=CompileCost(first_call_s=1.0, graph_breaks=(BREAK,)),
    )  # fmt: skip


def test_the_worker_is_asked_for_own_code(code: str) -> None:
    asked = request(
        code, "--input", "x=dtype[rows=1024,w],", "--input", "eps=1e-6", "--init", "hidden=w=64",
        "--train", "--set", "rows=512", "--backward", "--strategy", "plan:mul+add|mul2",
    )  # fmt: skip
    assert asked.chain == code
    assert asked.own == OwnCode(
        inputs="x=dtype[rows=1024,w] eps=1e-06", init="hidden=w=64", training=True
    )
    assert asked.parameters == {"rows": 512}
    assert asked.direction is Direction.FORWARD_BACKWARD
    assert asked.strategies == ("plan:mul+add|mul2",)


def test_own_code_may_give_its_own_inputs(code: str) -> None:
    assert request(code).own == OwnCode()
    assert request("attention").own is None
    assert request("package.module:Class.inner").chain == "package.module:Class.inner"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("attention", "--input", "x=bf16[4]"), "--input is for one's own code"),
        (("attention", "--init", "x=3"), "--init is for one's own code"),
        (("attention", "--train"), "--train is for one's own code"),
        (("missing.py:f",), "missing.py is not there"),
        (("missing/file:f",), "missing/file is not there"),
        (("missing.py",), "missing.py names no function or class; add one: missing.py:function."),
        (("./net.py:",), "lacks a function or class after the colon"),
        ((":f",), "lacks a file or module before the colon"),
        (("net.py:f()",), "'f()' in net.py:f() cannot be the name of a function"),
        (("two words:f",), "neither a file that ends in .py nor a module"),
        (("CODE", "--input", "x=bf17[4]"), "--input cannot be read at 'bf17[4]', character 3"),
        (("CODE", "--init", "x=bf16[4]"), "a constructor's argument cannot be a tensor"),
        (("CODE", "--input", "x=bf16[rows,4]"), "rows has no value: write rows=1024"),
        (("CODE", "--set", "rows=4"), "has no parameter 'rows'"),
        (("CODE", "--input", "x=bf16[n=4]", "--set", "n=0"), "n=0 is out of range"),
        (("CODE", "--strategy", "plan:mul+mul"), "mul"),
        (("CODE", "--strategy", "nonsense"), "nonsense"),
    ],
)
def test_wrong_usage_is_told_before_a_worker_starts(
    cli: Callable[..., Outcome], code: str, arguments: tuple[str, ...], words: str
) -> None:
    done = cli("run", *(code if part == "CODE" else part for part in arguments))
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "starting" not in done.err
    assert len(done.err.splitlines()) == 1


def test_the_table_names_the_function_its_call_and_its_lines(code: str) -> None:
    lines = report([own_run(code)]).splitlines()
    assert lines[:4] == [
        f"Block ({code})", "  --input: x=fp32[4]", "  --init: width=4", "  in training mode",
    ]  # fmt: skip
    assert any(
        line.startswith("softmax") and "net.py:6" in line and line.endswith("y = softmax(y)")
        for line in lines
    )
    told = [line.strip() for line in lines if "net.py:7: print() cannot be traced." in line]
    assert told == ["net.py:7: print() cannot be traced."]
    assert "  captured in 2 pieces, with a graph break between them:" in lines


def test_a_built_in_chain_has_no_list_of_lines() -> None:
    told = report([cpu_attention()])
    assert "pieces" not in told
    assert "--input" not in told


def test_a_recording_of_own_code_is_shown_without_running_it(
    cli: Callable[..., Outcome], tmp_path: Path, code: str
) -> None:
    path = tmp_path / "runs.kx"
    save_recording(path, [own_run("gone.py:Block")])
    done = cli("show", str(path))
    assert done.code == 0
    assert done.out.startswith("Block (gone.py:Block)\n")


def test_check_says_which_file_it_runs(
    cli: Callable[..., Outcome], tmp_path: Path, code: str
) -> None:
    path = tmp_path / "runs.kx"
    save_recording(path, [own_run(code)])
    done = cli("check", str(path))
    assert done.err.startswith(f"The file {code.removesuffix(':Block')} is run, for Block in it.\n")
    assert "starting" in done.err

    save_recording(path, [own_run("gone.py:Block")])
    done = cli("check", str(path))
    assert done.code == 2
    assert done.err == (
        "kernel-explorer: gone.py is not there; name a Python file, file.py:function.\n"
    )
