"""The table of strategies that both sides of the process boundary share."""

import pytest

from explorer.engine.strategies import STRATEGIES as BUILT
from explorer.model.errors import UsageError
from explorer.model.fusion import PRESETS
from explorer.model.strategies import (
    DEFAULT_SPECS,
    NOT_YET_BUILT,
    STRATEGIES,
    all_specs,
    is_plan,
    parse_spec,
    plan_spec,
)


def test_every_entry_is_built_and_every_built_one_has_an_entry() -> None:
    assert [strategy.spec for strategy in BUILT] == list(all_specs())


@pytest.mark.parametrize("spec", all_specs())
def test_a_spec_is_read_and_written_back(spec: str) -> None:
    info = parse_spec(spec)
    assert info.spec == spec
    assert info.title
    assert (info.option is None) == (":" not in spec)


def test_names_and_titles_are_unique() -> None:
    titles = [variant.title for strategy in STRATEGIES for variant in strategy.variants]
    assert len(set(titles)) == len(titles) == len(set(all_specs()))
    assert set(DEFAULT_SPECS) <= set(all_specs())


@pytest.mark.parametrize("spec", [*NOT_YET_BUILT, "triton:flash"])
def test_what_a_later_release_brings_says_so(spec: str) -> None:
    with pytest.raises(UsageError, match="is not yet built; there are eager, "):
        parse_spec(spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("fastest", "There is no strategy 'fastest'; there are eager, compile, "),
        ("", "There is no strategy ''"),
        ("plann:scale+mask", "quack, flashinfer and plan:TEXT."),
        ("plan:", "for every plan, or one of plan:each, plan:inductor, plan:all."),
        ("compile:fast", "has no option 'fast'; it can be compile, compile:reduce-overhead"),
        ("compile:", "has no option ''"),
        ("eager:x", "has no option 'x'; it can be eager"),
    ],
)
def test_what_is_unknown_is_refused_with_what_there_is(spec: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(spec)
    assert words in str(caught.value)


def test_a_plan_is_a_strategy_whose_option_is_its_text() -> None:
    info = parse_spec("plan:scale+mask|softmax")
    assert (info.name, info.option) == ("plan", "scale+mask|softmax")
    assert info.spec == plan_spec("scale+mask|softmax") == "plan:scale+mask|softmax"
    assert is_plan(info.spec)
    assert not is_plan("compile")
    for preset in PRESETS:
        assert parse_spec(f"plan:{preset}").title != preset
    for empty in ("plan", "plan:", "plan: "):
        with pytest.raises(UsageError, match="lacks its plan"):
            parse_spec(empty)
