"""Error against an fp64 reference that is computed a slice at a time.

Dropout draws other random numbers under every strategy, so there is no common truth with it on.
The error is that of the same strategy on the same chain with dropout off; the randomness itself is
checked by its distribution. A strategy passes if its error is at most twice eager's own, plus what
one rounding of the largest value is worth in the chain's dtype: so the tolerance comes from the
dtype and the chain, not from a table.
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch

from explorer.engine.chain_functions.base import ReferenceSlice, SliceIndex
from explorer.model.run import Accuracy, DistributionCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What was computed of the truth within the budget, kept in host memory.

    Attributes:
        slices: Parts of the output in fp64.
        coverage: Share of the output's elements that they make up.
        max_abs: Their largest absolute value.
        seconds: Time it took.
    """

    slices: tuple[ReferenceSlice, ...]
    coverage: float
    max_abs: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """Largest and root mean square difference from the reference, both finite."""

    max_abs: float
    rms: float


def compute_reference(
    slices: Iterable[ReferenceSlice], *, n_elements: int, budget_s: float, max_bytes: int
) -> Reference:
    """Take slices of the truth until the output is covered or a budget is used up.

    Args:
        slices: Where they come from, lazily.
        n_elements: Elements of the whole output.
        budget_s: Seconds; at least one slice is taken whatever it costs.
        max_bytes: Host memory that the slices may fill.
    """
    started_s = time.perf_counter()
    taken: list[ReferenceSlice] = []
    covered = 0
    largest = 0.0
    for part in slices:
        values = part.values.cpu()
        taken.append(ReferenceSlice(index=part.index, values=values))
        covered += values.numel()
        largest = max(largest, float(values.abs().max()))
        if time.perf_counter() - started_s > budget_s or covered * 8 > max_bytes:
            break
    return Reference(
        slices=tuple(taken),
        coverage=covered / n_elements,
        max_abs=largest,
        seconds=time.perf_counter() - started_s,
    )


def error_of(output: torch.Tensor, reference: Reference) -> Error | None:
    """Compare an output with the reference, on the slices that there are.

    Returns:
        None if the output holds a value that is not finite.
    """
    return error_by_slices(lambda index: output[index], reference)


def error_by_slices(
    slice_of: Callable[[SliceIndex], torch.Tensor], reference: Reference
) -> Error | None:
    """The same for an output that is made slice by slice.

    Args:
        slice_of: Gives the part of the output at an index.
        reference: The slices to compare.
    """
    largest = squares = 0.0
    n_elements = 0
    for part in reference.slices:
        got = slice_of(part.index).double()
        difference = got - part.values.to(got.device)
        largest_here = float(difference.abs().max())
        # NaN would get lost in max().
        if not math.isfinite(largest_here):
            return None
        largest = max(largest, largest_here)
        squares += float(difference.square().sum())
        n_elements += difference.numel()
    return Error(max_abs=largest, rms=math.sqrt(squares / n_elements))


def judge(
    error: Error,
    eager_error: Error | None,
    reference: Reference,
    *,
    dtype: torch.dtype,
    distribution: tuple[DistributionCheck, ...] = (),
) -> Accuracy:
    """Put the error beside eager's, and apply the rule.

    Without an error of eager's (its result is not finite) only the rounding is allowed.
    """
    eager_max_abs = None if eager_error is None else eager_error.max_abs
    tolerance = 2.0 * (eager_max_abs or 0.0) + torch.finfo(dtype).eps * reference.max_abs
    return Accuracy(
        max_abs_error=error.max_abs,
        rms_error=error.rms,
        reference_max=reference.max_abs,
        eager_max_abs_error=eager_max_abs,
        coverage=reference.coverage,
        passed=error.max_abs <= tolerance,
        distribution=distribution,
    )
