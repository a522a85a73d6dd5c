"""The chains beside attention at their default size: launches, bytes and memory by hand."""

from collections.abc import Iterator
from contextlib import closing
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
GPU = torch.device("cuda", 0)

CHAINS = (
    "rmsnorm", "residual-rmsnorm", "layernorm", "residual-layernorm", "layernorm-gelu",
    "bias-gelu", "swiglu", "geglu", "rotary", "adam", "elementwise",
)  # fmt: skip
EAGER_CHAINS = ("bias-dropout-residual", "cross-entropy")
"""Compiled they have more than one launch, or a seed as well: see the end of this file."""
COMPILED = ("rmsnorm", "layernorm-gelu", "swiglu", "rotary", "adam", "elementwise")
"""A reduction, two that share a kernel, a gate, two halves, an update in place, and a long row."""
REDUCTIONS = {"mean", "variance", "max", "sum", "layernorm"}
CASES = [
    *((chain, "eager") for chain in (*CHAINS, *EAGER_CHAINS)),
    *((chain, "compile") for chain in COMPILED),
]


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

    @property
    def told(self) -> list[str]:
        """Every launch and what could not be recorded, for a failure's message."""
        launches = [
            f"{x.title} = {x.kernel[:60]} ops {x.ops} {x.bytes_read} {x.bytes_written}"
            for x in self.record.launches
        ]
        return [*launches, *self.record.warnings]

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
    params=CASES,
    ids="-".join,
)
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    chain, spec = request.param
    chosen = capture_chain(chain, {}, GPU)
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
    peak = measure_peak(built.call, device=GPU).peak_bytes
    yield Case(spec=spec, chosen=chosen, prepared=prepared, record=record, peak_bytes=peak)
    built.close()
    torch.cuda.empty_cache()


def test_kinds_do_not_depend_on_the_release_of_torch(case: Case) -> None:
    for op in case.prepared.graph.ops:
        kinds = dict.fromkeys(REDUCTIONS, OpKind.REDUCTION) | {"dropout": OpKind.RANDOM}
        if case.prepared.chain.id == "adam":
            # What a norm calls its variance is a mean; Adam's is a running one.
            kinds["variance"] = OpKind.ELEMENTWISE
        assert op.kind is kinds.get(op.name, OpKind.ELEMENTWISE), op.name


def test_updates_are_found_by_this_release_too(case: Case) -> None:
    is_adam = case.prepared.chain.id == "adam"
    assert case.prepared.updated == (("m", "v", "p") if is_adam else ())


def test_every_op_is_carried_out_once_in_order(case: Case) -> None:
    ops = [op.name for op in case.prepared.graph.ops]
    assert [op for launch in case.launches for op in launch.ops] == ops, case.told
    assert len(case.launches) == (len(ops) if case.spec == "eager" else 1), case.told
    assert case.record.warnings == (), case.told


def test_every_tensor_is_the_chain_s_own(case: Case) -> None:
    known = {tensor.id for tensor in case.prepared.graph.tensors}
    touched = {a.tensor for launch in case.launches for a in launch.accesses}
    assert touched <= known, (touched - known, case.told)


def test_modelled_bytes_are_those_of_the_plan(case: Case) -> None:
    read = sum(launch.bytes_read.modelled or 0 for launch in case.launches)
    written = sum(launch.bytes_written.modelled or 0 for launch in case.launches)
    assert (read, written) == case.planned(), case.told


def test_counted_bytes_are_at_most_the_modelled_ones(case: Case) -> None:
    """What the L2 still holds of the launch before need not be read again."""
    assert case.record.counters.joined, case.record.counters.sentence
    counted = sum(
        (x.bytes_read.counted or 0) + (x.bytes_written.counted or 0) for x in case.launches
    )
    modelled = sum(case.planned())
    assert counted <= 1.05 * modelled, case.told
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    assert counted >= 0.95 * modelled - 2 * l2_bytes * len(case.launches), case.told


def test_the_peak_lies_under_its_estimate(case: Case) -> None:
    strategy = find_strategy(case.spec)
    estimated = estimate(case.prepared.graph, strategy, case.chosen)
    assert case.peak_bytes <= estimated


def launches_of(prepared: Prepared, spec: str) -> list[Launch]:
    strategy = find_strategy(spec)
    with observing_compilation() as observation:
        built = strategy.build(prepared)
    with closing(built):
        record = record_launches(
            built.call,
            prepared=prepared,
            strategy=strategy.info(built.backend),
            counters=None,
            observation=observation if strategy.compiles else None,
        )
    return [launch for launch in record.launches if launch.ops and not launch.is_helper]


def bytes_of(launches: list[Launch]) -> tuple[int, int]:
    read = sum(launch.bytes_read.modelled or 0 for launch in launches)
    return read, sum(launch.bytes_written.modelled or 0 for launch in launches)


def test_fused_dropout_moves_what_the_plan_does_but_for_its_seed() -> None:
    prepared = make_ready(capture_chain("bias-dropout-residual", {}, GPU), seed=0)
    ops = [op.name for op in prepared.graph.ops]
    [fused] = launches_of(prepared, "compile")
    assert list(fused.ops) == ops
    read, written = planned_bytes(prepared.graph, all_in_one(ops))
    moved = bytes_of([fused])
    assert read <= moved[0] <= read + 64
    assert moved[1] == written


def test_the_compiled_loss_reads_the_logits_once_or_twice_and_writes_no_tensor_like_them() -> None:
    prepared = make_ready(capture_chain("cross-entropy", {}, GPU), seed=0)
    launches = launches_of(prepared, "compile")
    carried = {op for launch in launches for op in launch.ops}
    ops = {op.name for op in prepared.graph.ops}
    assert carried == ops, (ops - carried, [(x.title, x.kernel) for x in launches])
    logits = prepared.graph.tensor("logits").n_bytes
    read, written = bytes_of(launches)
    assert logits <= read <= 2.01 * logits
    assert written < logits / 100
