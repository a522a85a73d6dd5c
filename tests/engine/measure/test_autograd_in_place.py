"""What autograd does in place is recorded as that, whoever watches."""

from collections.abc import Callable

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from explorer.engine import backward_pass
from explorer.engine.measure.calls import RecordedCall
from explorer.engine.measure.recorder import CallLog, observed
from explorer.engine.prepare import prepare
from explorer.model.run import Direction
from tests.engine.graphs import CPU

ROWS, COLUMNS = 16, 64
FLOAT, INDEX = 4, 8
PUTS = ("index_add", "index_put", "masked_scatter", "scatter", "scatter_add")


@pytest.fixture
def values() -> torch.Tensor:
    return torch.linspace(-1, 1, ROWS * COLUMNS).view(ROWS, COLUMNS).requires_grad_()


def calls_of(call: Callable[[], object]) -> list[RecordedCall]:
    log = CallLog(device_type="cpu", source_files=frozenset())
    with observed(log, is_compiled=False):
        call()
    return log.calls


def puts_of(call: Callable[[], object]) -> list[str]:
    """The operators that put elements into a tensor, as nobody but the profiler sees them."""
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as profiler:
        call()
    found = (event.name.removeprefix("aten::") for event in profiler.events() or ())
    return [name for name in found if name.strip("_").removesuffix("_impl") in PUTS]


def differentiated(
    function: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor
) -> Callable[[], torch.Tensor]:
    def call() -> torch.Tensor:
        result = function(values)
        with backward_pass.running():
            [gradient] = torch.autograd.grad(result.sum(), values)
        return gradient

    return call


def picked(values: torch.Tensor) -> torch.Tensor:
    return values.gather(1, torch.arange(ROWS)[:, None])


def selected(values: torch.Tensor) -> torch.Tensor:
    return values.index_select(0, torch.tensor([1, 3]))


def indexed(values: torch.Tensor) -> torch.Tensor:
    return values[torch.tensor([1, 3]), torch.tensor([0, 5])]


def largest(values: torch.Tensor) -> torch.Tensor:
    return values.max(1).values


def masked(values: torch.Tensor) -> torch.Tensor:
    return values.masked_select(values.detach() > 0)


CASES = [
    pytest.param(function, id=function.__name__)
    for function in (picked, selected, indexed, largest, masked)
]


@pytest.mark.parametrize("function", CASES)
def test_elements_are_put_into_zeros_as_they_are_when_nobody_watches(
    function: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor
) -> None:
    call = differentiated(function, values)
    alone = {name for name in puts_of(call) if name.endswith("_")}
    seen = [call.name.split(".")[1] for call in calls_of(call)]

    assert alone
    recorded = [name for name in seen if name.strip("_").removesuffix("_impl") in PUTS]
    assert recorded
    assert all(name.endswith("_") for name in recorded), recorded


@pytest.mark.parametrize("function", CASES)
def test_the_gradient_is_the_same_when_it_is_watched(
    function: Callable[[torch.Tensor], torch.Tensor], values: torch.Tensor
) -> None:
    call = differentiated(function, values)
    watched: list[torch.Tensor] = []
    calls_of(lambda: watched.append(call()))

    torch.testing.assert_close(watched[0], call())


def test_what_a_function_of_ones_own_takes_apart_stays_as_it_is(values: torch.Tensor) -> None:
    class Picking(torch.autograd.Function):
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
            return picked(x)

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, grad: torch.Tensor) -> torch.Tensor:
            zeros = torch.zeros(ROWS, COLUMNS)
            once = zeros.scatter_add(1, torch.arange(ROWS)[:, None], grad)
            return once + zeros

    call = differentiated(Picking.apply, values)
    watched: list[torch.Tensor] = []
    seen = calls_of(lambda: watched.append(call()))

    assert "aten.scatter_add.default" in [call.name for call in seen]
    assert watched[0].sum() == ROWS


def test_few_elements_are_put_and_the_whole_is_filled() -> None:
    prepared = prepare(
        "cross-entropy",
        {"rows": ROWS, "vocabulary": COLUMNS, "dtype": "fp32"},
        CPU,
        direction=Direction.FORWARD_BACKWARD,
    )
    calls = calls_of(prepared.caller(prepared.function))
    by_name = {call.name: call for call in calls if call.is_backward}
    put, filled = by_name["aten.scatter_add_.default"], by_name["aten.new_zeros.default"]

    assert [touch.bytes_moved for touch in filled.touches] == [ROWS * COLUMNS * FLOAT]
    reads = [touch.bytes_moved for touch in put.touches if not touch.is_write]
    writes = [touch for touch in put.touches if touch.is_write]
    assert reads == [ROWS * FLOAT, ROWS * INDEX, ROWS * FLOAT]
    assert [(touch.bytes_moved, touch.is_fresh) for touch in writes] == [(ROWS * FLOAT, True)]
