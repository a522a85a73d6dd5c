"""Every chain under every strategy that a CPU has, in both directions, through the session."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from explorer.chains import CHAINS
from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.session import Session
from explorer.engine.strategies import find_strategy
from explorer.model.run import Run
from explorer.recording import load_recording, save_recording
from tests.engine.every_chain import BOTH, FORWARD, Case, available, cases, check, named, runs

PLANS = ("plan:each", "plan:inductor", "plan:all")
QUICK = ("rmsnorm", "bias-gelu", "cross-entropy", "elementwise", "adam", "feed-forward")
"""Run as written in every test run, at their first value; the others in the slow one."""
EVERY = pytest.mark.parametrize("case", [pytest.param(case, id=named(case)) for case in cases()])
TRAINED = pytest.mark.parametrize(
    "case", [pytest.param(case, id=named(case)) for case in cases() if CHAINS[case[0]].trains]
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """As the worker has it; ceilings are never measured."""
    return Session(CeilingsStore(tmp_path_factory.mktemp("cache") / "ceilings.json"))


def check_recorded(made: Sequence[Run], path: Path) -> None:
    assert len({run.id for run in made}) == len(made)
    save_recording(path, made)
    assert load_recording(path) == tuple(made)
    for run in made:
        assert find_strategy(run.strategy.spec).spec == run.strategy.spec


@pytest.mark.parametrize("chain", QUICK)
def test_a_chain_runs_as_written(engine: Session, chain: str, tmp_path: Path) -> None:
    case = next(case for case in cases() if case[0] == chain)
    made = runs(engine, case, ["eager"])
    check(*made)
    check_recorded(made, tmp_path / "runs.kx")


@pytest.mark.slow
@EVERY
def test_every_strategy_runs_every_chain(engine: Session, case: Case, tmp_path: Path) -> None:
    specs = [*available(engine, case, FORWARD), *PLANS]
    assert {"eager", "compile"} <= set(specs)
    made = runs(engine, case, specs)
    check(*made)
    check_recorded(made, tmp_path / "runs.kx")


@pytest.mark.slow
@TRAINED
def test_every_trained_chain_runs_in_both_directions(
    engine: Session, case: Case, tmp_path: Path
) -> None:
    offered = available(engine, case, BOTH)
    assert {"eager", "compile"} <= set(offered)
    made = runs(engine, case, [*offered, "plan:each", "plan:all"], BOTH)
    check(*made)
    assert {run.chain.direction for run in made} == {BOTH}
    check_recorded(made, tmp_path / "runs.kx")
