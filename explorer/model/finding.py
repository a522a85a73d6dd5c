"""The record of a finding: where a kernel's bytes differ from what was expected, and why."""

from dataclasses import dataclass
from enum import StrEnum

EXPLAINED_SHARE = 0.05
"""A cause accounts for a difference if what is left is below this share of the kernel's traffic."""


class FindingKind(StrEnum):
    """What makes the difference; the value is the word shown."""

    EXTRA_BUFFER = "extra buffer"
    """A tensor that the chain does not ask for."""
    SPLIT_GROUP = "several kernels"
    """A group became several launches: what they pass on goes through memory."""
    REREAD = "read again"
    """A broadcast operand that is fetched once a repeat instead of once."""
    SECOND_PASS = "second pass"
    """A kernel goes through its input twice, or reads back what it stored."""
    SPILLED = "spilled"
    """Registers that did not suffice."""
    FROM_L2 = "served by L2"
    """Reads that never reached memory."""
    LATE_WRITE = "late write"
    """Writes that leave L2 while another launch runs."""
    HELPER = "helper"
    """A launch that the chain as written does not ask for."""
    UNEXPLAINED = "unexplained"
    """Bytes of unknown cause."""


class Step(StrEnum):
    """Between which two numbers the difference lies."""

    PLAN_TO_MODEL = "planned → modelled"
    MODEL_TO_COUNT = "modelled → counted"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a finding rests on.

    Attributes:
        what: Where it was seen: ``argument``, ``counter``, ``generated code, line 66``.
        text: What was seen there.
        is_code: The text is a line of code, to be shown as it is.
    """

    what: str
    text: str
    is_code: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause of a difference.

    Attributes:
        kind: What it is.
        step: Which difference it belongs to.
        n_bytes: Its bytes; negative where fewer moved than expected.
        sentence: For a learner, with the numbers.
        short: A few words without the kernel's name: ``writes 2.15 GB of random numbers``.
        launch: Index of the launch, None where it is a whole group's.
        ops: The ops of the launch or group.
        evidence: What it rests on.
    """

    kind: FindingKind
    step: Step
    n_bytes: int
    sentence: str
    short: str
    launch: int | None = None
    ops: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
