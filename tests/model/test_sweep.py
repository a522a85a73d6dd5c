"""Plans side by side: which count, which are on the front, and what is said of them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from explorer.model.comparison import Condition
from explorer.model.fusion import FusionPlan, parse_plan
from explorer.model.run import Bytes, Pedigree, Run, Timing
from explorer.model.sweep import (
    Sweep,
    SweepPoint,
    is_swept,
    pareto_front,
    possible_plans,
    rank_correlation,
    sweep_of,
)
from explorer.model.sweep_words import findings, pedigree_words, point_words, short_finding, tags
from tests.fixtures_runs import CPU, cpu_attention, eager_attention
from tests.fixtures_sweep import (
    MEASURED,
    OPS,
    broken,
    compiled_scores,
    eager_scores,
    many_plans,
    plan_run,
    scores_graph,
    scores_sweep,
    timed,
    wrong,
)

ALL = "scale+mask+softmax+dropout"
BEST = "scale+mask+softmax|dropout"
EACH = "scale|mask|softmax|dropout"


def made(runs: Sequence[Run]) -> Sweep:
    """The sweep of runs that have plans."""
    sweep = sweep_of(runs)
    assert sweep is not None
    return sweep


def at(sweep: Sweep, text: str) -> SweepPoint:
    """The point of a plan."""
    return next(point for point in sweep.points if point.text == text)


def spot(us: float, n_bytes: int, *, spread: float = 0.0, usable: bool = True) -> SweepPoint:
    """A point anywhere."""
    run = timed(plan_run(ALL), us, spread)
    time = run.timing.cold if run.timing else None
    return SweepPoint(
        run=run, plan=FusionPlan((OPS,)), time=time, bytes_read=n_bytes, bytes_written=0,
        launches=1, peak_bytes=None, distrust="" if usable else "It is wrong.",
    )  # fmt: skip


def test_every_plan_once_with_its_numbers() -> None:
    sweep = made(scores_sweep())
    assert sweep.points[0].text == EACH
    assert sorted(point.text for point in sweep.points) == sorted(MEASURED)
    assert (sweep.pedigree, sweep.condition) == (Pedigree.COUNTED, Condition.COLD)
    point = at(sweep, BEST)
    assert (point.bytes_read, point.bytes_written) == (3_221_000_000, 2_156_000_000)
    assert (point.traffic, point.launches) == (5_377_000_000, 2)
    assert point.median_us == 1001 + 1660 + 8
    assert (sweep.possible, sweep.done) == (8, 8)
    assert sweep.eager is not None
    assert sweep.eager.text == "eager"
    assert sweep.compiled is not None
    assert sweep.compiled.plan is None


def test_no_plan_no_sweep() -> None:
    assert sweep_of(()) is None
    assert sweep_of((eager_scores(), compiled_scores())) is None
    assert sweep_of(scores_sweep(), cpu_attention()) is None


def test_the_anchor_chooses_the_work() -> None:
    here = replace(plan_run(ALL), device=CPU)
    runs = (*scores_sweep(), here, eager_attention())
    assert len(made(runs).points) == 1
    whole = sweep_of(runs, eager_scores())
    assert whole is not None
    assert len(whole.points) == 8


def test_newest_run_of_a_plan_counts_unless_it_failed() -> None:
    again = timed(plan_run(ALL), 1000.0)
    sweep = made((*scores_sweep(), again, broken(plan_run(BEST))))
    assert at(sweep, ALL).median_us == 1000.0
    assert at(sweep, BEST).usable
    assert len(sweep.points) == 8


def test_bytes_of_one_pedigree_for_all() -> None:
    runs = [*scores_sweep()[:-1], plan_run(ALL, counted=False)]
    sweep = made(runs)
    assert sweep.pedigree is Pedigree.MODELLED
    assert at(sweep, EACH).traffic == sum(
        group.bytes_read + group.bytes_written for group in plan_run(EACH).groups
    )
    assert pedigree_words(sweep) == "bytes modelled, as not every plan's were counted"
    assert pedigree_words(made(scores_sweep(counted=False))) == "bytes modelled"
    assert pedigree_words(made(scores_sweep())) == "bytes counted"
    nothing = replace(plan_run(ALL).launches[0], bytes_read=Bytes(), bytes_written=Bytes())
    bare = made([plan_run(BEST), replace(plan_run(ALL), launches=(nothing,))])
    assert bare.pedigree is None
    assert bare.usable == ()
    assert bare.fastest is bare.leanest is bare.most_fused is None


def test_a_mark_without_the_common_pedigree_has_no_place() -> None:
    launch = replace(
        eager_scores().launches[0], bytes_read=Bytes(modelled=1), bytes_written=Bytes(modelled=1)
    )
    eager = replace(eager_scores(), launches=(launch,))
    sweep = made([eager, plan_run(ALL)])
    assert sweep.pedigree is Pedigree.COUNTED
    assert sweep.eager is not None
    assert not sweep.eager.is_placed


def test_times_of_one_condition_for_all() -> None:
    cold = plan_run(BEST)
    assert cold.timing is not None
    warm = replace(plan_run(ALL), timing=Timing(warm=cold.timing.cold))
    sweep = made([cold, warm])
    assert sweep.condition is Condition.COLD
    assert at(sweep, BEST).usable
    assert at(sweep, ALL).time is None
    assert "not timed like the others" in point_words(sweep, at(sweep, ALL))


def test_front_is_what_nothing_beats() -> None:
    lean, quick, beaten = spot(30, 100), spot(10, 300), spot(31, 120)
    assert pareto_front([beaten, quick, lean]) == (lean, quick)
    assert pareto_front([]) == ()
    assert pareto_front([beaten]) == (beaten,)


def test_times_that_overlap_are_equal_on_the_front() -> None:
    lean, noisy = spot(101, 100, spread=0.02), spot(100, 200, spread=0.02)
    assert pareto_front([noisy, lean]) == (lean,), "no faster for sure, but more bytes"
    clear = spot(90, 200, spread=0.02)
    assert pareto_front([clear, lean]) == (lean, clear)


def test_traffic_within_a_percent_is_equal_on_the_front() -> None:
    quick, slow = spot(10, 1009), spot(20, 1000)
    assert pareto_front([slow, quick]) == (quick,)
    assert pareto_front([slow, spot(10, 1011)])[0] is slow
    same = (spot(10, 1000), spot(10, 1005))
    assert pareto_front(same) == same


def test_a_point_that_is_not_trusted_is_never_on_the_front() -> None:
    wrong_one, slow = spot(1, 1, usable=False), spot(20, 1000)
    assert pareto_front([wrong_one, slow]) == (slow,)


def test_front_agrees_with_the_definition_on_many_points() -> None:
    points = [
        spot(100 - i + (i * 37) % 11, 1000 + 10 * i + (i * 53) % 31, spread=0.01 * (i % 4))
        for i in range(80)
    ]

    def beats(first: SweepPoint, second: SweepPoint) -> bool:
        assert first.time is not None
        assert second.time is not None
        mine, other = first.traffic or 0, second.traffic or 0
        if first.time.q3_us < second.time.q1_us and mine <= 1.01 * other:
            return True
        return first.time.q1_us <= second.time.q3_us and 1.01 * mine < other

    kept = [p for p in points if not any(beats(o, p) for o in points if o is not p)]
    found = pareto_front(points)
    assert len(found) > 1
    assert {id(p) for p in found} == {id(p) for p in kept}


def test_best_of_each_kind() -> None:
    sweep = made(scores_sweep())
    assert [point.text for point in sweep.front] == [BEST]
    named = {
        "fastest": sweep.fastest,
        "least": sweep.leanest,
        "fused": sweep.most_fused,
        "inductor": sweep.inductor_point,
    }
    assert {name: point.text for name, point in named.items() if point} == {
        "fastest": BEST,
        "least": BEST,
        "fused": ALL,
        "inductor": ALL,
    }
    assert tags(sweep, at(sweep, BEST)) == ("fastest", "least traffic")
    assert tags(sweep, at(sweep, ALL)) == ("most fused", "Inductor's choice")
    assert tags(sweep, at(sweep, EACH)) == ()


def test_several_plans_as_fused_have_no_first() -> None:
    runs = [plan_run(BEST), plan_run("scale+mask|softmax+dropout")]
    assert made(runs).most_fused is None


def test_inductors_choice_may_not_have_run_yet() -> None:
    sweep = made([compiled_scores(), plan_run(BEST)])
    assert sweep.inductor is not None
    assert sweep.inductor.text == ALL
    assert sweep.inductor_point is None
    assert made([plan_run(BEST)]).inductor is None


def test_a_run_of_that_preset_shows_inductors_choice_too() -> None:
    run = plan_run(BEST)
    asked = replace(run, strategy=replace(run.strategy, option="inductor"))
    sweep = made([plan_run(ALL), asked])
    assert sweep.inductor_point is at(sweep, BEST)


def test_wrong_values_and_failures_do_not_count() -> None:
    sweep = made([*scores_sweep()[:6], broken(plan_run(BEST)), wrong(plan_run(ALL))])
    assert not at(sweep, BEST).is_placed
    assert at(sweep, BEST).distrust == "The worker ended with signal 11."
    assert at(sweep, ALL).is_placed
    assert not at(sweep, ALL).usable
    assert sweep.fastest is not None
    assert sweep.fastest.text not in (ALL, BEST)
    assert sweep.done == 6
    assert any("2 plans are not used" in sentence for sentence in findings(sweep))
    assert "6 of 8 plans done." in findings(sweep)


def test_the_one_failure_is_named() -> None:
    sweep = made([*scores_sweep()[:-1], broken(plan_run(ALL))])
    words = [sentence for sentence in findings(sweep) if "not used" in sentence]
    assert words == [f"The time of {ALL} is not used: The worker ended with signal 11."]
    assert point_words(sweep, at(sweep, ALL)) == (ALL, "The worker ended with signal 11.")


def test_a_failed_preset_without_a_grouping_is_no_point() -> None:
    failed = broken(plan_run(ALL))
    unknown = replace(failed, strategy=replace(failed.strategy, option="inductor"))
    sweep = made([plan_run(BEST), unknown])
    assert [point.text for point in sweep.points] == [BEST]


def test_says_that_the_most_fused_is_not_the_fastest() -> None:
    first = findings(made(scores_sweep()))[0]
    assert first == (
        f"The most fused plan is not the fastest: {BEST} in 2 kernels takes 2.67 ms; "
        f"{ALL} in 1 kernel takes 2.82 ms and writes 3.22 GB where the plan needs 1.07 GB."
    )


def test_the_short_finding_names_no_plan() -> None:
    whole = short_finding(made(scores_sweep()))
    assert whole == (
        "The most fused plan is not the fastest: 1 kernel in 2.82 ms, 2 kernels in 2.67 ms."
    )
    best = short_finding(made([plan_run(BEST), timed(plan_run(ALL), 2400.0)]))
    assert best == "The most fused plan is the fastest: 2.40 ms."
    alike = short_finding(made([plan_run(BEST), timed(plan_run(ALL), 2672.0)]))
    assert alike == "The most fused plan is as fast as any within noise."
    assert short_finding(made([plan_run(BEST)])) == "Fastest so far: 2 kernels in 2.67 ms."
    assert "not used" in short_finding(made([broken(plan_run(ALL))]))


@pytest.mark.parametrize(
    ("median_us", "words"),
    [
        (2400.0, f"The most fused plan is the fastest: {ALL} in 1 kernel, 2.40 ms."),
        (2672.0, f"The most fused plan, {ALL}, is as fast as any within noise."),
    ],
)
def test_says_so_where_the_most_fused_is_as_good(median_us: float, words: str) -> None:
    runs = [*scores_sweep()[:-1], timed(plan_run(ALL), median_us)]
    assert findings(made(runs))[0] == words


def test_says_where_the_most_fused_plan_loses_its_time() -> None:
    told = findings(made(scores_sweep()))[1]
    assert told.startswith(
        "scale + mask + softmax + dropout take 2.82 ms in 1 kernel and 2.66 ms in 2 kernels "
        "(scale+mask+softmax|dropout). Both move as much, 5.37 GB counted."
    )
    assert told.endswith("memory alone does not set the pace.")


def test_says_what_inductors_choice_costs() -> None:
    assert findings(made(scores_sweep()))[2] == (
        f"Inductor's own choice, {ALL}, takes 1.06× the time of the fastest."
    )
    alike = [*scores_sweep()[:-1], timed(plan_run(ALL), 2672.0)]
    assert "as fast as any within noise" in findings(made(alike))[1]
    best = [*scores_sweep()[:-1], timed(plan_run(ALL), 2400.0)]
    assert findings(made(best))[1] == f"Inductor's own choice, {ALL}, is the fastest."


def test_says_that_times_do_not_follow_traffic() -> None:
    assert not any("follow traffic" in sentence for sentence in findings(made(scores_sweep())))
    turned = [
        timed(plan_run(text), 10_000.0 - made(scores_sweep()).points[i].median_us)
        for i, text in enumerate(point.text for point in made(scores_sweep()).points)
    ]
    words = [sentence for sentence in findings(made(turned)) if "follow traffic" in sentence]
    assert len(words) == 1
    assert "moves least, 5.37 GB" in words[0]


def test_rank_correlation() -> None:
    rising = [spot(10 * i, 100 * i) for i in range(1, 6)]
    assert rank_correlation(rising) == pytest.approx(1.0)
    falling = [spot(60 - 10 * i, 100 * i) for i in range(1, 6)]
    assert rank_correlation(falling) == pytest.approx(-1.0)
    # Ranks 1 2.5 2.5 4 against 1 2 3 4: 4.5 over the root of 4.5 times 5.
    tied = [spot(10, 100), spot(20, 200), spot(20, 300), spot(30, 400)]
    assert rank_correlation(tied) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert rank_correlation(rising[:3]) is None
    assert rank_correlation([spot(10, 100) for _ in range(5)]) is None


def test_words_of_a_point_hold_every_number() -> None:
    sweep = made(scores_sweep())
    assert point_words(sweep, at(sweep, ALL)) == (
        ALL,
        "2.82 ms, half of 5 calls between 2.81 ms and 2.84 ms, cold L2",
        "2.15 GB read, 3.22 GB written, counted",
        "1 kernel, peak 1.07 GB",
        "most fused, Inductor's choice",
    )


def test_which_plans_a_sweep_runs() -> None:
    graph = scores_graph()
    assert possible_plans(graph) == 8
    assert is_swept(parse_plan(BEST, OPS, "it"), graph)
    assert not is_swept(parse_plan("scale+softmax", OPS, "it"), graph)
    assert possible_plans(cpu_attention().graph) == 8, "matmuls at both ends stay alone"
    assert possible_plans(many_plans(1)[0].graph) == 2


def test_a_plan_of_ones_own_is_a_point_but_not_of_the_sweep() -> None:
    run = plan_run(BEST)
    text = "scale+softmax|mask|dropout"
    own = replace(run, strategy=replace(run.strategy, plan=text, option=text))
    sweep = made([run, own])
    assert len(sweep.points) == 2
    assert sweep.done == 1


def test_torch_compile_with_the_same_groups_and_other_kernels_is_accounted_for() -> None:
    whole = compiled_scores()
    others = tuple(
        replace(launch, kernel=f"{launch.kernel}_online", code=None) for launch in whole.launches
    )
    slower = timed(replace(whole, launches=others), 3170.0)
    sentence = "torch.compile groups the ops alike, yet takes 3.17 ms"
    assert any(sentence in each for each in findings(made([*scores_sweep(), slower])))
    chosen = next(run for run in scores_sweep() if run.strategy.plan == ALL)
    same = timed(replace(whole, launches=chosen.launches, code=chosen.code), 3170.0)
    assert not any(sentence in each for each in findings(made([*scores_sweep(), same])))
