"""Every chip of a real CUPTI, without a GPU: its host API answers from tables of its own."""

import ctypes

import pytest

from explorer.engine.cupti import structs
from explorer.engine.cupti.errors import INVALID_PARAMETER, CounterRefused
from explorer.engine.cupti.host import Host, supported_chips
from explorer.engine.cupti.library import MEMORY_MAP, CuptiLibrary, find_libcupti
from explorer.engine.cupti.metrics import choose_for_chip

# Integrated chips, which share the host's memory and have no counters of bytes.
WITHOUT_DRAM_COUNTERS = {"GV11B", "GA10B", "GB10B", "GB20B"}


@pytest.fixture(scope="module")
def cupti() -> CuptiLibrary:
    try:
        path = find_libcupti()
    except CounterRefused as refused:
        pytest.skip(f"no libcupti to ask: {refused}")
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        # From 13.2 on it needs the driver even for its tables: it fails, or crashes, without one.
        if b"cuptiProfilerHostGetSinglePassSets" in path.read_bytes():
            pytest.skip(f"{path.name} is newer than 13.1 and answers only where there is a driver")
    return CuptiLibrary(path)


def test_the_release_is_one_whose_layouts_are_known(cupti: CuptiLibrary) -> None:
    assert cupti.is_known
    assert cupti.release >= structs.OLDEST_RELEASE


def test_its_tables_come_from_the_library_beside_it(cupti: CuptiLibrary) -> None:
    supported_chips(cupti)
    assert str(cupti.path.with_name("libnvperf_host.so")) in MEMORY_MAP.read_text()


def test_every_chip_with_dram_counters_counts_them_in_one_pass(cupti: CuptiLibrary) -> None:
    chips = supported_chips(cupti)
    refused = set()
    for chip in chips:
        try:
            choice = choose_for_chip(cupti, chip)
        except CounterRefused:
            refused.add(chip)
            continue
        assert choice.passes == 1, chip
        assert choice.requested, chip
        assert choice.duration, chip
        is_geforce_50 = chip in {"GB202", "GB203", "GB205", "GB206", "GB207"}
        expected = "dram__bytes_op_read.sum" if is_geforce_50 else "dram__bytes_read.sum"
        assert choice.read == expected, chip
    assert {"GH100", "GA100", "AD102", "TU102"} <= set(chips)
    assert refused <= WITHOUT_DRAM_COUNTERS


def test_a_chip_that_does_not_exist_is_refused(cupti: CuptiLibrary) -> None:
    with pytest.raises(CounterRefused) as refused:
        Host(cupti, "GX999")
    # 12.6 has no result of its own for it
    assert refused.value.code in (INVALID_PARAMETER, 46)


def test_a_metric_that_does_not_exist_is_refused(cupti: CuptiLibrary) -> None:
    with pytest.raises(CounterRefused):
        Host(cupti, "GH100", ["dram__bytes_wished_for.sum"])


def test_a_size_of_another_release_is_refused_by_the_library(
    cupti: CuptiLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (13, 5) if cupti.release < (13, 2) else (13, 0)
    monkeypatch.setattr(cupti, "release", other)
    with pytest.raises(CounterRefused) as refused:
        Host(cupti, "GH100")
    assert refused.value.code == INVALID_PARAMETER
