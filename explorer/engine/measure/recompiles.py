"""Which guards of compiled code fail while it is measured, so that torch compiles it anew.

Code that changes a Python number with each call never runs twice as it was compiled, and after a
few times torch leaves it uncompiled: what is measured then is not what the strategy's name says.
"""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from explorer.engine.trace_log import hearing

_RECOMPILED = "recompile_reasons"
_COMMENT = re.compile(r"\s{2,}#.*", re.DOTALL)
_NUMBER = re.compile(r"^\d+/\d+: ")


@contextmanager
def watching_recompiles() -> Iterator[list[str]]:
    """List the guards that fail inside the ``with`` block: one for each time, as torch has it."""
    guards: list[str] = []
    with hearing(_RECOMPILED, lambda payload: guards.append(_guard(payload))):
        yield guards


def recompile_doubts(guards: Sequence[str]) -> tuple[str, ...]:
    """A sentence about code that was compiled anew while it was measured.

    Args:
        guards: Those that failed.
    """
    if not guards:
        return ()
    return (
        f"torch compiled the code anew while it was measured ({len(guards)}×), as this no longer "
        f"held: {guards[-1]}; it gives up after a few times and runs the code uncompiled. So the "
        "times are not those of compiled code: keep what changes with each call in a tensor.",
    )


def _guard(payload: str) -> str:
    """The newest of the guards that failed, without its number and the line that it comes from."""
    try:
        said = json.loads(payload)
    except ValueError:
        said = payload
    first = str(said[0] if isinstance(said, list) and said else said)
    return _NUMBER.sub("", _COMMENT.sub("", first)).strip()
