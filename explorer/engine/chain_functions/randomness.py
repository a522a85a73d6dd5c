"""Checks of dropout: how much of its input it keeps, and what becomes of what it keeps.

No two strategies draw the same random numbers. But which elements a strategy dropped can be read
off its result, where they are zero, and given that mask there is a truth again: what was kept is
the probability over the share kept.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch

from explorer.engine.chain_functions.base import ReferenceSlice, SliceIndex
from explorer.engine.measure.tolerance import allowed_error, largest_abs
from explorer.model.run import DistributionCheck

SIGMAS = 5.0
"""Standard deviations of a sum of independent draws: one false alarm in 1.7 million."""

LOOK_BYTES = 8 << 20
"""Of a slice of the truth while dropout is checked: small, so that several heads are looked at."""
_LOOKED_AT = {"cuda": 1 << 24, "cpu": 1 << 20}
"""Elements that are looked at, which a device does in some 20 ms.

On a GPU, whose fused kernels draw 8 bits, that is enough to tell 230 of 256 kept from nine tenths
by more than three times the tolerance.
"""
_MARGIN_STEPS = 4
"""Smallest steps of a dtype that a truth must have, for a zero to mean that it was dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropout:
    """A dropout as a strategy carries it out.

    Attributes:
        p: Share that the chain asks to drop.
        resolution: Step of the random numbers that are compared with it, 0 if too fine to matter.
        dtype: Of what is dropped.
        one: What is dropped, as a word.
        many: The same for several.
    """

    p: float
    resolution: float
    dtype: torch.dtype
    one: str = "probability"
    many: str = "probabilities"

    @property
    def keep(self) -> float:
        """Share that the chain asks to keep."""
        return 1.0 - self.p

    @property
    def rates(self) -> tuple[float, ...]:
        """The shares kept that count as right.

        An implementation whose random numbers have steps cannot but keep a whole number of them;
        which of the two next to the share asked for is its own affair. It may also have finer
        numbers than is known of it.
        """
        if self.resolution <= 0:
            return (self.keep,)
        below = math.floor(self.keep / self.resolution) * self.resolution
        return (self.keep, below, below + self.resolution)

    def realised(self, observed: float) -> float:
        """The right share that is nearest to the one observed."""
        return min(self.rates, key=lambda rate: abs(rate - observed))

    @property
    def smallest(self) -> float:
        """A truth above this is no zero in the result unless it was dropped."""
        info = torch.finfo(self.dtype)
        # Kernels compute in fp32 and may flush what is too small for its normal numbers.
        flushed = torch.finfo(torch.float32).smallest_normal
        return max(_MARGIN_STEPS * info.smallest_normal * info.eps, _MARGIN_STEPS * flushed)


def look_elements(device: torch.device) -> int:
    """How many probabilities to look at."""
    return _LOOKED_AT.get(device.type, _LOOKED_AT["cpu"])


def spread(rate: float, n: int) -> float:
    """The most that the share kept of ``n`` independent draws lies off its rate by chance."""
    return SIGMAS * math.sqrt(max(rate * (1.0 - rate), 0.0) / n)


def kept_check(dropout: Dropout, n_kept: int, n: int) -> DistributionCheck:
    """Whether the share kept is one that the implementation may come to."""
    observed = n_kept / n
    rate = dropout.realised(observed)
    made = check(f"share of {dropout.many} kept, 1 − p", rate, observed, spread(rate, n))
    return DistributionCheck(
        name=made.name,
        expected=made.expected,
        observed=made.observed,
        tolerance=made.tolerance,
        passed=made.passed,
        nominal=dropout.keep,
        resolution=dropout.resolution,
    )


def check(name: str, expected: float, observed: float, tolerance: float) -> DistributionCheck:
    """A check that passes if what was observed lies within the tolerance of what was expected."""
    return DistributionCheck(
        name=name,
        expected=expected,
        observed=observed,
        tolerance=tolerance,
        passed=abs(observed - expected) <= tolerance,
    )


@dataclass(slots=True)
class Kept:
    """What was seen of a dropout's result beside the truth of what went in.

    Attributes:
        dropout: As asked for.
        n: Elements that would be zero only if they were dropped.
        n_kept: Of these, how many are not zero.
        not_finite: Values that are no finite number.
        largest: The largest truth.
        eager_error: Eager's own largest error before any is dropped.
    """

    dropout: Dropout
    n: int = 0
    n_kept: int = 0
    not_finite: int = 0
    largest: float = 0.0
    eager_error: float = 0.0
    _errors: dict[float, float] = field(default_factory=dict)

    def look(self, result: torch.Tensor, truth: torch.Tensor, as_written: torch.Tensor) -> None:
        """Take in a part.

        Args:
            result: The dropped probabilities, zero or scaled up.
            truth: The probabilities in fp64.
            as_written: The same by the chain as written in its own dtype, nothing dropped.
        """
        got = result.double()
        is_dropped = got == 0
        if not math.isfinite(largest_abs(got)):
            is_wrong = ~got.isfinite()
            self.not_finite += int(is_wrong.sum())
            got = got.masked_fill(is_wrong, 0.0)
            is_dropped |= is_wrong
        counts = truth > self.dropout.smallest
        n = int(counts.sum())
        self.n += n
        self.n_kept += n - int((counts & is_dropped).sum())
        self.largest = max(self.largest, float(truth.max()))
        off = largest_abs(truth - as_written)
        # Where eager's own value is not finite it excuses nothing.
        self.eager_error = max(self.eager_error, off if math.isfinite(off) else 0.0)
        for rate in self.dropout.rates:
            error = largest_abs((got * rate - truth).masked_fill_(is_dropped, 0.0))
            self._errors[rate] = max(self._errors.get(rate, 0.0), error)

    def value_checks(self) -> tuple[DistributionCheck, ...]:
        """Whether what was kept is the probability, scaled up by the rate asked for or realised."""
        rates = {self.dropout.keep, self.dropout.realised(self.n_kept / max(self.n, 1))}
        error = min(self._errors.get(rate, 0.0) for rate in rates)
        allowed = allowed_error(self.eager_error, self.largest, self.dropout.dtype)
        name = f"largest error of a kept {self.dropout.one}, same mask"
        found = check(name, 0.0, error, allowed)
        if not self.not_finite:
            return (found,)
        name = f"{self.dropout.many} that are no finite number"
        return (found, check(name, 0.0, float(self.not_finite), 0.0))

    def kept_check(self) -> DistributionCheck:
        """Whether the share kept is right."""
        return kept_check(self.dropout, self.n_kept, max(self.n, 1))


def look_at(
    dropout: Dropout,
    reference: Iterable[ReferenceSlice],
    *,
    result: Callable[[SliceIndex], torch.Tensor],
    as_written: Callable[[SliceIndex], torch.Tensor],
    max_elements: int,
) -> Kept:
    """Look at slices of a dropout's result until there were enough elements.

    Args:
        dropout: As asked for.
        reference: Slices of the probabilities in fp64, in an order that spreads over them.
        result: The dropped probabilities of a slice.
        as_written: The probabilities of a slice by the chain as written, nothing dropped.
        max_elements: How many to look at; one slice is looked at however large it is.
    """
    kept = Kept(dropout)
    seen = 0
    for part in reference:
        kept.look(result(part.index), part.values, as_written(part.index))
        seen += part.values.numel()
        if seen >= max_elements:
            break
    return kept
