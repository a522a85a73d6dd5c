"""How far a result may lie from the reference: the one rule, for values and for what is kept."""

import torch


def allowed_error(eager_max_abs: float | None, largest: float, dtype: torch.dtype) -> float:
    """Twice eager's own error, plus what one rounding of the largest value is worth.

    Args:
        eager_max_abs: Eager's own error; None if its result is not finite, which excuses nothing.
        largest: The largest absolute value of the reference.
        dtype: Of the chain.
    """
    info = torch.finfo(dtype)
    # Below the least normal number all numbers are one step apart.
    rounding = info.eps * max(largest, info.smallest_normal)
    return 2.0 * (eager_max_abs or 0.0) + rounding
