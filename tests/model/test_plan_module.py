"""The text of an exported plan: true, readable, and harmless whatever a recording says."""

import ast
from dataclasses import replace

import pytest

from explorer.model.errors import UsageError
from explorer.model.opgraph import OpGraph
from explorer.model.plan_module import plan_module
from explorer.model.run import Direction, Run
from tests.fixtures_runs import eager_attention
from tests.fixtures_sweep import broken, plan_run, wrong

PLAN = "scale+mask+softmax|dropout"


def docstring(text: str) -> str:
    return " ".join((ast.get_docstring(ast.parse(text)) or "").split())


def test_it_says_what_was_measured_where_and_what_the_numbers_are_worth() -> None:
    text = plan_module(plan_run(PLAN))
    assert 'PLAN = "mul+add+softmax|native_dropout"' in text
    assert max(len(line) for line in text.splitlines()) <= 100
    told = docstring(text)
    for words in (
        "The fusion plan scale+mask+softmax|dropout of attention-scores",
        "NVIDIA H200 (2026-01-01T12:00:00+00:00) with torch 2.11.0, triton 3.6.0 and Kernel",
        "batch=2, heads=16, seq_len=4096, dtype=bf16, dropout=0.1, seed 0.",
        "Time: 2.67 ms, the median of 5 calls, quartiles 2.66 ms and 2.68 ms (cold L2, events).",
        "HBM: 3.22 GB read, 2.16 GB written (counted), in 2 launches.",
        "Largest error against 64-bit: 3.9e-03.",
    ):
        assert words in told


def test_what_went_wrong_is_told() -> None:
    run = plan_run(PLAN)
    assert "Its error against 64-bit is too large: 4.0e-01." in docstring(plan_module(wrong(run)))
    failed = replace(broken(run), strategy=run.strategy)
    told = docstring(plan_module(failed))
    assert "The run failed: The worker ended with signal 11. It was not timed." in told


def test_a_plan_of_both_passes_is_not_exported() -> None:
    run = plan_run(PLAN)
    both = replace(run, chain=replace(run.chain, direction=Direction.FORWARD_BACKWARD))
    with pytest.raises(UsageError, match="measure it without --backward to export a plan"):
        plan_module(both)


HOSTILE = '"""\nimport os\nos.abort()\n"""\\" \x1b[2J \u2028 {docstring} {0}'


def test_a_recording_cannot_put_code_into_it() -> None:
    run = plan_run(PLAN)
    graph = replace(
        run.graph,
        ops=tuple(replace(op, aten=f"aten.{HOSTILE}.x{i}") for i, op in enumerate(run.graph.ops)),
    )
    hostile = replace(
        run,
        graph=graph,
        created_at=HOSTILE,
        device=replace(run.device, name=HOSTILE),
        chain=replace(run.chain, name=HOSTILE, parameters={HOSTILE: HOSTILE}),
        versions=replace(run.versions, torch=HOSTILE, triton=HOSTILE),
        error=HOSTILE,
    )
    text = plan_module(hostile)
    harmless = ast.parse(plan_module(run))
    parsed = ast.parse(text)
    assert [type(node) for node in parsed.body] == [type(node) for node in harmless.body]
    assert {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)} == {
        node.id for node in ast.walk(harmless) if isinstance(node, ast.Name)
    }
    assert text.isprintable() is False
    assert all(line.isprintable() for line in text.splitlines())


def with_operators(aten: str) -> Run:
    """A run each of whose ops has an operator of that name."""
    run = plan_run(PLAN)
    ops = tuple(replace(op, aten=aten) for op in run.graph.ops)
    return replace(run, graph=replace(run.graph, ops=ops))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (eager_attention(), "A run of eager has no fusion plan to export."),
        (broken(plan_run(PLAN)), "has no fusion plan to export."),
        (
            replace(plan_run(PLAN), graph=OpGraph(ops=(), tensors=())),
            "has no fusion plan to export.",
        ),
        (with_operators("aten.a+b.Tensor"), "names 'a' twice"),
        (with_operators(""), "lacks the name of an op"),
        (
            replace(plan_run(PLAN), graph=eager_attention().graph),
            "",
        ),
    ],
    ids=["no plan", "failed", "no graph", "signs", "no name", "another graph"],
)
def test_only_a_plan_with_its_graph_can_be_exported(run: Run, words: str) -> None:
    if not words:
        assert "bmm|mul+add+softmax|native_dropout|bmm2" in plan_module(run)
        return
    with pytest.raises(UsageError, match=words):
        plan_module(run)
