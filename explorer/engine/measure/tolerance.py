"""How far a result lies from the reference, and may: one rule, for values and for what is kept."""

import torch


def largest_abs(values: torch.Tensor) -> float:
    """The largest absolute value, NaN if there is one; in one pass, and without a copy.

    0 where there is no value.
    """
    if not values.numel():
        return 0.0
    low, high = values.aminmax()
    return float(torch.maximum(-low, high))


def as_numbers(values: torch.Tensor) -> torch.Tensor:
    """What can be subtracted and compared: a complex number is two, True is 1, fp8 is widened."""
    if values.is_complex():
        return torch.view_as_real(values.resolve_conj())
    if values.is_floating_point() and values.dtype.itemsize == 1:
        return values.float()
    return values.to(torch.uint8) if values.dtype is torch.bool else values


def allowed_error(
    eager_max_abs: float | None, largest: float, dtype: torch.dtype, eps: float | None = None
) -> float:
    """Twice eager's own error, plus what one rounding of the largest value is worth.

    Args:
        eager_max_abs: Eager's own error; None if its result is not finite, which excuses nothing.
        largest: The largest absolute value of the reference.
        dtype: That the chain's tensors are stored in.
        eps: What a rounding is worth, as a share of the value, where the chain computes in less
            than it stores.
    """
    info = torch.finfo(dtype)
    # Below the least normal number all numbers are one step apart.
    rounding = (eps or info.eps) * max(largest, info.smallest_normal)
    return 2.0 * (eager_max_abs or 0.0) + rounding
