"""The chains around matmuls, the block and the optimizer's list: bytes by hand, other dtypes."""

from contextlib import closing

import pytest
import torch

from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.comparison import Comparison
from explorer.engine.dtypes import precision_of
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import find_strategy
from explorer.model.fusion import each_alone
from explorer.model.planned import planned_bytes
from explorer.model.run import Accuracy, Direction

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]

GPU = torch.device("cuda:0")
MATMULS: dict[str, object] = {"rows": 1024, "columns": 512, "features": 1024}
QKV: dict[str, object] = {"rows": 1024, "columns": 512}
BLOCK: dict[str, object] = {
    "batch": 2, "seq_len": 256, "hidden": 256, "heads": 4, "features": 688,
}  # fmt: skip
LIST: dict[str, object] = {"layers": 1, "hidden": 128}
CASES: dict[str, tuple[str, dict[str, object]]] = {
    "feed-forward-two": ("feed-forward", {**MATMULS, "projections": "two"}),
    "feed-forward-one": ("feed-forward", {**MATMULS, "projections": "one"}),
    "epilogue-gelu": ("matmul-epilogue", {**MATMULS, "activation": "gelu"}),
    "epilogue-silu": ("matmul-epilogue", {**MATMULS, "activation": "silu"}),
    "qkv-three": ("qkv", {**QKV, "projections": "three"}),
    "qkv-one": ("qkv", {**QKV, "projections": "one"}),
    "matmul": ("matmul", MATMULS),
    "matmul-one-row": ("matmul", {**MATMULS, "rows": 1}),
    "norm-bf16": ("rmsnorm-fp8", {**MATMULS, "dtype": "bf16"}),
    "norm-fp8-row": ("rmsnorm-fp8", {**MATMULS, "dtype": "fp8"}),
    "norm-fp8-fixed": ("rmsnorm-fp8", {**MATMULS, "dtype": "fp8", "scale": "fixed"}),
    "decoder-block": ("decoder-block", BLOCK),
    "adam-loop": ("adam-list", {**LIST, "implementation": "for-loop"}),
    "adam-foreach": ("adam-list", {**LIST, "implementation": "foreach"}),
}


def measured(
    name: str, spec: str, direction: Direction = Direction.FORWARD, **settings: object
) -> tuple[Prepared, LaunchRecord, Accuracy]:
    """Build a strategy, record its launches and compare its results."""
    chain, sizes = CASES[name]
    prepared = prepare(chain, {**sizes, **settings}, GPU, direction=direction)
    strategy = find_strategy(spec)
    with precision_of(prepared.parameters):
        comparison = Comparison(prepared, CHAIN_CODE[chain])
        comparison.measure_eager(whole=True)
        with observing_compilation() as observation:
            built = strategy.build(prepared)
        with closing(built):
            record = record_launches(
                built.call,
                prepared=prepared,
                strategy=strategy.info(built.backend),
                counters=None,
                observation=observation if strategy.compiles else None,
                library=built.library,
            )
            accuracy = comparison.judge(comparison.errors_as_built(built), ())
    return prepared, record, accuracy


def check(spec: str, prepared: Prepared, record: LaunchRecord, accuracy: Accuracy) -> None:
    carried = {op for launch in record.launches for op in launch.ops}
    ops = {op.name for op in prepared.graph.ops}
    # torch.compile may do with fewer: it knows attention as a whole, and what is computed twice.
    told = [(launch.title, launch.kernel[:60], launch.ops) for launch in record.launches]
    assert carried, told
    assert carried <= ops if spec == "compile" else carried == ops, (ops ^ carried, told)
    assert accuracy.passed, accuracy
    assert accuracy.coverage == 1.0


@pytest.mark.parametrize("spec", ["eager", "compile"])
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("feed-forward-two", "tf32"),
        ("qkv-one", "fp32"),
        ("decoder-block", "fp16"),
        ("epilogue-silu", "bf16"),
        ("norm-fp8-fixed", "fp8"),
    ],
)
def test_other_dtypes_and_forms_are_exact(name: str, dtype: str, spec: str) -> None:
    check(spec, *measured(name, spec, dtype=dtype))


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("spec", ["sdpa", "sdpa:flash", "sdpa:efficient", "sdpa:cudnn"])
def test_attention_within_the_block_by_torchs_operator(spec: str, direction: Direction) -> None:
    prepared, record, accuracy = measured("decoder-block", spec, direction)
    together = {"qk", "scale", "mask", "softmax", "pv"}
    # Memory-efficient attention lays the heads beside each other, where others are copied to be.
    may_be_too = {"merge_heads"} if spec == "sdpa:efficient" else set()
    told = [(launch.title, launch.kernel[:60], launch.ops) for launch in record.launches]
    assert any(
        together <= set(launch.ops) <= together | may_be_too for launch in record.launches
    ), "\n".join(map(str, told))
    assert {op.name for op in prepared.graph.ops if not op.is_backward} <= {
        op for launch in record.launches for op in launch.ops
    }
    assert accuracy.passed, accuracy


@pytest.mark.parametrize("name", CASES)
def test_eagers_modelled_bytes_are_those_of_one_op_a_kernel(name: str) -> None:
    prepared, record, _ = measured(name, "eager")
    planned = planned_bytes(prepared.graph, each_alone([op.name for op in prepared.graph.ops]))
    read = sum(launch.bytes_read.modelled or 0 for launch in record.launches)
    written = sum(launch.bytes_written.modelled or 0 for launch in record.launches)
    told = [(x.title, x.bytes_read, x.bytes_written, x.accesses) for x in record.launches]
    assert (read, written) == planned, told


def test_fused_quantizing_moves_fewer_bytes_than_eager_does() -> None:
    moved = {
        spec: sum(
            (launch.bytes_read.modelled or 0) + (launch.bytes_written.modelled or 0)
            for launch in measured("norm-fp8-row", spec)[1].launches
        )
        for spec in ("eager", "compile")
    }
    assert moved["compile"] < moved["eager"] / 3
