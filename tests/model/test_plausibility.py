"""What no measurement gives is found in a run before a view divides by it or draws it."""

from dataclasses import replace
from pathlib import Path

import pytest

from explorer.model.plausibility import first_fault
from explorer.model.run import Accuracy, Bytes, DistributionCheck, Run
from explorer.recording import load_recording
from tests.conftest import CHECKOUT
from tests.fixtures_runs import all_runs, eager_attention

RECORDINGS = sorted((CHECKOUT / "assets" / "recordings").glob("*.kx"))


@pytest.mark.parametrize("run", all_runs(), ids=lambda run: run.id)
def test_a_measured_run_has_no_fault(run: Run) -> None:
    assert first_fault(run) is None


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_what_is_shipped_has_no_fault(path: Path) -> None:
    assert load_recording(path)


def changed(**changes: object) -> Run:
    run = eager_attention()
    first = replace(run.launches[0], **changes)  # type: ignore[arg-type] # any field is fine
    return replace(run, launches=(first, *run.launches[1:]))


EAGER = eager_attention()
assert EAGER.timing is not None
assert EAGER.timing.cold is not None
NEGATIVE = {
    "launches[0].duration_us": changed(duration_us=-0.5),
    "launches[0].bytes_read.counted": changed(bytes_read=Bytes(modelled=1, counted=-1)),
    "launches[0].grid[1]": changed(grid=(1, -1, 1)),
    "tensors[0].shape[0]": replace(
        EAGER, tensors=(replace(EAGER.tensors[0], shape=(-1,)), *EAGER.tensors[1:])
    ),
    "device.memory_bytes": replace(EAGER, device=replace(EAGER.device, memory_bytes=-1)),
    "timing.cold.samples_us[0]": replace(
        EAGER, timing=replace(EAGER.timing, cold=replace(EAGER.timing.cold, samples_us=(-1.0,)))
    ),
}


@pytest.mark.parametrize("where", NEGATIVE)
def test_a_negative_quantity_is_named(where: str) -> None:
    assert first_fault(NEGATIVE[where]) == f"{where} is negative"


def test_what_may_be_negative_is_no_fault() -> None:
    check = DistributionCheck(name="mean", expected=-1, observed=-1.1, tolerance=1, passed=True)
    accuracy = Accuracy(
        max_abs_error=0, rms_error=0, reference_max=1, eager_max_abs_error=0, coverage=1,
        passed=True, distribution=(check,),
    )  # fmt: skip
    chain = replace(EAGER.chain, parameters={"offset": -3})
    assert first_fault(replace(EAGER, accuracy=accuracy, chain=chain)) is None


def test_an_endless_text_of_a_strategy_is_named() -> None:
    strategy = replace(EAGER.strategy, option="x" * 200_001)
    assert first_fault(replace(EAGER, strategy=strategy)) == (
        "strategy.option has 200,001 characters"
    )


def test_names_are_looked_at_too() -> None:
    fault = first_fault(changed(ops=("tanh",)))
    assert fault == "launches[0] names the op 'tanh', which it does not hold"
