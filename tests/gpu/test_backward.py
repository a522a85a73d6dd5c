"""Forward and backward as one call on a real GPU: launches, bytes, gradients and memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from explorer.chains import CHAINS
from explorer.engine.comparison import Comparison
from explorer.engine.cupti.counters import DramCounters
from explorer.engine.fitting import estimate
from explorer.engine.measure.groups import observation_of
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.memory import measure_peak
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import Built, Strategy, find_strategy
from explorer.model.run import Direction, Launch
from explorer.model.tensor import TensorRole

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]

TRAINED = tuple(chain.id for chain in CHAINS.values() if chain.trains)
SPECS = ("eager", "compile", "cudagraph", "plan:each")
SMALL = {
    "rows": 256, "columns": 512, "features": 384, "vocabulary": 1000, "elements": 1 << 18, "k": 5,
    "batch": 1, "heads": 4, "seq_len": 128, "head_dim": 64, "hidden": 256,
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    spec: str
    chosen: ChosenChain
    prepared: Prepared
    strategy: Strategy
    built: Built
    record: LaunchRecord

    @property
    def launches(self) -> list[Launch]:
        return [launch for launch in self.record.launches if launch.ops]


def chosen(chain: str, **settings: object) -> ChosenChain:
    names = {parameter.name for parameter in CHAINS[chain].parameters}
    small = {name: value for name, value in SMALL.items() if name in names}
    device = torch.device("cuda", 0)
    return capture_chain(chain, {**small, **settings}, device, Direction.FORWARD_BACKWARD)


def measured(pick: ChosenChain, spec: str) -> Case:
    prepared = make_ready(pick, seed=0)
    strategy = find_strategy(spec)
    with observing_compilation() as observation:
        built = strategy.build(prepared)
    if built.groups:
        observation = observation_of(built.groups)
    with DramCounters() as counters:
        record = record_launches(
            built.call,
            prepared=prepared,
            strategy=strategy.info(built.backend),
            counters=counters,
            observation=observation if strategy.compiles else None,
            groups=built.groups,
        )
    return Case(
        spec=spec, chosen=pick, prepared=prepared, strategy=strategy, built=built, record=record
    )


@pytest.fixture(
    scope="module", params=[(chain, spec) for chain in TRAINED for spec in SPECS], ids="-".join
)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    chain, spec = request.param
    found = measured(chosen(chain), spec)
    yield found
    found.built.close()
    torch.cuda.empty_cache()


def test_every_op_of_both_passes_is_carried_out(case: Case) -> None:
    ops = {op.name for op in case.prepared.graph.ops}
    assert {op for launch in case.launches for op in launch.ops} == ops
    assert case.record.warnings == ()


def test_results_and_gradients_lie_in_memory(case: Case) -> None:
    outputs = {t.id for t in case.prepared.graph.tensors if t.role is TensorRole.OUTPUT}
    written = {
        access.tensor
        for launch in case.launches
        for access in launch.accesses
        if access.bytes_written
    }
    assert written >= outputs


def test_launches_are_counted(case: Case) -> None:
    assert case.record.counters.joined, case.record.counters.sentence
    # Counters see kernels; a copy or fill by the driver is none.
    kernels = [n for n in case.launches if not n.kernel.startswith(("Memcpy", "Memset"))]
    assert all(launch.bytes_read.counted is not None for launch in kernels)


def test_the_peak_lies_under_its_estimate(case: Case) -> None:
    device = case.prepared.device
    peak = measure_peak(case.built.call, device=device, uses_graph=case.built.uses_graph)
    assert peak.peak_bytes <= estimate(case.prepared.graph, case.strategy, case.chosen)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("chain", TRAINED)
def test_gradients_are_right(chain: str, dtype: str) -> None:
    pick = chosen(chain, dtype=dtype)
    compared = Comparison(make_ready(pick, seed=0), pick.code)
    compared.measure_eager(whole=True)
    assert compared.reference.coverage == 1.0
    for spec in ("compile", "cudagraph", "plan:each", "compile:reduce-overhead"):
        errors = compared.errors(find_strategy(spec))
        assert compared.judge(errors, ()).passed, spec
    torch.cuda.empty_cache()


def test_counted_bytes_of_a_gate_are_those_counted_by_hand() -> None:
    pick = chosen("swiglu", rows=16384, columns=4096, dtype="bf16")
    whole = 16384 * 4096 * 2
    expected = {
        "eager": [(1, 1), (2, 1), (2, 1), (2, 1), (2, 1)],
        # The gate is computed anew in the backward pass rather than kept.
        "compile": [(2, 1), (3, 2)],
        "plan:all": [(3, 3)],
    }
    for spec, tensors in expected.items():
        found = measured(pick, spec)
        modelled = [(x.bytes_read.modelled, x.bytes_written.modelled) for x in found.launches]
        assert modelled == [(read * whole, written * whole) for read, written in tensors], spec
        counted = sum(
            (x.bytes_read.counted or 0) + (x.bytes_written.counted or 0) for x in found.launches
        )
        by_hand = whole * sum(read + written for read, written in tensors)
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        assert by_hand * 0.95 - 2 * l2_bytes * len(tensors) <= counted <= 1.05 * by_hand, spec
        found.built.close()
        del found
        torch.cuda.empty_cache()


@pytest.mark.parametrize("spec", ["sdpa:flash", "sdpa:efficient", "sdpa:math"])
def test_fused_attention_has_a_backward_pass(spec: str) -> None:
    pick = chosen("attention", dtype="bf16", dropout=0, mask="causal")
    found = measured(pick, spec)
    ops = {op.name for op in found.prepared.graph.ops}
    carried = {op for launch in found.launches for op in launch.ops}
    assert carried <= ops
    assert any(op.startswith("d_") for op in carried)
    if spec != "sdpa:math":
        assert carried == ops
