"""What the tests on a GPU share: the session, and the runs that several files look at."""

import pytest
import torch

from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.prepare import capture_chain
from explorer.engine.session import Session
from explorer.model.fusion import sweep_plans
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.run import Run
from explorer.model.strategies import plan_spec
from tests.gpu.scores import SCORES


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """As the worker has it; its ceilings are kept apart from the user's."""
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return Session(CeilingsStore(tmp_path_factory.mktemp("cache") / "ceilings.json"))


@pytest.fixture(scope="session")
def plans_of_scores(engine: Session) -> dict[str, Run]:
    """Every plan of the attention scores, counted, by the plan's text."""
    device = torch.device("cuda:0")
    graph = capture_chain("attention-scores", SCORES, device).captured.graph
    plans = [plan.text for plan in sweep_plans(graph, "attention-scores")]
    replies: list[Reply] = []
    request = RunRequest(
        chain="attention-scores",
        parameters=dict(SCORES),
        strategies=tuple(plan_spec(plan) for plan in plans),
        device="cuda:0",
        timing_s=0.1,
        measure_ceilings=False,
    )
    engine.handle(request, replies.append)
    return {r.run.strategy.option or "": r.run for r in replies if isinstance(r, RunFinished)}
