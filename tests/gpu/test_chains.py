"""The chains beside attention on a real GPU: their launches, bytes and memory."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from explorer.engine.cupti.counters import DramCounters
from explorer.engine.fitting import estimate
from explorer.engine.measure.launches import LaunchRecord, record_launches
from explorer.engine.measure.memory import measure_peak
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared
from explorer.engine.strategies import find_strategy
from explorer.model.fusion import FusionPlan, all_in_one, each_alone
from explorer.model.opgraph import OpKind
from explorer.model.planned import planned_bytes
from explorer.model.run import Launch
from explorer.model.tensor import TensorRole

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]

CHAINS = ("rmsnorm", "residual-rmsnorm", "layernorm-gelu", "swiglu", "adam", "elementwise")
REDUCTIONS = {"mean", "layernorm"}
SPECS = ("eager", "compile")


@dataclass(frozen=True)
class Case:
    spec: str
    chosen: ChosenChain
    prepared: Prepared
    record: LaunchRecord
    peak_bytes: int

    @property
    def launches(self) -> list[Launch]:
        return [x for x in self.record.launches if x.ops and not x.is_helper]

    def planned(self) -> tuple[int, int]:
        """Read and written by the plan that the strategy should come to."""
        ops = [op.name for op in self.prepared.graph.ops]
        plan: FusionPlan = each_alone(ops) if self.spec == "eager" else all_in_one(ops)
        read, written = planned_bytes(self.prepared.graph, plan)
        if self.spec == "eager":
            # What LayerNorm writes of each row, and nobody reads.
            written += sum(
                t.n_bytes for t in self.prepared.graph.tensors if t.role is TensorRole.WORKSPACE
            )
        return read, written


@pytest.fixture(
    scope="module",
    params=[(chain, spec) for chain in CHAINS for spec in SPECS],
    ids="-".join,
)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    chain, spec = request.param
    device = torch.device("cuda", 0)
    chosen = capture_chain(chain, {}, device)
    prepared = make_ready(chosen, seed=0)
    strategy = find_strategy(spec)
    with observing_compilation() as observation:
        built = strategy.build(prepared)
    with DramCounters() as counters:
        record = record_launches(
            built.call,
            prepared=prepared,
            strategy=strategy.info(built.backend),
            counters=counters,
            observation=observation if strategy.compiles else None,
        )
    peak = measure_peak(built.call, device=device).peak_bytes
    yield Case(spec=spec, chosen=chosen, prepared=prepared, record=record, peak_bytes=peak)
    built.close()
    torch.cuda.empty_cache()


def test_kinds_do_not_depend_on_the_release_of_torch(case: Case) -> None:
    for op in case.prepared.graph.ops:
        expected = OpKind.REDUCTION if op.name in REDUCTIONS else OpKind.ELEMENTWISE
        assert op.kind is expected, op.name


def test_updates_are_found_by_this_release_too(case: Case) -> None:
    is_adam = case.prepared.chain.id == "adam"
    assert case.prepared.updated == (("m", "v", "p") if is_adam else ())


def test_every_op_is_carried_out_once_in_order(case: Case) -> None:
    ops = [op.name for op in case.prepared.graph.ops]
    assert [op for launch in case.launches for op in launch.ops] == ops
    assert len(case.launches) == (len(ops) if case.spec == "eager" else 1)
    assert case.record.warnings == ()


def test_every_tensor_is_the_chain_s_own(case: Case) -> None:
    known = {tensor.id for tensor in case.prepared.graph.tensors}
    touched = {a.tensor for launch in case.launches for a in launch.accesses}
    assert touched <= known


def test_modelled_bytes_are_those_of_the_plan(case: Case) -> None:
    read = sum(launch.bytes_read.modelled or 0 for launch in case.launches)
    written = sum(launch.bytes_written.modelled or 0 for launch in case.launches)
    assert (read, written) == case.planned()


def test_counted_bytes_are_at_most_the_modelled_ones(case: Case) -> None:
    """What the L2 still holds of the launch before need not be read again."""
    assert case.record.counters.joined, case.record.counters.sentence
    counted = sum(
        (x.bytes_read.counted or 0) + (x.bytes_written.counted or 0) for x in case.launches
    )
    modelled = sum(case.planned())
    assert counted <= 1.05 * modelled
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    assert counted >= 0.95 * modelled - 2 * l2_bytes * len(case.launches)


def test_the_peak_lies_under_its_estimate(case: Case) -> None:
    strategy = find_strategy(case.spec)
    estimated = estimate(case.prepared.graph, strategy, case.chosen)
    assert case.peak_bytes <= estimated
