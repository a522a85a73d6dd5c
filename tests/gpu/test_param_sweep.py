"""A parameter sweep on a real GPU: traffic as it grows, and a point that has no room."""

import pytest

from explorer.engine.session import Session
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.param_sweep import ParameterSweep, sweeps_in
from explorer.model.param_sweep_words import OUT_OF_MEMORY, failure_label
from explorer.model.run import Run, Scalar
from explorer.model.sweep_payoff import Payoff, crossover, growth
from explorer.model.sweep_range import points

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("new_garbage_only")]

ELEMENTS = 1 << 26
"""Several times the L2 of any GPU, so that each op reads and writes memory."""


def swept(engine: Session, name: str, values: tuple[Scalar, ...], *specs: str) -> list[Run]:
    request = RunRequest(
        chain="elementwise",
        parameters={"elements": ELEMENTS, "dtype": "bf16"},
        strategies=specs,
        device="cuda:0",
        measure_ceilings=False,
    )
    replies: list[Reply] = []
    for point in points(request, name, values):
        engine.handle(point, replies.append)
    return [reply.run for reply in replies if isinstance(reply, RunFinished)]


@pytest.fixture(scope="module")
def sweep(engine: Session) -> ParameterSweep:
    (found,) = sweeps_in(swept(engine, "k", (1, 2, 4, 8), "eager", "compile"))
    return found


def test_there_is_a_run_a_strategy_and_point(sweep: ParameterSweep) -> None:
    assert [(run.chain.parameters["k"], run.strategy.spec) for run in sweep.runs] == [
        (k, spec) for k in (1, 2, 4, 8) for spec in ("eager", "compile")
    ]
    assert [run.error for run in sweep.runs] == [None] * 8


def test_eagers_traffic_grows_with_k_and_the_compiled_one_does_not(sweep: ParameterSweep) -> None:
    eager, compiled = growth(sweep, "eager"), growth(sweep, "compile")
    once = 2 * 2 * ELEMENTS

    assert eager is not None
    assert compiled is not None
    assert eager.bytes_a_unit == pytest.approx(once, rel=0.03)
    assert compiled.is_constant
    assert compiled.mean_bytes == pytest.approx(once, rel=0.03)


def test_fusion_pays_from_two_ops_on(sweep: ParameterSweep) -> None:
    found = crossover(sweep, "compile")

    assert found is not None
    assert found.payoff in (Payoff.FROM, Payoff.FROM_THE_START)
    assert found.at is not None
    assert found.at.value in (1, 2)


def test_a_point_without_room_is_a_failed_run_and_the_next_one_runs(engine: Session) -> None:
    large, small = swept(engine, "elements", (1 << 36, 1 << 20), "eager")

    assert failure_label(large) == OUT_OF_MEMORY
    assert small.error is None
