"""The code of the chains that draw nothing: inputs, references, parts as written."""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest
import torch

from explorer.engine.chain_functions import CHAIN_CODE
from explorer.engine.prepare import ChosenChain, capture_chain, make_ready
from explorer.engine.prepared import Prepared
from explorer.model.run import Scalar

if TYPE_CHECKING:
    from explorer.engine.chain_functions.base import ReferenceSlice

CPU = torch.device("cpu")
ROWS: dict[str, object] = {"rows": 13, "columns": 40}
SETTINGS: dict[str, dict[str, object]] = {
    "rmsnorm": ROWS,
    "residual-rmsnorm": ROWS,
    "layernorm": ROWS,
    "residual-layernorm": ROWS,
    "layernorm-gelu": ROWS,
    "bias-gelu": ROWS,
    "swiglu": ROWS,
    "geglu": ROWS,
    "rotary": {"batch": 2, "heads": 3, "seq_len": 13, "head_dim": 10},
    "cross-entropy": {"rows": 13, "vocabulary": 40},
    "adam": {"elements": 101},
    "elementwise": {"elements": 101, "k": 7},
}
TABLES = {"cos", "sin"}
"""Inputs that are what they are, whatever the seed."""
EVERY_CHAIN = pytest.mark.parametrize("chain", SETTINGS)


@functools.cache
def chosen(chain: str, **settings: Scalar) -> ChosenChain:
    return capture_chain(chain, {**SETTINGS[chain], **settings}, CPU)


def small(chain: str, seed: int = 0, **settings: Scalar) -> Prepared:
    return make_ready(chosen(chain, **settings), seed)


def copies(inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in inputs.items()}


def results_in_fp64(prepared: Prepared) -> list[torch.Tensor]:
    """Every result of the chain's own code on fp64 copies of the inputs."""
    inputs = {
        name: tensor.double() if tensor.is_floating_point() else tensor
        for name, tensor in prepared.inputs.items()
    }
    returned = prepared.function(*inputs.values())
    if returned is None:
        handed_out: tuple[torch.Tensor, ...] = ()
    else:
        handed_out = (returned,) if isinstance(returned, torch.Tensor) else returned
    return [*handed_out, *(inputs[name] for name in prepared.updated)]


@EVERY_CHAIN
def test_the_seed_decides_the_inputs(chain: str) -> None:
    same, again, other = (small(chain, seed) for seed in (1, 1, 2))
    assert same.inputs.keys() == CHAIN_CODE[chain].input_specs(same.parameters).keys()
    for name, tensor in same.inputs.items():
        assert torch.equal(tensor, again.inputs[name])
        assert torch.equal(tensor, other.inputs[name]) == (name in TABLES)


@EVERY_CHAIN
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_the_inputs_are_as_specified(chain: str, dtype: str) -> None:
    prepared = small(chain, dtype=dtype)
    for name, spec in CHAIN_CODE[chain].input_specs(prepared.parameters).items():
        tensor = prepared.inputs[name]
        assert (tuple(tensor.shape), tensor.dtype) == (spec.shape, spec.dtype)
        assert tensor.isfinite().all()


def parts(prepared: Prepared, max_bytes: int) -> list["ReferenceSlice"]:
    code = CHAIN_CODE[prepared.chain.id]
    return list(code.reference(prepared.parameters, prepared.inputs, max_bytes))


@EVERY_CHAIN
@pytest.mark.parametrize("max_bytes", [1, 5000, 1 << 30])
def test_the_reference_is_the_chain_in_fp64_however_it_is_sliced(
    chain: str, max_bytes: int
) -> None:
    prepared = small(chain)
    expected = results_in_fp64(prepared)
    whole = [torch.full(result.shape, torch.nan, dtype=torch.float64) for result in expected]
    for part in parts(prepared, max_bytes):
        # Each part is computed once.
        assert whole[part.output][part.index].isnan().all()
        whole[part.output][part.index] = part.values
    for got, wanted in zip(whole, expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chain", [chain for chain in SETTINGS if chain != "cross-entropy"])
def test_a_reference_cut_short_has_looked_at_more_than_the_beginning(chain: str) -> None:
    starts = (
        [place.start if isinstance(place, slice) else place for place in part.index]
        for part in parts(small(chain), 1)
    )
    for axis in zip(*starts, strict=True):
        assert max(axis[: len(axis) // 3]) > max(axis) / 2


def test_the_loss_is_one_number_to_which_every_row_belongs() -> None:
    for max_bytes in (1, 1 << 30):
        [part] = parts(small("cross-entropy"), max_bytes)
        assert (part.index, part.values.shape) == ((), ())


@EVERY_CHAIN
def test_a_part_as_written_is_that_part_of_the_whole_and_changes_nothing(chain: str) -> None:
    prepared = small(chain, dtype="bf16")
    code = CHAIN_CODE[chain]
    before = copies(prepared.inputs)
    got = [
        (part, code.slice_as_written(prepared.parameters, prepared.inputs, part.index, part.output))
        for part in parts(prepared, 5000)
    ]
    for name, tensor in prepared.inputs.items():
        assert torch.equal(tensor, before[name])
    results = prepared.results(prepared.function(*prepared.inputs.values()))
    for part, values in got:
        assert values.dtype == torch.bfloat16
        torch.testing.assert_close(values, results[part.output][part.index])


@EVERY_CHAIN
def test_nothing_is_random(chain: str) -> None:
    prepared = small(chain)
    code = CHAIN_CODE[chain]
    assert code.without_randomness(prepared.parameters) == prepared.parameters
    assert code.distribution(prepared.parameters, prepared.inputs, torch.Tensor, 0.0) == ()
    assert code.sdpa is None


def test_residual_rmsnorm_hands_out_the_norm_and_the_sum() -> None:
    prepared = small("residual-rmsnorm")
    y, h = prepared.results(prepared.function(*prepared.inputs.values()))
    assert torch.equal(h, prepared.inputs["x"] + prepared.inputs["res"])
    torch.testing.assert_close(
        y, torch.nn.functional.rms_norm(h, (40,), prepared.inputs["w"], eps=1e-6)
    )


def test_adam_is_torchs_adam_at_its_tenth_step() -> None:
    prepared = small("adam")
    inputs = copies(prepared.inputs)
    parameter = torch.nn.Parameter(inputs["p"])
    parameter.grad = inputs["g"]
    optimizer = torch.optim.Adam([parameter], lr=1e-3, foreach=False)
    optimizer.state[parameter] = {
        "step": torch.tensor(9.0),
        "exp_avg": inputs["m"],
        "exp_avg_sq": inputs["v"],
    }
    optimizer.step()
    assert prepared.updated == ("m", "v", "p")
    m, v, p = prepared.results(prepared.function(*prepared.inputs.values()))
    torch.testing.assert_close(m, inputs["m"])
    torch.testing.assert_close(v, inputs["v"])
    torch.testing.assert_close(p, parameter.detach())


def test_adams_step_is_large_enough_to_be_missed_in_bf16() -> None:
    """Else a chain that forgot the update would pass as exact."""
    prepared = small("adam", dtype="bf16")
    before = prepared.inputs["p"].clone()
    prepared.function(*prepared.inputs.values())
    rounding = torch.finfo(torch.bfloat16).eps * float(before.abs().max())
    assert float((prepared.inputs["p"] - before).abs().max()) > 2 * rounding


def test_inputs_that_calls_updated_are_put_back() -> None:
    prepared = small("adam")
    before = copies(prepared.inputs)
    for _ in range(3):
        prepared.function(*prepared.inputs.values())
    assert not torch.equal(prepared.inputs["p"], before["p"])
    memory = {name: tensor.data_ptr() for name, tensor in prepared.inputs.items()}
    prepared.restore_inputs()
    for name, tensor in prepared.inputs.items():
        assert torch.equal(tensor, before[name])
        assert tensor.data_ptr() == memory[name]


@pytest.mark.parametrize("k", [1, 2, 5, 32])
def test_any_number_of_elementwise_ops_keeps_values_bounded(k: int) -> None:
    prepared = small("elementwise", k=k)
    assert len(prepared.graph.ops) == k
    [result] = prepared.results(prepared.function(*prepared.inputs.values()))
    largest = float(prepared.inputs["x"].abs().max())
    assert float(result.abs().max()) <= 1.25 * largest + 0.5
