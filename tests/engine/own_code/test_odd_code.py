"""Code with odd results, code that fails in a run: a right answer, or a sentence."""

import os
from pathlib import Path

import pytest
import torch

from explorer.engine.comparison import Comparison
from explorer.engine.faults import NoReferenceError, is_out_of_memory
from explorer.engine.own_code import raising_hard_exits
from explorer.engine.own_code.errors import OwnCodeError
from explorer.engine.prepare import make_ready
from explorer.engine.session import Session
from explorer.model.errors import UsageError
from explorer.model.messages import GraphRequest, Reply, RunFinished, RunRequest
from explorer.model.own_code import OwnCode
from explorer.model.run import Direction, Run
from tests.engine.own_code.helpers import MODULES, captured, eager_passes, ops

ODD = str(MODULES / "odd.py")


@pytest.mark.parametrize(
    ("name", "inputs", "made"),
    [
        ("no_arguments", "", ["ones", "mul"]),
        ("spectrum", "x=fp32[4,6]", ["fft_r2c"]),
        ("inverted", "keep=bool[4,6]", ["bitwise_not"]),
    ],
)
def test_any_dense_result_is_compared(name: str, inputs: str, made: list[str]) -> None:
    chosen = captured(f"{ODD}:{name}", inputs)
    assert ops(chosen) == made
    assert eager_passes(chosen)


@pytest.mark.parametrize(
    ("name", "inputs", "said"),
    [
        ("nothing_returned", "x=fp32[4]", "The code returns no tensor and changes none"),
        ("sparse", "x=fp32[4,4]", "The code makes a sparse tensor; only dense ones"),
        ("awaited", "x=fp32[4]", "is an async function or a generator"),
        ("generated", "x=fp32[4]", "is an async function or a generator"),
        ("Shapeless", "x=fp32[4,4]", "has no forward\\(\\), so that it cannot be called"),
        ("branching", "x=fp32[4]", "calls torch's operator cond, which has code of its own inside"),
        ("Lazy", "x=fp32[4,4]", "Lazy has lazy layers, whose sizes are known once"),
    ],
)
def test_what_cannot_be_measured_is_told(name: str, inputs: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        captured(f"{ODD}:{name}", inputs)


def test_results_without_elements_have_no_accuracy() -> None:
    chosen = captured(f"{ODD}:empty", "x=fp32[4,4]")
    with pytest.raises(NoReferenceError, match="the results have no elements"):
        Comparison(make_ready(chosen, 0), chosen.code, chosen.capture_calm)


def test_results_that_are_cut_off_have_no_backward_pass() -> None:
    prepared = make_ready(captured(f"{ODD}:cut_off", "x=fp32[4]", backward=True), 0)
    with pytest.raises(UsageError, match="cuts its results off from what they are made of"):
        prepared.caller(prepared.function)()


def test_code_that_asks_for_too_much_memory_is_told_by_its_line() -> None:
    with pytest.raises(OwnCodeError) as refused:
        captured(f"{ODD}:too_large", "x=fp32[4]")
    text = Path(ODD).read_text().splitlines()
    number = text.index("    large = torch.ones(1 << 45)") + 1
    assert str(refused.value).startswith(f"odd.py:{number} (large = torch.ones(1 << 45)) ran out")
    assert is_out_of_memory(refused.value)


def test_what_code_sets_for_the_process_is_put_back() -> None:
    request = GraphRequest(chain=f"{ODD}:in_doubles", device="cpu", own=OwnCode(inputs="x=fp32[4]"))
    Session().handle(request, lambda _reply: None)
    assert torch.get_default_dtype() is torch.float32
    assert torch.is_grad_enabled()


def measured(name: str, inputs: str, direction: Direction = Direction.FORWARD) -> Run:
    """The one run of a request for eager."""
    finished: list[RunFinished] = []

    def emit(reply: Reply) -> None:
        if isinstance(reply, RunFinished):
            finished.append(reply)

    request = RunRequest(
        chain=f"{ODD}:{name}", strategies=("eager",), device="cpu", measure_ceilings=False,
        own=OwnCode(inputs=inputs), timing_s=0.01, direction=direction,
    )  # fmt: skip
    Session().handle(request, emit)
    return finished[0].run


def line_of(text: str) -> int:
    return Path(ODD).read_text().splitlines().index(f"    {text}") + 1


def test_what_fails_in_a_run_is_told_by_the_users_line() -> None:
    run = measured("looked_up", "table=fp32[4,4] ids=i64[64]<1000")
    assert run.error is not None
    assert run.error.startswith(
        f"odd.py:{line_of('return table[ids]')} (return table[ids]) raises IndexError: index "
    )


def test_an_operator_that_the_dtype_lacks_fails_the_run_alone_and_by_its_line() -> None:
    run = measured("rectified", "x=fp8[4,4]")
    assert run.error is not None
    assert run.error.startswith(
        f"odd.py:{line_of('return x.relu()')} (return x.relu()) raises NotImplementedError: "
    )
    assert [op.name for op in run.graph.ops] == ["relu"]
    assert run.warnings[0].startswith("Eager's own error is not known: the code raised NotImpl")


@pytest.mark.parametrize("direction", Direction)
def test_attention_that_drops_nothing_is_not_random_and_is_its_own_op(
    direction: Direction,
) -> None:
    run = measured("attended", "q=fp32[1,2,8,16]", direction)
    assert run.error is None
    assert run.accuracy is not None
    assert run.accuracy.passed
    attention = "scaled_dot_product_flash_attention_for_cpu"
    expected = [(attention,), ("mul",)]
    if direction is Direction.FORWARD_BACKWARD:
        expected += [("d_mul",), (f"d_{attention}",)]
    assert [launch.ops for launch in run.launches][: len(expected)] == expected


@pytest.mark.parametrize("direction", Direction)
def test_attention_is_compared_without_its_dropout(direction: Direction) -> None:
    run = measured("attended", "q=fp32[1,2,8,16] dropout=0.5", direction)
    assert run.error is None
    assert run.accuracy is not None
    assert run.accuracy.passed
    assert not any("no accuracy" in warning for warning in run.warnings)


def test_one_operator_for_several_heads_carries_out_all_ops() -> None:
    run = measured("Heads", "x=fp32[2,4,16]")
    assert run.error is None
    [launch] = run.launches
    assert launch.kernel == "aten._native_multi_head_attention.default"
    assert launch.ops == tuple(op.name for op in run.graph.ops)


def test_a_batch_of_matmuls_that_runs_as_one_on_a_copy_is_that_op() -> None:
    run = measured("TrainedHeads", "x=fp32[2,4,16]", Direction.FORWARD_BACKWARD)
    assert run.error is None
    forward = [op.name for op in run.graph.ops if not op.is_backward]
    launches = [launch for launch in run.launches if set(launch.ops) & set(forward)]
    assert [launch.kernel for launch in launches[:4]] == [
        "aten.clone.default", "aten.mm.default", "aten.add.Tensor", "aten.clone.default"
    ]  # fmt: skip
    assert [launch.ops for launch in launches[:4]] == [("bmm",), ("bmm",), ("add",), ("clone",)]
    assert launches[-1].ops == ("addmm",)


def test_fp8_results_are_compared() -> None:
    run = measured("same", "x=fp8[4,4]")
    assert run.error is None
    assert run.accuracy is not None
    assert run.accuracy.max_abs_error == 0
    assert run.accuracy.passed


def test_a_hard_exit_is_not_let_and_is_told_by_its_line() -> None:
    with pytest.raises(OwnCodeError) as refused, raising_hard_exits():
        captured(f"{ODD}:exits", "x=fp32[4]")
    assert str(refused.value).startswith(
        f"odd.py:{line_of('os._exit(3)')} (os._exit(3)) ends the program with os._exit(3); take"
    )


def test_a_forked_process_still_exits_hard() -> None:
    with raising_hard_exits():
        child = os.fork()
        if child == 0:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_module_of_two_dtypes_that_is_made_on_real_tensors_stays_whole() -> None:
    chosen = captured(f"{ODD}:OfTwoDtypes", "x=fp32[2,8]", "width=8", backward=True)
    assert not chosen.captured.graph.breaks
    assert ops(chosen)[:4] == ["addmm", "to_copy", "addmm2", "mul"]
    assert chosen.input_specs["second.weight"].dtype is torch.bfloat16
    assert chosen.input_specs["first.weight"].shape == (8, 8)
    assert eager_passes(chosen)


@pytest.mark.parametrize(
    ("name", "made", "breaks"),
    [
        ("distinct", ["unique2"], "the size of a result depends on values"),
        ("noised", ["randn", "add"], "an object is made that a graph cannot hold"),
    ],
)
def test_what_export_takes_and_a_graph_cannot_hold_is_captured_as_it_runs(
    name: str, made: list[str], breaks: str
) -> None:
    chosen = captured(f"{ODD}:{name}", "x=fp32[4]")
    assert ops(chosen) == made
    assert breaks in " ".join(each.reason.lower() for each in chosen.captured.graph.breaks)


def test_a_backward_pass_ends_in_its_own_call() -> None:
    prepared = make_ready(captured(f"{ODD}:Summing", "x=fp32[2,4]", backward=True), 0)
    call = prepared.caller(prepared.function)
    for _ in range(2):
        call()
        assert prepared.inputs["total"].grad_fn is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Checkpointed", "breaks at odd.py:{line}: activation checkpointing computes anew"),
        ("Hooked", "a module has a backward hook, which Dynamo does not trace"),
    ],
)
def test_why_there_is_no_backward_pass_is_told(name: str, said: str) -> None:
    line = line_of("    result: torch.Tensor = checkpoint(torch.sin, x, use_reentrant=False)")
    with pytest.raises(UsageError) as refused:
        captured(f"{ODD}:{name}", "x=fp32[4,4]" if name == "Checkpointed" else "input=fp32[4,4]",
                 backward=True)  # fmt: skip
    assert said.format(line=line) in str(refused.value)


def test_a_backward_pass_that_somebody_wrote_is_run_and_told() -> None:
    [note] = captured(f"{ODD}:doubling", "x=fp32[4,4]", backward=True).notes
    assert note.startswith("Doubling has a backward pass of its own (torch.autograd.Function)")
    assert captured(f"{ODD}:doubling", "x=fp32[4,4]").notes == ()
    assert captured(f"{ODD}:same", "x=fp32[4,4]", backward=True).notes == ()
    assert eager_passes(captured(f"{ODD}:doubling", "x=fp32[4,4]", backward=True))


def test_what_is_written_in_c_takes_its_arguments_by_name() -> None:
    chosen = captured("torch:softmax", "input=fp32[4,8] dim=-1")
    assert ops(chosen) == ["softmax"]
    assert list(chosen.input_specs) == ["input"]
