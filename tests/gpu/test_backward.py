"""Forward and backward as one call at a large size: counted bytes against those by hand."""

from contextlib import closing

import pytest
import torch

from explorer.engine.cupti.counters import DramCounters
from explorer.engine.measure.groups import observation_of
from explorer.engine.measure.launches import record_launches
from explorer.engine.measure.observe_compile import observing_compilation
from explorer.engine.prepare import prepare
from explorer.engine.strategies import find_strategy
from explorer.model.run import Direction, Launch, Scalar

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]


def launches_of(chain: str, spec: str, **settings: Scalar) -> list[Launch]:
    device = torch.device("cuda", 0)
    prepared = prepare(chain, settings, device, direction=Direction.FORWARD_BACKWARD)
    strategy = find_strategy(spec)
    with observing_compilation() as observation:
        built = strategy.build(prepared)
    if built.groups:
        observation = observation_of(built.groups)
    with closing(built), DramCounters() as counters:
        record = record_launches(
            built.call,
            prepared=prepared,
            strategy=strategy.info(built.backend),
            counters=counters,
            observation=observation if strategy.compiles else None,
            groups=built.groups,
        )
    return [launch for launch in record.launches if launch.ops]


@pytest.mark.parametrize(
    ("spec", "tensors"),
    [
        ("eager", [(1, 1), (2, 1), (2, 1), (2, 1), (2, 1)]),
        # The gate is computed anew in the backward pass rather than kept.
        ("compile", [(2, 1), (3, 2)]),
        ("plan:all", [(3, 3)]),
    ],
    ids=["eager", "compile", "plan-all"],
)
def test_counted_bytes_of_a_gate_are_those_counted_by_hand(
    spec: str, tensors: list[tuple[int, int]]
) -> None:
    whole = 16384 * 4096 * 2
    launches = launches_of("swiglu", spec, rows=16384, columns=4096, dtype="bf16")
    told = [f"{launch.title}: {launch.bytes_read}, {launch.bytes_written}" for launch in launches]

    modelled = [(x.bytes_read.modelled, x.bytes_written.modelled) for x in launches]
    assert modelled == [(read * whole, written * whole) for read, written in tensors], told
    counted = sum((x.bytes_read.counted or 0) + (x.bytes_written.counted or 0) for x in launches)
    by_hand = whole * sum(read + written for read, written in tensors)
    l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
    assert by_hand * 0.95 - 2 * l2_bytes * len(tensors) <= counted <= 1.05 * by_hand, told


def test_what_a_gather_picked_is_put_back_with_few_bytes() -> None:
    rows, vocabulary = 4096, 32000
    launches = launches_of("cross-entropy", "eager", rows=rows, vocabulary=vocabulary, dtype="bf16")
    told = [f"{launch.title}: {launch.bytes_read}, {launch.bytes_written}" for launch in launches]
    [filled] = [launch for launch in launches if launch.ops == ("d_pick",)]
    [put] = [launch for launch in launches if launch.ops == ("d_pick2",)]
    whole = rows * vocabulary * 2

    assert filled.bytes_written.modelled == whole, told
    assert put.bytes_written.modelled == 2 * rows, told
    # A sector of 32 bytes an element, and what the fill still had in L2.
    assert put.bytes_read.counted is not None, told
    assert put.bytes_read.counted < whole / 20, told
