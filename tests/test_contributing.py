"""What CONTRIBUTING.md shows works as it stands there."""

import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.engine import session, strategies
from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.session import Session
from explorer.engine.strategies import Strategy
from explorer.model.errors import UsageError
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.run import Direction, Run

CONTRIBUTING = Path(__file__).parent.parent / "CONTRIBUTING.md"
MY_KERNELS = """
import torch

def swiglu(gate, up):
    return torch.nn.functional.silu(gate) * up
"""
REQUEST = RunRequest(
    chain="swiglu",
    parameters={"rows": 16, "columns": 24},
    strategies=("mine",),
    timing_s=0.01,
    measure_ceilings=False,
)


def new_strategy() -> tuple[Strategy, ...]:
    """The entries that the code block under "A new strategy" makes."""
    section = CONTRIBUTING.read_text(encoding="utf-8").partition("## A new strategy\n")[2]
    [block] = re.findall(r"```python\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    names: dict[str, tuple[Strategy, ...]] = {}
    exec(compile(block, str(CONTRIBUTING), "exec"), names)
    return names["ENTRIES"]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Session:
    """A session that knows the strategy of the example."""
    table = (*strategies.STRATEGIES, *new_strategy())
    monkeypatch.setattr(strategies, "STRATEGIES", table)
    monkeypatch.setattr(session, "STRATEGIES", table)
    return Session(CeilingsStore(tmp_path / "ceilings.json"))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The package of the example."""
    (tmp_path / "my_kernels.py").write_text(MY_KERNELS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_kernels", None)


def run(engine: Session, request: RunRequest) -> Run:
    replies: list[Reply] = []
    engine.handle(request, replies.append)
    [done] = [reply.run for reply in replies if isinstance(reply, RunFinished)]
    return done


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("direction", list(Direction))
def test_the_new_strategy_runs(engine: Session, direction: Direction) -> None:
    done = run(engine, replace(REQUEST, direction=direction))
    assert done.error is None
    assert done.strategy.spec == "mine"
    assert done.strategy.backend == "my_kernels.swiglu"
    carried = [op for launch in done.launches for op in launch.ops]
    assert carried == [op.name for op in done.graph.ops]
    assert done.accuracy is not None
    assert done.accuracy.passed


@pytest.mark.usefixtures("installed")
def test_the_new_strategy_is_offered_where_it_is_installed(engine: Session) -> None:
    cpu = engine.abilities().devices[-1]
    assert [each.available for each in cpu.strategies if each.spec == "mine"] == [True]


def test_the_new_strategy_is_absent_where_it_is_not(engine: Session) -> None:
    cpu = engine.abilities().devices[-1]
    assert "mine" not in [each.spec for each in cpu.strategies]
    with pytest.raises(UsageError, match="`pip install my-kernels` does it"):
        engine.handle(REQUEST, lambda _reply: None)
