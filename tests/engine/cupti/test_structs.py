"""Sizes as a C++ compiler gives them for the headers of each release."""

import pytest

from explorer.engine.cupti import structs
from explorer.engine.cupti.structs import Block, Release, block_size, release_of

RELEASES: tuple[Release, ...] = (
    (12, 6),
    (12, 8),
    (12, 9),
    (13, 0),
    (13, 1),
    (13, 2),
    (13, 3),
    (13, 4),
    (13, 5),
)
# The size every release gives to the macro ..._STRUCT_SIZE.
UNCHANGED: tuple[tuple[type[Block], int], ...] = (
    (structs.Initialize, 16),
    (structs.ChipName, 32),
    (structs.SupportedChips, 32),
    (structs.HostDeinitialize, 24),
    (structs.BaseMetrics, 48),
    (structs.AddMetrics, 40),
    (structs.ConfigImageSize, 32),
    (structs.ConfigImage, 40),
    (structs.PassCount, 40),
    (structs.Evaluate, 72),
    (structs.RangeObject, 24),
    (structs.RangeDataSize, 64),
    (structs.RangeDataInitialize, 40),
    (structs.RangeConfig, 90),
    (structs.RangePush, 32),
    (structs.RangeStop, 41),
    (structs.RangeDecode, 32),
    (structs.RangeDataInfo, 40),
)
# The three that grew: sizes in the order of RELEASES.
GROWN: tuple[tuple[type[Block], tuple[int, ...]], ...] = (
    (structs.DeviceSupported, (52, 52, 52, 52, 56, 56, 56, 56, 56)),
    (structs.HostInitialize, (48, 48, 48, 48, 48, 56, 56, 56, 56)),
    (structs.RangeEnable, (32, 32, 32, 32, 32, 32, 32, 36, 36)),
)


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_most_blocks_have_one_size(release: Release) -> None:
    sizes = {block: block_size(block, release) for block, _ in UNCHANGED}
    assert sizes == dict(UNCHANGED)


@pytest.mark.parametrize(("block", "sizes"), GROWN, ids=str)
def test_blocks_that_grew_have_the_size_of_the_release(
    block: type[Block], sizes: tuple[int, ...]
) -> None:
    assert tuple(block_size(block, release) for release in RELEASES) == sizes


def test_every_block_is_in_the_tables() -> None:
    listed = {block for block, _ in (*UNCHANGED, *GROWN)}
    assert set(Block.__subclasses__()) == listed


def test_an_unknown_release_gets_the_newest_layout() -> None:
    for block, sizes in GROWN:
        assert block_size(block, (14, 0)) == sizes[-1]


@pytest.mark.parametrize(
    ("api_version", "release"),
    [
        (18, None),
        (23, None),
        (24, (12, 6)),
        (26, (12, 8)),
        (28, (12, 9)),
        (130000, (13, 0)),
        (130001, (13, 0)),
        (130202, (13, 2)),
        (130500, (13, 5)),
        (141203, (14, 12)),
    ],
)
def test_the_library_number_gives_the_release(api_version: int, release: Release | None) -> None:
    assert release_of(api_version) == release
