"""What the benchmark prints: one line a figure, with what was asked of it."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the table.

    Attributes:
        what: What was timed.
        median_ms: Typical.
        worst_ms: The 95th percentile, or the largest where ``is_largest``.
        n: How often.
        limit_ms: What it should stay under; None where nothing was asked.
        is_largest: Whether ``worst_ms`` is the largest of all.
    """

    what: str
    median_ms: float
    worst_ms: float
    n: int
    limit_ms: float | None = None
    is_largest: bool = False

    @classmethod
    def of(cls, what: str, times_ms: Sequence[float], limit_ms: float | None = None) -> "Figure":
        """Median and 95th percentile of samples."""
        ordered = sorted(times_ms)
        return cls(
            what=what,
            median_ms=statistics.median(ordered),
            worst_ms=ordered[min(round(0.95 * len(ordered)), len(ordered) - 1)],
            n=len(ordered),
            limit_ms=limit_ms,
        )

    @classmethod
    def largest(cls, what: str, times_ms: Sequence[float], limit_ms: float) -> "Figure":
        """Median of samples, and the largest, which is what the limit is for."""
        return cls(
            what=what,
            median_ms=statistics.median(times_ms),
            worst_ms=max(times_ms),
            n=len(times_ms),
            limit_ms=limit_ms,
            is_largest=True,
        )


def timed(function: Callable[[T], object], arguments: Sequence[T]) -> list[float]:
    """Milliseconds of each call."""
    times_ms = []
    for argument in arguments:
        begun = time.perf_counter()
        function(argument)
        times_ms.append((time.perf_counter() - begun) * 1e3)
    return times_ms


def as_table(figures: Sequence[Figure]) -> str:
    """The figures in columns, with what was asked and whether it holds."""
    width = max(len(figure.what) for figure in figures)
    lines = [f"{'':{width}}  {'median':>10}  {'p95':>10}  {'n':>6}  {'asked':>9}"]
    for figure in figures:
        asked = "" if figure.limit_ms is None else f"< {figure.limit_ms:.0f} ms"
        judged = figure.worst_ms if figure.is_largest else figure.median_ms
        verdict = "" if figure.limit_ms is None else "ok" if judged < figure.limit_ms else "OVER"
        worst = f"{figure.worst_ms:.1f} ms" + (" max" if figure.is_largest else "")
        lines.append(
            f"{figure.what:{width}}  {figure.median_ms:>7.1f} ms  {worst:>10}  {figure.n:>6}  "
            f"{asked:>9}  {verdict}"
        )
    return "\n".join(lines) + "\n"
