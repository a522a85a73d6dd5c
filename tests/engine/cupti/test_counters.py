"""Readings over a fake CUPTI: order, room, passes, and that the hardware is always given back."""

import pytest

from explorer.engine.cupti import counters as counters_module
from explorer.engine.cupti import structs
from explorer.engine.cupti.counters import DramCounters, RangeBytes, counter_ability
from explorer.engine.cupti.errors import INSUFFICIENT_PRIVILEGES, CounterRefused
from tests.engine.cupti.fake_cupti import FakeContext, FakeCupti


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    monkeypatch.setattr(counters_module, "PrimaryContext", FakeContext)
    return FakeCupti()


def launches(cupti: FakeCupti, count: int) -> None:
    for place in range(count):
        cupti.launch(1000.0 + place, 2000.0 + place, 100.0, 1500.0)


def test_each_launch_gives_a_range_in_order(cupti: FakeCupti) -> None:
    with DramCounters(library=cupti) as counters:
        reading = counters.measure(lambda: launches(cupti, 3))
    assert reading.ranges == tuple(
        RangeBytes(
            bytes_read=1000 + place,
            bytes_written=2000 + place,
            bytes_requested=3200,  # 100 sectors of 32 bytes
            duration_us=1.5,
        )
        for place in range(3)
    )
    assert (reading.bytes_read, reading.bytes_written) == (3003, 6003)
    assert (reading.by_launch, reading.passes, reading.run_calls) == (True, 1, 1)
    assert (reading.chip, reading.cupti_release, reading.cache_policy) == ("GH100", "13.0", "none")
    assert reading.metric_names[:2] == ("dram__bytes_read.sum", "dram__bytes_write.sum")
    assert reading.set_up_s > 0.0
    assert reading.run_s > 0.0


@pytest.mark.parametrize(
    ("expected", "launched", "run_calls"), [(3, 3, 1), (2, 3, 2), (1, 7, 2), (1, 8, 3), (0, 0, 1)]
)
def test_work_with_more_launches_than_room_is_run_again(
    cupti: FakeCupti, expected: int, launched: int, run_calls: int
) -> None:
    with DramCounters(library=cupti) as counters:
        reading = counters.measure(lambda: launches(cupti, launched), expected_launches=expected)
    assert [item.bytes_read for item in reading.ranges] == [1000 + i for i in range(launched)]
    assert reading.run_calls == run_calls


def test_reported_drops_run_the_work_again_too(cupti: FakeCupti) -> None:
    cupti.drops = [2]
    with DramCounters(library=cupti) as counters:
        reading = counters.measure(lambda: launches(cupti, 3))
    assert (len(reading.ranges), reading.run_calls) == (3, 2)


def test_a_section_without_a_range_is_refused(cupti: FakeCupti) -> None:
    cupti.lost_ranges = 1
    with (
        DramCounters(library=cupti) as counters,
        pytest.raises(CounterRefused, match="gave 1 ranges for 2"),
    ):
        counters.measure_sections([lambda: None, lambda: None])


def test_endlessly_many_launches_are_refused(
    cupti: FakeCupti, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters_module, "_MOST_ROOM", 16)
    with (
        DramCounters(library=cupti) as counters,
        pytest.raises(CounterRefused, match="measure a smaller part"),
    ):
        counters.measure(lambda: launches(cupti, 100))


def test_sections_are_totals_without_a_time_of_their_own(cupti: FakeCupti) -> None:
    sections = [lambda count=count: launches(cupti, count) for count in (2, 0, 1)]
    with DramCounters(library=cupti) as counters:
        reading = counters.measure_sections(sections)
    assert [item.bytes_read for item in reading.ranges] == [2001, 0, 1000]
    assert [item.duration_us for item in reading.ranges] == [None] * 3
    assert not reading.by_launch
    assert cupti.modes == (structs.USER_RANGE, structs.USER_REPLAY)


def test_a_total_is_one_range(cupti: FakeCupti) -> None:
    with DramCounters(library=cupti) as counters:
        reading = counters.measure_total(lambda: launches(cupti, 4))
        with pytest.raises(ValueError, match="no section"):
            counters.measure_sections([])
    assert [item.bytes_written for item in reading.ranges] == [8006]


def test_one_pass_needs_no_replay_of_kernels(cupti: FakeCupti) -> None:
    with DramCounters(library=cupti) as counters:
        counters.measure(lambda: launches(cupti, 1))
    assert cupti.modes == (structs.AUTO_RANGE, structs.USER_REPLAY)


def test_several_passes_replay_kernels_and_run_totals_again(cupti: FakeCupti) -> None:
    cupti.passes = 3
    with DramCounters(library=cupti) as counters:
        by_launch = counters.measure(lambda: launches(cupti, 2))
        assert cupti.modes == (structs.AUTO_RANGE, structs.KERNEL_REPLAY)
        total = counters.measure_total(lambda: launches(cupti, 2))
    assert (by_launch.passes, by_launch.run_calls) == (3, 1)
    assert (total.passes, total.run_calls) == (3, 3)


def test_passes_that_do_not_end_are_refused(cupti: FakeCupti) -> None:
    cupti.passes = 1000
    with (
        DramCounters(library=cupti) as counters,
        pytest.raises(CounterRefused, match="asked for another run"),
    ):
        counters.measure_total(lambda: None)
    assert not cupti.holds_counters


def test_work_that_fails_gives_the_counters_back(cupti: FakeCupti) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with DramCounters(library=cupti) as counters:
        for measure in (counters.measure, counters.measure_total):
            with pytest.raises(ZeroDivisionError):
                measure(fail)
            assert not cupti.holds_counters
    # stopped before it was disabled, both times
    assert cupti.calls.count("cuptiRangeProfilerStop") == 2


@pytest.mark.parametrize(
    "function",
    [
        "cuptiRangeProfilerGetCounterDataSize",
        "cuptiRangeProfilerSetConfig",
        "cuptiRangeProfilerStart",
        "cuptiRangeProfilerDecodeData",
        "cuptiProfilerHostEvaluateToGpuValues",
    ],
)
def test_a_refusal_on_the_way_gives_the_counters_back(cupti: FakeCupti, function: str) -> None:
    with DramCounters(library=cupti) as counters:
        cupti.refuse = {function: 26}
        with pytest.raises(CounterRefused) as refused:
            counters.measure(lambda: launches(cupti, 1))
        assert (refused.value.code, refused.value.call) == (26, function)
        assert not cupti.holds_counters
        cupti.refuse = {}
        assert len(counters.measure(lambda: launches(cupti, 1)).ranges) == 1


def test_a_refused_disable_is_told_unless_something_else_failed_first(cupti: FakeCupti) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    cupti.refuse = {"cuptiRangeProfilerDisable": 999}
    with DramCounters(library=cupti) as counters:
        with pytest.raises(CounterRefused):
            counters.measure(lambda: None)
        with pytest.raises(ZeroDivisionError):
            counters.measure(fail)


@pytest.mark.parametrize(
    "function", ["cuptiProfilerInitialize", "cuptiProfilerHostConfigAddMetrics"]
)
def test_opening_that_is_refused_leaves_nothing_open(
    cupti: FakeCupti, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    contexts: list[FakeContext] = []

    def context(device_index: int) -> FakeContext:
        contexts.append(FakeContext(device_index))
        return contexts[-1]

    monkeypatch.setattr(counters_module, "PrimaryContext", context)
    cupti.refuse = {function: 15}
    with pytest.raises(CounterRefused):
        DramCounters(library=cupti)
    assert [item.is_closed for item in contexts] == [True]
    opened = cupti.calls.count("cuptiProfilerHostInitialize")
    assert cupti.calls.count("cuptiProfilerHostDeinitialize") == opened


def test_closing_gives_everything_back_once(cupti: FakeCupti) -> None:
    counters = DramCounters(library=cupti)
    counters.close()
    counters.close()
    opened = cupti.calls.count("cuptiProfilerHostInitialize")
    assert cupti.calls.count("cuptiProfilerHostDeinitialize") == opened


def test_the_ability_is_a_reading_of_nothing(
    cupti: FakeCupti, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters_module, "find_libcupti", lambda: cupti.path)
    monkeypatch.setattr(counters_module, "CuptiLibrary", lambda path: cupti)
    ability = counter_ability()
    assert ability.available
    assert "GH100" in ability.sentence
    assert "one pass" in ability.sentence
    assert not cupti.holds_counters
    cupti.refuse = {"cuptiRangeProfilerStart": INSUFFICIENT_PRIVILEGES}
    refused = counter_ability()
    assert (refused.available, refused.code) == (False, INSUFFICIENT_PRIVILEGES)
    assert "administrators" in refused.sentence


def test_without_a_driver_the_ability_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver(device_index: int) -> FakeContext:
        raise CounterRefused("there is no NVIDIA driver here")

    monkeypatch.setattr(counters_module, "PrimaryContext", no_driver)
    ability = counter_ability()
    assert not ability.available
    assert ability.sentence == "there is no NVIDIA driver here"
