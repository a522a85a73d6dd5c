"""Numbers as people read them: bytes in decimal units, times, rates and ratios.

Decimal units throughout (1 MB = 10**6 bytes), because bandwidths are quoted in GB/s
and a traffic divided by a time must give the rate on the screen.
"""

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))

# 999.5 of a unit would be printed as 1,000 of it: from there on the next unit is taken.
_ROUNDS_UP = 0.9995

BYTES_PER_ELEMENT: dict[str, float] = {
    "fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "fp8": 1,
    "i64": 8, "i32": 4, "i16": 2, "i8": 1, "u8": 1, "bool": 1, "c64": 8,
}  # fmt: skip
"""Bytes of one element, by the dtype names used on screen and in ``--set dtype=``."""


def three_digits(value: float) -> str:
    """Format ``value`` with about three significant digits and no exponent: 0.123, 5.35, 1,970."""
    size = abs(value)
    if size == 0:
        return "0"
    if size >= 100 * _ROUNDS_UP:
        return f"{value:,.0f}"
    if size >= 10 * _ROUNDS_UP:
        return f"{value:.1f}"
    if size >= _ROUNDS_UP:
        return f"{value:.2f}"
    return f"{value:.3f}"


def split_bytes(n_bytes: float) -> tuple[str, str]:
    """``1_074e6`` -> ``("1.07", "GB")``: number and unit apart, for a card that sets them apart."""
    for factor, prefix in _PREFIXES:
        if abs(n_bytes) >= factor * _ROUNDS_UP:
            return three_digits(n_bytes / factor), f"{prefix}B"
    return f"{n_bytes:.0f}", "B"


def format_bytes(n_bytes: float) -> str:
    """``1_074e6`` -> ``"1.07 GB"``."""
    return " ".join(split_bytes(n_bytes))


def split_us(time_us: float) -> tuple[str, str]:
    """``5350`` -> ``("5.35", "ms")``; microseconds in, number and unit apart out."""
    if abs(time_us) >= 1e6 * _ROUNDS_UP:
        return three_digits(time_us / 1e6), "s"
    if abs(time_us) >= 1e3 * _ROUNDS_UP:
        return three_digits(time_us / 1e3), "ms"
    return three_digits(time_us), "µs"


def format_us(time_us: float) -> str:
    """``5350`` -> ``"5.35 ms"``."""
    return " ".join(split_us(time_us))


def format_rate(bytes_per_s: float) -> str:
    """``4.276e12`` -> ``"4.28 TB/s"``."""
    return f"{format_bytes(bytes_per_s)}/s"


def format_flops_rate(flops_per_s: float) -> str:
    """``684e12`` -> ``"684 TFLOP/s"``."""
    for factor, prefix in _PREFIXES:
        if abs(flops_per_s) >= factor * _ROUNDS_UP:
            return f"{three_digits(flops_per_s / factor)} {prefix}FLOP/s"
    return f"{flops_per_s:.0f} FLOP/s"


def format_ratio(ratio: float) -> str:
    """``1.416`` -> ``"1.42×"``; from 10 on one decimal, from 100 on none."""
    return f"{three_digits(ratio)}×"
