"""What runs are called where several stand side by side: what tells them apart. No Qt."""

from collections.abc import Sequence

from explorer.model.param_sweep_words import value_text
from explorer.model.run import Run
from explorer.ui.words import SEPARATOR, direction_words, run_title


def difference_words(run: Run, beside: Sequence[Run]) -> str:
    """What a run has that others beside it have not: ``variant split``, ``seq_len 2,048``, ``fp8``.

    Args:
        run: One of those.
        beside: All that stand side by side.

    Returns:
        Empty where parameters and direction are the same for all of one chain.
    """
    alike = [each for each in beside if each.chain.name == run.chain.name]
    parts = [
        # A type of number says by itself what it is.
        value_text(value) if name == "dtype" else f"{name} {value_text(value)}"
        for name, value in run.chain.parameters.items()
        if any(each.chain.parameters.get(name) != value for each in alike)
    ]
    if any(each.chain.direction is not run.chain.direction for each in alike):
        parts.append(direction_words(run.chain.direction))
    return SEPARATOR.join(parts)


def title_among(run: Run, beside: Sequence[Run]) -> str:
    """A run's title; where two side by side have the same, with what tells all of them apart."""
    titles = [run_title(each) for each in beside]
    is_clear = run.label or len(set(titles)) == len(titles)
    difference = "" if is_clear else difference_words(run, beside)
    return SEPARATOR.join(filter(None, (run_title(run), difference)))
