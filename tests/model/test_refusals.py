"""Words of the refusals, and finding the one between two ops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from explorer.model.refusals import REASON_WORDS, refusal_between
from explorer.model.run import CompileCost, FusionRefusal, RefusalReason
from tests.fixtures_runs import eager_attention

REFUSAL = FusionRefusal(
    first="qk", second="scale", sentence="qk is a matmul.", reason=RefusalReason.MATMUL
)


@pytest.mark.parametrize("reason", list(RefusalReason))
def test_every_kind_has_a_short_title_and_one_sentence(reason: RefusalReason) -> None:
    words = REASON_WORDS[reason]

    assert 1 < len(words.title.split()) <= 3
    assert words.meaning.endswith(".")
    assert ". " not in words.meaning


def test_titles_differ() -> None:
    assert len({words.title for words in REASON_WORDS.values()}) == len(RefusalReason)


@pytest.mark.parametrize("pair", [("qk", "scale"), ("scale", "qk")])
def test_it_is_found_in_either_order(pair: tuple[str, str]) -> None:
    run = replace(eager_attention(), compile=CompileCost(first_call_s=1.0, refusals=(REFUSAL,)))

    assert refusal_between(run, *pair) is REFUSAL


def test_there_is_none_where_ops_share_a_kernel_or_nothing_was_compiled() -> None:
    compiled = replace(
        eager_attention(), compile=CompileCost(first_call_s=1.0, refusals=(REFUSAL,))
    )

    assert refusal_between(compiled, "scale", "mask") is None
    assert refusal_between(eager_attention(), "qk", "scale") is None
