"""The chain bias-dropout-residual: the checks of its dropout, seen through its result."""

from collections.abc import Callable

import pytest
import torch

from explorer.chains import find_chain
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.chain_functions.base import Inputs
from explorer.engine.prepare import capture_chain
from explorer.model.device import DeviceKind
from explorer.model.run import Scalar
from tests.engine.returned import only

CPU = torch.device("cpu")
CODE = CHAIN_CODE["bias-dropout-residual"]


def made(**settings: object) -> tuple[dict[str, Scalar], dict[str, torch.Tensor]]:
    chosen = {"rows": 64, "columns": 101, **settings}
    parameters = find_chain("bias-dropout-residual").resolve(chosen, DeviceKind.CPU)
    torch.manual_seed(0)
    return parameters, CODE.make_inputs(parameters, CPU, 0)


def call_of(parameters: dict[str, Scalar], inputs: Inputs) -> Callable[[], torch.Tensor]:
    function = CODE.make_function(parameters)
    return lambda: only(function(*inputs.values()))


@pytest.mark.parametrize(("dropout", "ops"), [
    (0.1, ["bias", "dropout", "residual"]), (0, ["bias", "residual"]),
])  # fmt: skip
def test_the_captured_graph_has_the_ops(dropout: float, ops: list[str]) -> None:
    settings = {"rows": 2, "columns": 3, "dropout": dropout}
    graph = capture_chain("bias-dropout-residual", settings, CPU).captured.graph
    assert [op.name for op in graph.ops] == ops


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("dropout", [0.1, 0.75])
def test_eagers_dropout_passes_and_the_inputs_are_put_back(dtype: str, dropout: float) -> None:
    parameters, inputs = made(dtype=dtype, dropout=dropout)
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    kept, values = CODE.distribution(parameters, inputs, call_of(parameters, inputs), 0.0)
    assert kept.passed
    assert kept.expected == 1 - dropout
    assert values.passed
    assert kept.name == "share of values kept, 1 − p"
    assert values.name == "largest error of a kept value, same mask"
    for name, tensor in inputs.items():
        assert torch.equal(tensor, before[name])


def test_dropout_at_the_wrong_rate_is_found() -> None:
    parameters, inputs = made(dropout=0.1)
    other = call_of({**parameters, "dropout": 0.2}, inputs)
    kept, values = CODE.distribution(parameters, inputs, other, 0.0)
    assert not kept.passed
    assert kept.observed == pytest.approx(0.8, abs=0.03)
    assert not values.passed, "the kept ones are scaled up by 1 / 0.8"


def test_a_bias_added_behind_dropout_is_found() -> None:
    parameters, inputs = made(dropout=0.5)

    def wrong() -> torch.Tensor:
        return torch.dropout(inputs["x"], 0.5, True) + inputs["b"] + inputs["res"]

    kept, values = CODE.distribution(parameters, inputs, wrong, 0.0)
    assert not kept.passed, "what was dropped is not zero"
    assert not values.passed


def test_what_is_not_scaled_up_is_found() -> None:
    parameters, inputs = made(dropout=0.5)
    call = call_of(parameters, inputs)
    kept, values = CODE.distribution(parameters, inputs, lambda: call() / 2, 0.0)
    assert kept.passed
    assert not values.passed


def test_without_dropout_there_is_nothing_to_check() -> None:
    parameters, inputs = made()
    calm = CODE.without_randomness(parameters)
    assert calm == {**parameters, "dropout": 0.0}
    assert CODE.distribution(calm, inputs, call_of(calm, inputs), 0.0) == ()


@pytest.mark.parametrize("max_bytes", [1, 5000, 1 << 30])
def test_a_part_as_written_is_that_part_of_the_whole(max_bytes: int) -> None:
    parameters, inputs = made(dtype="bf16")
    whole = call_of(CODE.without_randomness(parameters), inputs)()
    covered = 0
    for part in CODE.reference(parameters, inputs, max_bytes):
        got = CODE.slice_as_written(parameters, inputs, part.index, part.output)
        assert torch.equal(got, whole[part.index])
        covered += got.numel()
    assert covered == whole.numel()
