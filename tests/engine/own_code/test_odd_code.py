"""Code with odd results, code that fails in a run: a right answer, or a sentence."""

from pathlib import Path

import pytest
import torch

from explorer.engine.comparison import Comparison
from explorer.engine.faults import NoReferenceError, is_out_of_memory
from explorer.engine.own_code.errors import OwnCodeError
from explorer.engine.prepare import make_ready
from explorer.engine.session import Session
from explorer.model.errors import UsageError
from explorer.model.messages import GraphRequest, Reply, RunFinished, RunRequest
from explorer.model.own_code import OwnCode
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


def test_what_fails_in_a_run_is_told_by_the_users_line() -> None:
    finished: list[RunFinished] = []

    def emit(reply: Reply) -> None:
        if isinstance(reply, RunFinished):
            finished.append(reply)

    request = RunRequest(
        chain=f"{ODD}:looked_up", strategies=("eager",), device="cpu", measure_ceilings=False,
        own=OwnCode(inputs="table=fp32[4,4] ids=i64[64]<1000"),
    )  # fmt: skip
    Session().handle(request, emit)
    run = finished[0].run
    number = Path(ODD).read_text().splitlines().index("    return table[ids]") + 1
    assert run.error is not None
    assert run.error.startswith(
        f"eager failed at odd.py:{number} (return table[ids]): IndexError: index "
    )
