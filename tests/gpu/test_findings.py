"""Every plan of scale, mask, softmax, dropout on a real GPU: bytes agree, or the run says why."""

import sys

import pytest
import torch

from explorer.engine.measure.ceilings import CeilingsStore
from explorer.engine.session import Session
from explorer.model.finding import EXPLAINED_SHARE, FindingKind, Step
from explorer.model.findings import findings, main_finding
from explorer.model.messages import Reply, RunFinished, RunRequest
from explorer.model.outcome import outcomes
from explorer.model.run import Pedigree, Run

pytestmark = pytest.mark.gpu

CHAIN = "attention-scores"
OPS = ("scale", "mask", "softmax", "dropout")
LOOPED = 2048
"""A row of more than 1,024 elements: the reduction loops over it."""


def every_plan() -> tuple[str, ...]:
    """Each of the eight settings of the three boundaries."""
    plans = []
    for bits in range(8):
        text = OPS[0]
        for place, op in enumerate(OPS[1:]):
            text += ("+" if bits >> place & 1 else "|") + op
        plans.append(f"plan:{text}")
    return tuple(plans)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    engine = Session(CeilingsStore(tmp_path_factory.mktemp("cache") / "ceilings.json"))
    replies: list[Reply] = []
    request = RunRequest(
        chain=CHAIN,
        parameters={"batch": 2, "heads": 16, "seq_len": LOOPED},
        strategies=every_plan(),
        device="cuda:0",
        timing_s=0.1,
        measure_ceilings=False,
    )
    engine.handle(request, replies.append)
    return [reply.run for reply in replies if isinstance(reply, RunFinished)]


def test_each_launch_agrees_within_five_percent_or_the_reason_is_shown(runs: list[Run]) -> None:
    assert len(runs) == 8
    for run in runs:
        assert run.error is None
        told = {each.launch for each in findings(run) if each.step is Step.MODEL_TO_COUNT}
        for index, launch in enumerate(run.launches):
            if launch.is_helper:
                continue
            pairs = [(b.modelled, b.counted) for b in (launch.bytes_read, launch.bytes_written)]
            whole = sum(counted or 0 for _, counted in pairs)
            off = max(abs((counted or 0) - (modelled or 0)) for modelled, counted in pairs)
            assert whole > 0
            assert off <= EXPLAINED_SHARE * whole or index in told
        unknown = [each.sentence for each in findings(run) if _is_unknown(each.kind)]
        sys.stdout.write(f"\n{run.strategy.plan}: {'; '.join(unknown) or 'all explained'}")


def test_softmax_with_dropout_stores_its_random_numbers(runs: list[Run]) -> None:
    for run in runs:
        group = next(each for each in outcomes(run) if "dropout" in each.ops)
        planned, modelled = (group.total(p) for p in (Pedigree.PLANNED, Pedigree.MODELLED))
        assert planned is not None
        assert modelled is not None
        if "softmax" not in group.ops:
            assert modelled == pytest.approx(planned, rel=EXPLAINED_SHARE)
            continue
        found = main_finding(run)
        assert found is not None
        assert found.kind is FindingKind.EXTRA_BUFFER
        assert modelled - planned == pytest.approx(4 * 32 * LOOPED**2, rel=0.01)
        assert any("tl.rand" in line.text for line in found.evidence if line.is_code)


def _is_unknown(kind: FindingKind) -> bool:
    return kind is FindingKind.UNEXPLAINED
