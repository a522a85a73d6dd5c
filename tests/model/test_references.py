"""Names that lead nowhere are found before a view stumbles over them."""

import json
from dataclasses import replace

import pytest

from explorer.model.errors import RecordingError
from explorer.model.references import reference_fault
from explorer.model.run import Access, FusionGroup, LoopNest, Run
from explorer.recording import parse_recording, runs_to_plain
from tests.fixtures_runs import all_runs, eager_attention


@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.id)
def test_a_whole_run_has_no_fault(run: Run) -> None:
    assert reference_fault(run) is None


def with_launch(**changes: object) -> Run:
    run = eager_attention()
    first = replace(run.launches[0], **changes)  # type: ignore[arg-type] # any field is fine
    return replace(run, launches=(first, *run.launches[1:]))


def with_op(**changes: tuple[str, ...]) -> Run:
    run = eager_attention()
    first = replace(run.graph.ops[0], **changes)  # type: ignore[arg-type] # reads or writes only
    return replace(run, graph=replace(run.graph, ops=(first, *run.graph.ops[1:])))


def with_plan(text: str) -> Run:
    run = eager_attention()
    return replace(run, strategy=replace(run.strategy, name="plan", plan=text))


FAULTY = {
    "op qk names the tensor 'x', which it does not hold": with_op(reads=("x",)),
    "op qk names the tensor 'y', which it does not hold": with_op(writes=("y",)),
    "launches[0] names the tensor 'z'": with_launch(accesses=(Access(tensor="z"),)),
    "launches[0] names the tensor 'chip'": with_launch(stays_on_chip=("chip",)),
    "launches[0] names the op 'tanh'": with_launch(ops=("tanh",)),
    "launches[0] names the op 'sinh'": with_launch(
        loop_nests=(LoopNest(name="n", ops=("sinh",), bytes_read=0, bytes_written=0),)
    ),
    "groups[0] names the op 'cosh'": replace(
        eager_attention(), groups=(FusionGroup(ops=("cosh",), bytes_read=0, bytes_written=0),)
    ),
    "groups[0] names the launch 6, which it does not hold": replace(
        eager_attention(),
        groups=(FusionGroup(ops=("qk",), bytes_read=0, bytes_written=0, launches=(5, 6)),),
    ),
    "groups[0] names no op": replace(
        eager_attention(), groups=(FusionGroup(ops=(), bytes_read=0, bytes_written=0),)
    ),
    "groups[1] names the op 'qk', which was in a group already": replace(
        eager_attention(),
        groups=(FusionGroup(ops=("qk",), bytes_read=0, bytes_written=0),) * 2,
    ),
    "groups[0] names the launch 5, which was in a group already": replace(
        eager_attention(),
        groups=(FusionGroup(ops=("qk",), bytes_read=0, bytes_written=0, launches=(5, 5)),),
    ),
    "strategy.plan names the op 'cosh', which it does not hold": with_plan("qk+cosh"),
    "strategy.plan names the op 'qk', twice": with_plan("qk+qk"),
    "strategy.plan lacks the op 'dropout'": with_plan("qk|scale|mask|softmax|pv"),
    "it holds two of the tensor 'q'": replace(
        eager_attention(), tensors=(*eager_attention().tensors, eager_attention().tensors[0])
    ),
    "it holds two of the op 'qk'": replace(
        eager_attention(),
        graph=replace(
            eager_attention().graph,
            ops=(*eager_attention().graph.ops, eager_attention().graph.ops[0]),
        ),
    ),
    "it holds two of the tensor of the graph 'q'": replace(
        eager_attention(),
        graph=replace(
            eager_attention().graph,
            tensors=(*eager_attention().graph.tensors, eager_attention().graph.tensors[0]),
        ),
    ),
}


@pytest.mark.parametrize("words", FAULTY)
def test_what_leads_nowhere_is_named(words: str) -> None:
    fault = reference_fault(FAULTY[words])
    assert fault is not None
    assert fault.startswith(words)


def test_a_recording_with_such_a_name_is_refused() -> None:
    run = FAULTY["launches[0] names the op 'tanh'"]
    packed = json.dumps(runs_to_plain((eager_attention(), run))).encode()
    with pytest.raises(RecordingError) as caught:
        parse_recording(packed, "a.kx")
    assert str(caught.value) == (
        "a.kx is damaged: runs[1]: launches[0] names the op 'tanh', which it does not hold."
    )
