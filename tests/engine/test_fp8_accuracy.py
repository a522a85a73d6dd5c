"""Runs in fp8 are judged by what their results are rounded to, and by eager's own error."""

import dataclasses

import pytest
import torch

from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.comparison import Comparison
from explorer.engine.measure.accuracy import Error, Errors
from explorer.engine.prepare import prepare
from explorer.engine.strategies import find_strategy

SETTINGS: dict[str, object] = {"rows": 16, "columns": 64, "features": 48, "dtype": "fp8"}


def comparison() -> Comparison:
    prepared = prepare("rmsnorm-fp8", SETTINGS, torch.device("cpu"))
    compared = Comparison(prepared, CHAIN_CODE["rmsnorm-fp8"])
    compared.measure_eager(whole=True)
    return compared


def times(errors: Errors, factor: float) -> dict[int, Error]:
    [error] = errors.values()
    return {0: dataclasses.replace(error, max_abs=factor * error.max_abs)}


def test_what_is_much_less_exact_than_eager_does_not_pass() -> None:
    compared = comparison()
    errors = compared.errors(find_strategy("eager"))
    assert compared.judge(errors, ()).passed
    assert compared.judge(times(errors, 1.9), ()).passed
    # One rounding of bf16 is 1/128 of the largest value; one of fp8 would be 1/8 of it.
    assert not compared.judge(times(errors, 3), ()).passed


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["compile", "plan:each", "plan:all"])
def test_fused_quantizing_is_as_exact_as_eager(spec: str) -> None:
    compared = comparison()
    assert compared.judge(compared.errors(find_strategy(spec)), ()).passed
