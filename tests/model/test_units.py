"""Numbers as people read them."""

import pytest

from explorer.model.units import (
    format_bytes,
    format_flops_rate,
    format_rate,
    format_ratio,
    format_us,
    split_bytes,
    split_us,
    three_digits,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.1234, "0.123"),
        (-0.5, "-0.500"),
        (0.9994, "0.999"),
        (0.9996, "1.00"),
        (1, "1.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (53.55, "53.5"),
        (99.96, "100"),
        (100, "100"),
        (1970.4, "1,970"),
        (1234567, "1,234,567"),
        (-2147.9, "-2,148"),
    ],
)
def test_about_three_digits(value: float, text: str) -> None:
    assert three_digits(value) == text


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_960, "1.00 MB"),
        (33_554_432, "33.6 MB"),
        (1_073_741_824, "1.07 GB"),
        (999_999_999, "1.00 GB"),
        (150e9, "150 GB"),
        (4.276e12, "4.28 TB"),
        (5e15, "5,000 TB"),
    ],
)
def test_bytes_are_decimal(n_bytes: float, text: str) -> None:
    assert format_bytes(n_bytes) == text
    assert split_bytes(n_bytes) == tuple(text.split())


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "0 µs"),
        (1.8, "1.80 µs"),
        (999.4, "999 µs"),
        (999.7, "1.00 ms"),
        (5350, "5.35 ms"),
        (999_990, "1.00 s"),
        (24.8e6, "24.8 s"),
    ],
)
def test_times_start_from_microseconds(time_us: float, text: str) -> None:
    assert format_us(time_us) == text
    assert split_us(time_us) == tuple(text.split())


def test_rates_and_ratios() -> None:
    assert format_rate(4.276e12) == "4.28 TB/s"
    assert format_flops_rate(684e12) == "684 TFLOP/s"
    assert format_flops_rate(999.9e9) == "1.00 TFLOP/s"
    assert format_flops_rate(12) == "12 FLOP/s"
    assert format_ratio(1.416) == "1.42×"
    assert format_ratio(11.84) == "11.8×"
