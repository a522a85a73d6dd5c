"""Real modules as own code, of Hugging Face, of torch and written out: captured, run, compared."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.own_code.errors import OwnCodeError
from explorer.engine.session import Session
from explorer.model.messages import GraphCaptured, Reply, RunFinished, RunRequest
from explorer.model.opgraph import OpGraph
from explorer.model.run import Direction, Run
from tests.conftest import CHECKOUT
from tests.engine.own_code.real_modules import REAL_MODULES, RealModule, row

PAGE = CHECKOUT / "docs" / "own-code.md"

MODULES = [pytest.param(module, id=module.label) for module in REAL_MODULES]
RUN = [pytest.param(m, id=m.label) for m in REAL_MODULES if m.refused is None]
TRAINED = [pytest.param(m, id=m.label) for m in REAL_MODULES if m.backward]


@pytest.fixture(autouse=True)
def _here_and_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named from the checkout's folder; nothing is asked of Hugging Face's hub."""
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@cache
def _engine() -> Session:
    return Session(CeilingsStore(Path("/nowhere/ceilings.json")))


def _replies(module: RealModule, direction: Direction, *strategies: str) -> list[Reply]:
    got: list[Reply] = []
    request = RunRequest(
        chain=module.chain,
        own=module.own,
        direction=direction,
        strategies=strategies,
        device="cpu",
        timing_s=0.01,
        measure_ceilings=False,
    )
    _engine().handle(request, got.append)
    return got


@cache
def _forward(module: RealModule) -> tuple[OpGraph, tuple[Run, ...]]:
    replies = _replies(module, Direction.FORWARD, "eager", *module.also)
    [graph] = [reply.graph for reply in replies if isinstance(reply, GraphCaptured)]
    return graph, tuple(reply.run for reply in replies if isinstance(reply, RunFinished))


def test_there_are_as_many_as_asked_for_and_none_twice() -> None:
    assert len({module.label for module in REAL_MODULES}) == len(REAL_MODULES) >= 25


def test_the_page_has_a_row_for_each_and_no_other() -> None:
    table = PAGE.read_text(encoding="utf-8").partition("## Real modules")[2]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in rows] == [module.label for module in REAL_MODULES]


@pytest.mark.slow
class TestForward:
    """Eager for all, other strategies for some."""

    @pytest.mark.parametrize("module", RUN)
    def test_it_is_captured_whole_or_breaks_where_expected(self, module: RealModule) -> None:
        graph, _ = _forward(module)
        assert [each.reason for each in graph.breaks[:1]] == [module.breaks][: bool(module.breaks)]
        pieces = [op.piece for op in graph.ops]
        if module.breaks is None:
            assert set(pieces) == {0}
        assert len(graph.breaks) >= max(pieces)

    @pytest.mark.parametrize("module", RUN)
    def test_each_op_names_its_line(self, module: RealModule) -> None:
        graph, _ = _forward(module)
        # Of torch's own modules Dynamo tells no lines: it takes each for one operation.
        has_lines = module.package != "torch"
        assert {op.source_place is not None for op in graph.ops} == {has_lines}
        assert {bool(op.source_line) for op in graph.ops} == {has_lines}

    @pytest.mark.parametrize("module", RUN)
    def test_it_runs_and_is_right(self, module: RealModule) -> None:
        _, runs = _forward(module)
        assert [run.strategy.spec for run in runs] == ["eager", *module.also]
        for run in runs:
            _check_run(run)

    @pytest.mark.parametrize("module", MODULES)
    def test_its_row_stands_on_the_page(self, module: RealModule) -> None:
        if module.refused is None:
            expected = row(module, _forward(module)[0])
        else:
            with pytest.raises(OwnCodeError) as raised:
                _replies(module, Direction.FORWARD, "eager")
            assert module.refused in str(raised.value)
            expected = row(module, None, str(raised.value))
        assert expected in PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("module", TRAINED)
def test_forward_and_backward_run_and_are_right(module: RealModule) -> None:
    replies = _replies(module, Direction.FORWARD_BACKWARD, "eager")
    [graph] = [reply.graph for reply in replies if isinstance(reply, GraphCaptured)]
    [run] = [reply.run for reply in replies if isinstance(reply, RunFinished)]
    names = [op.name for op in graph.ops]
    assert len(set(names)) == len(names)
    forward = {op.name for op in _forward(module)[0].ops}
    # Autograd runs some ops in parts, which come on top.
    assert forward <= {op.name for op in graph.ops if not op.is_backward}
    assert any(op.is_backward for op in graph.ops)
    _check_run(run)


@pytest.mark.slow
def test_hugging_face_brings_no_torchvision() -> None:
    assert find_spec("transformers") is not None
    assert find_spec("torchvision") is None


def _check_run(run: Run) -> None:
    assert run.error is None
    assert run.launches
    if run.strategy.spec == "eager":
        assert [launch.kernel for launch in run.launches if not launch.ops] == []
    assert run.accuracy is not None
    assert run.accuracy.passed
