"""Whether a run from a file can have come of a measurement, beyond having the right types.

Views divide, scale and add up what they are given; what would make them stumble or lie is found
here, where the file can still be named.
"""

import dataclasses

from explorer.model.references import reference_fault
from explorer.model.run import Run

MOST_CHARACTERS = 200_000
"""Of a strategy's texts: more than Linux takes in one argument of a command line."""
_MAY_BE_NEGATIVE = {"parameters", "expected", "observed", "temperature_c", "stream"}
"""Fields that are no quantity of bytes, time or things."""


def first_fault(run: Run) -> str | None:
    """Say what is wrong with a run, or None if nothing is found."""
    negative = _first_negative(run, "")
    if negative:
        return f"{negative} is negative"
    return _too_long(run) or reference_fault(run)


def _too_long(run: Run) -> str | None:
    """A text that is shown in one line, and could not be."""
    for field in dataclasses.fields(run.strategy):
        text = getattr(run.strategy, field.name) or ""
        if len(text) > MOST_CHARACTERS:
            return f"strategy.{field.name} has {len(text):,} characters"
    return None


def _first_negative(value: object, where: str) -> str | None:
    """The path of the first negative number."""
    if isinstance(value, int | float):
        return where if value < 0 else None
    for path, item in _parts(value, where):
        found = _first_negative(item, path)
        if found is not None:
            return found
    return None


def _parts(value: object, where: str) -> list[tuple[str, object]]:
    if dataclasses.is_dataclass(value):
        dot = "." if where else ""
        return [
            (f"{where}{dot}{field.name}", getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.name not in _MAY_BE_NEGATIVE
        ]
    if isinstance(value, tuple):
        return [(f"{where}[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, dict):
        return [(f"{where}.{key}", item) for key, item in value.items()]
    return []
