"""Settings of torch that code which is run may change, and that hold for the whole process."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def keeping_torchs_settings() -> Iterator[None]:
    """Put back, behind the ``with`` block, what somebody's code changed for all code after it."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    has_gradients = torch.is_grad_enabled()
    n_threads = torch.get_num_threads()
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(None if device == torch.device("cpu") else device)
        torch.set_grad_enabled(has_gradients)
        if torch.get_num_threads() != n_threads:
            torch.set_num_threads(n_threads)
        torch.use_deterministic_algorithms(is_deterministic)
