"""What torch says in its log that it does not do becomes a sentence of the run."""

import logging
from collections.abc import Iterator

import pytest
import torch
from torch._inductor.cudagraph_utils import log_cudagraph_skip_and_bump_counter

from explorer.engine.measure import setbacks
from explorer.engine.measure.setbacks import setback_doubts, watching_setbacks


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(setbacks, "_untuned", set())
    yield
    torch.compiler.reset()


def test_a_cuda_graph_that_is_not_made_is_told_with_torchs_reason() -> None:
    with watching_setbacks(compiles=True) as found:
        for _ in range(2):
            log_cudagraph_skip_and_bump_counter(
                "skipping cudagraphs due to mutated inputs (1 of 2)"
            )
    assert found == [
        "torch made no CUDA graph of it (mutated inputs (1 of 2)): the host launches each kernel."
    ]
    assert setback_doubts(found, "compile") == tuple(found)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_code_that_torch_stops_compiling_is_told() -> None:
    class Holder:
        number = 0.0

    def scaled(x: torch.Tensor, holder: Holder) -> torch.Tensor:
        return x * holder.number

    compiled = torch.compile(scaled, dynamic=False, backend="eager")
    with watching_setbacks(compiles=True) as found:
        for number in range(torch._dynamo.config.recompile_limit + 2):
            holder = Holder()
            holder.number = float(number)
            compiled(torch.ones(4), holder)
    [sentence] = found
    limit = torch._dynamo.config.recompile_limit
    assert sentence.startswith(f"torch gave up compiling after {limit} versions of the code")


def test_untuned_matmuls_are_told_of_every_run_that_tunes() -> None:
    """torch says it once a process, in whichever mode comes first."""
    with watching_setbacks(compiles=True) as found:
        logging.getLogger("torch._inductor.utils").warning(
            "Not enough SMs to use max_autotune_gemm mode", extra={"min_sms": 68, "avail_sms": 20}
        )
    assert found == []
    assert setback_doubts(found, "compile") == ()
    with watching_setbacks(compiles=True) as later:
        pass
    assert setback_doubts(later, "compile:max-autotune") == (
        "torch tuned no matmul (this GPU has 20 multiprocessors, and torch wants 68): they are "
        "those of the default mode.",
    )


def test_nothing_listens_afterwards() -> None:
    before = list(logging.getLogger("torch._inductor.utils").handlers)
    with watching_setbacks(compiles=True) as found:
        logging.getLogger("torch._inductor.utils").warning("something else")
    assert found == []
    assert logging.getLogger("torch._inductor.utils").handlers == before
