"""Why ops are not fused on a GPU, and what max-autotune's templates take along."""

from __future__ import annotations

import sys

import pytest
import torch

from explorer.model.run import RefusalReason
from tests.engine.measure.own_chain import Found, compiled

pytestmark = [
    pytest.mark.gpu,
    # torch's own modules use what torch deprecates.
    pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning"),
]

AUTOTUNED = "compile:max-autotune-no-cudagraphs"
ONLY_TRITON = {
    "max_autotune_gemm_backends": "TRITON",
    # Two candidates a matmul are enough to see what becomes of what follows it.
    "test_configs.max_mm_configs": 2,
}


@pytest.fixture(scope="module")
def gpu() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    return torch.device("cuda", 0)


def say(found: Found) -> None:
    """What was found, worth reading with ``pytest -s``."""
    lines = [f"  {launch.kernel[:60]:60} {launch.ops}" for launch in found.launches]
    lines += [f"  {refusal}" for refusal in found.refusals]
    sys.stdout.write("\n" + "\n".join(lines) + "\n")


def scaled_gelu(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    product = torch.mm(x, weight)
    scaled = product * 0.125
    return torch.nn.functional.gelu(scaled)


def test_a_template_takes_its_epilogue_along(gpu: torch.device) -> None:
    found = compiled(
        scaled_gelu,
        "matmul scale gelu",
        (1024, 512),
        (512, 2048),
        device=gpu,
        dtype=torch.bfloat16,
        spec=AUTOTUNED,
        **ONLY_TRITON,
    )
    say(found)

    together = [launch for launch in found.launches if "matmul" in launch.ops]
    assert len(together) == 1
    assert together[0].kernel.startswith("triton_tem")
    if together[0].ops == ("matmul", "scale", "gelu"):
        assert found.refusals == ()
    else:
        refusal = found.between("matmul", "scale")
        assert refusal.reason in (RefusalReason.MATMUL, RefusalReason.NOT_WORTH_IT)
        assert not found.share("matmul", "scale")


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.bmm(q, k)
    # Not a scale: that the compiler would take for attention as a whole.
    positive = scores.abs()
    weights = torch.softmax(positive, dim=-1)
    return torch.bmm(weights, v)


def test_a_template_takes_no_softmax_along(gpu: torch.device) -> None:
    found = compiled(
        attention,
        "qk abs softmax pv",
        (4, 512, 64),
        (4, 64, 512),
        (4, 512, 64),
        device=gpu,
        dtype=torch.bfloat16,
        spec=AUTOTUNED,
        **ONLY_TRITON,
    )
    say(found)

    assert found.between("softmax", "pv").reason is RefusalReason.OTHER_ALGORITHM
    # What lies between goes with the one or the other, whichever the compiler takes to be faster.
    assert found.share("qk", "abs") or found.share("abs", "softmax")


def test_a_matmul_of_the_library_is_a_kernel_of_its_own(gpu: torch.device) -> None:
    found = compiled(scaled_gelu, "matmul scale gelu", (256, 64), (64, 256), device=gpu)
    say(found)

    refusal = found.between("matmul", "scale")
    assert refusal.reason is RefusalReason.MATMUL
    assert "extern_kernels.mm" in refusal.sentence
    assert found.share("scale", "gelu")


def share_of_all(x: torch.Tensor) -> torch.Tensor:
    total = x.sum()
    return x / total


def test_a_sum_over_everything_becomes_two_kernels_and_its_user_waits(gpu: torch.device) -> None:
    found = compiled(share_of_all, "total share", (4096, 4096), device=gpu)
    say(found)

    within = found.between("total", "total")
    assert within.reason is RefusalReason.GRID_SYNC
    assert within.sentence.startswith("total became several kernels: every block reduces a part")
    assert "numel/rnumel mismatch (reduce)" in within.raw
    after = found.between("total", "share")
    assert after.reason is RefusalReason.GRID_SYNC
    assert after.raw.startswith("cannot fuse op")


def both_axes(x: torch.Tensor) -> torch.Tensor:
    columns = x.sum(0)
    weighted = x * columns
    return weighted.sum(1)


def test_reductions_over_two_axes_do_not_fit(gpu: torch.device) -> None:
    found = compiled(both_axes, "columns weighted rows", (512, 384), device=gpu)
    say(found)

    # Inductor may halve a long sum over columns: then its user waits for all blocks.
    apart = found.between("columns", "weighted")
    assert apart.reason in (RefusalReason.OTHER_AXIS, RefusalReason.GRID_SYNC)
    assert apart.raw.startswith("cannot fuse op")
    assert found.share("weighted", "rows")


def less_total(x: torch.Tensor) -> torch.Tensor:
    total = x.sum(1, keepdim=True)
    return x - total


def test_a_row_s_sum_shares_a_kernel_with_its_user_unless_limits_forbid_it(
    gpu: torch.device,
) -> None:
    free = compiled(less_total, "total less", (256, 128), device=gpu)
    assert free.refusals == ()

    limited = compiled(less_total, "total less", (256, 128), device=gpu, max_fusion_size=1)
    say(limited)
    refusal = limited.between("total", "less")
    assert refusal.reason is RefusalReason.TOO_LARGE
    assert refusal.raw == "cannot fuse op0 with op1: exceeds max fusion"


def histogram(x: torch.Tensor) -> torch.Tensor:
    doubled = x * 2.0
    counts = torch.histc(doubled, 64, -4.0, 4.0)
    return counts + 1.0


def test_an_operator_that_is_called_as_it_is_takes_nothing_along(gpu: torch.device) -> None:
    found = compiled(histogram, "double histogram plus", (256, 128), device=gpu)
    say(found)

    for pair in (("double", "histogram"), ("histogram", "plus")):
        assert found.between(*pair).reason is RefusalReason.OPAQUE
