"""What is said of a run's accuracy where its speed-up stands."""

from explorer.model.comparison import check_words
from explorer.model.run import Run
from explorer.ui.words import percent


def accuracy_sentence(run: Run) -> str:
    """How far the results lie from the reference, and what the random ops came to."""
    accuracy = run.accuracy
    if accuracy is None:
        return "Its results were not checked."
    eager = accuracy.eager_max_abs_error
    beside = "" if eager is None else f", eager by {eager:.1e}"
    error = (
        f"Off by up to {accuracy.max_abs_error:.1e} from the fp64 reference{beside}, on "
        f"{percent(accuracy.coverage)} of the output."
    )
    checks = "; ".join(check_words(check) for check in accuracy.distribution)
    return f"{error} Random: {checks}." if checks else error


def kept_words(run: Run) -> str:
    """Where random numbers of few steps make another rate than the chain asks for, both of them."""
    checks = run.accuracy.distribution if run.accuracy else ()
    for check in checks:
        if check.nominal is not None and check.resolution > 0 and check.nominal != check.expected:
            kept, steps = round(check.expected / check.resolution), round(1 / check.resolution)
            p = f"p is {1 - check.expected:.3g}, not {1 - check.nominal:.3g}"
            return f"keeps {kept} of {steps}: {p}"
    return ""
