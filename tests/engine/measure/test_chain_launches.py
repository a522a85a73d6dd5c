"""The launches of the deterministic chains on a CPU: ops, tensors and bytes counted by hand."""

import pytest
import torch

from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import find_strategy
from explorer.model.fusion import all_in_one, each_alone
from explorer.model.planned import planned_bytes
from explorer.model.run import Launch, StrategyInfo
from explorer.model.tensor import TensorRole

ROWS, COLUMNS, ELEMENTS, K = 16, 128, 4096, 9
# fp32: 4 bytes an element.
WHOLE = ROWS * COLUMNS * 4
COLUMN = ROWS * 4
ROW = COLUMNS * 4
FLAT = ELEMENTS * 4
BATCH, HEADS, SEQ, DIM = 2, 3, 16, 32
TURNED, TABLE = BATCH * HEADS * SEQ * DIM * 4, SEQ * DIM * 4
TARGETS = ROWS * 8
SETTINGS: dict[str, dict[str, object]] = {
    "rmsnorm": {"rows": ROWS, "columns": COLUMNS},
    "residual-rmsnorm": {"rows": ROWS, "columns": COLUMNS},
    "layernorm": {"rows": ROWS, "columns": COLUMNS},
    "residual-layernorm": {"rows": ROWS, "columns": COLUMNS},
    "layernorm-gelu": {"rows": ROWS, "columns": COLUMNS},
    "bias-gelu": {"rows": ROWS, "columns": COLUMNS},
    "swiglu": {"rows": ROWS, "columns": COLUMNS},
    "geglu": {"rows": ROWS, "columns": COLUMNS},
    "rotary": {"batch": BATCH, "heads": HEADS, "seq_len": SEQ, "head_dim": DIM},
    "cross-entropy": {"rows": ROWS, "vocabulary": COLUMNS},
    "adam": {"elements": ELEMENTS},
    "elementwise": {"elements": ELEMENTS, "k": K},
}
NORMALIZING = [
    (WHOLE, WHOLE), (WHOLE, COLUMN), (COLUMN, COLUMN), (COLUMN, COLUMN),
    (WHOLE + COLUMN, WHOLE), (WHOLE + ROW, WHOLE),
]  # fmt: skip
CENTERING = [
    (WHOLE, COLUMN), (WHOLE + COLUMN, WHOLE), (WHOLE, WHOLE), (WHOLE, COLUMN), (COLUMN, COLUMN),
    (COLUMN, COLUMN), (WHOLE + COLUMN, WHOLE), (WHOLE + ROW, WHOLE), (WHOLE + ROW, WHOLE),
]  # fmt: skip
EAGER_BYTES: dict[str, list[tuple[int, int]]] = {
    "rmsnorm": NORMALIZING,
    "residual-rmsnorm": [(2 * WHOLE, WHOLE), *NORMALIZING],
    "layernorm": CENTERING,
    "residual-layernorm": [(2 * WHOLE, WHOLE), *CENTERING],
    # LayerNorm writes each row's mean and the inverse of its deviation as well.
    "layernorm-gelu": [(WHOLE + 2 * ROW, WHOLE + 2 * COLUMN), (WHOLE, WHOLE)],
    "bias-gelu": [(WHOLE + ROW, WHOLE), (WHOLE, WHOLE)],
    "swiglu": [(WHOLE, WHOLE), (2 * WHOLE, WHOLE)],
    "geglu": [(WHOLE, WHOLE), (2 * WHOLE, WHOLE)],
    # Each half of x is read for itself.
    "rotary": [
        (TURNED + TABLE, TURNED), (TURNED // 2, TURNED // 2), (TURNED, TURNED),
        (TURNED + TABLE, TURNED), (2 * TURNED, TURNED),
    ],
    # One logit a row is picked, by an index of 8 bytes; the loss is one number.
    "cross-entropy": [
        (WHOLE, COLUMN), (WHOLE + COLUMN, WHOLE), (WHOLE, WHOLE), (WHOLE, COLUMN),
        (COLUMN, COLUMN), (COLUMN + TARGETS, COLUMN), (2 * COLUMN, COLUMN), (COLUMN, 4),
    ],
    "adam": [(n * FLAT, FLAT) for n in (2, 1, 2, 1, 1, 1, 3)],
    "elementwise": [(FLAT, FLAT)] * K,
}  # fmt: skip
"""Read and written by each op alone."""
ALIKE = ("layernorm", "residual-layernorm", "bias-gelu", "geglu")
"""Chains that a compiler sees little new in beside the others."""
EVERY_CHAIN = pytest.mark.parametrize("chain", SETTINGS)


def record(prepared: Prepared, spec: str) -> LaunchRecord:
    with observing_compilation() as observation:
        built = find_strategy(spec).build(prepared)
    found = record_launches(
        built.call,
        prepared=prepared,
        strategy=StrategyInfo(name=spec),
        counters=None,
        observation=observation if spec == "compile" else None,
    )
    built.close()
    return found


def small(chain: str) -> Prepared:
    return prepare(chain, SETTINGS[chain], torch.device("cpu"))


def accesses(launch: Launch) -> dict[str, tuple[int, int]]:
    return {a.tensor: (a.bytes_read, a.bytes_written) for a in launch.accesses}


def check_names(found: LaunchRecord, prepared: Prepared) -> None:
    """Every tensor is one of the chain's, or something that an op of the chain makes inside."""
    known = {tensor.id for tensor in prepared.graph.tensors}
    ops = {op.name for op in prepared.graph.ops}
    for tensor in found.tensors:
        made_inside = tensor.role is TensorRole.WORKSPACE and tensor.id.partition(":")[0] in ops
        assert tensor.id in known or made_inside, tensor.id
    on_chip = {name for launch in found.launches for name in launch.stays_on_chip}
    assert on_chip <= known - {tensor.id for tensor in found.tensors}


@EVERY_CHAIN
def test_eager_launches_one_kernel_an_op_with_the_bytes_counted_by_hand(chain: str) -> None:
    prepared = small(chain)
    found = record(prepared, "eager")
    ops = [op.name for op in prepared.graph.ops]
    assert [(launch.title, launch.ops) for launch in found.launches] == [(o, (o,)) for o in ops]
    moved = [(x.bytes_read.modelled, x.bytes_written.modelled) for x in found.launches]
    assert moved == EAGER_BYTES[chain]
    for launch, op in zip(found.launches, prepared.graph.ops, strict=True):
        assert set(accesses(launch)) == {*op.reads, *op.writes}
    check_names(found, prepared)
    assert found.warnings == ()
    # The plan of one op a kernel foresees the same, but for what LayerNorm writes unused.
    unused = 2 * COLUMN if chain == "layernorm-gelu" else 0
    read, written = planned_bytes(prepared.graph, each_alone(ops))
    assert (read, written + unused) == tuple(map(sum, zip(*moved, strict=True)))


@pytest.mark.parametrize(
    "chain",
    [pytest.param(chain, marks=[pytest.mark.slow] if chain in ALIKE else []) for chain in SETTINGS],
)
def test_compiled_launches_carry_out_every_op_on_named_tensors(chain: str) -> None:
    prepared = small(chain)
    found = record(prepared, "compile")
    carried = [op for launch in found.launches for op in launch.ops]
    assert carried == [op.name for op in prepared.graph.ops]
    check_names(found, prepared)
    assert found.warnings == ()
    ends = {t.id for t in prepared.graph.tensors if t.role is TensorRole.OUTPUT}
    written = {a.tensor for x in found.launches for a in x.accesses if a.bytes_written}
    assert ends | set(prepared.updated) <= written


@pytest.mark.parametrize("chain", ["swiglu", "adam", "elementwise"])
def test_elementwise_chains_become_one_kernel_with_the_bytes_of_the_plan(chain: str) -> None:
    prepared = small(chain)
    [fused] = record(prepared, "compile").launches
    plan = all_in_one([op.name for op in prepared.graph.ops])
    moved = (fused.bytes_read.modelled, fused.bytes_written.modelled)
    assert moved == planned_bytes(prepared.graph, plan)
    if chain == "adam":
        assert accesses(fused) == {
            "m": (FLAT, FLAT), "g": (FLAT, 0), "v": (FLAT, FLAT), "p": (FLAT, FLAT),
        }  # fmt: skip
        assert fused.stays_on_chip == ("root_v", "corrected", "denominator")
