"""Comparison with the truth: several results, updates in place, chains without their randomness."""

import dataclasses
from collections.abc import Callable

import pytest
import torch

from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.comparison import Comparison
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Built, Strategy, find_strategy
from explorer.engine.strategies.base import PeakFamily, always, plain_call
from explorer.model.run import Accuracy
from tests.engine.returned import only

CPU = torch.device("cpu")


def comparison(chain: str, **settings: object) -> tuple[Prepared, Comparison]:
    prepared = prepare(chain, settings, CPU)
    compared = Comparison(prepared, CHAIN_CODE[chain])
    compared.measure_eager(whole=True)
    return prepared, compared


def strategy_of(build: Callable[[Prepared], Built], name: str = "made up") -> Strategy:
    return Strategy(name=name, title=name, build=build, peak=always(PeakFamily.EAGER))


def verdict(compared: Comparison, strategy: Strategy) -> Accuracy:
    return compared.judge(compared.errors(strategy), ())


def test_a_chain_that_updates_its_inputs_is_compared_on_what_they_were() -> None:
    prepared, compared = comparison("adam", elements=1000)
    built = find_strategy("eager").build(prepared)
    # As peak, trace and timing do before.
    for _ in range(3):
        built.call()
    found = compared.judge(compared.errors_as_built(built), ())
    assert found.passed
    assert found.coverage == 1.0
    assert found.max_abs_error == found.eager_max_abs_error


def test_by_slices_eagers_error_is_the_same() -> None:
    prepared, compared = comparison("adam", elements=1000)
    find_strategy("eager").build(prepared).call()
    whole = compared._eager_errors
    compared.measure_eager(whole=False)
    assert compared._eager_errors == whole
    assert whole.keys() == {0, 1, 2}


@pytest.mark.parametrize("name", ["p", "m", "v"])
def test_each_updated_input_is_judged(name: str) -> None:
    _, compared = comparison("adam", elements=1000)

    def build(prepared: Prepared) -> Built:
        plain = plain_call(prepared)

        def call() -> None:
            plain()
            prepared.inputs[name] *= 1.001

        return Built(call=call)

    assert not verdict(compared, strategy_of(build)).passed


def test_a_plan_is_built_on_the_graph_without_the_random_ops() -> None:
    prepared, compared = comparison("attention-scores", heads=1, seq_len=32)
    seen: list[Prepared] = []

    def build(calm: Prepared) -> Built:
        seen.append(calm)
        return Built(call=plain_call(calm))

    for name in ("plan", "made up", "plan"):
        assert verdict(compared, strategy_of(build, name)).passed
    first, second, third = seen
    ops = ["scale", "mask", "softmax"]
    assert [op.name for op in first.graph.ops] == ops
    assert [node.op for node in first.nodes] == ops
    got = first.graph_module(*first.inputs.values())[0]
    torch.testing.assert_close(got, only(first.function(*first.inputs.values())))
    assert third.graph_module is second.graph_module is first.graph_module, "captured once"
    assert first.inputs["scores"] is prepared.inputs["scores"], "no second copy of the inputs"


def test_without_randomness_what_was_measured_is_compared() -> None:
    prepared, compared = comparison("attention-scores", heads=1, seq_len=32, dropout=0)
    assert not compared.is_random
    built = find_strategy("eager").build(prepared)
    assert compared.distribution(built) == ()
    wrong = dataclasses.replace(built, call=lambda: only(built.call()) * 1.01)
    assert compared.judge(compared.errors_as_built(built), ()).passed
    assert not compared.judge(compared.errors_as_built(wrong), ()).passed
