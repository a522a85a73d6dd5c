"""Checks of randomness on a real GPU: fused kernels at their own rate, and what they keep."""

import pytest
import torch

from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.comparison import Comparison
from explorer.engine.prepare import prepare
from explorer.engine.strategies import find_strategy
from explorer.model.comparison import check_words
from explorer.model.run import Accuracy

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda:0")


def accuracy(chain: str, spec: str, **settings: object) -> Accuracy:
    prepared = prepare(chain, {"batch": 1, "heads": 4, "seq_len": 1024, **settings}, GPU)
    comparison = Comparison(prepared, CHAIN_CODE[chain])
    comparison.measure_eager(whole=True)
    strategy = find_strategy(spec)
    built = strategy.build(prepared)
    checks = comparison.distribution(built)
    plan = built.plan
    built.close()
    return comparison.judge(comparison.errors(strategy, plan), checks)


def words(found: Accuracy) -> list[str]:
    """The checks that failed, none if all is well."""
    return [check_words(check) for check in found.distribution if not check.passed]


@pytest.mark.parametrize(("mask", "dropout"), [("additive", 0.1), ("additive", 0.5), ("none", 0.3)])
def test_fused_attention_keeps_a_rate_of_its_own_and_the_right_values(
    mask: str, dropout: float
) -> None:
    found = accuracy("attention", "sdpa", mask=mask, dropout=dropout)
    assert found.passed, found
    assert words(found) == []
    kept = found.distribution[0]
    assert kept.nominal == pytest.approx(1 - dropout)
    assert abs(kept.expected - (1 - dropout)) < 1 / 256


@pytest.mark.parametrize(
    ("spec", "dtype"),
    [
        ("eager", "bf16"),
        ("cudagraph", "fp32"),
        ("compile", "bf16"),
        ("compile", "fp16"),
        ("plan:scale+mask+softmax|dropout", "bf16"),
    ],
)
def test_generated_dropout_keeps_the_rate_asked_for(spec: str, dtype: str) -> None:
    found = accuracy("attention-scores", spec, dtype=dtype)
    assert found.passed, found
    assert words(found) == []
    kept = found.distribution[0]
    assert kept.expected == kept.nominal == pytest.approx(0.9)
    # One draw an element, and all of them looked at.
    assert kept.tolerance == pytest.approx(5 * (0.09 / (4 * 1024 * 1024)) ** 0.5, rel=0.01)
    assert found.coverage == 1.0


def test_the_reference_is_kept_where_a_gpu_fetches_it_fast() -> None:
    prepared = prepare("attention-scores", {"heads": 2, "seq_len": 256}, GPU)
    comparison = Comparison(prepared, CHAIN_CODE["attention-scores"])
    assert all(part.values.is_pinned() for part in comparison.reference.slices)


def test_a_step_of_adam_is_compared_on_what_the_inputs_were() -> None:
    prepared = prepare("adam", {"elements": 1 << 20}, GPU)
    comparison = Comparison(prepared, CHAIN_CODE["adam"])
    comparison.measure_eager(whole=True)
    for spec in ("eager", "compile", "plan:all"):
        built = find_strategy(spec).build(prepared)
        for _ in range(3):
            built.call()
        assert comparison.judge(comparison.errors_as_built(built), ()).passed, spec
        built.close()
