"""The table of strategies that both sides of the process boundary share."""

import pytest

from explorer.engine.strategies import STRATEGIES as BUILT
from explorer.model.errors import UsageError
from explorer.model.strategies import (
    DEFAULT_SPECS,
    NOT_YET_BUILT,
    STRATEGIES,
    all_specs,
    parse_spec,
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


@pytest.mark.parametrize("spec", [*NOT_YET_BUILT, "plan:scale+mask|softmax", "triton:flash"])
def test_what_a_later_release_brings_says_so(spec: str) -> None:
    with pytest.raises(UsageError, match="is not yet built; there are eager, "):
        parse_spec(spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("fastest", "There is no strategy 'fastest'; there are eager, compile, "),
        ("", "There is no strategy ''"),
        ("compile:fast", "has no option 'fast'; it can be compile, compile:reduce-overhead"),
        ("compile:", "has no option ''"),
        ("eager:x", "has no option 'x'; it can be eager"),
    ],
)
def test_what_is_unknown_is_refused_with_what_there_is(spec: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(spec)
    assert words in str(caught.value)
