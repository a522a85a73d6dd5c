"""How a module is made of its class: which config it gets, and what its parameters hold."""

import torch

from explorer.engine.own_code.construct import FillingEmpty
from explorer.engine.prepare import ChosenChain, make_ready
from tests.engine.own_code.helpers import MODULES, captured

TOWER = f"{MODULES / 'configured.py'}:TowerExperts"


def held(chosen: ChosenChain, seed: int) -> dict[str, torch.Tensor]:
    return make_ready(chosen, seed).inputs


def test_a_part_of_a_model_gets_the_config_of_a_part_and_runs_as_written() -> None:
    chosen = captured(TOWER, "x=fp32[4,16]", "width=16")
    assert chosen.input_specs["weight"].shape == (16, 16)
    assert [op.piece for op in chosen.captured.graph.ops] == [0, 0]


def test_parameters_that_a_constructor_gives_no_values_follow_the_seed() -> None:
    chosen = captured(TOWER, "x=fp32[4,128]", "width=128")
    first, again, other = held(chosen, 0), held(chosen, 0), held(chosen, 1)
    assert torch.equal(first["weight"], again["weight"])
    assert not torch.equal(first["weight"], other["weight"])
    # 16384 values: their standard deviation is known to within a few percent.
    assert abs(float(first["weight"].detach().std()) - 0.02) < 0.001
    assert not first["counts"].any()


def test_every_way_to_leave_memory_empty_is_filled() -> None:
    like = torch.ones(4, 4)
    with FillingEmpty():  # type: ignore[no-untyped-call] # torch has no hints there
        made = [
            torch.empty(4, 4),
            torch.empty_like(like),
            like.new_empty(4, 4),
            torch.empty_strided((4, 4), (4, 1)),
            torch.empty(4, 4, dtype=torch.bfloat16),
        ]
    for tensor in made:
        assert 0 < tensor.abs().max() < 0.2
