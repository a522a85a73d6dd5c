"""Speed-ups, and the cases in which there must be none."""

from dataclasses import replace

import pytest

from explorer.model.comparison import (
    EQUAL_WORDS,
    NOT_CHECKED_WORDS,
    WITHHELD_WORDS,
    Condition,
    Verdict,
    check_words,
    distrust,
    find_baseline,
    headline,
    ranges_overlap,
    speed_up,
)
from explorer.model.run import (
    Clock,
    Direction,
    DistributionCheck,
    Run,
    Samples,
    StrategyInfo,
    Timing,
)
from tests.fixtures_runs import (
    compiled_attention,
    cpu_attention,
    eager_attention,
    failed_run,
    wrong_randomness,
    wrong_result,
)


def samples(q1_us: float, median_us: float, q3_us: float) -> Samples:
    return Samples(
        samples_us=(q1_us, median_us, q3_us), median_us=median_us, q1_us=q1_us, q3_us=q3_us, n=3,
        clock=Clock.EVENTS,
    )  # fmt: skip


def timed(run: Run, timing: Timing | None) -> Run:
    return replace(run, timing=timing)


def test_the_headline_is_cold_then_warm_then_graph() -> None:
    cold, warm, graph = samples(1, 2, 3), samples(4, 5, 6), samples(7, 8, 9)
    run = timed(eager_attention(), Timing(cold=cold, warm=warm, graph=graph))
    found = headline(run)
    assert found is not None
    assert (found.samples, found.condition) == (cold, Condition.COLD)
    found = headline(timed(run, Timing(warm=warm, graph=graph)))
    assert found is not None
    assert (found.samples, found.condition.value) == (warm, "warm L2")
    found = headline(timed(run, Timing(graph=graph)))
    assert found is not None
    assert found.condition is Condition.GRAPH
    assert headline(timed(run, None)) is None


@pytest.mark.parametrize(("mine", "theirs"), [(0, 5), (5, 0), (0, 0)])
def test_a_time_of_zero_gives_no_ratio(mine: float, theirs: float) -> None:
    """A view that says how many times slower a run is divides by the ratio."""
    run, baseline = (
        timed(eager_attention(), Timing(cold=samples(time, time, time))) for time in (mine, theirs)
    )
    assert speed_up(run, baseline) is None


def test_a_speed_up_is_the_ratio_of_the_medians() -> None:
    eager = timed(eager_attention(), Timing(cold=samples(5300, 5350, 5400)))
    compiled = timed(compiled_attention(), Timing(cold=samples(3860, 3870, 3880)))
    found = speed_up(compiled, eager)
    assert found is not None
    assert found.ratio == pytest.approx(1.38243, rel=1e-5)
    assert found.verdict is Verdict.FASTER
    assert found.text == "1.38×"
    assert (found.baseline, found.condition) == ("eager", Condition.COLD)
    back = speed_up(eager, compiled)
    assert back is not None
    assert back.verdict is Verdict.SLOWER
    assert back.text == "0.723×"


@pytest.mark.parametrize(
    ("mine", "verdict"),
    [
        (samples(80, 85, 89), Verdict.FASTER),
        (samples(80, 85, 90), Verdict.EQUAL),  # touching counts as overlap
        (samples(50, 60, 91), Verdict.EQUAL),
        (samples(95, 100, 105), Verdict.EQUAL),
        (samples(110, 140, 150), Verdict.EQUAL),
        (samples(111, 140, 150), Verdict.SLOWER),
    ],
)
def test_overlapping_quartiles_make_it_equal(mine: Samples, verdict: Verdict) -> None:
    theirs = samples(90, 100, 110)
    run = timed(compiled_attention(), Timing(cold=mine))
    found = speed_up(run, timed(eager_attention(), Timing(cold=theirs)))
    assert found is not None
    assert found.verdict is verdict
    assert ranges_overlap(mine, theirs) == ranges_overlap(theirs, mine)
    assert (found.text == EQUAL_WORDS) == (verdict is Verdict.EQUAL)


def test_only_like_is_compared_with_like() -> None:
    cold = timed(compiled_attention(), Timing(cold=samples(1, 2, 3), warm=samples(4, 5, 6)))
    warm = timed(eager_attention(), Timing(warm=samples(40, 50, 60)))
    found = speed_up(cold, warm)
    assert found is not None
    assert found.condition is Condition.WARM
    assert found.ratio == pytest.approx(10)
    assert speed_up(timed(cold, Timing(cold=samples(1, 2, 3))), warm) is None
    assert speed_up(timed(cold, None), warm) is None


def test_the_baseline_is_eager_on_the_same_work() -> None:
    eager, run = eager_attention(), compiled_attention()
    assert find_baseline(run, (eager, run)) is eager
    assert find_baseline(run, (run, eager)) is eager
    assert find_baseline(eager, (eager, run)) is None
    assert find_baseline(run, (run,)) is None
    assert find_baseline(run, (failed_run(), run)) is None
    assert find_baseline(cpu_attention(), (eager, cpu_attention())) is None


def test_the_nearest_baseline_before_wins() -> None:
    run = compiled_attention()
    first, second, third = (eager_attention(name) for name in "abc")
    assert find_baseline(run, (first, second, run, third)) is second


def test_other_work_is_no_baseline() -> None:
    run, eager = compiled_attention(), eager_attention()
    others = (
        replace(eager, chain=replace(eager.chain, parameters={"batch": 1})),
        replace(eager, chain=replace(eager.chain, direction=Direction.FORWARD_BACKWARD)),
        replace(eager, device=replace(eager.device, id="cuda:1")),
        replace(eager, versions=replace(eager.versions, torch="2.13.0")),
        replace(eager, strategy=StrategyInfo(name="sdpa")),
    )
    assert find_baseline(run, (*others, run)) is None


def test_a_wrong_result_has_no_speed_up() -> None:
    eager, run = eager_attention(), wrong_result(compiled_attention())
    found = speed_up(run, eager)
    assert found is not None
    assert (found.verdict, found.ratio, found.text) == (Verdict.WITHHELD, None, WITHHELD_WORDS)
    assert found.reason == distrust(run) == (
        "Its result is wrong: it is off by up to 2.1e-01 from the fp64 reference, "
        "eager by 3.9e-03."
    )  # fmt: skip


def test_nothing_is_faster_than_a_wrong_baseline() -> None:
    found = speed_up(compiled_attention(), wrong_result(eager_attention()))
    assert found is not None
    assert (found.verdict, found.ratio) == (Verdict.WITHHELD, None)
    assert found.reason.startswith("eager is no baseline. Its result is wrong")


def test_wrong_times_that_overlap_are_withheld_too() -> None:
    eager = eager_attention()
    found = speed_up(replace(wrong_randomness(eager), id="again"), eager)
    assert found is not None
    assert found.verdict is Verdict.WITHHELD


def test_wrong_randomness_is_told_with_the_rate_that_the_kernel_has() -> None:
    assert distrust(wrong_randomness(compiled_attention())) == (
        "Its randomness is wrong: share of probabilities kept, 1 − p: 0.8008, expected 0.8984 "
        "± 0.0005 (230 of 256; the chain asks for 0.9)."
    )


def test_a_rate_that_is_met_is_told_without_a_second_one() -> None:
    check = DistributionCheck(
        name="share kept", expected=0.9, observed=0.9001, tolerance=0.0002, passed=True, nominal=0.9
    )
    assert check_words(check) == "share kept: 0.9001, expected 0.9 ± 0.0002"


@pytest.mark.parametrize(
    ("n", "words"), [(1, "a value of it is no finite number"), (4096, "4,096 values of it are no")]
)
def test_values_that_are_not_finite_come_first(n: int, words: str) -> None:
    run = wrong_result(wrong_randomness(compiled_attention()))
    assert run.accuracy is not None
    run = replace(run, accuracy=replace(run.accuracy, not_finite=n))
    assert words in distrust(run)


def test_what_was_not_checked_says_so() -> None:
    eager, run = eager_attention(), compiled_attention()
    for pair in ((replace(run, accuracy=None), eager), (run, replace(eager, accuracy=None))):
        found = speed_up(*pair)
        assert found is not None
        assert found.verdict is Verdict.FASTER
        assert found.text.endswith(f"×, {NOT_CHECKED_WORDS}")
    assert distrust(replace(run, accuracy=None)) == ""
    assert distrust(run) == ""
