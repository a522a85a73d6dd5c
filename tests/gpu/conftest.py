"""What the tests on a GPU share: the session, and the runs that several files look at."""

from collections.abc import Iterator
from unittest.mock import patch

import pytest
import torch

from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.measuring import give_memory_back
from explorer.engine.prepare import capture_chain
from explorer.engine.session import Session
from explorer.model.fusion import sweep_plans
from explorer.model.run import Run
from tests.gpu.plans import measure
from tests.gpu.scores import SCORES


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """As the worker has it; its ceilings are kept apart from the user's."""
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return Session(CeilingsStore(tmp_path_factory.mktemp("cache") / "ceilings.json"))


@pytest.fixture(scope="module")
def new_garbage_only() -> Iterator[None]:
    """Between strategies look for garbage only in what the request made.

    Looking through all that a loaded compiler holds takes longer than most of these small runs; the
    session does so once a request all the same.
    """

    def give_back(device: torch.device, **_thoroughly: bool) -> None:
        give_memory_back(device, thoroughly=False)

    with patch("explorer.engine.measuring.give_memory_back", give_back):
        yield


@pytest.fixture(scope="session")
def plans_of_scores(engine: Session) -> dict[str, Run]:
    """Every plan of the attention scores, counted, by the plan's text."""
    device = torch.device("cuda:0")
    graph = capture_chain("attention-scores", SCORES, device).captured.graph
    plans = [plan.text for plan in sweep_plans(graph, "attention-scores")]
    return measure(engine, "attention-scores", plans, **SCORES)
