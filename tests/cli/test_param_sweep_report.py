"""The table of a parameter sweep: what stands in its cells and under it."""

from __future__ import annotations

from dataclasses import replace

from explorer.cli.report import report
from explorer.model.run import Bytes
from tests.fixtures_param_sweep import (
    NO_ROOM,
    failed,
    k_sweep,
    seq_len_sweep,
    variant_sweep,
    wrong,
)
from tests.fixtures_sweep import eager_scores


def row(text: str, value: str) -> list[str]:
    """The cells of a value's row."""
    line = next(line for line in text.splitlines() if line.split()[:1] == [value])
    return [cell for cell in line.split("  ") if cell.strip()]


def test_a_row_has_the_numbers_of_every_strategy() -> None:
    told = report(k_sweep())

    assert [cell.strip() for cell in row(told, "8")] == [
        "8", "537 µs", "2.15 GB", "268 MB", "67.1 µs", "8.00×", "268 MB", "134 MB",
    ]  # fmt: skip
    assert "traffic, counted" in told
    assert "time: median, cold L2;" in told
    # The parameter that is swept is none of those that stay.
    assert "\n  elements=67108864, dtype=bf16\n" in told


def test_a_point_that_failed_says_why_in_its_cell_and_at_length_below() -> None:
    told = report(seq_len_sweep())

    assert [cell.strip() for cell in row(told, "8,192")] == [
        "8,192", "out of memory", "–", "–", "403 µs", "–", "1.61 GB", "537 MB",
    ]  # fmt: skip
    assert f"\n  eager at seq_len=8192: out of memory: {NO_ROOM}" in told.replace("\n    ", " ")


def test_a_failed_check_is_told_first_and_its_speed_up_withheld() -> None:
    runs = seq_len_sweep()
    runs[3] = wrong(runs[3])
    told = report(runs)

    cells = [cell.strip() for cell in row(told, "512")]
    assert cells[4:6] == ["24.0 µs !", "withheld"]
    assert told.index("CHECK FAILED: compile at seq_len=512: Its result is wrong") < told.index(
        "swept:"
    )
    assert "!: a check failed, the time is not to be used" in told


def test_a_warning_stands_once_with_its_points() -> None:
    runs = [replace(run, warnings=("It was noisy.",)) for run in k_sweep((1, 2, 4))]
    few = [replace(run, warnings=()) for run in runs[:-1]]

    assert "\n  6 runs: It was noisy." in report(runs)
    assert "\n  compile at k=4: It was noisy." in report([*few, runs[-1]])


def test_bytes_of_several_pedigrees_have_theirs_beside_them() -> None:
    runs = k_sweep((1, 2, 4))
    launches = tuple(
        replace(
            launch,
            bytes_read=Bytes(modelled=launch.bytes_read.modelled),
            bytes_written=Bytes(modelled=launch.bytes_written.modelled),
        )
        for launch in runs[0].launches
    )
    told = report([replace(runs[0], launches=launches), *runs[1:]])

    assert row(told, "1")[2].strip() == "268 MB modelled"
    assert row(told, "2")[2].strip() == "537 MB counted"


def test_other_runs_beside_a_sweep_have_their_own_table() -> None:
    told = report([eager_scores(), *k_sweep(), *variant_sweep()])

    headings = [line for line in told.splitlines() if line.endswith(("scores)", "elementwise)"))]
    assert headings == [
        "Attention scores (attention-scores)", "Elementwise ops in a row (elementwise)",
        "Elementwise (elementwise)",
    ]  # fmt: skip


def test_a_point_that_alone_was_run_is_told() -> None:
    told = report([failed(k_sweep((1,))[0], "The worker crashed.")])

    assert [cell.strip() for cell in row(told, "1")] == ["1", "failed", "–", "–"]
    assert "eager at k=1: failed: The worker crashed." in told
