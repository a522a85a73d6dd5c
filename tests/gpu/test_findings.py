"""Every plan of scale, mask, softmax, dropout on a real GPU: bytes agree, or the run says why."""

import sys

import pytest

from explorer.model.finding import EXPLAINED_SHARE, FindingKind, Step
from explorer.model.findings import findings, main_finding
from explorer.model.outcome import outcomes
from explorer.model.run import Pedigree, Run
from tests.gpu.scores import SCORES

pytestmark = pytest.mark.gpu

LOOPED = SCORES["seq_len"]
"""A row of more than 1,024 elements: the reduction loops over it."""


@pytest.fixture(scope="module")
def runs(plans_of_scores: dict[str, Run]) -> list[Run]:
    return list(plans_of_scores.values())


def test_each_launch_agrees_within_five_percent_or_the_reason_is_shown(runs: list[Run]) -> None:
    assert len(runs) == 8
    for run in runs:
        assert run.error is None, run.error
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
