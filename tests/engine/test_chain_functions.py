"""The attention chain's code: its inputs, its reference, the checks of its dropout."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import torch

from explorer.chains import CHAINS
from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.prepare import prepare
from explorer.engine.prepared import Prepared
from tests.engine.returned import only

if TYPE_CHECKING:
    from explorer.model.run import Scalar

CPU = torch.device("cpu")
CODE = CHAIN_CODE["attention"]


def small(**settings: object) -> Prepared:
    return prepare("attention", {"heads": 2, "seq_len": 48, "head_dim": 16, **settings}, CPU)


def truth(prepared: Prepared, max_bytes: int) -> torch.Tensor:
    """The reference put together from its slices; what no slice covers stays NaN."""
    whole = torch.full(prepared.inputs["q"].shape, torch.nan, dtype=torch.float64)
    for part in CODE.reference(prepared.parameters, prepared.inputs, max_bytes):
        whole[part.index] = part.values
    return whole


def test_every_chain_has_its_code() -> None:
    assert CHAIN_CODE.keys() == CHAINS.keys()


def test_the_seed_decides_the_inputs() -> None:
    same, again, other = (prepare("attention", {"seq_len": 16}, CPU, seed) for seed in (1, 1, 2))
    for name, tensor in same.inputs.items():
        assert torch.equal(tensor, again.inputs[name])
        assert not torch.equal(tensor, other.inputs[name])


def test_the_mask_is_additive_causal_or_none() -> None:
    assert small().inputs["mask"].isfinite().all()
    assert "mask" not in small(mask="none").inputs
    causal = small(mask="causal").inputs["mask"]
    above = torch.ones(48, 48, dtype=torch.bool).triu(1)
    assert (causal[above] == -torch.inf).all()
    assert (causal[~above] == 0).all()


def test_the_chains_of_torchs_attention_operator_are_known_without_torch() -> None:
    by_operator = {name for name, code in CHAIN_CODE.items() if code.sdpa is not None}
    # The block has attention in it, and much else.
    assert by_operator - {"decoder-block"} == {
        chain.id for chain in CHAINS.values() if chain.is_attention
    }


@pytest.mark.parametrize("mask", ["additive", "causal", "none"])
@pytest.mark.parametrize("max_bytes", [1, 3 * 8 * 48 * 7, 1 << 30])
def test_the_reference_is_the_chain_in_fp64_however_it_is_sliced(mask: str, max_bytes: int) -> None:
    prepared = small(mask=mask, dropout=0)
    in_fp64 = [tensor.double() for tensor in prepared.inputs.values()]
    torch.testing.assert_close(
        truth(prepared, max_bytes), prepared.function(*in_fp64), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("mask", ["additive", "causal", "none"])
def test_a_slice_as_written_is_that_part_of_the_whole(mask: str) -> None:
    prepared = small(mask=mask, dropout=0.5, batch=2)
    calm = CODE.make_function(CODE.without_randomness(prepared.parameters))
    whole = only(calm(*prepared.inputs.values()))
    index = (1, 0, slice(5, 17))
    got = CODE.slice_as_written(prepared.parameters, prepared.inputs, index, 0)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got, whole[index])


@pytest.mark.parametrize("mask", ["additive", "causal", "none"])
def test_sdpa_is_the_same_function(mask: str) -> None:
    prepared = small(mask=mask, dropout=0)
    assert CODE.sdpa is not None
    got = only(CODE.sdpa(prepared.parameters)(*prepared.inputs.values()))
    torch.testing.assert_close(got.double(), truth(prepared, 1 << 20), rtol=1e-5, atol=1e-6)


def call_of(prepared: Prepared) -> Callable[[], torch.Tensor]:
    return lambda: only(prepared.function(*prepared.inputs.values()))


@pytest.mark.parametrize("mask", ["additive", "causal", "none"])
@pytest.mark.parametrize("p_drop", [0.1, 0.75])
def test_dropout_passes_its_checks_and_the_inputs_are_put_back(mask: str, p_drop: float) -> None:
    torch.manual_seed(0)
    prepared = small(mask=mask, dropout=p_drop)
    before = {name: tensor.clone() for name, tensor in prepared.inputs.items()}
    checks = CODE.distribution(prepared.parameters, prepared.inputs, call_of(prepared), 0.0)
    assert [check.passed for check in checks] == [True, True, True]
    for name, tensor in prepared.inputs.items():
        assert torch.equal(tensor, before[name])


def test_dropout_at_the_wrong_rate_is_found() -> None:
    torch.manual_seed(0)
    claimed, real = small(dropout=0.1), small(dropout=0.2)
    inputs = claimed.inputs
    kept, mean, values = CODE.distribution(
        claimed.parameters, inputs, lambda: only(real.function(*inputs.values())), 0.0
    )
    assert not kept.passed
    assert kept.observed == pytest.approx(0.8, abs=0.03)
    assert kept.nominal == kept.expected == 0.9
    assert mean.passed
    assert not values.passed, "the kept ones are scaled up by 1 / 0.8"


def test_dropout_that_does_not_scale_up_is_found() -> None:
    torch.manual_seed(0)
    prepared = small(dropout=0.2)
    kept, mean, values = CODE.distribution(
        prepared.parameters, prepared.inputs, lambda: call_of(prepared)() * 0.8, 0.0
    )
    assert kept.passed
    assert not mean.passed
    assert not values.passed


def test_kept_probabilities_are_compared_where_they_differ() -> None:
    """A kernel that gives every key the same weight passes on equal probabilities only."""
    torch.manual_seed(0)
    prepared = small(dropout=0.2)
    inputs = prepared.inputs

    def flat() -> torch.Tensor:
        q = inputs["q"]
        probs = torch.full((*q.shape[:-1], q.shape[-2]), 1 / q.shape[-2])
        return torch.dropout(probs, 0.2, True) @ inputs["v"]

    kept, mean, values = CODE.distribution(prepared.parameters, inputs, flat, 0.0)
    assert kept.passed
    assert mean.passed
    assert not values.passed


def test_without_randomness_there_is_nothing_to_check() -> None:
    prepared = small(dropout=0)
    assert CODE.without_randomness(prepared.parameters) == prepared.parameters
    assert CODE.distribution(prepared.parameters, prepared.inputs, call_of(prepared), 0.0) == ()


def test_probabilities_too_small_for_fp16s_digits_pass_all_the_same() -> None:
    """At 2^19 keys a probability is 32 of fp16's smallest steps, so scaling it up rounds."""
    seq_len, p_drop = 1 << 19, 0.1
    parameters: dict[str, Scalar] = {
        "batch": 1, "heads": 1, "seq_len": seq_len, "head_dim": 8, "dtype": "fp16",
        "dropout": p_drop, "mask": "none",
    }  # fmt: skip
    inputs = {name: torch.ones(1, 1, seq_len, 8, dtype=torch.float16) for name in ("q", "k", "v")}

    def dropped() -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        kept = torch.rand(1, 1, seq_len, 8, generator=generator) >= p_drop
        scaled = torch.tensor(1 / seq_len, dtype=torch.float16) / (1 - p_drop)
        return kept * scaled

    kept, mean, values = CODE.distribution(parameters, inputs, dropped, 0.0)
    assert kept.passed
    assert mean.passed
    assert values.passed
    assert abs(mean.observed - 1) > torch.finfo(torch.float16).eps
    # What is not scaled up is found at this length too.
    _, mean, _ = CODE.distribution(parameters, inputs, lambda: dropped() * (1 - p_drop), 0.0)
    assert not mean.passed
