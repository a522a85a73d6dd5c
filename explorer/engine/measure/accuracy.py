"""Error against an fp64 reference that is computed a slice at a time.

Dropout draws other random numbers under every strategy, so there is no common truth with it on.
The error is that of the same strategy on the same chain with dropout off; the randomness itself is
checked by its distribution, and by what becomes of the values that it keeps. A strategy passes if
its error is at most twice eager's own, plus what one rounding of the largest value is worth in the
chain's dtype: so the tolerance comes from the dtype and the chain, not from a table. A chain with
several results passes if each of them does, by its own largest value.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch

from explorer.engine.chain_functions.base import ReferenceSlice
from explorer.engine.faults import NoReferenceError
from explorer.engine.measure.tolerance import allowed_error, as_numbers, largest_abs
from explorer.model.run import Accuracy, DistributionCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What was computed of the truth within the budget, kept in host memory.

    Attributes:
        slices: Parts of the results in fp64.
        coverage: Share of all results' elements that they make up.
        max_abs: Their largest absolute value, by the result's number.
        seconds: Time it took.
    """

    slices: tuple[ReferenceSlice, ...]
    coverage: float
    max_abs: Mapping[int, float]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """How far a result lies from the reference.

    Attributes:
        max_abs: Largest difference of the values that are finite.
        rms: Root mean square of these differences.
        not_finite: How many values are not.
    """

    max_abs: float
    rms: float
    not_finite: int = 0


Errors = Mapping[int, Error]
"""By the number of the result, of those that the reference has a slice of."""


def compute_reference(
    slices: Iterable[ReferenceSlice],
    *,
    n_elements: int,
    budget_s: float,
    max_bytes: int,
    n_results: int = 1,
) -> Reference:
    """Take slices of the truth until the results are covered or a budget is used up.

    Args:
        slices: Where they come from, lazily.
        n_elements: Elements of all results.
        budget_s: Seconds; at least one slice of each result is taken whatever it costs.
        max_bytes: Host memory that the slices may fill.
        n_results: How many results there are.
    """
    started_s = time.perf_counter()
    taken: list[ReferenceSlice] = []
    covered = 0
    largest: dict[int, float] = {}
    for part in slices:
        values = _in_host_memory(part.values)
        taken.append(ReferenceSlice(index=part.index, values=values, output=part.output))
        covered += values.numel()
        largest[part.output] = max(largest.get(part.output, 0.0), largest_abs(values))
        is_used_up = time.perf_counter() - started_s > budget_s or covered * 8 > max_bytes
        if is_used_up and len(largest) >= n_results:
            break
    return Reference(
        slices=tuple(taken),
        coverage=covered / n_elements,
        max_abs=largest,
        seconds=time.perf_counter() - started_s,
    )


def _in_host_memory(values: torch.Tensor) -> torch.Tensor:
    """A copy that every strategy can fetch fast: pinned, where it comes from a GPU."""
    if not values.is_cuda:
        return values
    return torch.empty_like(values, device="cpu", pin_memory=True).copy_(values)


def errors_of(results: Sequence[torch.Tensor], reference: Reference) -> Errors:
    """Compare results with the reference, on the slices that there are."""
    return errors_by_slices(lambda part: results[part.output][part.index], reference)


def errors_by_slices(
    slice_of: Callable[[ReferenceSlice], torch.Tensor], reference: Reference
) -> Errors:
    """The same for results that are made slice by slice.

    Args:
        slice_of: Gives what a slice of the reference is the truth of.
        reference: The slices to compare.
    """
    sums: dict[int, _Sum] = {}
    for part in reference.slices:
        got = as_numbers(slice_of(part))
        if got.shape != part.values.shape:
            raise NoReferenceError(
                f"There is no accuracy: a result has shape {tuple(got.shape)} in one call and "
                f"{tuple(part.values.shape)} in another."
            )
        difference = part.values.to(got.device, non_blocking=True) - got
        sums.setdefault(part.output, _Sum()).add(difference)
    return {output: each.error for output, each in sums.items()}


@dataclass(slots=True)
class _Sum:
    """Differences taken together, slice after slice."""

    largest: float = 0.0
    squares: float = 0.0
    n_elements: int = 0
    not_finite: int = 0

    def add(self, difference: torch.Tensor) -> None:
        largest = largest_abs(difference)
        # NaN would get lost in max().
        if not math.isfinite(largest):
            is_finite = difference.isfinite()
            self.not_finite += int((~is_finite).sum())
            difference = difference[is_finite]
            if not difference.numel():
                return
            largest = largest_abs(difference)
        self.largest = max(self.largest, largest)
        self.squares += float(torch.linalg.vector_norm(difference)) ** 2
        self.n_elements += difference.numel()

    @property
    def error(self) -> Error:
        return Error(
            max_abs=self.largest,
            rms=math.sqrt(self.squares / max(self.n_elements, 1)),
            not_finite=self.not_finite,
        )


def judge(
    errors: Errors,
    eager_errors: Errors,
    reference: Reference,
    *,
    dtype: torch.dtype,
    eps: float | None = None,
    distribution: tuple[DistributionCheck, ...] = (),
) -> Accuracy:
    """Put the errors beside eager's, and apply the rule to each result.

    Without an error of eager's (its result is not finite) only the rounding is allowed.

    Returns:
        The numbers of the worst result, which passed only if all did.
    """
    eager = {
        output: error.max_abs for output, error in eager_errors.items() if not error.not_finite
    }
    allowed = {
        output: allowed_error(eager.get(output), reference.max_abs[output], dtype, eps)
        for output in errors
    }

    def badness(output: int) -> float:
        error = errors[output]
        if error.not_finite or error.max_abs > allowed[output] == 0:
            return math.inf
        return error.max_abs / allowed[output] if allowed[output] else 0.0

    worst = max(errors, key=badness)
    not_finite = sum(error.not_finite for error in errors.values())
    return Accuracy(
        max_abs_error=errors[worst].max_abs,
        rms_error=errors[worst].rms,
        reference_max=reference.max_abs[worst],
        eager_max_abs_error=eager.get(worst),
        coverage=reference.coverage,
        passed=not not_finite and errors[worst].max_abs <= allowed[worst],
        distribution=distribution,
        not_finite=not_finite,
    )
