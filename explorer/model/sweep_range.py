"""The values that a parameter sweep goes over, as text and as points: requests, one a value.

``lo:hi:xF`` multiplies, ``lo:hi:+S`` adds, ``a,b,c`` lists; a parameter that is a choice takes a
list only. Nothing here knows a chain: what a value may be, the parameter says.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol

from explorer.model.errors import UsageError
from explorer.model.messages import RunRequest
from explorer.model.run import Scalar

MOST_POINTS = 64
POINT_TIMING_S = 0.3
"""Seconds spent timing each strategy at a point; a sweep has many."""
FORMS = "lo:hi:x2 to multiply, lo:hi:+512 to add, or a list such as 512,1024,4096"

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?"
_RANGE = re.compile(rf"({_NUMBER}):({_NUMBER}):([x×*+])({_NUMBER})")


class SweptParameter(Protocol):
    """What a sweep has to know of a chain's parameter."""

    @property
    def name(self) -> str:
        """As in ``--set name=value``."""

    @property
    def kind(self) -> str:
        """``int``, ``float`` or ``choice``."""

    @property
    def range_text(self) -> str:
        """The values it takes, in words."""

    def parse(self, value: object) -> Scalar:
        """Check a value.

        Raises:
            UsageError: It has another type or lies outside the range.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRange:
    """What is to be swept, as written.

    Attributes:
        name: Of the parameter.
        text: The range or the list.
    """

    name: str
    text: str

    def values(self, parameter: SweptParameter) -> tuple[Scalar, ...]:
        """Write the range out, checked against the parameter.

        Args:
            parameter: The chain's, of that name.

        Returns:
            The values in the order in which they are run: as listed, or from the smallest on.

        Raises:
            UsageError: The text cannot be read, a value is out of range or named twice, or there
                are more than :data:`MOST_POINTS`.
        """
        values = tuple(parameter.parse(text) for text in self._texts(parameter))
        if len(values) > MOST_POINTS:
            raise UsageError(
                f"{self.name}={self.text} has {len(values)} points and a sweep takes at most "
                f"{MOST_POINTS}; leave some out."
            )
        twice = next((value for i, value in enumerate(values) if value in values[:i]), None)
        if twice is not None:
            raise UsageError(f"{self.name}={self.text} names {twice} twice; leave one out.")
        return values

    def _texts(self, parameter: SweptParameter) -> Sequence[str]:
        if ":" not in self.text:
            texts = [part.strip() for part in self.text.split(",")]
            if not all(texts):
                raise UsageError(
                    f"{self.name}={self.text} lacks a value between its commas; write it as "
                    f"{self.name}=a,b,c."
                )
            return texts
        if parameter.kind == "choice":
            raise UsageError(
                f"{self.name}={self.text} is a range and {self.name} is no number; list some of "
                f"{parameter.range_text} with commas between."
            )
        return self._written_out(parameter)

    def _written_out(self, parameter: SweptParameter) -> Sequence[str]:
        found = _RANGE.fullmatch(self.text.replace(" ", ""))
        if found is None:
            raise UsageError(f"{self.name}={self.text} is no range; write it as {FORMS}.")
        first, last, sign, step_text = found.groups()
        # The parameter's own words for an end that it does not take.
        for end in (first, last):
            parameter.parse(end)
        low, high, step = Decimal(first), Decimal(last), Decimal(step_text)
        if low > high:
            raise UsageError(
                f"{self.name}={self.text} ends below its start; write the smaller value first."
            )
        if sign == "+":
            self._check(step > 0, "adds nothing", "take a step above 0")
            return self._whole(parameter, _added(low, high, step))
        self._check(step > 1, "does not grow", "take a factor above 1, as in x2")
        self._check(low > 0, "cannot grow by a factor", "start above 0, or add: lo:hi:+1")
        return self._whole(parameter, _multiplied(low, high, step))

    def _check(self, holds: bool, fault: str, remedy: str) -> None:
        if not holds:
            raise UsageError(f"{self.name}={self.text} {fault}; {remedy}.")

    def _whole(self, parameter: SweptParameter, values: list[Decimal]) -> list[str]:
        """The values as text, refused where there are too many or they are not whole."""
        if len(values) > MOST_POINTS:
            raise UsageError(
                f"{self.name}={self.text} has more than {MOST_POINTS} points; take a larger step "
                "or a smaller range."
            )
        for value in values:
            if parameter.kind == "int" and value != value.to_integral_value():
                raise UsageError(
                    f"{self.name}={self.text} comes to {value.normalize():f} and takes whole "
                    "numbers; take another step, or list the values."
                )
        return [f"{value:f}" for value in values]


def parse_sweep(text: str) -> SweepRange:
    """Read what follows ``--sweep``: ``seq_len=512:8192:x2``, ``dtype=fp32,bf16``.

    Raises:
        UsageError: It has no name or no values; whether they make sense, the parameter says.
    """
    name, equals, values = text.partition("=")
    name, values = name.strip(), values.strip()
    if not equals or not name or not values:
        raise UsageError(f"{text!r} is no sweep; write NAME=RANGE with a range as {FORMS}.")
    return SweepRange(name=name, text=values)


def points(
    request: RunRequest, name: str, values: Sequence[Scalar], timing_s: float = POINT_TIMING_S
) -> tuple[RunRequest, ...]:
    """The requests of a sweep, in the order in which they are run.

    Args:
        request: What all points have in common; its strategies are run at every point.
        name: Of the swept parameter.
        values: Of it, one a point.
        timing_s: Seconds spent timing each strategy at a point.
    """
    return tuple(
        replace(
            request,
            parameters={**request.parameters, name: value},
            swept=name,
            timing_s=timing_s,
        )
        for value in values
    )


def pinned(request: RunRequest, parameters: Mapping[str, Scalar]) -> RunRequest:
    """A later point of a sweep with the defaults that an earlier one took.

    A default that was lowered at one point, so that it fits, would make the next one another
    chain's.

    Args:
        request: The later point.
        parameters: All of the earlier point's run.
    """
    return replace(request, parameters={**parameters, **request.parameters})


def _added(low: Decimal, high: Decimal, step: Decimal) -> list[Decimal]:
    count = min(MOST_POINTS, math.floor((high - low) / step))
    return [low + place * step for place in range(count + 1)]


def _multiplied(low: Decimal, high: Decimal, factor: Decimal) -> list[Decimal]:
    values = [low]
    # So large a factor that it has no end is past the range at once.
    while len(values) <= MOST_POINTS and factor <= high / values[-1]:
        values.append(values[-1] * factor)
    return values
