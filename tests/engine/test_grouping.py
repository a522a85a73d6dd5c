"""How Inductor would group a chain, found without running it."""

from pathlib import Path

import pytest

from explorer.engine.grouping import inductor_grouping
from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.prepare import without_memory
from explorer.engine.session import Session
from explorer.model.errors import UsageError
from explorer.model.fusion import parse_plan, plan_of_launches
from explorer.model.legality import check
from explorer.model.messages import (
    GroupingFound,
    GroupingRequest,
    Reply,
    RunFinished,
    RunRequest,
)
from explorer.model.run import RefusalReason, Scalar
from tests.engine.graphs import chosen

SMALL: dict[str, Scalar] = {"heads": 2, "seq_len": 64, "head_dim": 16, "dropout": 0}


def handled(folder: Path, request: GroupingRequest | RunRequest) -> list[Reply]:
    got: list[Reply] = []
    Session(CeilingsStore(folder / "ceilings.json")).handle(request, got.append)
    return got


def test_the_grouping_is_that_of_a_run_of_compile(tmp_path: Path) -> None:
    [found] = handled(tmp_path, GroupingRequest(chain="attention", parameters=SMALL))
    assert isinstance(found, GroupingFound)
    request = RunRequest(
        chain="attention",
        parameters=SMALL,
        strategies=("compile",),
        timing_s=0.01,
        measure_ceilings=False,
    )
    [run] = [r.run for r in handled(tmp_path, request) if isinstance(r, RunFinished)]
    assert found.plan == plan_of_launches(run.graph, run.launches).text
    assert found.plan == "qk|scale+mask+softmax|pv"
    assert found.parameters["seq_len"] == 64
    assert found.device == "cpu"
    links = {(r.first, r.second): r.reason for r in found.refusals}
    assert links["qk", "scale"] is RefusalReason.MATMUL
    assert links["softmax", "pv"] is RefusalReason.OTHER_ALGORITHM


@pytest.mark.parametrize("chain", ["adam", "residual-rmsnorm"])
def test_a_grouping_is_legal_and_names_every_op(chain: str) -> None:
    prepared = without_memory(chosen(chain))
    assert all(tensor.device.type == "meta" for tensor in prepared.inputs.values())
    plan = inductor_grouping(prepared).plan
    assert check(prepared.graph, plan) is None
    assert parse_plan(plan.text, [op.name for op in prepared.graph.ops], chain) == plan


def test_a_chain_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no chain 'attn'"):
        handled(tmp_path, GroupingRequest(chain="attn"))
