"""The arithmetic of the check; the check itself needs a GPU and is in tests/gpu."""

import pytest

from explorer.engine.measure.known_bytes import KnownBytesCheck


@pytest.mark.parametrize(
    ("expected", "counted", "error"),
    [
        ((1000, 1000), (1000, 1000), 0.0),
        ((1000, 1000), (1010, 980), 0.01),  # 20 of 2000
        ((1000, 0), (1000, 10), 0.01),  # a read that writes is wrong too
        ((0, 1000), (11, 1000), 0.011),
    ],
)
def test_the_larger_difference_counts_against_all_bytes(
    expected: tuple[int, int], counted: tuple[int, int], error: float
) -> None:
    check = KnownBytesCheck(
        name="copy",
        expected_read=expected[0],
        expected_written=expected[1],
        counted_read=counted[0],
        counted_written=counted[1],
    )
    assert check.relative_error == pytest.approx(error)
    assert check.agrees is (error <= 0.01)
