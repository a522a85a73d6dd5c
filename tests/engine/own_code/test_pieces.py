"""Code that cannot be captured whole: its pieces, the breaks between them, and what is refused."""

from pathlib import Path

import pytest

import explorer
from explorer.engine.graph_breaks import read_break, reason_in_words
from explorer.engine.strategies import find_strategy
from explorer.model.errors import UsageError
from explorer.model.opgraph import GraphBreak
from explorer.model.own_code import OwnCode
from tests.engine.own_code.helpers import FUNCTIONS, LAYERS, captured, eager_passes, ops
from tests.engine.own_code.test_own_runs import runs_of

PRINTING = 'print("half way")  # noqa: T201 - the graph is to break here'
DECIDING = (f"{LAYERS}:Deciding", "x=fp32[4,8]")


def test_its_ops_are_those_that_run_in_pieces_with_the_breaks_between(
    capfd: pytest.CaptureFixture[str],
) -> None:
    chosen = captured(*DECIDING)
    graph = chosen.captured.graph
    assert ops(chosen) == ["addmm", "sum", "add", "mul", "mul2"]
    assert [op.piece for op in graph.ops[:2]] == [0, 0]
    assert graph.ops[2].piece == 1
    assert [op.source_line for op in graph.ops[:3]] == [
        "y: torch.Tensor = self.linear(x)", "if y.sum().item() > 1e9:", "y = y + 1"
    ]  # fmt: skip
    item, printed = graph.breaks
    assert item.place == graph.ops[1].source_place
    assert item.reason == "a number is taken out of a tensor"
    assert printed.place.startswith("layers.py:")
    assert printed.reason == "print() is called, which Dynamo cannot trace"
    assert graph.ops[3].reads == ("add",)
    assert "step 0" in capfd.readouterr().out
    assert eager_passes(chosen)


def test_weights_that_share_memory_are_told_apart(tmp_path: Path) -> None:
    chain, own = f"{LAYERS}:Flattened", OwnCode(inputs="x=fp32[4,8]", init="width=8")
    graph = captured(chain, own.inputs, own.init).captured.graph
    assert [(op.name, op.reads) for op in graph.ops] == [
        ("mul", ("x", "scale")), ("add", ("mul", "shift")), ("sum", ("scale",)),
        ("mul2", ("add", "sum")),
    ]  # fmt: skip
    [run] = runs_of(tmp_path, chain, own, "eager")
    assert [launch.ops for launch in run.launches] == [(op.name,) for op in graph.ops]
    read = [tuple(a.tensor for a in launch.accesses if a.bytes_read) for launch in run.launches]
    assert read[:2] == [("x", "scale"), ("mul", "shift")]


def test_a_plan_is_refused_with_the_break() -> None:
    chosen = captured(*DECIDING)
    with pytest.raises(UsageError, match=r"breaks at layers.py:\d+: a number is taken out"):
        find_strategy("plan:all").check_ops(chosen.chain, chosen.parameters, chosen.captured.graph)


def test_a_backward_pass_is_refused_with_the_break() -> None:
    with pytest.raises(UsageError, match=r"breaks at layers.py:\d+: a number is taken out"):
        captured(*DECIDING, backward=True)


def test_a_break_is_read_as_the_innermost_line_of_the_user_and_why() -> None:
    text = (
        "Graph break in user code at /t/torch/x.py:9\nGraph Break Reason: Something odd\n"
        "  Explanation: It is not known how.\n\nUser code traceback:\n"
        '  File "/u/own.py", line 3, in f\n    g(x)\n  File "/t/torch/x.py", line 9, in g\n    h\n'
        'Traceback (most recent call last):\n  File "/u/own.py", line 99, in z\n'
    )
    found = read_break(text, lambda file: file.startswith("/u/"))
    assert found == GraphBreak(place="own.py:3", reason="It is not known how")
    assert found.raw.startswith("Graph break in user code")
    assert "line 99" not in found.raw


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("  Explanation: Dynamo does not know how to trace the builtin `time.time.` This is\n",
         "time.time() is called, which Dynamo cannot trace"),
        ("  Explanation: Dynamo does not know how to trace builtin operator `open` with [str]\n",
         "open() is called, which Dynamo cannot trace"),
        ("Tensor.tolist() with non-integer tensor\n  Explanation: no `tolist()` here\n",
         "numbers are taken out of a tensor"),
        ("  Explanation: `A` is not traced. Nor is B.\n  Hint: Call `Tensor.item()` yourself.\n",
         "A is not traced"),
        (f"  Explanation: {'long ' * 60}\n", f"{('long ' * 60)[:159].rstrip()}…"),
    ],
)  # fmt: skip
def test_a_reason_is_short_and_without_torchs_hints(said: str, reason: str) -> None:
    assert reason_in_words(f"Graph Break Reason: Odd\n{said}") == reason


@pytest.mark.parametrize(
    ("function", "line", "reason"),
    [
        ("printed", PRINTING, "print() is called, which Dynamo cannot trace"),
        ("scaled_by_its_largest", "return x / x.max().item()", "a number is taken out of a tensor"),
    ],
)
def test_what_export_would_capture_whole_breaks_where_a_compiler_breaks(
    function: str, line: str, reason: str
) -> None:
    graph = captured(f"{FUNCTIONS}:{function}", "x=fp32[4,8]").captured.graph
    number = Path(FUNCTIONS).read_text().splitlines().index(f"    {line}") + 1
    assert graph.breaks == (GraphBreak(place=f"functions.py:{number}", reason=reason),)
    assert [op.piece for op in graph.ops] == [0, 1]


def test_whoever_called_the_program_is_not_the_place_of_a_break() -> None:
    program = Path(explorer.__file__).parent / "engine" / "own_code" / "pieces.py"
    caller = (
        'User code traceback:\n  File "/u/notebook.py", line 7, in f\n'
        f'  File "{program}", line 1, in g\n'
    )
    inner = '  File "/u/own.py", line 3, in h\n'
    assert read_break(f"{caller}{inner}", lambda file: file.startswith("/u/")).place == "own.py:3"
    assert read_break(caller, lambda file: file.startswith("/u/")).place == ""


def test_an_op_of_torch_has_no_line_of_whoever_called_the_program() -> None:
    chosen = captured("torch.nn:GRU", "input=fp32[2,2,4]", "input_size=4 hidden_size=4")
    graph = chosen.captured.graph
    assert [(each.place, each.reason) for each in graph.breaks] == [
        ("", "Dynamo does not trace RNN, GRU and LSTM")
    ]
    assert {op.source_place for op in graph.ops} == {None}
