"""Parameter sweeps read out of runs, and where fusion pays in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from explorer.model.comparison import Verdict
from explorer.model.param_sweep import ParameterSweep, point_title, sweeps_in
from explorer.model.param_sweep_words import (
    failure_label,
    findings,
    heading,
    point_words,
    short_finding,
    value_text,
)
from explorer.model.run import Direction, Pedigree, StrategyInfo
from explorer.model.sweep_payoff import Payoff, crossover, crossovers, growth
from tests.fixtures_param_sweep import (
    NO_ROOM,
    failed,
    k_sweep,
    seq_len_sweep,
    timed,
    variant_sweep,
    wrong,
)
from tests.fixtures_runs import CPU
from tests.fixtures_sweep import eager_scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from explorer.model.run import Run


def only(runs: Sequence[Run]) -> ParameterSweep:
    (sweep,) = sweeps_in(runs)
    return sweep


def with_ratios(ratios: Sequence[float]) -> list[Run]:
    """Eager at 100 µs and torch.compile that many times as fast, at k of 1, 2, 4 and so on."""
    runs = k_sweep(tuple(1 << i for i in range(len(ratios))))
    eager = [timed(run, 100.0) for run in runs[::2]]
    fused = [timed(run, 100.0 / ratio) for run, ratio in zip(runs[1::2], ratios, strict=True)]
    return [run for pair in zip(eager, fused, strict=True) for run in pair]


def test_a_sweep_has_a_series_a_strategy_in_the_order_of_values() -> None:
    sweep = only(list(reversed(k_sweep((1, 4, 2)))))

    assert sweep.values == (1, 2, 4)
    assert [series.spec for series in sweep.series] == ["compile", "eager"]
    assert [point.value for point in sweep.series[0].points] == [1, 2, 4]
    assert sweep.fixed == {"elements": 1 << 26, "dtype": "bf16"}
    assert sweep.is_numeric


def test_a_point_has_time_traffic_memory_and_speed_up() -> None:
    eager, fused = (series.at(8) for series in only(k_sweep()).series)

    assert eager is not None
    assert fused is not None
    # 8 kernels, each reading and writing 2^26 bf16 numbers, against one.
    n_bytes = 2 * 2 * (1 << 26)
    assert (eager.traffic, fused.traffic) == (8 * n_bytes, n_bytes)
    assert (eager.pedigree, eager.launches, fused.launches) == (Pedigree.COUNTED, 8, 1)
    assert eager.time is not None
    assert eager.time.median_us == pytest.approx(8 * n_bytes / 4e6)
    assert eager.speed_up is None
    assert fused.speed_up is not None
    assert fused.speed_up.ratio == pytest.approx(8.0)
    assert eager.peak_bytes == n_bytes


@pytest.mark.parametrize(
    "change",
    [
        lambda run: replace(run, seed=1),
        lambda run: replace(run, device=CPU),
        lambda run: replace(run, chain=replace(run.chain, direction=Direction.FORWARD_BACKWARD)),
        lambda run: replace(
            run, chain=replace(run.chain, parameters={**run.chain.parameters, "dtype": "fp32"})
        ),
        lambda run: replace(run, versions=replace(run.versions, torch="2.13.0")),
    ],
    ids=["seed", "device", "direction", "parameter", "torch"],
)
def test_what_differs_in_more_than_the_parameter_is_another_sweep(change: object) -> None:
    assert callable(change)
    runs = k_sweep((1, 2))

    assert len(sweeps_in([*runs, *map(change, runs)])) == 2


def test_a_series_is_called_as_sentences_call_its_strategy() -> None:
    runs = [
        replace(run, strategy=replace(run.strategy, title="Eager, as written"))
        for run in k_sweep((1,))[:1]
    ]
    later = [replace(run, strategy=StrategyInfo(name="later", title="A later one")) for run in runs]

    assert [series.title for series in only([*runs, *later]).series] == ["eager", "A later one"]


def test_points_of_two_parameters_are_two_sweeps() -> None:
    runs = k_sweep((1,))

    first, second = sweeps_in([*runs, *(replace(run, swept="elements") for run in runs)])

    assert (first.name, second.name) == ("k", "elements")


def test_runs_that_are_no_points_are_no_sweep() -> None:
    assert sweeps_in([eager_scores()]) == ()
    # Its parameter is of another chain.
    assert sweeps_in([replace(eager_scores(), swept="k")]) == ()


def test_the_newest_run_of_a_point_counts_unless_it_failed() -> None:
    first = k_sweep((1,))
    again = timed(first[1], 5.0)

    assert list(only([*first, again]).runs) == [first[0], again]
    assert only([*first, failed(first[1], NO_ROOM)]).runs == tuple(first)


def test_without_eager_the_first_strategy_is_the_baseline() -> None:
    fused = [run for run in k_sweep() if run.strategy.name == "compile"]

    assert only(fused).baseline is None
    slower = [replace(run, strategy=replace(run.strategy, option="max-autotune")) for run in fused]
    assert only([*fused, *slower]).baseline == "compile"


def test_a_failed_point_keeps_its_reason_and_has_no_numbers() -> None:
    sweep = only(seq_len_sweep())
    point = sweep.series[0].at(8192)

    assert point is not None
    assert point.error == NO_ROOM
    assert (point.time, point.traffic, point.peak_bytes, point.distrust) == (None, None, None, "")
    # With nothing to be held against, the other strategy has a time and no speed-up.
    other = sweep.series[1].at(8192)
    assert other is not None
    assert other.time is not None
    assert other.speed_up is None


def test_a_point_whose_check_failed_has_no_speed_up_to_tell() -> None:
    runs = k_sweep((1, 2))
    runs[3] = wrong(runs[3])

    point = only(runs).series[1].at(2)

    assert point is not None
    assert point.speed_up is not None
    assert point.speed_up.verdict is Verdict.WITHHELD
    assert point.distrust
    assert point.usable_time is None


@pytest.mark.parametrize(
    ("ratios", "payoff", "at"),
    [
        ((0.5, 0.8, 1.3, 1.5), Payoff.FROM, 4),
        ((1.3, 0.8, 1.3, 1.5), Payoff.FROM, 4),
        ((1.3, 1.2, 1.3, 1.5), Payoff.FROM_THE_START, 1),
        ((0.5, 1.0, 0.9, 0.8), Payoff.NEVER, None),
        # Half a per cent lies within the quartiles of both.
        ((0.5, 0.8, 1.005, 1.5), Payoff.FROM, 8),
        ((1.005, 1.005, 1.005, 1.005), Payoff.NEVER, None),
        ((0.5, 1.5, 1.5, 0.9), Payoff.NOT_AT_THE_END, None),
    ],
)
def test_fusion_pays_from_where_it_is_faster_for_good(
    ratios: tuple[float, ...], payoff: Payoff, at: int | None
) -> None:
    found = crossover(only(with_ratios(ratios)), "compile")

    assert found is not None
    assert found.payoff is payoff
    assert (found.at.value if found.at else None) == at


def test_points_that_cannot_be_compared_neither_make_nor_break_a_payoff() -> None:
    runs = with_ratios((0.5, 1.5, 0.2, 1.5, 1.5))
    runs[5] = wrong(runs[5])
    runs[8] = failed(runs[8], NO_ROOM)

    found = crossover(only(runs), "compile")

    assert found is not None
    assert found.at is not None
    assert (found.at.value, found.left_out) == (2, (4, 16))


def test_nothing_pays_where_there_is_nothing_to_compare() -> None:
    assert crossovers(only(variant_sweep())) == ()
    assert crossovers(only(k_sweep((4,)))) == ()
    assert crossover(only(k_sweep()), "eager") is None
    assert crossover(only(k_sweep()), "sdpa") is None


def test_traffic_grows_by_a_line_or_stays() -> None:
    sweep = only(k_sweep())
    eager, fused = growth(sweep, "eager"), growth(sweep, "compile")

    assert eager is not None
    assert fused is not None
    assert eager.bytes_a_unit == pytest.approx(4 * (1 << 26))
    assert fused.is_constant
    assert fused.mean_bytes == pytest.approx(4 * (1 << 26))


def test_traffic_that_follows_no_line_is_not_fitted() -> None:
    # It grows with the square of seq_len.
    assert growth(only(seq_len_sweep()), "compile") is None
    assert growth(only(k_sweep((1, 2))), "eager") is None


def test_the_findings_of_k_tell_when_it_pays_and_how_traffic_grows() -> None:
    pays, grows = findings(only(k_sweep()))

    assert pays == ("torch.compile is faster than eager from k 2 on (2.00× there, 32.0× at 32).")
    assert grows == (
        "eager reads and writes 268 MB more for each k (counted); torch.compile stays at 268 MB "
        "(counted). Read off 6 points."
    )


def test_launching_is_named_as_the_reason_only_with_evidence() -> None:
    pays = short_finding(only(seq_len_sweep()))

    # One kernel of 6.29 µs, and 24 µs on the host: a launch and the guards.
    assert pays == (
        "torch.compile is faster than eager from seq_len 2,048 on (3.00× there, 3.00× at 4,096); "
        "below that launching dominates: at 1,024 its kernels take 6.29 µs and the host takes "
        "24.0 µs to launch them."
    )
    without = [
        replace(run, timing=replace(run.timing, host=None)) if run.timing else run
        for run in seq_len_sweep()
    ]
    assert "launching" not in short_finding(only(without))


@pytest.mark.parametrize(
    ("ratios", "sentence"),
    [
        ((1.25, 1.5), "is faster than eager at every k compared: 1.25× at 1, 1.50× at 2."),
        ((0.5, 0.9), "is nowhere faster than eager beyond noise: 2 values of k compared, up to 2."),
        ((2.0, 0.9), "is faster than eager at some k and not at the largest compared, 2."),
        ((0.5, 2.0), "is faster than eager from k 2 on (2.00× there)."),
    ],
)
def test_every_kind_of_payoff_has_its_sentence(ratios: tuple[float, ...], sentence: str) -> None:
    assert short_finding(only(with_ratios(ratios))) == f"torch.compile {sentence}"


def test_of_variants_the_fastest_is_named_for_each_strategy() -> None:
    eager, fused = findings(only(variant_sweep()))

    assert eager == "eager: variant=one is the fastest, 268 µs; variant=three takes 2.00× as long."
    assert fused.startswith("torch.compile: variant=one is the fastest, 67.1 µs")


def test_where_the_variant_matters_most_comes_first() -> None:
    first, second, third, fourth = variant_sweep()
    runs = [first, second, timed(third, 250.0), timed(fourth, 20.0)]
    told = [each.partition(":")[0] for each in findings(only(runs))]
    assert told == ["torch.compile", "eager"]


def test_variants_within_noise_are_equal() -> None:
    runs = [timed(run, 100.0) for run in variant_sweep()]

    assert "variant=three and variant=one are equal within noise" in findings(only(runs))[0]


def test_failures_and_failed_checks_are_told() -> None:
    runs = seq_len_sweep()
    runs[3] = wrong(runs[3])

    told = findings(only(runs))

    assert "eager did not fit in memory at seq_len 8,192." in told
    assert told[-1] == ("The times of torch.compile at seq_len 512 are not used: a check failed.")


@pytest.mark.parametrize(
    ("sentence", "label"),
    [
        (NO_ROOM, "out of memory"),
        ("compile ran out of memory; choose a smaller rows or batch.", "out of memory"),
        (
            "The worker was killed from outside (signal 9), as the system does when memory runs "
            "out; choose a smaller size or close other programs, then run again.",
            "out of memory",
        ),
        ("The worker crashed (SIGSEGV); run again to start a new one.", "failed"),
    ],
)
def test_why_a_point_failed_has_a_short_label(sentence: str, label: str) -> None:
    assert failure_label(failed(k_sweep((1,))[0], sentence)) == label


def test_points_and_sweeps_are_called_by_their_values() -> None:
    sweep = only(seq_len_sweep())
    series = sweep.series[1]

    assert heading(sweep) == "Attention scores: seq_len 256 to 8,192 (6 values)"
    assert point_title(sweep.runs[0]) == "eager at seq_len=256"
    assert point_words(sweep, series, series.points[3]) == (
        "torch.compile at seq_len 2,048",
        "25.2 µs, half of 5 calls between 25.1 µs and 25.3 µs, cold L2",
        "over eager: 3.00×",
        "67.1 MB read, 33.6 MB written, counted",
        "1 kernel, peak 33.6 MB",
    )
    assert [value_text(value) for value in (8192, 0.1, "bf16", True)] == [
        "8,192", "0.1", "bf16", "True",
    ]  # fmt: skip
