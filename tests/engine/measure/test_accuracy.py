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
    errors_of,
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
    assert reference.coverage == 1.0
    assert reference.max_abs == {0: 7.0}


def test_memory_limits_the_coverage() -> None:
    reference = compute_reference(rows(), n_elements=8, budget_s=60, max_bytes=16)
    assert reference.coverage == 0.5
    assert reference.max_abs == {0: 3.0}


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
    errors = errors_of([output], whole())
    assert errors == {0: Error(max_abs=4.0, rms=((0.25 + 16.0) / 8) ** 0.5)}
    half = compute_reference(rows(), n_elements=8, budget_s=60, max_bytes=16)
    assert errors_of([output], half) == {0: Error(max_abs=0.5, rms=(0.25 / 4) ** 0.5)}


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_value_that_is_not_finite_fails_and_the_others_keep_their_error(bad: float) -> None:
    output = TRUTH.float()
    output[2, 1] = bad
    output[2, 0] += 0.5
    errors = errors_of([output], whole())
    assert errors == {0: Error(max_abs=0.5, rms=(0.25 / 7) ** 0.5, not_finite=1)}
    verdict = judge(errors, {0: Error(max_abs=9.0, rms=1.0)}, whole(), dtype=torch.float32)
    assert not verdict.passed
    assert verdict.not_finite == 1


def two_results() -> Reference:
    """A large result and one a thousandth of its size."""
    slices = [
        ReferenceSlice(index=(slice(0, 2),), values=TRUTH[:2] * 1000, output=0),
        ReferenceSlice(index=(slice(2, 4),), values=TRUTH[2:] * 1000, output=0),
        ReferenceSlice(index=(), values=TRUTH, output=1),
    ]
    return compute_reference(slices, n_elements=16, n_results=2, budget_s=60, max_bytes=1)


def test_every_result_is_looked_at_even_if_the_budget_is_used_up() -> None:
    reference = two_results()
    assert reference.max_abs == {0: 7000.0, 1: 7.0}
    assert reference.coverage == 1.0


def test_each_result_is_judged_by_its_own_largest_value_and_the_worst_is_told() -> None:
    reference = two_results()
    eager = {0: Error(max_abs=1.0, rms=0.1), 1: Error(max_abs=1e-3, rms=1e-4)}
    fine = {0: Error(max_abs=2.0, rms=0.2), 1: Error(max_abs=1e-3, rms=2e-4)}
    verdict = judge(fine, eager, reference, dtype=torch.float32)
    assert verdict.passed
    assert (verdict.max_abs_error, verdict.rms_error, verdict.reference_max) == (2.0, 0.2, 7000.0)
    # Far less than the large result may be off, and too much for the small one.
    wrong = {**fine, 1: Error(max_abs=0.5, rms=0.1)}
    verdict = judge(wrong, eager, reference, dtype=torch.float32)
    assert not verdict.passed
    assert (verdict.max_abs_error, verdict.reference_max) == (0.5, 7.0)
    assert verdict.eager_max_abs_error == 1e-3


def test_a_result_of_zeros_allows_no_error() -> None:
    zeros = compute_reference(
        [ReferenceSlice(index=(), values=torch.zeros(4, dtype=torch.float64))],
        n_elements=4, budget_s=60, max_bytes=1 << 20,
    )  # fmt: skip
    for max_abs in (0.0, 1e-9):
        errors = {0: Error(max_abs=max_abs, rms=0.0)}
        assert judge(errors, {}, zeros, dtype=torch.float32).passed is (max_abs == 0)


@pytest.mark.parametrize(
    ("max_abs", "passed"), [(2e-3, True), (2e-3 + 7 * 2**-7, True), (2.1e-3 + 7 * 2**-7, False)]
)
def test_twice_eagers_error_and_one_rounding_of_the_largest_value_pass(
    max_abs: float, passed: bool
) -> None:
    verdict = judge(
        {0: Error(max_abs=max_abs, rms=0.0)},
        {0: Error(max_abs=1e-3, rms=0.0)},
        whole(),
        dtype=torch.bfloat16,
    )
    assert verdict.passed is passed
    assert verdict.eager_max_abs_error == 1e-3
    assert verdict.coverage == 1.0


@pytest.mark.parametrize("eager", [{}, {0: Error(max_abs=1.0, rms=0.0, not_finite=3)}])
def test_without_eagers_error_only_rounding_passes(eager: dict[int, Error]) -> None:
    verdict = judge({0: Error(max_abs=0.06, rms=0.0)}, eager, whole(), dtype=torch.bfloat16)
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
        eager = errors_of([torch.softmax(x.to(dtype), dim=-1)], reference)
        # As a kernel does whose masked lanes hold 0 instead of -inf.
        padded = torch.cat([x.to(dtype), torch.zeros(16, 3, dtype=dtype)], dim=-1)
        wrong = errors_of([torch.softmax(padded, dim=-1)[:, :13]], reference)
        assert judge(eager, eager, reference, dtype=dtype).passed
        assert not judge(wrong, eager, reference, dtype=dtype).passed
