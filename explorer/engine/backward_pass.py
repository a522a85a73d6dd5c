"""Whether a backward pass runs at the moment, for those who watch a call from inside.

Autograd may run it in a thread of its own, so that neither frames nor context variables tell.
"""

from collections.abc import Iterator
from contextlib import contextmanager

_running = [False]


def is_running() -> bool:
    """Whether a call is between the beginning and the end of its backward pass."""
    return _running[0]


@contextmanager
def running() -> Iterator[None]:
    """Say so of what happens inside the ``with`` block; there is one call at a time."""
    _running[0] = True
    try:
        yield
    finally:
        _running[0] = False
