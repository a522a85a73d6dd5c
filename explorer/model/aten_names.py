"""Ops named by their ATen operators, for code that has no names of its own for them.

The rule: the operator's name without its overload and without leading underscores
(``aten._softmax.default`` is ``softmax``); repeats are numbered from 2 (``mul``, ``mul2``). A text
may write the underscores or leave them out.
"""

from collections.abc import Sequence

from explorer.model.errors import UsageError
from explorer.model.fusion import ALL, BETWEEN, EACH, WITHIN, FusionPlan, parse_plan


def operator_name(overload: str) -> str:
    """``aten._softmax.default`` -> ``softmax``; what is no overload is kept but for dots."""
    parts = overload.split(".")
    name = parts[1] if len(parts) > 2 else parts[-1]
    return name.lstrip("_") or name


def aten_names(overloads: Sequence[str]) -> tuple[str, ...]:
    """A name for each op, different from all others.

    Args:
        overloads: Of a graph's ops in order, as ``aten.mul.Tensor``.
    """
    plain = [operator_name(overload) for overload in overloads]
    # An operator may be called what another's repeat would be: log2 is one, and the second log.
    taken = set(plain)
    found: list[str] = []
    for name in plain:
        number, unique = 1, name
        while unique in found or (number > 1 and unique in taken):
            number += 1
            unique = f"{name}{number}"
        found.append(unique)
    return tuple(found)


def parse_aten_plan(text: str, names: Sequence[str], where: str) -> FusionPlan:
    """Read a plan in ATen names.

    Args:
        text: ``mul+add|_softmax``; underscores in front of a name may be left out.
        names: Of the graph's ops, from :func:`aten_names`.
        where: What the graph is called, for the sentence that refuses a text.

    Raises:
        UsageError: An op is unknown or named twice, or a name is missing.
    """
    if text.strip() in (EACH, ALL):
        return parse_plan(text, names, where)
    return parse_plan(
        BETWEEN.join(
            WITHIN.join(_stripped(name) for name in group.split(WITHIN))
            for group in text.split(BETWEEN)
        ),
        names,
        where,
    )


def check_aten_plan(text: str) -> None:
    """Read a plan as far as that goes without a graph.

    Raises:
        UsageError: An op is named twice, or a name is missing.
    """
    signs = text.replace(BETWEEN, WITHIN).split(WITHIN)
    named = dict.fromkeys(stripped for sign in signs if (stripped := _stripped(sign)))
    parse_aten_plan(text, tuple(named), "The program")


def in_aten_names(plan: FusionPlan, ops: Sequence[str], overloads: Sequence[str]) -> FusionPlan:
    """A chain's plan in ATen names.

    Args:
        plan: In the chain's own names.
        ops: Those names, in the chain's order.
        overloads: The operator of each.

    Raises:
        UsageError: The plan names an op that the chain does not have.
    """
    renamed = dict(zip(ops, aten_names(overloads), strict=True))
    missing = [op for group in plan.groups for op in group if op not in renamed]
    if missing:
        raise UsageError(f"The plan names {missing[0]!r}, which is not among {', '.join(ops)}.")
    return FusionPlan(tuple(tuple(renamed[op] for op in group) for group in plan.groups))


def _stripped(name: str) -> str:
    return name.strip().lstrip("_")
