"""The reference's budget, the error, and the rule for passing."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from explorer.engine.chain_functions.base import ReferenceSlice
from explorer.engine.measure import accuracy
from explorer.engine.measure.accuracy import (
    Error,
    Reference,
    compute_reference,
    error_of,
    judge,
)

TRUTH = torch.arange(8, dtype=torch.float64).reshape(4, 2)


def rows() -> Iterator[ReferenceSlice]:
    for row in range(4):
        yield ReferenceSlice(index=(row,), values=TRUTH[row])


def whole() -> Reference:
    return compute_reference(rows(), n_elements=8, budget_s=60, max_bytes=1 << 20)


def test_without_a_limit_everything_is_covered() -> None:
    reference = whole()
    assert (reference.coverage, reference.max_abs) == (1.0, 7.0)


def test_memory_limits_the_coverage() -> None:
    reference = compute_reference(rows(), n_elements=8, budget_s=60, max_bytes=16)
    assert reference.coverage == 0.5
    assert reference.max_abs == 3.0


def test_time_limits_the_coverage_but_one_slice_is_always_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks = iter(range(100))
    clock = SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    monkeypatch.setattr(accuracy, "time", clock)
    reference = compute_reference(rows(), n_elements=8, budget_s=0.5, max_bytes=1 << 20)
    assert reference.coverage == 0.25


def test_the_error_is_that_of_the_slices_looked_at() -> None:
    output = TRUTH.float()
    output[0, 1] += 0.5
    output[3, 0] += 4.0
    error = error_of(output, whole())
    assert error == Error(max_abs=4.0, rms=((0.25 + 16.0) / 8) ** 0.5)
    half = compute_reference(rows(), n_elements=8, budget_s=60, max_bytes=16)
    assert error_of(output, half) == Error(max_abs=0.5, rms=(0.25 / 4) ** 0.5)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_value_that_is_not_finite_is_no_error_but_a_failure(bad: float) -> None:
    output = TRUTH.float()
    output[2, 1] = bad
    assert error_of(output, whole()) is None


@pytest.mark.parametrize(
    ("max_abs", "passed"), [(2e-3, True), (2e-3 + 7 * 2**-7, True), (2.1e-3 + 7 * 2**-7, False)]
)
def test_twice_eagers_error_and_one_rounding_of_the_largest_value_pass(
    max_abs: float, passed: bool
) -> None:
    verdict = judge(
        Error(max_abs=max_abs, rms=0.0),
        Error(max_abs=1e-3, rms=0.0),
        whole(),
        dtype=torch.bfloat16,
    )
    assert verdict.passed is passed
    assert verdict.eager_max_abs_error == 1e-3
    assert verdict.coverage == 1.0


def test_without_eagers_error_only_rounding_passes() -> None:
    verdict = judge(Error(max_abs=0.06, rms=0.0), None, whole(), dtype=torch.bfloat16)
    assert not verdict.passed
    assert verdict.eager_max_abs_error is None


def test_a_softmax_that_counts_its_padding_fails_in_every_dtype() -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 13, dtype=torch.float64)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        exact = torch.softmax(x.to(dtype).double(), dim=-1)
        reference = compute_reference(
            [ReferenceSlice(index=(), values=exact)],
            n_elements=exact.numel(),
            budget_s=60,
            max_bytes=1 << 30,
        )
        eager = error_of(torch.softmax(x.to(dtype), dim=-1), reference)
        # As a kernel does whose masked lanes hold 0 instead of -inf.
        padded = torch.cat([x.to(dtype), torch.zeros(16, 3, dtype=dtype)], dim=-1)
        wrong = error_of(torch.softmax(padded, dim=-1)[:, :13], reference)
        assert eager is not None
        assert wrong is not None
        assert judge(eager, eager, reference, dtype=dtype).passed
        assert not judge(wrong, eager, reference, dtype=dtype).passed
