"""What runs are called side by side: no more than tells them apart."""

from dataclasses import replace

from explorer.model.run import Direction, Run
from explorer.ui.roofline_picture import picture_of
from explorer.ui.run_names import title_among
from tests.fixtures_param_sweep import variant_sweep
from tests.fixtures_runs import compiled_attention, eager_attention


def titles(*runs: Run) -> list[str]:
    return [title_among(run, runs) for run in runs]


def test_a_strategy_alone_is_enough_where_every_run_has_another() -> None:
    assert titles(eager_attention(), compiled_attention()) == ["eager", "torch.compile"]


def test_runs_of_one_strategy_say_in_which_setting_they_differ() -> None:
    first, _, second, _ = variant_sweep()
    assert titles(first, second) == ["eager · variant three", "eager · variant one"]


def test_a_type_of_number_needs_no_name() -> None:
    run = eager_attention()
    chain = replace(run.chain, parameters={**run.chain.parameters, "dtype": "fp8"})
    assert titles(run, replace(run, chain=chain)) == ["eager · bf16", "eager · fp8"]


def test_then_the_others_beside_them_say_it_too() -> None:
    first, other, second, _ = variant_sweep()
    assert titles(first, other, second)[1] == "torch.compile · variant three"


def test_runs_of_one_strategy_say_their_direction_where_it_differs() -> None:
    run = eager_attention()
    both = replace(run, chain=replace(run.chain, direction=Direction.FORWARD_BACKWARD))
    assert titles(run, both) == ["eager · forward", "eager · forward + backward"]


def test_a_name_that_somebody_gave_stays() -> None:
    first, _, second, _ = variant_sweep()
    assert titles(replace(first, label="before"), second) == ["before", "eager"]
    named = replace(first, label="eager")
    assert titles(named, second) == ["eager", "eager · variant one"]


def test_marks_in_the_roofline_are_told_apart() -> None:
    first, _, second, _ = variant_sweep()
    marks = picture_of((first, second), 0).marks
    assert [mark.title for mark in marks] == ["eager · variant three", "eager · variant one"]
