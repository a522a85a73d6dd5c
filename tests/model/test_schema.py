"""Version 1 of the saved form of a run, field by field: scripts and old files rely on it.

A renamed or removed field, another type, or a new field without a default fails here. A new field
with a default is no break; it gets its line in ``schema_v1.txt``.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from explorer.model.codec import to_plain
from explorer.model.run import Run
from explorer.recording import VERSION
from tests.fixtures_runs import all_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA = Path(__file__).with_name("schema_v1.txt")
DATA_KEYED = {"parameters", "flops_per_s", "cold_s", "cached_s", "code"}
"""Objects whose keys are data and no fields."""


def lines_of(record: type[Any], where: str = "") -> Iterator[str]:
    """``path: what JSON holds there``, a line a field, those inside a record after it."""
    hints = typing.get_type_hints(record)
    for field in dataclasses.fields(record):
        path = f"{where}.{field.name}" if where else field.name
        has_default = (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
        kind, suffix, inner = described(hints[field.name])
        yield f"{path}{suffix}: {kind}{'' if has_default else ', required'}"
        if inner is not None:
            yield from lines_of(inner, f"{path}{suffix}")


def described(annotation: Any) -> tuple[str, str, type[Any] | None]:
    """What JSON holds in the place of an annotation, the path's suffix, and the record inside."""
    origin, options = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        named = [described(option) for option in options if option is not type(None)]
        kind = " or ".join(sorted({kind for kind, _, _ in named}))
        null = " or null" if type(None) in options else ""
        return f"{kind}{null}", named[0][1], named[0][2]
    if origin is tuple:
        kind, suffix, inner = described(options[0])
        return f"list of {kind}", f"[]{suffix}", inner
    if origin is dict:
        kind, suffix, inner = described(options[1])
        return f"object of {kind}", f".*{suffix}", inner
    if dataclasses.is_dataclass(annotation):
        return "record", "", typing.cast("type[Any]", annotation)
    if issubclass(annotation, Enum):
        return "one of " + " ".join(sorted(str(member.value) for member in annotation)), "", None
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names[annotation], "", None


def test_the_fields_of_version_1_are_as_they_were() -> None:
    assert VERSION == 1
    assert list(lines_of(Run)) == SCHEMA.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "path",
    [
        # As design and scripts spell them.
        "chain.name", "chain.parameters.*", "chain.dtype", "chain.direction", "chain.source",
        "strategy.name", "strategy.option", "strategy.plan", "device.name", "device.kind",
        "device.ceilings", "device.l2_bytes", "device.sm_count", "device.driver",
        "clocks_before", "clocks_after", "versions.torch", "versions.triton", "versions.python",
        "versions.explorer", "seed", "created_at", "warnings[]", "error",
        "graph.ops[].kind", "graph.ops[].flops", "graph.ops[].source_line",
        "graph.tensors[].shape[]", "graph.tensors[].dtype", "graph.tensors[].n_bytes",
        "launches[].kernel", "launches[].title", "launches[].ops[]", "launches[].accesses[].tensor",
        *(
            f"launches[].bytes_{way}.{pedigree}"
            for way in ("read", "written")
            for pedigree in ("planned", "modelled", "counted", "sampled")
        ),
        "launches[].start_us", "launches[].duration_us", "launches[].stream", "launches[].grid[]",
        "launches[].block[]", "launches[].registers", "launches[].shared_bytes", "launches[].code",
        "timing.cold.samples_us[]", "timing.cold.median_us", "timing.cold.n", "timing.warm",
        "timing.graph", "timing.host", "timing.clocks[].throttle_reasons[]",
        "memory.peak_bytes", "memory.intermediates", "memory.intermediate_bytes",
        "memory.graph_pool_bytes", "compile.cold_s.*", "compile.cached_s.*",
        "compile.graph_breaks[].place", "compile.graph_breaks[].reason", "compile.recompiles[]",
        "compile.refusals[].sentence", "compile.calls_to_pay_back", "accuracy.max_abs_error",
        "accuracy.eager_max_abs_error", "accuracy.distribution[].observed", "heartbeat.time_us[]",
        "heartbeat.bytes_read[]", "heartbeat.bytes_written[]", "code.*",
    ],
)  # fmt: skip
def test_what_a_run_has_to_hold_has_its_place(path: str) -> None:
    assert path in {line.partition(":")[0] for line in lines_of(Run)}


def test_what_is_printed_is_what_is_described() -> None:
    paths = {line.partition(":")[0] for line in lines_of(Run)}
    # A list that is not there is null.
    paths |= {path.removesuffix("[]") for path in paths}
    for run in all_runs():
        assert set(paths_in(to_plain(run))) <= paths


def paths_in(plain: object, where: str = "") -> Iterator[str]:
    """The paths of a printed run; keys that are data stand as ``*``."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            is_data = where.rpartition(".")[2] in DATA_KEYED
            yield from paths_in(value, f"{where}.{'*' if is_data else key}".lstrip("."))
    elif isinstance(plain, list):
        for item in plain:
            yield from paths_in(item, f"{where}[]")
    else:
        yield where
