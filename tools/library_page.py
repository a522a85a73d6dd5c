"""Writes the tables of ``docs/library-on-an-h200.md`` from the CSV files of a measured library.

``python tools/library_page.py library.csv [library.csv...] > tables.md``: a table a chain and
direction, its strategies in the order in which they ran. Figures are those of the files; nothing is
worked out here but sums of bytes and the least of several times.
"""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

COLUMNS = (
    "strategy", "time", "kernels", "speed-up", "launches", "counted", "modelled", "peak",
    "of the floor",
)  # fmt: skip
HEADER = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
Row = Mapping[str, str]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=Path, nargs="+")
    options = parser.parse_args()
    rows = [row for path in options.tables for row in read(path)]
    sys.stdout.write("\n".join(page(rows)) + "\n")


def read(path: Path) -> list[Row]:
    """The rows of a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def page(rows: Iterable[Row]) -> Iterator[str]:
    """A heading and a table for each chain, direction and setting."""
    for (chain, direction), of_chain in groupby(rows, lambda r: (r["chain"], r["direction"])):
        backward = "" if direction == "forward" else ", forward + backward"
        yield f"\n### {chain}{backward}\n"
        for parameters, runs in groupby(of_chain, lambda r: r["parameters"]):
            yield f"`{parameters}`\n"
            yield HEADER
            yield from (line(row) for row in runs)
            yield ""


def line(row: Row) -> str:
    """A row of a table."""
    strategy = f"`{row['strategy']}`"
    if row["error"]:
        return f"| {strategy} | {row['error']} |{' |' * (len(COLUMNS) - 2)}"
    if row["backend"]:
        strategy += f", {row['backend']}"
    cells = (
        strategy,
        time(row["median_us"]),
        time(row["kernels_us"]),
        speed_up(row),
        row["launches"],
        counted(row),
        megabytes(row["modelled_read_mb"], row["modelled_written_mb"]),
        megabytes(row["peak_mb"]),
        row["share_of_floor"],
    )
    return f"| {' | '.join(cells)} |"


def time(us: str) -> str:
    """Microseconds, or milliseconds from a thousand on; empty if not known."""
    if not us:
        return ""
    value = float(us)
    return f"{value:.1f} µs" if value < 1000 else f"{value / 1000:.2f} ms"


def speed_up(row: Row) -> str:
    """The ratio, or in words why there is none."""
    if row["passed"] == "False":
        return "failed its check"
    if row["verdict"] == "equal":
        return "equal"
    return f"{float(row['speed_up']):.2f}" if row["speed_up"] else ""


def counted(row: Row) -> str:
    """Counted bytes, read and written together; what has another pedigree is not shown here."""
    if row["pedigree"] != "counted":
        return ""
    return megabytes(row["read_mb"], row["written_mb"])


def megabytes(*parts: str) -> str:
    """A sum of megabytes; empty where one is not known."""
    if not all(parts):
        return ""
    whole = sum(map(float, parts))
    return f"{whole:.0f} MB" if whole < 1000 else f"{whole / 1000:.2f} GB"


if __name__ == "__main__":
    main()
