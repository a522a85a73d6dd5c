"""What a chain is to a person: parameters with ranges, and its ops by the names a learner uses."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, cast

from explorer.model.device import DeviceKind
from explorer.model.errors import UsageError
from explorer.model.run import Scalar

NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""As JSON and most languages write one; Python alone would read 1_0 and other scripts' digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A setting of a chain.

    Attributes:
        name: As in ``--set name=value``.
        kind: ``int``, ``float`` or ``choice``.
        cuda_default: Default on a GPU.
        cpu_default: Default on a CPU, where the chain should finish in seconds.
        minimum: Smallest value of a number.
        maximum: Largest value of a number, itself allowed unless ``below_maximum``.
        below_maximum: The value must stay below ``maximum``.
        multiple_of: A whole number is a multiple of it.
        choices: The values of a choice.
        sentence: What it is.
    """

    name: str
    kind: Literal["int", "float", "choice"]
    cuda_default: Scalar
    cpu_default: Scalar
    sentence: str
    minimum: float = 0
    maximum: float = 0
    below_maximum: bool = False
    multiple_of: int = 1
    choices: tuple[str, ...] = ()

    def default(self, device: DeviceKind) -> Scalar:
        """The default on that kind of device."""
        return self.cuda_default if device is DeviceKind.CUDA else self.cpu_default

    @property
    def range_text(self) -> str:
        """The values it takes, in words."""
        if self.kind == "choice":
            return ", ".join(self.choices)
        below = "below " if self.below_maximum else ""
        multiples = f", multiples of {self.multiple_of}" if self.multiple_of > 1 else ""
        return f"{_plain(self.minimum)} to {below}{_plain(self.maximum)}{multiples}"

    def parse(self, value: object) -> Scalar:
        """Turn text or a JSON value into a value of this parameter.

        Raises:
            UsageError: It has another type or lies outside the range.
        """
        if self.kind == "choice":
            if value in self.choices:
                return str(value)
            raise UsageError(f"{self.name}={value} is not one of {self.range_text}.")
        number = self._number(value)
        too_large = number >= self.maximum if self.below_maximum else number > self.maximum
        is_between = self.kind == "int" and number % self.multiple_of != 0
        if not self.minimum <= number or too_large or is_between:
            raise UsageError(f"{self.name}={value} is out of range: it takes {self.range_text}.")
        return int(number) if self.kind == "int" else number

    def _number(self, value: object) -> float:
        word = "a whole number" if self.kind == "int" else "a number"
        complaint = UsageError(f"{self.name}={value} is not {word}; it takes {self.range_text}.")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise complaint
        if isinstance(value, str) and re.fullmatch(NUMBER, value.strip()) is None:
            raise complaint
        number = float(value)
        if not math.isfinite(number) or (self.kind == "int" and number != int(number)):
            raise complaint
        return number


def _plain(number: float) -> str:
    return f"{int(number):,}" if number == int(number) else f"{number:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpName:
    """An op of a chain.

    Attributes:
        name: What a learner would say.
        detail: A few words beside it, empty if there is nothing to add.
        output: Name of the tensor it writes.
        in_place: That tensor is an input of the chain, which the op updates.
        more_outputs: Names of the further tensors that it writes, of an op over a list of them.
    """

    name: str
    detail: str
    output: str
    in_place: bool = False
    more_outputs: tuple[str, ...] = ()

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of all the tensors that it writes."""
        return (self.output, *self.more_outputs)


class Family(StrEnum):
    """What a chain is about: chains are picked from a list grouped by it, in this order."""

    ATTENTION = "attention"
    NORMALISATION = "normalisation"
    ACTIVATIONS = "gates and activations"
    MATMUL = "matmul"
    LOSSES = "losses"
    OPTIMIZERS = "optimizers"
    BLOCKS = "whole blocks"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A built-in chain.

    Attributes:
        id: As on the command line.
        title: As in the window.
        family: What it is about, for lists.
        look_at: One sentence on what to look at.
        formula: In plain text.
        parameters: In the order they are shown.
        all_ops: Every op the chain can have, in order; see :meth:`ops`.
        skipped_ops: Ops that a parameter's value takes out: ``(parameter, value, op)``.
        length_parameter: The parameter that says how many of the ops, from the first on, there
            are; None where their number is fixed.
        ops_for: The ops with some parameters, of a chain that neither of these describes.
        is_attention: torch's attention operator computes it: the strategies of that apply.
        trains: It has a backward pass, and can run forward and backward.
        compared: The parameter whose values are the point: unless it is set, each of
            ``compared_values`` is run, side by side.
        compared_values: Of that parameter.
    """

    id: str
    title: str
    look_at: str
    formula: str
    parameters: tuple[Parameter, ...]
    all_ops: tuple[OpName, ...]
    skipped_ops: tuple[tuple[str, Scalar, str], ...] = ()
    length_parameter: str | None = None
    ops_for: Callable[[Mapping[str, Scalar]], tuple[OpName, ...]] | None = None
    is_attention: bool = False
    trains: bool = False
    compared: str | None = None
    compared_values: tuple[Scalar, ...] = ()
    family: Family = Family.OTHER

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of that name.

        Raises:
            UsageError: The chain has none.
        """
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        known = ", ".join(p.name for p in self.parameters)
        raise UsageError(f"{self.id} has no parameter {name!r}; it has {known}.")

    def resolve(self, settings: Mapping[str, object], device: DeviceKind) -> dict[str, Scalar]:
        """Check the settings and fill in the device's defaults.

        Raises:
            UsageError: A name is unknown or a value out of range.
        """
        values = {p.name: p.default(device) for p in self.parameters}
        for name, value in settings.items():
            values[name] = self.parameter(name).parse(value)
        return values

    def ops(self, parameters: Mapping[str, Scalar]) -> tuple[OpName, ...]:
        """The ops of the forward pass with these parameters, in order."""
        if self.ops_for is not None:
            return self.ops_for(parameters)
        skipped = {op for name, value, op in self.skipped_ops if parameters.get(name) == value}
        kept = tuple(op for op in self.all_ops if op.name not in skipped)
        if self.length_parameter is None:
            return kept
        return kept[: cast("int", parameters[self.length_parameter])]

    @property
    def deciding(self) -> frozenset[str]:
        """The parameters that decide which ops there are."""
        if self.ops_for is not None:
            return frozenset(parameter.name for parameter in self.parameters)
        by_length = () if self.length_parameter is None else (self.length_parameter,)
        return frozenset((*(name for name, _, _ in self.skipped_ops), *by_length))

    def _choice_with(self, op: str, parameters: Mapping[str, Scalar]) -> str:
        """The parameter of which another choice brings an op, empty if none does alone."""
        return next(
            (
                parameter.name
                for parameter in self.parameters
                for choice in parameter.choices
                if op in [each.name for each in self.ops({**parameters, parameter.name: choice})]
            ),
            "",
        )

    def check_has(self, names: Iterable[str], parameters: Mapping[str, Scalar]) -> None:
        """Make sure that no op of the chain is named that these parameters leave out.

        Args:
            names: Of ops; those that the chain never has are not looked at.
            parameters: All of the chain's.

        Raises:
            UsageError: One is; the sentence names the parameter.
        """
        ops = [op.name for op in self.ops(parameters)]
        left_out = {op.name for op in self.all_ops}.difference(ops)
        missing = next((name for name in names if name in left_out), None)
        if missing is None:
            return
        found = (name for name, _, op in self.skipped_ops if op == missing)
        cause = next(found, self.length_parameter) or self._choice_with(missing, parameters)
        raise UsageError(
            f"{self.id} has no op {missing!r} with {cause}={parameters.get(cause)}; "
            f"its ops are {', '.join(ops)}."
        )
