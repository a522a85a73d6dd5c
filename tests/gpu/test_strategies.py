"""The strategies of certain chains on a real GPU: who runs, what it computes, what it moves."""

import pytest
import torch

from explorer.chains import CHAINS
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.comparison import Comparison
from explorer.engine.dtypes import dtype_abilities, precision_of
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Case, find_strategy
from explorer.engine.strategies.flashinfer import FLASHINFER
from explorer.engine.strategies.library import Library
from explorer.engine.strategies.liger import LIGER
from explorer.engine.strategies.quack import QUACK
from explorer.engine.strategies.torch_operators import TORCH
from explorer.model.device import DeviceKind
from explorer.model.run import Accuracy, Direction, Launch

pytestmark = pytest.mark.gpu

GPU = torch.device("cuda:0")
SMALL = {
    "batch": 1, "heads": 4, "seq_len": 1024, "rows": 2048, "columns": 1024, "features": 512,
    "vocabulary": 8192, "elements": 1 << 20, "layers": 1, "dropout": 0,
}  # fmt: skip
LIBRARIES = [
    library
    for library in (TORCH, LIGER, QUACK, FLASHINFER)
    if find_strategy(library.name).missing() is None
]
"""Those that are installed here; torch always is."""


def small(chain_id: str, **settings: object) -> dict[str, object]:
    names = {parameter.name for parameter in CHAINS[chain_id].parameters}
    return {**{name: value for name, value in SMALL.items() if name in names}, **settings}


def case(chain_id: str, direction: Direction = Direction.FORWARD, **settings: object) -> Case:
    chain = CHAINS[chain_id]
    parameters = chain.resolve(small(chain_id, **settings), DeviceKind.CUDA)
    return Case(chain=chain, parameters=parameters, device=GPU, direction=direction)


def measured(
    spec: str, chain_id: str, direction: Direction = Direction.FORWARD, **settings: object
) -> tuple[Prepared, LaunchRecord, Accuracy, str | None]:
    """Build a strategy, record its launches and compare its results."""
    prepared = prepare(chain_id, small(chain_id, **settings), GPU, direction=direction)
    comparison = Comparison(prepared, CHAIN_CODE[chain_id])
    comparison.measure_eager(whole=True)
    strategy = find_strategy(spec)
    with observing_compilation() as observation:
        built = strategy.build(prepared)
    record = record_launches(
        built.call,
        prepared=prepared,
        strategy=strategy.info(built.backend),
        counters=None,
        observation=observation if strategy.compiles else None,
        library=built.library,
    )
    accuracy = comparison.judge(comparison.errors_as_built(built), (), built.rounding)
    built.close()
    return prepared, record, accuracy, built.backend


def told(record: LaunchRecord) -> list[str]:
    """The launches and what could not be recorded, for a failure's message."""
    launches = [
        f"{x.title} = {x.kernel[:60]} ops {x.ops} {x.bytes_read} {x.bytes_written}"
        for x in record.launches
    ]
    return [*launches, *record.warnings]


def carried(launches: tuple[Launch, ...]) -> set[str]:
    return {op for launch in launches for op in launch.ops}


@pytest.mark.parametrize(
    ("mask", "direction"),
    [
        ("none", Direction.FORWARD),
        ("additive", Direction.FORWARD),
        ("causal", Direction.FORWARD),
        ("causal", Direction.FORWARD_BACKWARD),
    ],
)
@pytest.mark.parametrize(
    ("spec", "backend"),
    [
        ("sdpa:flash", "FlashAttention"),
        ("sdpa:efficient", "memory-efficient attention"),
        ("sdpa:cudnn", "cuDNN"),
        ("sdpa:math", "math (not fused)"),
    ],
)
def test_a_back_end_runs_or_torch_says_why_not(
    spec: str, backend: str, mask: str, direction: Direction
) -> None:
    reason = find_strategy(spec).refusal(case("attention", direction, mask=mask, dtype="bf16"))
    if spec == "sdpa:flash" and mask == "additive":
        assert reason is not None
        assert reason.startswith("torch refuses sdpa:flash here (")
        assert "mask" in reason
        return
    assert reason is None
    prepared, record, accuracy, ran = measured(
        spec, "attention", direction, mask=mask, dtype="bf16"
    )
    assert ran == backend
    assert accuracy.passed, accuracy
    ops = {op.name for op in prepared.graph.ops}
    done = carried(record.launches)
    assert done <= ops, done - ops
    if spec == "sdpa:math":
        assert any(op.startswith("d_") for op in done) is (direction is not Direction.FORWARD)
    else:
        assert done == ops, (ops - done, told(record))


@pytest.mark.parametrize(
    ("spec", "settings"),
    [("sdpa:flash", {"head_dim": 512}), ("sdpa:flash", {"dtype": "fp32"})],
    ids=str,
)
def test_a_case_that_no_kernel_takes_is_refused_with_torchs_reason(
    spec: str, settings: dict[str, object]
) -> None:
    reason = find_strategy(spec).refusal(
        case("attention", Direction.FORWARD, mask="none", **settings)
    )
    assert reason is not None
    assert "gives no reason" not in reason


def test_asking_whether_a_back_end_takes_a_case_takes_no_memory() -> None:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    huge = case("attention", batch=64, seq_len=1 << 18, mask="none", dtype="bf16")
    for option in ("flash", "efficient", "cudnn"):
        find_strategy(f"sdpa:{option}").refusal(huge)
    assert torch.cuda.memory_reserved() - before <= 4 << 20


@pytest.mark.parametrize(
    ("mask", "direction"),
    [
        ("causal", Direction.FORWARD),
        ("additive", Direction.FORWARD),
        ("additive", Direction.FORWARD_BACKWARD),
    ],
)
def test_flex_attention_is_one_kernel_that_carries_out_all_ops(
    mask: str, direction: Direction
) -> None:
    prepared, record, accuracy, _ = measured(
        "flex", "attention", direction, mask=mask, dtype="bf16"
    )
    forward = [op.name for op in prepared.graph.ops if not op.is_backward]
    assert tuple(forward) in [launch.ops for launch in record.launches], told(record)
    assert carried(record.launches) == {op.name for op in prepared.graph.ops}, told(record)
    assert accuracy.passed, accuracy
    assert not any("not observed" in warning for warning in record.warnings)


def library_cases() -> list[tuple[Library, str, Direction]]:
    return [
        (library, chain_id, direction)
        for library in LIBRARIES
        for chain_id in library.operators
        for direction in Direction
        if direction is Direction.FORWARD or CHAINS[chain_id].trains
    ]


@pytest.mark.parametrize(
    ("library", "chain_id", "direction"),
    library_cases(),
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_library_operator_computes_the_chain_and_its_launches_have_ops(
    library: Library, chain_id: str, direction: Direction
) -> None:
    settings: dict[str, object] = {"gelu": "tanh"} if chain_id == "geglu" else {}
    if find_strategy(library.name).refusal(case(chain_id, direction, **settings)) is not None:
        assert direction is not Direction.FORWARD
        return
    prepared, record, accuracy, backend = measured(library.name, chain_id, direction, **settings)
    assert backend == library.operators[chain_id].name
    assert accuracy.passed, accuracy
    forward = {op.name for op in prepared.graph.ops if not op.is_backward}
    assert forward <= carried(record.launches), told(record)
    longest = max(record.launches, key=lambda launch: launch.duration_us or 0)
    assert longest.ops, told(record)
    assert longest.bytes_read.modelled, told(record)
    assert longest.bytes_written.modelled, told(record)


def test_torchs_rms_norm_is_one_launch_that_reads_and_writes_each_tensor_once() -> None:
    prepared, record, _, _ = measured("torch", "rmsnorm", dtype="bf16")
    [launch] = record.launches
    x, w = (prepared.inputs[name].nbytes for name in ("x", "w"))
    assert launch.ops == tuple(op.name for op in prepared.graph.ops)
    assert launch.bytes_read.modelled == x + w
    # It keeps a factor a row in fp32 for a backward pass.
    assert launch.bytes_written.modelled in (x, x + 4 * prepared.inputs["x"].shape[0])


def test_this_gpu_has_the_dtypes_of_its_capability() -> None:
    capability = torch.cuda.get_device_capability(GPU)
    available = {ability.name for ability in dtype_abilities(GPU) if ability.available}
    assert ("tf32" in available) is (capability >= (8, 0))
    assert ("fp8" in available) is (capability >= (8, 9))
    assert {"fp32", "fp16"} <= available


@pytest.mark.parametrize("spec", ["eager", "compile"])
def test_tf32_is_less_exact_than_fp32_where_it_is_compiled_and_called(spec: str) -> None:
    errors = {}
    for dtype in ("fp32", "tf32"):
        settings = CHAINS["matmul"].resolve({**small("matmul"), "dtype": dtype}, DeviceKind.CUDA)
        with precision_of(settings):
            _, _, accuracy, _ = measured(spec, "matmul", dtype=dtype)
        assert accuracy.passed
        errors[dtype] = accuracy.max_abs_error
    assert errors["tf32"] > 10 * errors["fp32"]
