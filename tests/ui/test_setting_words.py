"""A chain's setting on one line."""

import pytest

from explorer.chains import CHAINS
from explorer.model.device import DeviceKind
from explorer.ui.words import parameters_text, size_text


@pytest.mark.parametrize(
    ("chain", "words", "size"),
    [
        (
            "attention",
            "2 × 16 × 4,096 × 64 · bf16 · mask additive",
            "2 × 16 × 4,096 × 64 · bf16",
        ),
        ("rmsnorm", "16,384 × 4,096 · bf16", "16,384 × 4,096 · bf16"),
        ("adam", "67,108,864 · fp32", "67,108,864 · fp32"),
        # The number of ops is no size of a tensor.
        ("elementwise", "67,108,864 · bf16 · k 8", "67,108,864 · bf16 · k 8"),
    ],
)
def test_sizes_come_first_and_what_is_no_size_has_its_name(
    chain: str, words: str, size: str
) -> None:
    parameters = CHAINS[chain].resolve({}, DeviceKind.CUDA)
    assert parameters_text(parameters) == words
    assert size_text(parameters) == size


def test_a_number_alone_says_of_what() -> None:
    assert parameters_text({"rows": 4096}) == "rows 4,096"
    assert parameters_text({"rows": 4096, "dtype": "bf16"}) == "4,096 · bf16"
