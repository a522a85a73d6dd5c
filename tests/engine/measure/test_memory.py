"""Peak memory on a CPU against hand counts, and the count of intermediates."""

import torch

from explorer.engine.measure.memory import measure_peak, running_peak

CPU = torch.device("cpu")
N_BYTES = 4 << 20


def peak_of(work: object) -> int:
    assert callable(work)
    return measure_peak(work, device=CPU).peak_bytes


def test_the_peak_is_what_is_held_at_once() -> None:
    x = torch.ones(N_BYTES // 4)

    def three_at_once() -> torch.Tensor:
        a = x + 1
        b = a + 1
        return a + b

    def two_at_once() -> torch.Tensor:
        a = x + 1
        a = a + 1
        return a + 1

    # Scalars of the arithmetic are a few bytes.
    assert 0 <= peak_of(three_at_once) - 3 * N_BYTES < 64
    assert 0 <= peak_of(two_at_once) - 2 * N_BYTES < 64


def test_work_in_place_holds_nothing() -> None:
    x = torch.ones(N_BYTES // 4)
    assert peak_of(lambda: x.mul_(2)) < 64


def test_frees_lower_the_running_sum() -> None:
    assert running_peak([5, -5, 3, 4, -3]) == 7
    assert running_peak([]) == 0
