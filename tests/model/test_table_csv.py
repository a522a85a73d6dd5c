"""Tables as comma-separated values, read back."""

from __future__ import annotations

import csv
import io

from explorer.model.param_sweep import sweeps_in
from explorer.model.table_csv import LAUNCH_COLUMNS, SWEEP_COLUMNS, launches_csv, sweep_csv
from tests.fixtures_param_sweep import NO_ROOM, k_sweep, seq_len_sweep, wrong
from tests.fixtures_runs import cpu_attention


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_a_sweep_has_a_row_a_run_point_by_point() -> None:
    found = rows(sweep_csv(sweeps_in(k_sweep((2, 1)))))

    assert [(row["value"], row["strategy"]) for row in found] == [
        ("1", "eager"), ("1", "compile"), ("2", "eager"), ("2", "compile"),
    ]  # fmt: skip
    assert tuple(found[0]) == SWEEP_COLUMNS
    last = found[-1]
    n_bytes = 2 * (1 << 26)
    assert (last["bytes_read"], last["bytes_written"]) == (str(n_bytes), str(n_bytes))
    assert (last["bytes_are"], last["over"], last["speed_up_is"]) == ("counted", "eager", "faster")
    assert float(last["speed_up"]) == 2.0
    assert float(last["q1_us"]) < float(last["median_us"]) < float(last["q3_us"])
    assert (last["launches"], last["condition"]) == ("1", "cold L2")
    assert found[0]["speed_up"] == ""


def test_what_is_withheld_or_failed_has_no_number_and_says_why() -> None:
    runs = seq_len_sweep()
    runs[3] = wrong(runs[3])
    found = rows(sweep_csv(sweeps_in(runs)))

    assert (found[3]["speed_up"], found[3]["speed_up_is"]) == ("", "withheld")
    assert found[3]["error"].startswith("Its result is wrong")
    assert (found[-2]["median_us"], found[-2]["launches"]) == ("", "")
    assert found[-2]["error"] == NO_ROOM


def test_launches_have_a_row_each_and_a_run_without_any_has_one() -> None:
    eager = cpu_attention("a")
    runs = [eager, seq_len_sweep()[-2]]
    found = rows(launches_csv(runs))

    assert len(found) == len(eager.launches) + 1
    assert tuple(found[0]) == LAUNCH_COLUMNS
    assert [row["launch"] for row in found] == [
        *(str(i + 1) for i in range(len(eager.launches))), "",
    ]  # fmt: skip
    assert found[0]["kernel"] == eager.launches[0].kernel
    assert found[0]["bytes_read_modelled"] == str(eager.launches[0].bytes_read.modelled)
    assert found[0]["bytes_read_counted"] == ""
    assert (found[-1]["run"], found[-1]["error"]) == ("2", NO_ROOM)


def test_lines_end_as_the_format_has_it() -> None:
    text = launches_csv([cpu_attention("a")])

    assert text.count("\r\n") == text.count("\n")
